// Package replay runs a workload against an endpoint with its original timing.
//
//  1. A [Runner] reads trace.Request rows. A scheduler finds when each row is due, and a
//     feeder prepares it some seconds before: a [result.Prompter] makes the prompt, and a
//     [result.Endpoint] encodes the request. Prepared requests wait in a ready queue that
//     is bounded in time, memory and number. A row that is prepared too late is sent
//     late, keeps its due time, and its lateness is recorded.
//  2. Due times are absolute from one start. In open loop they are the recorded
//     times divided by the speed, or the times of an arrival process. In a causal run
//     a [Lineage] says which rows wait for which: a turn is due when its parents
//     are over and its think time has passed. How far that is from its
//     recorded time is the [result.Drift]. With [Threading] the turn's prompt holds the
//     server's reply to its parent. In a closed loop a row is due when another
//     is over. With a [SessionLoad] the unit of load is the session tree.
//  3. A dispatcher waits on a pacer until the next request is due, and releases it
//     whether or not earlier requests are over. It sends by itself where the endpoint
//     can do so at once; a goroutine reads the answer. A limit of requests in flight
//     holds requests back, and the result counts them.
//  4. Every row that was due ends as one [result.Result], also when the request failed
//     or was cut off. Results are written within a second, in order of completion.
//  5. [Runner.Record] writes a [result.Journal] and finishes it into a results file, with
//     the [result.Run]: the load asked for, and the client's findings about itself.
//     It also measures the servers, see [Metering].
//
// A [Loop] plays rows again and again. A [Primer] fills the server's cache before a
// run. A [Planner] computes what a run would send, without sending it. A [Timetable]
// gives the due times of rows to a caller that has its own clock, such as a simulation.
//
// The package does not know how prompts are made, how requests are sent, or how results
// are judged: other packages implement the interfaces of package result, and cmd wires
// them.
//
// # Memory
//
// A causal run keeps 12 bytes for each row with a parent and 8 for each other row. It
// keeps a state for each row that is not over or whose children are not all read. Rows
// that were read and wait for a parent or for their time take at most 256 MB, and are at
// most a million. At that bound nothing is read until there is room, and a row that was
// due in the meantime is sent late and counted. Prepared requests take at most 256 MB
// more, some seconds ahead. With [Threading], prompts and replies that turns may follow
// take 512 MB at most.
//
// # Files
//
//   - run.go: the Runner from start to end: the dispatcher that sends each request when
//     it is due, the limit in flight, the grace time, and Record, which writes journal
//     and results
//   - outputs.go: what stands for output lengths that a workload does not tell
//   - options.go: the Options of a run, their checks and defaults: speed, duration,
//     closed loop, exclusions of failed rows, hanging up as the user did, think times by
//     the speed
//   - scheduler.go: when a row is due: reading the workload, recorded times or an arrival
//     process, and the counts of rows that are not sent
//   - dependencies.go: turns that wait for earlier turns: which parents are over, and the
//     due time after think and tool time
//   - cutsessions.go: which sessions had rows left when a run ended
//   - lineage.go: the Lineage: which rows wait for which, read from the workload before
//     the run; how many turns have think times; parents that come after their children in
//     the file
//   - feeder.go: preparing rows some seconds ahead, within bounds, and the start of the
//     run's clock
//   - readyqueue.go: prepared requests, soonest first, the bounds on their memory and
//     number, and how many are overdue; the order by due time
//   - share.go: a share of a load that several processes send: what it cannot do alone, the
//     arrivals that are its own, and the start by the wall clock
//   - closedloop.go: a closed loop: its slots, ramp-up, and which request gets the next
//     slot
//   - sessionload.go: SessionLoad: session trees as the unit of load, its settings, and
//     trajectories that begin inside, with the prompts sent before for them
//   - trees.go, treethreads.go: the session trees of a workload: which rows belong together,
//     kept in a private file; which conversation of its tree a row belongs to
//   - livetrees.go, liverow.go: trees that are live: which starts when, and when its rows are
//     due; the caps on waits and on idle time; the known part of a row's prompt
//   - agentwaits.go: waits as AIPerf has them, with their joins and calls of agents
//   - sessiontally.go: counts of session trees
//   - plansessions.go: a dry run of a load of sessions
//   - threads.go: Threading: which turn goes on from which reply, and the memory that
//     replies may take
//   - threadprompt.go, threadreply.go: the prompt of a turn with the server's reply in
//     it; the reply's text and tokens, and how much of such a prompt the server's cache
//     knows
//   - treewindow.go: which whole trees of a load of sessions are measured, and when the run is
//     over by that
//   - window.go: warm-up and cool-down: parsing a Span, and which requests are measured
//   - abort.go: Conditions that end a run, such as errors>5% or ttft-p99>10s, over a
//     window of ten seconds
//   - progress.go: the live figures of a run: rates, TTFT, ITL and send lag of each
//     second and of all
//   - collect.go: writing Results in batches as they come; what happens when they cannot
//     be written
//   - loop.go: playing the workload again and again: the period of a round, and the ids
//     of its rows
//   - prime.go: filling the servers' caches before a run
//   - metering.go: scraping the servers' metrics during a run into a metrics file beside
//     the results
//   - plan.go: a dry run: what would be sent when, peak rates and requests in flight,
//     without sending
//   - timetable.go: due times for a caller with its own clock, such as a simulation
//   - drift.go: how far turns moved from their recorded times: mean, maximum, percentiles
//   - clock.go, heartbeat.go: steps of the wall clock; stalls in which the client itself
//     stood still
//   - garbage.go: fewer garbage collections, and one more processor, for exact timing
//
// Exported names may change in any release.
package replay
