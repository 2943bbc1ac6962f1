// Package openai holds the wire format that the replay client and the simulated
// engine share: the requests of /v1/chat/completions, /v1/completions, /v1/responses
// and /v1/embeddings, the chunks and events of a streamed answer, and a reader that
// turns such an answer into the instants from which latencies are computed.
//
// On the client's side, for each request:
//
//  1. [AppendRequest] encodes a [Request] ahead of its due time. Prompts are
//     hundreds of kilobytes, so the text is escaped in one pass, without reflection.
//  2. An answer that is not 200 becomes a [StreamError] through [HTTPError]: a class
//     from a closed list, and no text of the server's.
//  3. A [Scanner] splits the body into server-sent events and stamps each with the
//     instant of the Read that completed it.
//  4. A [Collector] keeps the raw events and their instants, decodes them away from
//     the reads, and folds them into an [Outcome] under the rules that servers in
//     the wild make necessary: role-only and empty deltas are no tokens, usage may
//     come in any chunk, an error may come after the tokens, the end mark may be
//     missing. Events of the Responses API and embeddings are recognised by their members.
//
// On the server's side [DecodeRequest] reads a request, [Framing] writes the
// events of the answer, and [AppendChunk] and [AppendError] write whole bodies.
//
// Instants are offsets from one start that the caller chose, read from the clock
// that it injects; the package never looks at a clock itself.
package openai
