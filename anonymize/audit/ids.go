package audit

import (
	"context"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/token"
)

// publicGuesses are texts that anybody knows, for a judge who brings none.
var publicGuesses = []string{
	"You are a helpful assistant.",
	"You are ChatGPT, a large language model trained by OpenAI.",
	"A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, detailed, " +
		"and polite answers to the user's questions.",
}

// ids looks whether block ids are numbers and nothing else: 0, 1, 2… in the order
// of their first appearance, and none that somebody outside could compute of a text
// that is known.
func ids(ctx context.Context, c *Case) Finding {
	if c.Output.ofSpec() {
		return skipped("the workload was made of a specification, and its ids are of no source")
	}
	rows, err := c.Output.Trace.Reader()
	if err != nil {
		return broken(err)
	}
	known, texts := c.dictionary()
	n := &numbering{}
	shuffled := c.Output.Trace.Meta.IsWorkload() // by a seed, as the ids of a workload that mirrors a trace
	hits, refs := map[string]int{}, 0
	err = eachRequest(ctx, rows, func(r *trace.Request) {
		n.checkRow(r)
		for _, list := range [][]uint64{r.Blocks, r.OutputBlocks} {
			for _, id := range list {
				refs++
				if scheme, ok := known.ids[id]; ok {
					hits[scheme]++
				}
			}
		}
	})
	if err != nil {
		return broken(err)
	}
	distinct := int(n.blocks)
	if shuffled {
		if distinct, err = distinctBlocks(ctx, c.Output.Trace, min(n.blocks, uint64(refs))); err != nil {
			return broken(err)
		}
	}
	fig := Figures{"block_references": refs, "distinct_blocks": distinct, "texts_guessed": texts,
		"ids_computed": len(known.ids), "hits": len(hits)}
	var schemes []string
	for s := range hits {
		schemes = append(schemes, s)
	}
	slices.Sort(schemes)
	switch {
	case len(hits) > 0:
		fig["schemes"] = schemes
		return failed(fig, "anybody who knows a text can compute its block ids")
	case n.wrong > 0 && !shuffled:
		fig["rows_out_of_order"] = n.wrong
		return failed(fig, "block, session or user ids are not 0, 1, 2… in the order of first appearance: they tell "+
			"more than which ids are equal")
	case shuffled && n.blocks != uint64(distinct):
		return failed(fig, "block ids of the workload are not 0 to n-1: they tell more than which ids are equal")
	case refs == 0:
		return passed(fig, "the trace has no block ids; sessions and users are numbered in the order of "+
			"first appearance")
	}
	if shuffled {
		return passed(fig, "ids of the workload are 0 to n-1 in an order that a seed gave, and none of %d computed "+
			"of known texts is among them", len(known.ids))
	}
	return passed(fig, "ids are 0 to n-1 in the order of first appearance, and none of %d computed of known texts "+
		"is among them", len(known.ids))
}

// numbering follows ids that must count up as they appear: each is one that was
// there, or the next. It keeps the largest of each kind, plus one.
type numbering struct {
	blocks, sessions, users uint64
	wrong                   int // rows with an id that is neither
}

func (n *numbering) checkRow(r *trace.Request) {
	ok := true
	for _, list := range [][]uint64{r.Blocks, r.OutputBlocks} {
		for _, id := range list {
			ok = counts(&n.blocks, id) && ok
		}
	}
	if r.Session != nil {
		ok = counts(&n.sessions, uint64(*r.Session)) && ok
	}
	if r.User != nil {
		ok = counts(&n.users, uint64(*r.User)) && ok
	}
	if !ok {
		n.wrong++
	}
}

// counts reports whether an id counts up.
func counts(next *uint64, id uint64) bool {
	switch {
	case id < *next:
		return true
	case id == *next:
		*next++
		return true
	}
	*next = max(id, id+1) // the largest number has no next
	return false
}

// weak is how many keys are tried; of long texts fewer blocks are.
const (
	weak       = 1000
	mostTokens = 1 << 14
)

// dictionary computes the ids of what is guessed, for the tokenizer and the block
// size of the output.
func (c *Case) dictionary() (*dictionary, int) {
	guesses := c.Guesses
	if len(guesses) == 0 {
		guesses = publicGuesses
	}
	meta := c.Output.Trace.Meta
	// Weak keys are those that somebody may have set by hand, such as none, words,
	// numbers and single bytes over and over.
	keys := []string{"", "0", "secret", "key", "password", "changeme", "default", "test", "salt", "reprise", "litellm",
		"sk-1234", "vllm",
		"admin", "hunter2", "prefix", "block", "hash", "none", "null", "undefined", "true", "0000", "00000000"}
	for i := 0; i < 256 && len(keys) < weak; i++ {
		keys = append(keys, strings.Repeat(string([]byte{byte(i)}), 32))
	}
	for i := 1; len(keys) < weak; i++ {
		keys = append(keys, strconv.Itoa(i))
	}
	d := &dictionary{ids: map[uint64]string{}, plain: keys[:weak]}
	for _, k := range d.plain {
		var key block.Key
		copy(key[:], k)
		d.weak = append(d.weak, key)
	}
	tok, err := token.Open(meta.Tokenizer)
	if err != nil { // none, or of a file: ids of a source without text
		if tok, err = token.Open("o200k_base"); err != nil {
			return d, 0
		}
	}
	size := meta.BlockSize
	if size == 0 {
		size = 512
	}
	for _, g := range guesses {
		tokens := tok.Append(nil, g)
		d.add(tok.Name(), size, tokens[:min(len(tokens), mostTokens)])
	}
	return d, len(guesses)
}

// distinctBlocks counts the blocks of rows whose ids are below n, in a bit each.
func distinctBlocks(ctx context.Context, t *trace.Trace, n uint64) (int, error) {
	rows, err := t.Reader()
	if err != nil {
		return 0, err
	}
	seen := make([]uint64, n/64+1)
	rows.Only("blocks", "output_blocks")
	err = eachRequest(ctx, rows, func(r *trace.Request) {
		for _, list := range [][]uint64{r.Blocks, r.OutputBlocks} {
			for _, id := range list {
				if id < n {
					seen[id/64] |= 1 << (id % 64)
				}
			}
		}
	})
	distinct := 0
	for _, word := range seen {
		distinct += bits.OnesCount64(word)
	}
	return distinct, err
}
