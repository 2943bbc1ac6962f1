// Package openai holds the wire format that the replay client and the simulated
// engine share: the requests of /v1/chat/completions, /v1/completions, /v1/responses,
// /v1/messages and /v1/embeddings, the chunks and events of a streamed answer, and a reader that
// turns such an answer into the instants from which latencies are computed.
//
// On the client's side, for each request:
//
//  1. [AppendRequest] encodes a [Request] ahead of its due time. Prompts are
//     hundreds of kilobytes, so the text is escaped in one pass, without reflection.
//  2. An answer that is not 200 becomes a [StreamError] through [HTTPError]: a class
//     from a closed list, and the server's message apart.
//  3. A [Scanner] splits the body into server-sent events and stamps each with the
//     instant of the Read that completed it.
//  4. A [Collector] keeps the raw events and their instants, decodes them away from
//     the reads, and folds them into an [Outcome] under the rules that servers in
//     the wild make necessary: role-only and empty deltas are no tokens, usage may
//     come in any chunk, an error may come after the tokens, the end mark may be
//     missing. Events of the Responses and the Messages API, and embeddings, are
//     recognised by their members.
//
// On the server's side [DecodeRequest] reads a request, [Framing] writes the
// events of the answer, and [AppendChunk] and [AppendError] write whole bodies.
//
// Instants are offsets from one start that the caller chose, read from the clock
// that it injects; the package never looks at a clock itself.
//
// # Files
//
//   - request.go: encoding a request: messages, prompt, sampling fields, extra fields,
//     paths of the APIs
//   - escape.go: text as a JSON string, fast
//   - decode.go: reading a request body on the server's side, and what it refuses
//   - scanner.go: splitting a stream into server-sent events, each with its instant
//   - collector.go: folding the events of an answer into an Outcome: token instants,
//     usage, tool calls, how it ended
//   - chunk.go: reading one chunk or event: content, reasoning, usage, members of the
//     Responses API
//   - times.go: what a server says of the times of a request
//   - cursor.go: walking over JSON without building it
//   - outcome.go: the Outcome, and the generated Text
//   - bound.go: the longest answer that a request allows
//   - errors.go: classes of errors, such as timeout, rate_limited and too_long, from
//     statuses, bodies and network errors
//   - said.go: the message in the body of an error
//   - response.go: writing chunks, whole answers, errors and the framing of events on the
//     server's side
//   - message.go: events, bodies and usage of the Messages API, on both sides
//   - responseevent.go: events and bodies of the Responses API, and embeddings, on the
//     server's side
//
// Exported names may change in any release.
package openai
