// Package scrape collects the Prometheus metrics of servers during a replay, on the
// clock of the run.
//
//  1. A [Scraper] requests Prometheus text pages, such as /metrics of vLLM, SGLang,
//     llama.cpp, Dynamo or the DCGM exporter, at every interval. Each target has its own
//     goroutine, so one that stalls or fails is counted and delays no other.
//  2. Only metric families with known prefixes are decoded. Labels are kept by an
//     allow-list, because they can hold hostnames and worse. Series that differ only
//     in dropped labels stay apart by a number. [FactsOf] reads what a page states of its
//     engine, such as the block size of its cache.
//  3. Every value becomes a [Sample]: a [Series] and an instant of the local clock.
//     The instant is the middle between the request and the headers of its answer.
//     The server writes its page between the two, so the error is at most half of
//     their distance; [TargetStats] reports the widest.
//  4. A [Prometheus] server can be queried after the run, by query_range, for the same
//     kind of samples. It has a clock of its own, whose offset is measured.
//
// Memory is bounded: an answer has at most 16 MB, and at most a given number of series
// is followed; samples of further series are dropped and counted. No error quotes any
// part of an answer.
//
// # Files
//
//   - scraper.go: scraping at every interval: targets, options, counts of failures
//   - fetch.go: one GET: classes of failures, size limit, URLs that are not quoted
//   - text.go: decoding a page of Prometheus text; the prefixes of metrics that are kept
//   - facts.go: what metrics state of their engine: its name, block size, capacity; series
//     that repeat others
//   - series.go: the labels that are kept, the number of series, counter or gauge
//   - prometheus.go: querying a Prometheus server after the run: queries, its clock's
//     offset
//
// Exported names may change in any release.
package scrape
