// Package profile describes a trace: how long its requests are, when they arrive,
// which sessions they belong to, and how much of each prompt a prefix cache would
// have found.
//
// Rows pass through it twice on their way from a log to a report:
//
//  1. When a trace is made, an [Annotator] reads the rows in their final order,
//     once to find the prefix that most requests carry and once more to give
//     every row its reuse category and, where the source named no session, an
//     inferred one.
//  2. A [Profiler] reads finished rows, of a real trace or of a synthetic
//     workload in the same way, in one pass and bounded memory. It feeds the lengths, the
//     arrivals, the sessions and a [Reuse], which finds the hit ratio of an LRU
//     cache of every capacity at once, over the whole trace and in steady state.
//     The same pass splits reuse over time and by category, model and client,
//     ranks the prefixes that bring it and counts working sets. When asked, it also
//     drives a [fleet.Simulation] of routers over several replicas.
//  3. [Profiler.Summary] is the result as data, with its warnings beside the
//     numbers. [Tables] gives its curves as rows, and [Profiler.Histograms] the
//     distributions as rows that merge exactly. [Page] lays both out for people.
//
// Rows do not show where near-identical prompts part, since their ids are chained.
// A [breaker.Finder] finds these places at import, while the tokens are in memory,
// and the summary shows them.
//
// A replay needs less: a [KnownPass] tells for each row how many of its tokens
// earlier rows carried, and a [ServerReuse] how many of these a server can reuse.
//
// # Definitions
//
// Known blocks. A block is known once an earlier row carried it. The hit of a
// request is the number of its leading blocks that are known. Ids are chained
// and unique to their cache domain (model, adapter, salt), so comparing ids is
// enough.
//
// Steady state. The first rows of a trace cannot hit requests before it, so
// every ratio is also given for the requests after a warm-up, which is half of the
// duration unless an option sets it: see [SteadyState]. A ramp of the traffic or
// the hours of a day are not removed.
//
// Failed rows are not load. A trace does not tell how far a failed request came,
// so it is assumed never to have reached a cache: it is counted, left out of every
// other figure, never known to later rows, and gets no category and no inferred
// session. Cancelled rows are load: they were served until they were cancelled.
// Function isLoad, in doc.go, decides it.
//
// # Files
//
//   - profiler.go: the one pass over finished rows that feeds all figures; the profiler's
//     options
//   - summary.go: the result as JSON (profile/1): its fields, shares by category, warnings
//   - distribution.go: counts, means, standard deviations and quantiles of lengths and
//     times
//   - rank.go: the rank correlation of input and output lengths
//   - arrivals.go: rates, gaps between requests, CV, IDC at each width of window; clocks
//     that are quantised
//   - sessions.go: sessions, turns, gaps from turn to turn, and how many requests name a
//     session
//   - annotate.go: reuse categories and inferred sessions, given to rows at import
//   - categories.go: the rule of the reuse categories, and who had a block
//   - sessionfinder.go: which requests are turns of one conversation, by evidence
//   - forget.go: marks of blocks that are dropped when no later row can have these
//   - reuse.go: hit ratios of a cache without limit and of every capacity (the LRU curve),
//     with generated KV as well; sampling of blocks
//   - inferred.go: the least and the most reuse of blocks that are inferred, beside what the
//     server found
//   - lru.go: the LRU stack that tells how deep a block lies, its sample of the blocks, and
//     how its memory stays bounded
//   - curveparts.go: the error of a sampled curve, by the spread of disjoint parts of the
//     sample
//   - numbering.go: numbers of blocks, in memory that does not grow with them beyond a bound;
//     samples of blocks and of sessions
//   - steady.go: steady state: hit ratios after a warm-up
//   - epoch.go: time since the first arrival, cut into spans, for steady state and series
//   - overtime.go: traffic and reuse over time, in bins
//   - breakdown.go: reuse by category, model and client
//   - prefixes.go: the prefixes that bring the most reuse
//   - workingset.go: working sets: distinct blocks in windows of 1, 10 and 60 minutes
//   - capacity.go: cache sizes: reading 10000, 500ktok or 40GiB, model shapes and KV bytes
//     per token, round capacities of the curve
//   - known.go: for a replay: how many prompt tokens earlier rows carried, and the hit
//     ratio that a server's block size allows
//   - live.go: for a replay that begins in the middle: which prompts fill the cache
//     beforehand
//   - histogram.go: histograms in fixed buckets that merge exactly, as Parquet rows
//   - tables.go: the summary as rows of a table (tables/1)
//   - texttable.go: what several tables have in common: numbers, sets of figures, steps
//   - page.go: the HTML page: its order of sections and its facts
//   - pagetraffic.go: the page's arrivals, IDC, lengths, latency of the source and sessions
//   - pagereuse.go: the page's reuse, waterfalls, prefixes, series over time, groups and
//     reuse distances
//   - pagecache.go: the page's cache sizes, working set and routing over replicas
//   - pageplots.go: plots of the page: bars, cumulative curves, series over time
//   - pagedefine.go: the definition of every number on the page
//   - sheet.go: what sections share: sentences, figures in prose, tables of distributions
//   - breakers.go: prefix breakers in the text and on the page
//
// Exported names may change in any release.
package profile

import "reprise/trace"

// isLoad reports whether r counts; see the package comment.
func isLoad(r *trace.Request) bool { return r.Status != trace.StatusFailed }
