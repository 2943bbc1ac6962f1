// Package engine is a simulated serving engine that speaks the OpenAI wire:
// for the demo, for tests, and for trying a replay without a GPU.
//
// It sees only what is in a request, text or token ids, as a real server does.
// For each request:
//
//  1. decode: the body is read and the prompt tokenised; a chat is rendered
//     with the small fixed template "chatml".
//  2. queue: at most MaxSeqs requests run; the others wait in order of arrival,
//     and beyond MaxWaiting they are refused with 429.
//  3. cache: the prompt is cut into blocks of the server's own size, and its
//     longest known prefix of full blocks, of at most prompt−1 tokens, is taken
//     from an LRU prefix cache. The prompt's blocks are known to others from
//     the moment the request is scheduled, as in vLLM, and those of its answer,
//     but for its last token, just before its end is told.
//  4. prefill: what is not cached is computed, one prompt after another, on a
//     timeline of absolute instants: Base + uncached/PrefillRate; all at once with
//     ParallelPrefill.
//  5. decode: one token every ITL after the first, each due at an absolute
//     instant, so that lateness never adds up. A client that goes away frees
//     its place at once.
//
// How an answer is written, and whether it fails, is the manner of its request:
// what [Quirks] of the whole server, of a draw and of the request add up to.
//
// Running requests do not slow each other's decoding, and blocks in use are
// not pinned in a bounded cache: this is a timeline, not a model of an engine's
// batches. Steps 2 to 5 are such a model when Config.Engine is given.
//
// That is [engineCore], a state machine without a clock: it batches prefill and
// decode in steps, keeps KV in blocks that are in use or may be evicted, preempts
// when they run out, and takes for a step what [Costs] say. By the machine's
// clock it does one step after another. In virtual time, behind the router of a
// [Fleet] or for the loads of a [Preset], runs of equal steps are added up in
// integers, so that an hour of traffic takes seconds; both give every token at
// the same instant.
package engine
