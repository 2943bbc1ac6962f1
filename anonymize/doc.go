// Package anonymize turns log entries, which may hold prompt text, into trace
// rows, which cannot. It is the only package that looks at text.
//
// [Run] imports a log. Its rows are of tier [Internal]:
//
//  1. encode: the text is tokenised, message by message, and cut into prefix
//     blocks. The chained id of a block is a hash under a key that lives in
//     memory and is dropped at the end. Block ids that the source hashed itself
//     are kept for now and treated like plaintext; step 4 replaces them.
//  2. sort: rows are sorted by arrival. A private file takes what memory does not.
//  3. annotate: package profile assigns reuse categories and, if the source has
//     none, sessions.
//  4. renumber: blocks, sessions, users and names are numbered from 0 in the
//     final order of the rows. The output therefore depends neither on the key
//     nor on any identifier of the source.
//
// A source with more distinct blocks than fit in memory is annotated and
// renumbered in three passes over partitions on disk, with the same result. These
// files hold the keyed hashes, or the ids of the source. They are private: they
// have no name where the system allows that, and they end with the process.
//
// [Release] makes rows of tier [Partner] out of rows of tier [Internal]: it counts
// the users of every pair of lengths, name and block, and hides what too few have.
// [PublicCard] describes a release of tier [Public], which package synth makes.
//
// Text leaves the package in two ways only, and a [Policy] must ask for each:
// whole, in the file that [OpenRaw] reads for a verbatim replay; and as
// [Templates], which are system prompts that many users have, scrubbed of what
// patterns recognise. [Confine] takes the network, other files and core dumps from
// the process before it reads a log.
//
// The [Card] of each output says in words what was done to it.
package anonymize
