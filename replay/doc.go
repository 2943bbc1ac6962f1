// Package replay runs a workload against an endpoint with its original timing.
//
//  1. A [Runner] reads trace.Request rows. A feeder prepares each some seconds
//     before it is due: a [result.Prompter] makes the prompt, a [result.Endpoint]
//     encodes it. What waits is bounded in time, memory and number; a row that is
//     prepared too late is sent late, and says so.
//  2. Due times are absolute from one start. In open loop they are the recorded
//     times divided by the speed, or those of an arrival process. In a causal run
//     a [Lineage] says which rows wait for which: a turn is due when its parents
//     are over and its think time has passed, and how far that is from its
//     recorded time is the [result.Drift]. With [Threading] the server's reply to a
//     parent stands in the turn's prompt. In a closed loop a row is due when another
//     is over.
//  3. A dispatcher waits for the soonest on a pacer and releases the request,
//     whatever became of those that it does not wait for: it sends by itself where
//     the endpoint can, and a goroutine reads the answer.
//     A limit of requests in flight holds back and is counted.
//  4. Every row that was due ends as one [result.Result], a failure or a
//     disconnection included, and is written within a second, in order of completion.
//  5. [Runner.Record] has a [result.Journal] written and finishes it into a results
//     file, with the [result.Run]: what was asked for, and what the client found out
//     about itself. Around the run it has the servers measured and profiled, see
//     [Metering] and [Profiler]. A [Resumption] continues a run that was killed.
//
// A [Loop] plays rows again and again, a [Primer] fills the server's cache before a
// run, a [Planner] says what a run would send without one, and a [Timetable] when
// rows are due to whoever has a time of its own.
//
// The package knows neither how prompts are made, nor how requests are sent, nor what
// is made of results: others satisfy the interfaces of package result, and are wired
// in cmd.
//
// # Memory
//
// A causal run keeps 12 bytes for each row with a parent, 8 for others; a state
// for each row whose children are not all read or whose end they wait for; and at
// most 256 MB, or a million, of rows that were read and wait for a parent or for
// their time. Beyond that bound nothing is read until there is room, and a row
// that was due by then is sent late and counted. Prepared are at most 256 MB more,
// some seconds ahead. With [Threading], prompts and replies that turns may follow
// take 512 MB at most.
package replay
