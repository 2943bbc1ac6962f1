// Package bench measures LLM servers by several runs, and says what the runs mean
// together.
//
//  1. A [Trial] is one run: a workload under a load. A [Target] makes it: a live
//     endpoint by a replay, or an engine in virtual time (see [Simulation]).
//  2. Every trial ends in a results file, whichever target made it, and [Summarise]
//     reads it as package report reads any other. So each run of a sweep can be read,
//     compared and judged like one that was made by hand.
//  3. A [Sweep] makes trials at one load after another. Its [SweepResult] has the knee
//     of the latency curve, and the highest load that holds a contract.
//  4. [Plan] computes instances, GPUs and cost from a sweep. [Compare] sets a summary
//     beside a prediction from bandwidth and arithmetic.
//  5. A [SuiteRun] makes the rows of a [Suite] against several servers or engines. It
//     writes to a directory; a run that was stopped continues there.
//  6. A [Served] target starts an engine by a [ServeCommand], and stops it.
package bench
