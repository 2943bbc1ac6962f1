// Package usage is the one place that knows what a usage object says: the token counts
// that providers, engines, gateways and tracers put beside an answer, each under names of
// its own. Readers of logs, the recorder and the client of a replay all ask it, in two
// steps:
//
//  1. [Counts] holds the written numbers, by kind: [Reader.Gather] takes a decoded JSON object,
//     [Counts.UnmarshalJSON] its text, [Counts.Take] a single count.
//  2. [Counts.Settle] makes [Tokens] of the counts: the whole prompt, the tokens of it that
//     were read from a cache or written to one, the whole output, and the reasoning in it.
//     A [Reader] does so for the records of a file, each by itself.
//
// Whether a part stands within a count or beside it differs between providers:
//
//	dialect                               cached     reasoning
//	OpenAI Chat and Responses, vLLM       within     within
//	Anthropic Messages, Bedrock           beside     within
//	Gemini, Vertex                        within     beside (thoughts)
//	xAI, and gateways in front of it      within     beside
//
// A total decides it, wherever there is one: it must be the sum of the parts. So does a part
// that is larger than its whole. Where nothing decides, the part stands as the [Dialect] and
// the kind of its count say.
//
// # The invariant
//
// The tokens that come out obey cached ≤ input and reasoning ≤ output. What a record breaks
// on the way there is told as a [Finding], which callers count and show: a total that is not
// the sum of its parts, cached tokens beyond the input, parts that were added.
//
// A [Claim] is the counts of one answer that somebody saw: [Claim.Judge] holds them against the
// request, the text and the time. What it finds are findings, too. Some refute a count
// ([Finding.Refutes]): that one is wrong beyond doubt, and no figure may use it. All others are
// notes.
//
// # Files
//
//   - usage.go: the kinds of counts, the table of keys, and how an object is gathered
//   - settle.go: the dialects, what a total shows, and the tokens
//   - finding.go: the findings, in words, and which counts they refute
//   - claim.go: counts held against the answer, with room for all tokenizers and servers
//   - tally.go: how many answers have each finding
//   - reader.go: the records of a file, and what its user says of them
//
// Exported names may change in any release.
package usage
