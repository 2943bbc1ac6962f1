// Package peerfile reads the results files of other benchmark tools as results of a run,
// so that one set of definitions and one statistics judge runs that were made with any of
// them.
//
//   - [Open] opens results, ours or another tool's, and [Recognised] says whether a file is
//     another tool's.
//   - Instants and counts are taken as the file has them, never the figures that the tool
//     made of them. What a file lacks is in [result.Reading], and stays null in the rows.
//   - Text of prompts, answers and errors is skipped and never kept.
//
// A file is read as a stream, one value at a time. The rows are held in memory: about 400
// bytes for each request and 8 for each of its events.
//
// # Files
//
//   - open.go: which tool wrote a file; runs of a file with several; rows into a run:
//     instants from its start, requests open at once, the digest of its lengths
//   - stream.go: JSON as a stream of members and elements; seconds into nanoseconds
//   - arrays.go: the JSON of vLLM's bench serve, with one array for each quantity, and the
//     JSON lines of SGLang's
//   - aiperf.go: AIPerf's profile_export.jsonl
//   - guidellm.go: GuideLLM's JSON
//   - inferenceperf.go: inference-perf's per_request_lifecycle_metrics.json
//   - llmservingsim.go: the requests that LLMServingSim's bench records inside of vLLM
//
// Exported names may change in any release.
package peerfile
