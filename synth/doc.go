// Package synth makes workloads that keep the shape of a real trace.
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
//
// Package synth/prompt makes the prompts of rows, synth/spec makes a workload without
// a trace, from a description, and synth/fidelity says how close a workload is to a
// trace.
//
// Rows come by integer arithmetic from the model and the seed, so that every machine
// makes the same. Only fitting uses floating point, and randomness that no seed
// repeats.
package synth
