// Package synth makes workloads that keep the shape of a real trace, and the
// prompts to play them with.
//
//  1. [Count] finds how many sessions, users and blocks a trace names.
//  2. A [Mirror] yields the same rows under fresh ids: what is shared with what,
//     when, and how much stays as it was, and the mirrored rows are a workload.
//  3. Rows that name no blocks, or too few, are completed by [Unshared], so
//     that what they do not share becomes explicit.
//  4. A [Prompter] turns one row at a time into a prompt, just before replay
//     sends it. Prompts are never stored: a row names blocks and lengths, the
//     seed does the rest. A prompt has exactly the tokens that its row asks
//     for, and two prompts share exactly the leading tokens that their blocks
//     say they share. [ReadTails] finds the blocks that repeat a partial one.
//     Prompts are words without meaning, or written in another [Text]: common
//     [English] words, or slices of a corpus ([ReadCorpus]).
//  5. [Verify] encodes prompts again and compares; a [Checker] does so beside a
//     replay.
//
// All of it is integer arithmetic on the seed and the row, so that every
// machine makes the same rows and the same prompts.
package synth
