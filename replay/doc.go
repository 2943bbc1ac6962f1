// Package replay sends a workload to a server with its original timing and
// records what happened to each request.
//
//  1. A [Runner] reads trace.Request rows. A feeder prepares each some seconds
//     before it is due: a [Prompter] makes the prompt, an [Endpoint] encodes it.
//     What waits is bounded in time, memory and number; a row that is prepared
//     too late is sent late, and says so.
//  2. Due times are absolute from one start. In open loop they are the recorded
//     times divided by the speed, or those of an arrival process. In a causal run
//     a [Lineage] says which rows wait for which: a turn is due when its parents
//     are over and its think time has passed, and how far that is from its
//     recorded time is the [Drift]. With [Threading] the server's reply to a parent
//     stands in the turn's prompt. In a closed loop a row is due when another is
//     over.
//  3. A dispatcher waits for the soonest on a pacer and releases the request,
//     whatever became of those that it does not wait for: it sends by itself where
//     the endpoint is a [Launcher] that can, and a goroutine reads the answer. A
//     limit of requests in flight holds back and is counted.
//  4. [HTTP] sends to one or several OpenAI-compatible servers, on connections
//     that were dialled ahead of need, and reads the stream, with every instant on
//     the run's one clock. Nothing is sent twice unless its options say so, and
//     then every attempt is counted.
//  5. Every row that was due ends as one [Result], a failure or a disconnection
//     included. Results go to a [Journal] within a second, in order of
//     completion, so that a killed run loses no more than that.
//  6. [Runner.Record] finishes the journal into a Parquet file in the order of rounds
//     and rows, with the [Run] in its metadata: what was asked for, and what the
//     client found out about itself. [OpenResults] reads either. A [Resumption]
//     continues a run that was killed.
//
// A [Loop] plays rows again and again, a [Primer] fills the server's cache before a
// run, and a [Planner] says what a run would send without one.
//
// The package knows neither how prompts are made nor what is made of results:
// others satisfy [Prompter], read through trace.Reader, and are wired in cmd.
//
// # Memory
//
// A causal run keeps 12 bytes for each row with a parent, 8 for others; a state
// for each row whose children are not all read or whose end they wait for; and at
// most 256 MB, or a million, of rows that were read and wait for a parent or for
// their time. Behind that bound nothing is read until there is room, and a row
// that was due by then is sent late and counted. Prepared are at most 256 MB more,
// some seconds ahead. With [Threading], prompts and replies that turns may follow
// take 512 MB at most.
package replay
