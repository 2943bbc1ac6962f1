package prompt

import (
	"errors"
	"fmt"
	"sync/atomic"

	"reprise/trace"
	"reprise/trace/sample"
	"reprise/trace/token"
)

// A Prompter turns rows into prompts, of words that mean nothing unless told
// otherwise. A prompt is a pure function of the seed, the vocabulary, the block
// size, the options and the row: every machine makes the same one, in any order,
// on any shard.
//
//   - Block i of a row covers block-size tokens, the last block the remainder.
//     The word at position j of block b is a function of the seed, b and j, so
//     rows with equal leading blocks have equal leading tokens.
//   - The first three tokens of a block spell its id, permuted by the seed, in
//     base V, the number of words: two different blocks share two leading tokens
//     at most. Ids of V^3 and above are an error; that is 388 billion blocks
//     for cl100k_base, 1,152 billion for o200k_base. A block of one or two
//     tokens cannot spell its id and may equal another: see [Prompter.ShortTails].
//   - With [WithTails], a block that completes a partial one begins with the
//     tokens of that one and spells its id after them.
//   - A row without blocks gets a prompt that is its own: the words are a
//     function of its times, lengths, session, turn, user and parents, in 64
//     bits. Rows that are alike in all of these get the same prompt, and a
//     server will find it in its cache. Where that can happen, as in a burst of
//     requests of one size, read the rows through [synth.Unshared], which tells them
//     apart by their order.
//
// Any number of words after spaces encodes to exactly as many tokens, see
// [token.Words]; the first word of a prompt stands without its space.
//
// Nothing here is secret: the ids are pseudonyms, and whoever has the seed is
// meant to be able to make the prompts. So the function is SplitMix64 in
// counter mode, about a nanosecond a word, and not a cipher.
//
// A Prompter is safe for concurrent use and allocates nothing but the buffers
// that it grows for its callers.
type Prompter struct {
	text      *Text
	tails     *Tails // nil when none are shared
	blockSize int
	before    int // tokens of the chat template
	after     int
	heads     sample.Permutation // of [0, v^3), v being the number of words
	blocks    uint64             // key of the words of blocks
	rows      uint64             // key of the words of rows without blocks

	shortTails, filled atomic.Int64
}

// The streams of a seed; package synth has the first three. The numbers are part of
// what a seed means: another stream takes the next one.
const (
	forHeads = iota + 4
	forWords
	forRows
)

// maxWords keeps V^3 within 63 bits.
const maxWords = 1 << 21

// An Option changes a [Prompter] at its making.
type Option func(*Prompter)

// WithTemplate says that the server's chat template adds tokens before every prompt and
// after it, as measured from its own usage count: a prompt then has as many fewer, so that
// the server counts what the row asks for, and finds the boundaries of blocks where the row
// has them.
//
// The tokens before it are dropped from the end of the first block. If it is too short to
// keep its first three tokens, the following blocks give the rest in the same way, and
// only then the end of the prompt. What a block gives depends on the blocks before it
// alone, so prompts share leading tokens as before. A shared tail is kept as well, with
// the three tokens after it. The tokens after it are dropped from the end of the prompt.
func WithTemplate(before, after int) Option {
	return func(p *Prompter) { p.before, p.after = before, after }
}

// WithTails has blocks that complete a partial one begin with its tokens. They
// must be those of the whole workload that the rows are from, see [ReadTails].
func WithTails(t *Tails) Option {
	return func(p *Prompter) { p.tails = t }
}

// WithText has prompts written in another text than words without meaning. It
// must be made for the encoding that the words are from.
func WithText(t *Text) Option {
	return func(p *Prompter) { p.text = t }
}

// New makes a Prompter for rows in blocks of blockSize tokens, at least
// 3; or 0 for a trace without blocks, when a row that has some is an error.
// The words are kept and must not change.
func New(words *token.Words, seed uint64, blockSize int, opts ...Option) (*Prompter, error) {
	if words == nil || len(words.Text) < 2 || len(words.Text) > maxWords {
		return nil, fmt.Errorf("a vocabulary for prompts must have from 2 to %d words", maxWords)
	}
	if len(words.Spaced) != len(words.Text) || len(words.Bare) != len(words.Text) {
		return nil, errors.New("the vocabulary for prompts lacks ids for some of its words")
	}
	if blockSize != 0 && blockSize < headTokens {
		return nil, fmt.Errorf("block size %d is too small for prompts: telling a block from all others "+
			"takes %d tokens", blockSize, headTokens)
	}
	p := &Prompter{blockSize: blockSize, blocks: sample.Key(seed, forWords), rows: sample.Key(seed, forRows)}
	for _, o := range opts {
		o(p)
	}
	if p.text == nil {
		p.text = stableText(words)
	}
	v := p.text.words
	p.heads = sample.NewPermutation(sample.Key(seed, forHeads), v*v*v)
	if p.tails != nil && p.tails.size != blockSize {
		return nil, errors.New("the tails were read in blocks of another size")
	}
	if p.tails != nil && p.tails.top >= p.heads.Len() {
		return nil, p.errTooLarge("the workload")
	}
	if p.before < 0 || p.after < 0 {
		return nil, errors.New("the overhead of a chat template cannot be negative")
	}
	return p, nil
}

// Prompt appends the text of the row's prompt to buf. It encodes to exactly
// InputTokens tokens less the template's, and to one token at least. Lengths that
// are negative, block ids that do not match them, and ids too large to spell
// are errors, and then buf is returned as it was.
func (p *Prompter) Prompt(row *trace.Request, buf []byte) ([]byte, error) {
	c, err := p.begin(row)
	if err != nil {
		return buf, err
	}
	return c.appendText(true, buf), nil
}

// Tokens appends the token ids of the row's prompt to buf: those that the text
// of [Prompter.Prompt] encodes to, with the same errors.
func (p *Prompter) Tokens(row *trace.Request, buf []uint32) ([]uint32, error) {
	c, err := p.begin(row)
	if err != nil {
		return buf, err
	}
	return c.appendTokens(true, buf), nil
}

// Blocks returns how many block ids there are words to spell, from 0.
func (p *Prompter) Blocks() uint64 { return p.heads.Len() }

// Count returns how many tokens the row's prompt has: InputTokens less the
// template's, and one at least.
func (p *Prompter) Count(row *trace.Request) int {
	return max(int(row.InputTokens)-p.before-p.after, 1)
}

// ShortTails returns how many prompts were made so far in which a block has
// fewer than the three tokens that tell it from all others. Such a block is
// almost always the last, or one that completes a partial block by a token or
// two, and equals another by chance.
func (p *Prompter) ShortTails() int64 { return p.shortTails.Load() }

// Filled returns how many tokens of the prompts made so far are words in a place
// of a corpus that could not be cut there. It is 0 for other kinds of text.
func (p *Prompter) Filled() int64 { return p.filled.Load() }
