// Package scrape measures servers from outside while a replay goes on, on the
// clock of the run.
//
//  1. A [Scraper] asks Prometheus text targets, such as the /metrics of vLLM,
//     SGLang and llama.cpp or of the DCGM exporter, every interval and each by
//     itself: a target that stalls or fails is counted and holds nothing up.
//  2. Of an answer only families with known prefixes are decoded. Labels are kept
//     by an allow-list, since they can hold hostnames and worse; series that
//     differ in dropped labels alone stay apart by a number.
//  3. Every value becomes a [Sample]: a [Series] and an instant of the local
//     clock, the middle between the request and the headers of its answer. The
//     server writes its page between the two, so that the error is half of their
//     distance at most; [TargetStats] says how wide the widest was.
//  4. A [Prometheus] server is asked after the run, by query_range, for the same
//     kind of samples. It has a clock of its own, whose offset is measured.
//
// Memory is bounded: an answer has 16 MB at most, and no more than a stated
// number of series is followed; samples of further ones are dropped and counted.
// Nothing of an answer is ever quoted in an error.
package scrape
