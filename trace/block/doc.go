// Package block turns token sequences into the chained block ids that a trace stores in their stead.
//
// Serving engines cache the keys and values of a prompt in blocks of a fixed number of tokens, and find them again by a hash
// of the block chained to that of all blocks before it. A trace keeps the same structure, and nothing else of the prompt:
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
// The key is random, made for one import and forgotten after it: without it, whoever knows likely prompts (public system
// prompts, documents) could hash them and look for them in a trace. Unkeyed hashes, such as engines write to their logs, are
// as good as the text, and are numbered too. After the dense numbering the output does not depend on the key, nor on what the
// tokens were: only on which blocks are equal.
//
// Two traces of different block size are compared, and a trace is read as a server with another block size would see it, by
// the conversions at the end: [Count], [Full], [Known], [Reusable].
package block
