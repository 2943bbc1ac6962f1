// Package breaker finds where near-identical prompts part.
//
// A prefix cache loses everything after the first token that differs. Block ids are
// chained, so they say nothing after that token. The package goes from prompts to the
// places that lose most:
//
//  1. A [Finder] takes the tokens of each prompt at import and compares it with the
//     earlier prompt that resembles it most, found by fingerprints.
//  2. It aligns the two: the tokens that both have, and the runs that differ.
//  3. It counts what the prompt loses at the place of the first difference, by
//     position, message and role. Places that few requests show are left out.
//  4. A [Set] of these places is kept in the metadata of the trace. It holds positions,
//     counts and lengths, and no text. [Summarize] reads it for a profile.
//
// # Files
//
//   - find.go: the Finder, one prompt after another; how many leading tokens it reads
//   - numbers.go: tokens numbered by first appearance, so that names of tokens do not matter
//   - tree.go: the radix tree of recent prompts, with what it evicts
//   - prints.go: fingerprints of tokens by winnowing, and where each was seen last
//   - align.go: two prompts side by side, and the differences that count
//   - tally.go: lost tokens, counted by place; rare places left out and neighbours joined
//   - breaker.go: the Set as JSON in a trace's metadata, read back and checked; parts of a log joined; names of
//     models
//   - text.go: the Summary, places and advice in words, and the notes that an import prints
//
// Exported names may change in any release.
package breaker
