// Package check asks a server what it is and what a replay can measure at it.
//
//  1. [Run] asks for the models and the metrics, for which APIs there are, and for the
//     round trip and the clock. None of that costs a token.
//  2. It sends a few short prompts: one word to each API, five texts of different kinds,
//     and one prompt twice. Their counts show whether usage and cached tokens are reported,
//     what a chat template adds, whether a tokenizer counts what the server counts, and
//     whether a prefix is found again.
//  3. [Report.Findings] says of each answer what it shows, whether it stands in the way of a
//     replay, and what to do about it.
//
// # Files
//
//   - check.go: Run: the questions and requests, in their order; the Report
//   - tokenizer.go: the five texts, counts beside each other, and which built-in one counts as the server
//   - clock.go: round trips, and the offset of the server's clock from its Date headers
//   - findings.go: the findings and their words, the flag that turns something on at each
//     engine; the table
//
// Exported names may change in any release.
package check
