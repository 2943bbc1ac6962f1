// Package replay sends a workload to a server with its original timing and
// records what happened to each request.
//
//  1. A [Runner] reads trace.Request rows. A feeder prepares each some seconds
//     before it is due: a [Prompter] makes the prompt, an [Endpoint] encodes it.
//     What waits is bounded in time, memory and number; a row that is prepared
//     too late is sent late, and says so.
//  2. Due times are absolute from one start, arrival divided by speed. A
//     dispatcher waits for each on a pacer and releases the request into a
//     goroutine, whatever became of those before it: the loop is open. A limit
//     of requests in flight holds back and is counted.
//  3. [HTTP] sends to an OpenAI-compatible server and reads the stream, with
//     every instant on the run's one clock. Nothing is sent twice.
//  4. Every row that was due ends as one [Result], a failure or a disconnection
//     included. Results go to a [Journal] within a second, in order of
//     completion, so that a killed run loses no more than that.
//  5. [Runner.Record] finishes the journal into a Parquet file in row order,
//     with the [Run] in its metadata: what was asked for, and what the client
//     found out about itself. [OpenResults] reads either.
//
// The package knows neither how prompts are made nor what is made of results:
// others satisfy [Prompter], read through trace.Reader, and are wired in cmd.
package replay
