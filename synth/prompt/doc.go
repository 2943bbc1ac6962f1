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
package prompt
