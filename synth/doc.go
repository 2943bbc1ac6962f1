// Package synth makes workloads that keep the shape of a real trace.
//
//  1. [Count] finds how many sessions, users and blocks a trace names.
//  2. A [Mirror] yields the same rows under fresh ids: what is shared with what,
//     when, and how much stays as it was, and the mirrored rows are a workload.
//  3. Rows that name no blocks, or too few, are completed by [Unshared], so
//     that what they do not share becomes explicit.
//  4. [Fit] keeps a [Model] of a trace: for each request a tuple that says how
//     much of its prompt was known, how deep that lay in an LRU stack, what it
//     added and what came out; and the arrivals of each client as a cascade.
//     Tuples are swapped among at least k alike. Replayed without swapping they
//     rebuild the trace exactly, but for the names of its blocks.
//  5. [FitHistograms] makes a model of cells of the histograms of a profile, from which
//     each tuple is drawn anew. Package synth/release makes models that may be shared.
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
//
// # Files
//
//   - ids.go: how many sessions, users and blocks a trace names; block ids for rows that
//     lack them
//   - mirror.go: the mirror of a trace: the same rows under ids that the seed renames
//   - fit.go: fitting a model of tuples: its options, and the arrivals of each client as a
//     cascade
//   - extract.go: rows of a trace turned into tuples: known blocks, LRU depths, sessions,
//     the global prefix
//   - tuple.go: the tuple that a model keeps of one request; labels, categories, how a
//     request joins a session
//   - swap.go: tuples swapped among k alike, and lengths changed at random, for privacy
//   - forest.go: the prefix tree with the LRU stack, compressed, that fitting and
//     generating share
//   - common.go: the prefix that more than half of the requests of a cache domain carry
//   - model.go: Model: its clients, the trace it was fitted to, the note that a trace was
//     too short
//   - modelfile.go, modelrow.go, modelmeta.go: the model file: reading and writing in the
//     first, its rows and digest in the second, its metadata and privacy notes in the third
//   - generate.go: generating from a model: populations in parallel, how many requests each
//     makes, which tuple comes next
//   - population.go: one population while it grows: where a tuple's request is placed in
//     the tree, and which session it enters
//   - domain.go, search.go: the search for the prompt that a request extends, by depth,
//     kind and recency: the index in the first, the costs that choose in the second
//   - workload.go: the options of generating (requests, duration, users, speed), their
//     checks, and the workload's metadata
//   - workloadreader.go: the rows of a generated workload, in order of arrival: blocks,
//     sessions, users, pauses
//   - integer.go: integer arithmetic that is the same on every machine: logarithms, shares,
//     products
//   - cells.go: a model of cells: tables of histograms, and how tuples and times are drawn
//     from them
//   - cellsfile.go, cellsrow.go: the file of a model of cells: reading and writing in the
//     first, its rows and digest in the second
//   - cellsfit.go: a model made of the histograms of a profile
//   - units.go: tiers and units of privacy, and which traces can be released
//
// Exported names may change in any release.
package synth
