// Package client sends the requests of a replay to OpenAI-compatible servers and reads
// their answers.
//
//  1. [New] makes an [HTTP] from its [Options]: which servers, which API, and what every
//     header and body holds. [HTTP.Probe] asks the servers for their model, and
//     [HTTP.Calibrate] for the number of tokens that their template adds to a prompt.
//  2. [HTTP.Prepare] makes a row's prompt ahead of its time, chooses the server and
//     encodes the whole request.
//  3. [HTTP.Launch] writes the request when it is due, on a connection that was dialled
//     ahead of need. [HTTP.Fire] sends it where there is no such connection, and by
//     net/http for HTTP/2 and proxies. A request is sent again only when
//     [Options].Retries says so, and every attempt is counted.
//  4. The stream is read to its end into a [result.Result], each instant on the run's
//     clock: headers, first event, first token, last token, done.
//  5. [HTTP.Describe] records in the [result.Run] how requests are sent. [HTTP.Report]
//     returns which servers answered them, and counts of their connections.
//
// An [Admin] makes the other calls: it empties the servers' prefix caches, starts and
// stops their profilers, and asks what they are.
//
// An [HTTP] is a [result.Endpoint]. This package does not know the runner; commands
// connect the two.
package client
