// Package anonymize turns log entries, which may hold prompt text, into trace
// rows, which cannot. It is the only package that looks at text.
//
// [Run] is the whole step, in this order:
//
//  1. encode: text is tokenised, message by message, and cut into prefix
//     blocks whose chained ids are keyed hashes under a key that lives in
//     memory and is dropped at the end. Ids that a source hashed itself are
//     taken as they are: the renumbering below hides them just as well, and
//     they are treated as plaintext until then.
//  2. sort: rows go in order of arrival, spilling to a private file.
//  3. annotate: reuse categories and, where the source has none, sessions are
//     assigned, by package profile.
//  4. remap: blocks, sessions, users and names are numbered densely in the
//     final order of rows, so that what comes out depends neither on the key
//     nor on any identifier of the source.
//
// A source with more distinct blocks than fit in memory is annotated and remapped
// in three passes over partitions on disk, to the same result. Then the keyed
// hashes, or the source's own ids, are in files too. These are private: they
// have no name where the system allows that, and end with the process.
//
// Text leaves the package in two ways, both asked for by a [Policy]: whole, in the
// file that [OpenRaw] reads for a verbatim replay, and as [Templates], system prompts
// that many users have, scrubbed of what patterns recognise. [Confine] takes from
// the process what it could send text with otherwise.
//
// The [Policy] says what tier the rows are for; the [Card] says what was done,
// in words that go with the file.
package anonymize
