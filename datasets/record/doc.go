// Package record is a reverse proxy for serving engines that turns the requests that
// pass into entries.
//
//  1. A [Proxy] is an [http.Handler]. It forwards every request as it came, bodies byte
//     for byte, and streams each answer back read by read. It answers nothing itself,
//     except that a server that cannot be reached is a 502.
//  2. Of a request to one of the APIs of OpenAI and Anthropic, an exchange keeps a copy
//     of the body in memory, and of the answer the instants, the counts of its usage, and
//     the text. What a read brought is looked at when it has gone on to the client.
//  3. When it is over, a worker makes a [trace.Entry] of it, gives that to the sink, which
//     counts and cuts the text, and drops the copy.
//
// The copies have a limit together. Beyond it requests are forwarded and not recorded,
// and [Proxy.Counts] says how many. Nor does any fault in steps 2 and 3 reach the traffic.
//
// A [Shadow] gets some of the requests as well, from the copies. The client waits for the
// first server alone.
//
// Of all headers only the ones that name a session are kept or printed. Errors and messages quote
// neither bodies nor headers.
//
// # Files
//
//   - proxy.go: the handler: forwarding, choosing a server, errors of servers
//   - serve.go: listening, limits on clients, and the end: requests in flight are waited for
//   - shadow.go: requests to a candidate server too, and pairs of answers
//   - resend.go: requests that met the closing of an idle connection
//   - exchange.go: one request and its answer as they pass; the limit of memory
//   - worker.go: exchanges become entries; sampling by session; counts
//   - request.go: the body of a request of each API as an entry; who sent it
//   - messages.go: messages and contents of each API, calls of tools among them
//   - chains.go: conversations that servers keep, for requests that bring their new messages alone
//   - answer.go: streamed answers, looked at as they come; events of OpenAI's APIs
//   - anthropic.go: events of Anthropic's API
//   - whole.go: answers that are no streams
//   - encoding.go: bodies that are compressed
//
// Exported names may change in any release.
package record
