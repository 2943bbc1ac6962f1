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
// Rows of tier internal go no further than the organisation that they came from. What is
// released of them, of tier [Partner] or [Public], is drawn from noisy counts by package
// synth/release, and [SessionsCard] describes it.
//
// Text leaves the package in two ways only, and a [Policy] must ask for each:
// whole, in the file that [OpenRaw] reads for a verbatim replay; and as
// [Templates], which are system prompts that many users have, with personal data
// replaced where patterns recognise it. [Confine] takes the network, other files
// and core dumps from the process before it reads a log.
//
// A [Recording] does step 1 for one entry at a time, while a recorder runs, and
// [MergeRecorded] the other steps when it is over.
//
// Several processes import one log by [EncodeShard], which does step 1 for a share of its
// files, and [MergeShards], which does the other steps for all of them.
//
// The [Card] of each output says in words how it was made and protected.
//
// # Files
//
//   - policy.go: the settings of an import, their defaults and limits; the confinement of
//     the process
//   - run.go: the import from log to rows: batches, workers, their order
//   - encode.go: an entry becomes a row: which length it takes, from the text or from the
//     usage; blocks cut from prompt and reply
//   - recorded.go: the same one entry at a time, for a recorder: rows of a part, and the
//     trace that is made of parts
//   - turns.go: the turns of a recording: which follows which, and how long after its end
//   - gaps.go: texts that cannot be the prompts sent, so that the usage gives the length and
//     they give no blocks: redacted, empty, or much shorter than the usage says
//   - usagechain.go: the chain of a text fitted to the length that the usage says; markers
//     that only the first records show; text and usage that contradict each other
//   - infer.go: prefix blocks of rows that have none, from the cached tokens that the server
//     reported and from the growth of sessions
//   - trunks.go: what first turns begin with: by what entries still name of it, such as
//     tools, and by the cached tokens
//   - chain.go: the part of a prompt that it shares with the one before, tokenised and
//     hashed once; the prompt as the breaker finder takes it
//   - collect.go: the collector after the workers: sessions, users, names and blocks
//     numbered in the order of the source; text counts compared with the source's
//   - answers.go: sessions of requests that go on from an earlier answer by its id
//   - shards.go: the rows of one shard of an import, and the trace that is made of all shards
//   - sealed.go: the system prompts of shards, sealed until it is known how many users have them
//   - words.go: the block ids of a row in a compact form while rows are sorted
//   - finish.go: categories, final block numbers and labels of names, with all blocks in
//     memory; times from the begin of the capture
//   - partition.go, spilled.go: the same with blocks on disk, where they do not fit in
//     memory: partitions by hash in the first, categories and numbers from their answers in
//     the second
//   - rules.go: what each tier does with each column, in words, and the writer that clears
//     every column without a rule
//   - reuse.go: hit ratio and lengths of rows, to compare a release with its source
//   - card.go: the privacy card as JSON: its fields, totals, counts by model, and its hash
//   - decided.go: by whose records the rules of an import were decided
//   - cardtext.go: the card as text for people
//   - tiercards.go: what the cards of the tiers internal, partner and public say, with the
//     risks that are left
//   - raw.go: the raw file of text for a verbatim replay: its encoding, digest, card and
//     writing
//   - rawread.go: the raw file read back and checked; a row's text as members of a request
//     body
//   - templates.go: system prompts that many users have, counted and kept with a notice for
//     the reviewer
//   - scrub.go: secrets replaced in a kept system prompt: keys and tokens of services,
//     passwords, mail addresses, phone numbers, IBANs, IP addresses, card numbers, UUIDs
//     and words that look random
//   - keyfile.go: a key that recordings share, in a file; what cards say of it
//
// Exported names may change in any release.
package anonymize
