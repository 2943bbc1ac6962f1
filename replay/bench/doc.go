// Package bench measures LLM servers by several runs, and says what the runs mean
// together.
//
//  1. A [Trial] is one run: a workload under a load. A [Target] makes it: a live
//     endpoint by a replay, or an engine in virtual time (see [Simulation]). A [Dir] keeps it
//     under its [Keys]; an [Experiment] is what a directory holds, whichever command wrote it,
//     and is read as a table, as arms of a comparison, as a sweep or as a frontier.
//  2. Every trial ends in a results file, whichever target made it, and [Summarise]
//     reads it as package report reads any other. So each run of a sweep can be read,
//     compared and judged like one that was made by hand.
//  3. A [Sweep] makes trials at one load after another. Its [SweepResult] has the knee
//     of the latency curve, and the highest load that holds a contract.
//  4. [Plan] computes instances, GPUs and cost from a sweep. [Compare] sets a summary
//     beside a prediction from bandwidth and arithmetic.
//  5. A [SuiteRun] makes the rows of a [Suite] against several servers or engines.
//  6. A [Frontier] compares engines in virtual time: throughput per GPU against
//     interactivity, and the cost and energy of a token.
//  7. A [Served] target starts an engine by a [ServeCommand], and stops it.
//
// # Files
//
//   - trial.go: a Trial and its Load, as --rate and suites write it; summarising a
//     results file with the servers' metrics beside it
//   - dir.go: the directory of an experiment: its state file, which trials are whole, making the missing
//     ones; directories of earlier versions
//   - reading.go: an experiment as a table, as pairs of servers, as a sweep, as a frontier
//   - estimate.go: how long several runs will send
//   - sweep.go: making a sweep: each level's run, confirming the highest load
//   - sessions.go: sweeps by session: settings, what a level measures and whether sessions pile
//     up, ranges of loads
//   - sweepbegins.go: the line about a run before it is made: requests, time and why
//   - sweepladder.go: which load is measured next: the levels by default, an adaptive
//     search, the loads to confirm
//   - sweeplevel.go: the outcome of one level: holds, fails, saturated, untrusted; near saturation;
//     whether the server keeps up
//   - measure.go: the runs of one level together: intervals of its figures, differences beyond
//     chance, how many requests meet the SLO
//   - sweepsearch.go: the search for the highest load, with an interval
//   - sweepresult.go: a SweepResult and its JSON: the highest load and its interval, the
//     knee, why the sweep stopped, new prices
//   - sweeppage.go: a sweep as a page: headline, sentences and plots
//   - sweeptable.go: the table of levels, for pages and terminals: its columns, marks and order
//   - frontier.go: a Frontier: length classes crossed with requests in flight, the levels of each
//     engine, its Pareto front, and which engine is best at which interactivity
//   - frontierlevel.go: one level of a frontier: its requests, the part that is measured, figures
//   - frontierlive.go: levels at a server, kept and taken up
//   - frontieroverlay.go: frontiers that are read again and laid over each other; other prices
//   - frontiertext.go: a frontier as text: which is best, the tables of levels
//   - frontierpage.go: a frontier as a page: the curves of all engines over each other
//   - capacity.go, capacitypage.go: instances, headroom, GPUs and cost for a rate, as text
//     and as a page
//   - predict.go: a summary beside the prediction from bandwidth and arithmetic: ratios,
//     hints, text
//   - metric.go: metrics by name, such as p95_ttft: parsing, labels, units, and figures
//     over several runs
//   - suite.go: what a Suite is: rows, workloads, hypotheses, the built-in suites
//   - suitesessions.go: rows of a suite under a load by session
//   - suiteread.go: reading a suite from YAML: its keys, bounds, defaults of all rows
//   - suiterun.go: making the runs of a suite, row by row and server by server, and
//     listing them for --dry-run
//   - suiteresult.go: the outcome of a suite: figures over repeats, changes and regressions against
//     a baseline, contracts, hypotheses
//   - suitepage.go: a suite as a page: the table across rows, and the table
//     of each row
//   - simulate.go: a Simulation: the workload answered by engines in virtual time, as a
//     results file
//   - served.go: a Target that starts an engine (--serve-cmd), and stops it after the
//     trials; the names of its logs
//   - servecommand.go: the command line that starts an engine: quoting, {port} and other
//     placeholders
//   - engineprocess.go: the engine's process: start on a free port, /health until it is
//     ready, the end of its log in errors, stop
//   - process_unix.go, process_linux.go, process_notlinux.go, process_other.go: process
//     groups, signals, and the lock of a directory, by system
//
// Exported names may change in any release.
package bench
