// Package client sends the requests of a replay to OpenAI-compatible servers, and makes
// the calls beside them.
//
//  1. [New] makes an [HTTP] of its [Options]: which servers, which API, what stands in
//     every header and body. [HTTP.Probe] asks the servers for their model,
//     [HTTP.Calibrate] for the tokens that their template adds to a prompt.
//  2. [HTTP.Prepare] makes a row's prompt ahead of its time, chooses the server and
//     encodes the whole request.
//  3. [HTTP.Launch] writes it when it is due, on a connection that was dialled ahead of
//     need; [HTTP.Fire] does so where there is none, and by net/http for HTTP/2 and
//     proxies. Nothing is sent twice unless Retries says so, and then every attempt is
//     counted.
//  4. The stream is read to its end into a [result.Result], each instant on the run's
//     clock: headers, first event, first token, last token, done.
//  5. [HTTP.Describe] notes in the [result.Run] how requests are sent. [HTTP.Report] says
//     who answered them, and what became of the connections.
//
// An [Admin] empties the servers' prefix caches, starts and stops their profilers, and
// asks what they are.
//
// The package satisfies [result.Endpoint]. It does not know the runner; commands wire the two.
package client
