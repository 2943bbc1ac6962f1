// Package export writes a trace in the formats of other tools.
//
// A trace becomes a file of another tool in these steps:
//
//  1. [Formats] lists the formats, each with a sample record, what it cannot
//     hold, and the command line with which its tool reads the file.
//  2. [NewWriter] opens one of them. A format of blocks needs a trace with block
//     ids; a format of requests needs a [Prompter], which makes prompts with
//     the tokens that the rows ask for.
//  3. The [Writer] takes the rows of the whole trace in their order and writes a
//     record for each. Times are rounded to what the format holds, blocks are
//     regrouped to its block size, and sessions are joined in its own way.
//  4. [Writer.Loss] lists, with counts, what the file leaves out of these rows.
//
// Package datasets reads most of the formats back.
//
// # Files
//
//   - formats.go: the list of formats, and NewWriter by name
//   - writer.go: the writer of every format; Prompter and Options; what a file leaves out
//     of the rows, counted by column
//   - blocks.go: block ids regrouped to another block size; times, ids and text as JSON
//   - mooncake.go: mooncake, sglang and guidellm
//   - aiperf.go: aiperf: sessions with delays
//   - bailian.go: bailian: chat_id, parent_chat_id and turns; the place of a row in its
//     session
//   - batch.go: openai-batch: bodies of requests, endpoints, the limits of a batch
//   - vllm.go: vllm-timed-trace and vllm-custom; prompts and output lengths for formats
//     without times
//   - csv.go: blis and inference-perf
//
// Exported names may change in any release.
package export
