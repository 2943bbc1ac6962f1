// Package prompt turns rows into prompts that have exactly the tokens that the rows ask
// for.
//
//  1. A [Prompter] makes the prompt of one row at a time, just before replay sends it.
//     Prompts are never stored: a row names blocks and lengths, and the seed does the
//     rest. Two prompts share exactly the leading tokens that their blocks say they
//     share.
//  2. [ReadTails] finds the blocks that repeat a partial block, so that their prompts
//     share those tokens as well.
//  3. Prompts are words without meaning, or written in another [Text]: common [English]
//     words, or slices of a corpus ([ReadCorpus]).
//  4. [Prompter.Continue] makes the end of a prompt alone, to follow what a server has
//     replied.
//  5. A [Checker] encodes prompts again while a replay runs, and compares.
//
// Prompts come by integer arithmetic from the row and the seed, so that every machine
// makes the same.
//
// # Files
//
//   - prompter.go: Prompter and its options: the prompt of a row as text or token ids, a
//     chat template's overhead, counts of prompts that fell short
//   - cursor.go: one prompt drawn block by block: how a block spells its id, the checks of
//     a row's blocks
//   - tails.go: blocks that complete a partial one and repeat its tokens
//   - continue.go: the end of a prompt alone, after what a server has replied
//   - text.go: what prompts are written in: words without meaning, and the lexicon of every
//     text
//   - english.go: prompts of common English words, with capitals and marks
//   - corpus.go: prompts of slices of the user's corpus: pieces, their tokens, its digest
//   - checker.go: prompts encoded again while a replay runs
//
// Exported names may change in any release.
package prompt
