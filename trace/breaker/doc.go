// Package breaker finds where near-identical prompts part.
//
// A prefix cache loses all that follows the first token that differs. Block ids
// are chained, so that they tell nothing from there on. The way from prompts to
// the places that lose most:
//
//  1. A [Finder] takes the tokens of each prompt at import and compares it with
//     the earlier one that it resembles most, by prints of what both hold.
//  2. The two are aligned: the tokens that both have, and the runs that differ
//     between them.
//  3. What a prompt loses is counted at the place of the first difference, by
//     position, message and role. Places that few requests show are left out.
//  4. The [Set] of places is kept in the metadata of the trace. It holds positions,
//     counts and lengths, and no text. [Summarize] reads it for a profile.
package breaker
