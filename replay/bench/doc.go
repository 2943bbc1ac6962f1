// Package bench makes several measured runs, and says what they mean together.
//
//  1. A [Trial] is one run to make: a workload under a load. A [Target] makes it: a
//     live endpoint by a replay, or an engine in virtual time ([Simulate]).
//  2. Every trial ends in a results file, whatever made it, and [Measure] summarises
//     it as package report does for any other. So a run that is part of a sweep can
//     be read, compared and trusted, or not, like one made by hand.
//  3. A [Sweep] makes trials at one load after another and finds the knee and the
//     highest load that holds. [Plan] makes instances, GPUs and cost of it, and
//     [Compare] sets results beside what bandwidth and arithmetic would allow.
//  4. A [SuiteRun] makes the rows of a [Suite] against servers and engines, a column
//     each, in a directory that it goes on in when it was stopped.
//  5. A [Served] target has its engine started for it, and stopped, by a
//     [ServeCommand].
package bench
