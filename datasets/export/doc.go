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
//  4. [Writer.Loss] says, with counts, what the file does not tell of these rows.
//
// Each format has a file of its own. Package datasets reads most of them back.
package export
