// Package datasets reads the logs and traces of the outside world, one file
// for each format. Package datasets/export writes some of them.
//
// The way of a source to its entries:
//
//  1. [OpenFiles] looks at the first 64 KiB and recognises the format by content
//     (see [detectFormat]), unless it is told one.
//  2. The format's decoder takes one record at a time: a line, a CSV row, an
//     element of a JSON array. Memory holds one record, whatever the size of
//     the source.
//  3. Times become instants. Their unit is found from the first records and
//     said in [Info]; what could be read in two ways is refused. Relative times
//     count from [Epoch].
//  4. [Source.Read] hands out [trace.Entry] values, which may hold prompt text
//     and so go to package anonymize and nowhere else. A record that is at
//     fault is located, counted and skipped; too many of them, or an input that
//     ends in the middle of a record, stop the reading.
//  5. A source without times gets them from an arrival process by [Timed].
//
// Errors name file, line and column, and never quote the input.
//
// Known formats are listed by [Formats]. [Demo] is a small log that was made
// for this project, so that everything can be tried without data of one's own.
package datasets
