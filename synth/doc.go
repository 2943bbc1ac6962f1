// Package synth makes workloads that keep the shape of a real trace, and the
// prompts to play them with.
//
//  1. [Count] finds how many sessions, users and blocks a trace names.
//  2. A [Mirror] yields the same rows under fresh ids: what is shared with what,
//     when, and how much stays as it was, and the mirrored rows are a workload.
//  3. Rows that name no blocks, or too few, are completed by [Unshared], so
//     that what they do not share becomes explicit.
//  4. [Fit] keeps of a trace a [Model]: for each request a tuple that says how
//     much of its prompt was known, how deep that lay in an LRU stack, what it
//     added and what came out; and the arrivals of each client as a cascade.
//     Tuples are swapped among at least k alike. Replayed without swapping they
//     rebuild the trace exactly, but for the names of its blocks.
//  5. [FitPublic] keeps noisy counts in place of tuples, which may be published:
//     a model of cells, from which each tuple is drawn anew. [FitHistograms]
//     makes one of the histograms of a profile.
//  6. [Model.Generate] grows another prefix tree from the tuples, on arrivals of
//     its own, for more users, at another speed or for longer than the trace. A
//     [Workload] reads as rows.
//  7. A [Prompter] turns one row at a time into a prompt, just before replay
//     sends it. Prompts are never stored: a row names blocks and lengths, the
//     seed does the rest. A prompt has exactly the tokens that its row asks
//     for, and two prompts share exactly the leading tokens that their blocks
//     say they share. [ReadTails] finds the blocks that repeat a partial one.
//     Prompts are words without meaning, or written in another [Text]: common
//     [English] words, or slices of a corpus ([ReadCorpus]). The end of one can
//     stand behind what a server has replied ([Prompter.Continue]).
//  8. [Verify] encodes prompts again and compares; a [Checker] does so beside a
//     replay.
//
// Package synth/spec makes a workload without a trace, from a description, and
// synth/fidelity says how close a workload is to a trace.
//
// Rows and prompts come by integer arithmetic from the model, the row and the
// seed, so that every machine makes the same. Only fitting uses floating point,
// and randomness that no seed repeats.
package synth
