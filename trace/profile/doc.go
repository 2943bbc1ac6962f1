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
//     workload alike, in one pass and bounded memory. It feeds the lengths, the
//     arrivals, the sessions and a [Reuse], which finds the hit ratio of an LRU
//     cache of every capacity at once, over the whole trace and in steady state.
//     The same pass splits reuse over time and by category, model and client,
//     ranks the prefixes that bring it and counts working sets. When asked, it also
//     drives a [fleet.Simulation] of routers over several replicas.
//  3. [Profiler.Summary] is the result as data, with its warnings beside the
//     numbers; [WriteText] prints it for people, [Tables] are its curves as rows,
//     and [Profiler.Histograms] the distributions as rows that merge exactly.
//     [Page] lays both out for a browser.
//
// Rows do not show where near-identical prompts part, since their ids are chained.
// A [breaker.Finder] finds these places at import, while there are tokens, and the
// summary shows them.
//
// A replay needs less: a [KnownPass] tells for each row how many of its tokens
// earlier rows carried, and a [ServerReuse] how many of these a server can reuse.
//
// Known blocks. A block is known once an earlier row carried it. The hit of a
// request is the number of its leading blocks that are known. Ids are chained
// and unique to their cache domain (model, adapter, salt), so comparing ids is
// enough.
//
// Steady state. The first rows of a trace cannot hit what came before it, so
// every ratio is also given for the requests after a warm-up, which is half of the
// duration unless an option sets it: see [SteadyState]. A ramp of the traffic or
// the hours of a day are not removed.
//
// Failed rows are not load. A trace does not tell how far a failed request came,
// so it is assumed never to have reached a cache: it is counted, left out of every
// other figure, never known to later rows, and gets no category and no inferred
// session. Cancelled rows are load: they were served until they were cancelled.
package profile

import "reprise/trace"

// isLoad reports whether r counts; see the package comment.
func isLoad(r *trace.Request) bool { return r.Status != trace.StatusFailed }
