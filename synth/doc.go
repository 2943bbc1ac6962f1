// Package synth makes workloads that keep the shape of a real trace.
//
//  1. [Count] finds how many sessions, users and blocks a trace names.
//  2. A [Mirror] yields the same rows under fresh ids: which prompts share what,
//     when, and how much stays as it was, and the mirrored rows are a workload.
//  3. Rows that name no blocks, or too few, are completed by [Unshared], so
//     that what they do not share becomes explicit.
//  4. [Fit] keeps a [Model] of a trace: for each request a place in the order, which
//     says on which earlier request's prompt it builds and how, what it added and what
//     came out, and how long after the one before it came. Sizes, outputs and gaps are exchanged
//     among at least k similar ones, and bursts, which may be whole sessions, move. Replayed without that the places
//     rebuild the trace exactly, but for the names of its blocks.
//  5. [FitHistograms] makes a model of cells of the histograms of a profile, from which
//     each request is drawn anew. Package synth/release makes models that may be shared.
//  6. [Model.Generate] grows another prefix tree from the places, on arrivals of
//     its own, for more users, at another speed or for longer than the trace. A
//     [Workload] reads as rows.
//
// A request extends the prompt of its parent, whatever that became. So what a workload
// keeps follows from the links: depths and lengths fit each other, sessions stay
// together, and the stack distance of a request is its parent's.
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
//   - place.go: the place that a model keeps of one request; labels, categories, how a
//     request builds on its parent and joins a session
//   - fit.go: fitting a model of places: its options, and the arrivals as a cascade
//   - trees.go: a sample of whole prefix trees, of a trace that does not fit in memory
//   - extract.go: rows of a trace turned into places: known blocks, links, sessions
//   - templates.go: what many sessions share: found in a trace, and grown again
//   - forest.go: the prefix tree, compressed, with who last touched each node, that fitting
//     and generating share
//   - common.go: the prefix that more than half of the requests of a cache domain carry
//   - swap.go: the swaps of a fit, made side by side: the one with the nearest figures counts;
//     the order of places, and rare labels
//   - follow.go, gaps.go: bursts, of requests that follow each other, and when they come: clumps, jobs by a clock,
//     retries; the gaps between arrivals
//   - near.go: requests nearer in length to the one before them than by chance
//   - sizes.go: sizes permuted among similar places
//   - fitsizes.go, lengths.go, tokencourse.go: sizes exchanged until prompts are as long as the
//     trace's, and each part of the order has as many tokens; what exchanges cost is in the
//     second and third
//   - endings.go: outputs dealt to the prompts of the length
//   - swapcells.go: cells of at least k similar ones: cut by one set of points, or by two
//   - kept.go: figures of places, among them the LRU curve, and how far two swaps are
//     apart by them
//   - figures.go: what a swap did, and the hit ratio that a model states
//   - model.go: Model: the trace it was fitted to, the note that that was too short
//   - modelfile.go, modelrow.go, modelmeta.go: the model file: reading and writing in the
//     first, its rows and digest in the second, its metadata and privacy notes in the third
//   - generate.go: generating from a model: populations in parallel, and how many requests
//     each makes
//   - copies.go: the copies of a sample of trees, which together are as the trace was
//   - sequence.go: which place comes next, and on which requests it builds
//   - course.go: the course of a population's rate
//   - population.go: one population while it grows: where a request leaves its parent's
//     prompt, and which session it enters
//   - workload.go: the options of generating (requests, duration, users, speed), their
//     checks, and the workload's metadata
//   - workloadreader.go: the rows of a generated workload, in order of arrival: blocks,
//     sessions, users, pauses
//   - integer.go: integer arithmetic that is the same on every machine: logarithms, shares,
//     products
//   - cells.go: a model of cells: tables of histograms, and how requests and times are drawn
//     from them
//   - cellsplace.go, weights.go: which earlier prompt a drawn request builds on, by its place
//     in the LRU stack; sums over the stack
//   - cellsfile.go, cellsrow.go: the file of a model of cells: reading and writing in the
//     first, its rows and digest in the second
//   - cellsfit.go: a model made of the histograms of a profile
//   - units.go: tiers and units of privacy, and which traces can be released
//
// Exported names may change in any release.
package synth
