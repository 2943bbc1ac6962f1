// Package replay runs a workload against an endpoint with its original timing.
//
//  1. A [Runner] reads trace.Request rows. A scheduler finds when each row is due, and a
//     feeder prepares it some seconds before: a [result.Prompter] makes the prompt, and a
//     [result.Endpoint] encodes the request. Prepared requests wait in a ready queue that
//     is bounded in time, memory and number. A row that is prepared too late is sent
//     late, keeps its due time, and its lateness is recorded.
//  2. Due times are absolute from one start. In open loop they are the recorded
//     times divided by the speed, or those of an arrival process. In a causal run
//     a [Lineage] says which rows wait for which: a turn is due when its parents
//     are over and its think time has passed. How far that is from its
//     recorded time is the [result.Drift]. With [Threading] the turn's prompt holds the
//     server's reply to its parent. In a closed loop a row is due when another
//     is over.
//  3. A dispatcher waits on a pacer until the next request is due, and releases it
//     whether or not earlier requests are over. It sends by itself where the endpoint
//     can do so at once; a goroutine reads the answer. A limit of requests in flight
//     holds requests back, and the result counts them.
//  4. Every row that was due ends as one [result.Result], also when the request failed
//     or was cut off. Results are written within a second, in order of completion.
//  5. [Runner.Record] writes a [result.Journal] and finishes it into a results file, with
//     the [result.Run]: what was asked for, and what the client found out about itself.
//     It also measures and profiles the servers, see [Metering] and [Profiler]. A
//     [Resumption] continues a run that was killed.
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
package replay
