// Package audit tries to break the privacy of what Reprise writes. It holds the
// checks that a file must pass before it may be released, and it believes nothing
// that the file says about itself.
//
//  1. A [Case] holds the output to judge, of any kind, and what the judge knows
//     besides: the source log, a trace of tier internal made from it, strings that
//     were planted in the source. An outsider has the output alone.
//  2. [Run] runs the [Checks] one by one. A check that lacks an input is skipped,
//     with the reason. Every other check returns a [Finding].
//  3. The [Result] identifies the rows by their digest and the file by its hash. It
//     is written as JSON, and [Page] lays it out for people.
//
// A check can refute a release and never prove one safe. It fails when it found a
// way to learn something, passes when it found none, and is inconclusive when it
// could not have found one. For every check the tests plant a bug that it must find.
//
// # Files
//
//   - audit.go: the list of checks, what each needs, and how they are run
//   - case.go: the output that is judged, and the judge's knowledge: the source log, imported anew, and
//     the rows that the output was made from
//   - output.go: the file that is judged: its kind by content, its tier, digest and hash
//   - result.go: the findings: pass, fail, inconclusive or skipped, as JSON
//   - page.go: the result as a page: verdict, checks, the first rows
//   - pagefields.go: the page's fields of the source and columns: what became of each
//   - pagerisks.go: the page's change of totals, measured risks, and answers to opinion
//     05/2014
//   - canaries.go: the checks canaries and numbers: planted strings and numbers in the
//     output; the file of --canaries
//   - scanner.go: the search for planted strings and numbers in bytes, and its false alarms
//   - scanparquet.go: the same search in Parquet files: values, dictionaries, bounds
//   - card.go: the check of the card: that the output says what it is
//   - container.go: the check of a Parquet file's pages: statistics and bounds that repeat
//     values
//   - freetext.go: the check free-text: strings that the tool did not choose; the forms of
//     mail addresses, IBANs, card numbers
//   - vocabulary.go: the words that the tool writes by itself, among them the words of cards
//     made of a few invented requests
//   - ids.go: the check that block ids are plain numbers, counted up, and no hash of a
//     guessed text
//   - dictionary.go: ids that an outsider could compute for known texts, by the hash
//     schemes of engines and traces
//   - times.go: the check that no times of the source come out, exactly or nearly
//   - linkage.go: the check linkage: which tests are run on drawn rows, and the report on
//     other outputs
//   - linkagepairs.go: linkage: pairs of lengths that the source has too
//   - linkageattack.go: linkage: whether drawn rows lie nearer to their source than other
//     people's rows do
//   - linkagemeasure.go: linkage: how well requests and sessions are singled out by
//     lengths, times and other columns
//   - linkageclasses.go: linkage: sizes of the classes that look the same
//   - linkagepoints.go: linkage: sessions that have a few known requests
//   - composition.go: the check of several outputs of one source: ε added up
//
// Exported names may change in any release.
package audit
