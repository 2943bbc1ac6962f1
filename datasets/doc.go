// Package datasets reads the logs and traces of other tools as trace entries.
//
// A source goes through these steps:
//
//  1. [OpenFiles] looks at the first 64 KiB and recognises the format by its
//     content, unless [Options] name one.
//  2. The decoder of the format takes one record at a time: a line, a CSV row, or
//     an element of a JSON array. Memory holds one record, whatever the size of
//     the source.
//  3. Times become instants. The first records tell their unit, which [Info]
//     reports; what could be read in two ways is refused. Relative times count
//     from [Epoch].
//  4. [Source.Read] returns [trace.Entry] values, which may hold prompt text and
//     so go to package anonymize and nowhere else. A bad record is located,
//     counted and skipped. Too many of them, or an input that ends in the middle
//     of a record, stop the reading.
//  5. [Timed] gives arrivals to a source that has no times.
//
// Errors name the file, the line and the column, and never quote the input.
//
// [Formats] lists the formats. Each has a file of its own, named for its family:
// log_ for the logs of gateways, engines and observers, trace_ for times and
// lengths, chat_ for collections of conversations, and pool_ for descriptions of
// clients. Package datasets/export writes some of them.
//
// [Demo] opens a small log that was made for this project, so that everything can
// be tried without data of one's own.
package datasets
