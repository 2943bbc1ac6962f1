// Package engine simulates an LLM serving engine, by the clock behind the OpenAI API
// and in virtual time: for the demo, for tests, and to try a replay without a GPU.
//
// A [Server] reads only the request, text or token ids, as a real server does.
// For each request it does the following:
//
//  1. decode: it reads the body and tokenises the prompt; a chat is rendered with the
//     small fixed template "chatml". Images follow the text of their message.
//  2. engine: it cuts the prompt and the answer, which is known beforehand, into blocks
//     of the engine's size, and gives them to a model of an engine.
//  3. answer: it sends each token at the absolute instant that the model gave it, so that
//     lateness never adds up. A client that goes away frees its place at once.
//
// [Quirks] change how an answer is written, or make it fail. They are set for the whole
// server, drawn at random for a request, or asked for by the request itself.
//
// The model is a state machine without a clock, described by a [Config]. It batches
// prefill and decode in steps, keeps KV in blocks that are in use or may be evicted,
// preempts when blocks run out, and takes the time for a step that [Costs] give. By the
// machine's clock it does one step after another. In virtual time, behind the router of
// a [Fleet] or for the loads of a [Preset], runs of equal steps are added up in integers,
// so that an hour of traffic takes seconds. Both give every token at the same instant.
//
// # Files
//
//   - server.go: the Server with its options and their defaults, its counters, and the
//     paths that it serves
//   - serve.go: a request on its way through the server: prompt, cache domain, length of
//     the answer, its words, usage
//   - picture.go: the tokens of an image in a chat: one for each 28 by 28 pixels
//   - generate.go: answers that are generated: decoding, streaming, and whole answers
//   - embeddings.go: embeddings
//   - emit.go: writing one streamed answer in the dialect of its API: events, keep-alives,
//     and faults in mid-stream
//   - emitchunk.go, emitresponse.go, emitmessage.go: the dialects: chunks of chat and text
//     completions with their usage; events of the Responses and of the Messages API
//   - refusal.go: refusals and error bodies, such as 429 and 503
//   - admin.go: /admin/config: settings that a running server shows and changes
//   - metrics.go, histogram.go: /metrics under vLLM's names, /v1/models and /tokenize;
//     latency histograms with vLLM's buckets
//   - quirk.go, quirklist.go: what a quirk does to an answer, and how a list of them is
//     parsed; the quirks themselves, and the servers that are imitated
//   - faults.go: faults drawn with a probability, and the header by which a request asks
//     for quirks
//   - conn.go: dropped and reset connections, dripping headers, a port that closes
//   - engine.go: the model of an engine: its Config after vLLM's options, its queue,
//     clock, load, peaks and counts, and the reset of its cache
//   - enginestep.go: what one step computes: admission, chunked prefill, decode,
//     preemption; runs of equal steps
//   - enginecost.go: how long a step takes: the Costs, and texts such as
//     step=5ms,kv-token=40ns
//   - noise.go: what makes two runs of a fleet differ: speed of a run, drift, late requests
//   - enginejob.go: a request as the model sees it: lengths, and keys of its blocks
//   - enginekeys.go: the table that finds a block by its key
//   - enginepool.go: KV memory: blocks in use, kept or free, eviction, prefix sharing
//   - live.go: the model run by the machine's clock, under the server
//   - fleet.go: several engines behind a router in virtual time: arrivals, answers,
//     clients that hang up
//   - router.go: what the router of a fleet believes its replicas to hold
//   - tally.go: comparing routers: the FleetSummary, with hit ratio, imbalance, quantiles
//   - costfit.go: fitting costs, of presets and of calibrations
//   - preset.go, presets.go, presets5080.go: fitting a preset to published figures, its
//     error, and its warning; the presets and their sources
//   - trial.go: playing a published load, closed or open, to an engine in virtual time
//   - covers.go: the most that an engine was asked for, held against what it was fitted to
//   - roofline.go: the floor that bandwidth and arithmetic set: capacity predict
//   - physical.go: engines of hardware that was not measured, from a data sheet, and what
//     the nearest measured engine reaches of its own bound
//
// Exported names may change in any release.
package engine
