// Package block turns token sequences into the chained block ids that a trace stores in their place.
//
// Serving engines cache the keys and values of a prompt in blocks of a fixed number of tokens. They find a block again
// by a hash that is chained to the hashes of all blocks before it. A trace keeps the same structure, and nothing else
// of the prompt:
//
//  1. A [Hasher] gives the root of a cache domain: model, adapter, salt.
//
//  2. A [Cutter] cuts a sequence into blocks and gives each the id
//
//     h_i = HMAC-SHA256(key, "blk", tokenizer, block size, h_{i-1}, number of tokens, tokens), cut to 128 bits,
//
//     so that two sequences share an id where, and only where, they agree up to the end of that block. A last block with
//     fewer tokens than the size has an id too, which no full block has.
//
//  3. [Dense] replaces the ids by 0, 1, 2… in the order of their first appearance in the final rows.
//
// The key is random. It is made for one import and forgotten after it. Without a key, anybody who knows likely prompts
// (public system prompts, documents) could hash them and look for them in a trace. Unkeyed hashes, such as engines
// write to their logs, tell as much as the text, and are numbered too. After the numbering the output depends neither
// on the key nor on the tokens: only on which blocks are equal.
//
// [Count], [Full], [Known] and [Reusable] convert between block sizes. With them two traces of different block size are
// compared, and a trace is read as a server with another block size would see it.
//
// # Files
//
//   - hasher.go: the key, the keyed hash of a block chained to the ones before it, and the
//     cutter that cuts tokens into blocks
//   - dense.go: ids numbered 0, 1, 2… by first appearance, for any key or for 128-bit keys
//     up to a limit
//   - bits.go: bits that count the set bits before each, in 1.15 bits of memory
//   - convert.go: lengths and hits converted between block sizes: how many blocks a length
//     takes, how many known tokens a server with another block size can reuse
//
// Exported names may change in any release.
package block
