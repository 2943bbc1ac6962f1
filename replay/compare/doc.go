// Package compare tells two servers, or several, apart by runs of one workload on
// each of them.
//
//  1. [Arms] pairs the runs of each arm with those of the first, round by round,
//     so that whatever moves both sides of a round is not in the change. Wilcoxon's
//     exact signed ranks test one primary metric, and with Holm's correction all
//     others; the Hodges-Lehmann estimate and its interval say how large a change is.
//  2. [Clusters] keep the latencies of single requests by session. Resampling whole
//     sessions gives intervals for percentiles, also where there is one run a side.
//  3. [Production] compares what a trace recorded of its requests with a replay of
//     them, row by row.
//  4. A [Comparison] holds the decision, what it rests on, what so many rounds could
//     not have seen, and a [report.Warning] for everything else than the servers that
//     may be in the difference. [WriteText], [WriteJSON] and [Page] only lay it out.
package compare
