// Package client sends the requests of a replay to servers with the APIs of OpenAI or
// Anthropic and reads their answers.
//
//  1. [New] makes an [HTTP] from its [Options]: which servers, which API, and what every
//     header and body holds. [HTTP.Probe] asks the servers for their model, and
//     [HTTP.CalibrateAPI] for the number of tokens that their template adds to a prompt.
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
// An [Admin] makes the other calls: it empties the servers' prefix caches, and asks what
// they are.
//
// An [HTTP] is a [result.Endpoint]. This package does not know the runner; commands
// connect the two.
//
// # Files
//
//   - http.go: the Options of sending, and their checks: timeouts, retries, headers,
//     connections
//   - endpoint.go: New and Close: an HTTP endpoint from its options
//   - prepare.go: making a row's request ahead: prompt as text or token ids, choice of
//     API and server, request ids and trace headers
//   - fields.go: fields that servers refuse, which requests then go without or spell in another
//     way, and where their APIs are
//   - words.go: what servers say about errors, without what they quote of a prompt
//   - rowextra.go: headers and body fields of single rows, from a file of JSON lines
//   - target.go: server URLs and Unix sockets, the path of each API, and policies of
//     choosing a server: round-robin, by session
//   - fire.go: sending a request and reading its answer into a Result: the instants, the
//     class of its error, drain after [DONE]
//   - retry.go: which failures are sent again, after what time, Retry-After, and the move
//     to another server
//   - silence.go: the time limits to the first token and between two tokens
//   - wire.go: the hot path over our own HTTP/1.1: connection modes such as pooled:N,
//     serialised heads, the limit of open files
//   - exchange.go: one encoded request, and its exchange through net/http
//   - transport.go: net/http for HTTP/2 and proxies; dialling, Unix sockets
//   - answers.go: counts of odd answers, recorded response headers, and hashes of
//     generated text
//   - template.go: what a chat template puts before a prompt and after it, told apart
//   - probe.go: asking for the model; measuring how many tokens the chat template adds,
//     for a prompt and for a turn
//   - vocabulary.go: words that the server counts as one token each, where its tokenizer is not known
//   - inspect.go: which APIs a server has, single prompts, round trips
//   - setup.go: why a server cannot be used: its own message, its models, and the API that
//     it has instead
//   - determinism.go: the check that a server gives the same answer twice
//   - describe.go: what the results say of how requests were sent: URLs, sampling
//     settings, counts of connections
//   - admin.go: emptying prefix caches
//   - survey.go: the environment of a run: versions, models and context lengths of
//     servers, this host and its GPUs, and whether servers are on this machine
//
// Exported names may change in any release.
package client
