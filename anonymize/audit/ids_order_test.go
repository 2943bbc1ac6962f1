package audit

import (
	"reflect"
	"slices"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/token"
)

// Ids count up in the order in which they appear, whatever they are of. What the
// check measured is said whole.
func TestIDsInOrder(t *testing.T) {
	t.Parallel()
	id := func(n int64) *int64 { return &n }
	order := "block, session or user ids are not 0, 1, 2… in the order of first appearance: they tell more than " +
		"which ids are equal"
	for name, c := range map[string]struct {
		rows []trace.Request
		meta trace.Meta
		want Finding // but for texts_guessed and ids_computed
	}{
		"blocks": {[]trace.Request{{Blocks: []uint64{0, 1}, OutputBlocks: []uint64{2}}, {Blocks: []uint64{0, 3}}}, trace.Meta{},
			Finding{Status: Pass, Figures: Figures{"block_references": 5, "distinct_blocks": 4, "hits": 0}}},
		"no ids": {[]trace.Request{{}}, trace.Meta{},
			passed(Figures{"block_references": 0, "distinct_blocks": 0, "hits": 0}, "the trace has no block ids; sessions and users are numbered in the order of first appearance")},
		"sessions": {[]trace.Request{{Session: id(0)}, {Session: id(2)}, {Session: id(2)}, {Session: id(9)}}, trace.Meta{},
			failed(Figures{"block_references": 0, "distinct_blocks": 0, "hits": 0, "rows_out_of_order": 2}, "%s", order)},
		"users": {[]trace.Request{{User: id(1)}, {User: id(0)}}, trace.Meta{},
			failed(Figures{"block_references": 0, "distinct_blocks": 0, "hits": 0, "rows_out_of_order": 1}, "%s", order)},
		"sessions and users each by themselves": {[]trace.Request{{Session: id(0)}, {User: id(0), Session: id(1)}, {User: id(1)}}, trace.Meta{},
			passed(Figures{"block_references": 0, "distinct_blocks": 0, "hits": 0}, "the trace has no block ids; sessions and users are numbered in the order of first appearance")},
		"output blocks": {[]trace.Request{{Blocks: []uint64{0}, OutputBlocks: []uint64{2}}}, trace.Meta{},
			failed(Figures{"block_references": 2, "distinct_blocks": 3, "hits": 0, "rows_out_of_order": 1}, "%s", order)},
		"one row with several": {[]trace.Request{{Blocks: []uint64{1, 3}, Session: id(4), User: id(4)}}, trace.Meta{},
			failed(Figures{"block_references": 2, "distinct_blocks": 4, "hits": 0, "rows_out_of_order": 1}, "%s", order)},
		"shuffled": {[]trace.Request{{Blocks: []uint64{2, 0}}, {Blocks: []uint64{1}, OutputBlocks: []uint64{3}, Session: id(7)}}, trace.Meta{Seed: "1"},
			Finding{Status: Pass, Figures: Figures{"block_references": 4, "distinct_blocks": 4, "hits": 0}}},
		"shuffled, one is missing": {[]trace.Request{{Blocks: []uint64{2, 0, 2}}}, trace.Meta{Seed: "1"},
			failed(Figures{"block_references": 3, "distinct_blocks": 2, "hits": 0}, "block ids of the workload are "+
				"not 0 to n-1: they tell more than which ids are equal")},
		"shuffled, far more than there are": {[]trace.Request{{Blocks: []uint64{0, 1 << 40}}}, trace.Meta{Seed: "1"},
			failed(Figures{"block_references": 2, "distinct_blocks": 1, "hits": 0}, "block ids of the workload are "+
				"not 0 to n-1: they tell more than which ids are equal")},
	} {
		c.meta.BlockSize = 16
		f := ids(t.Context(), &Case{Output: &Output{Kind: kindTrace, Trace: linkTrace(t, c.meta, c.rows), Meta: map[string]string{}}, Guesses: []string{"a guess", "and another"}})
		if f.Figures["texts_guessed"] != 2 || f.Figures["ids_computed"].(int) < 4*weak {
			t.Errorf("%s: %v", name, f.Figures)
		}
		if c.want.Why == "" { // it says how many ids were computed
			words := "ids are 0 to n-1 in the order of first appearance, and none of %d computed of known texts is among them"
			if c.meta.Seed != "" {
				words = "ids of the workload are 0 to n-1 in an order that a seed gave, and none of %d computed of known texts is among them"
			}
			c.want = passed(c.want.Figures, words, f.Figures["ids_computed"])
		}
		delete(f.Figures, "texts_guessed")
		delete(f.Figures, "ids_computed")
		if !reflect.DeepEqual(f, c.want) {
			t.Errorf("%s: %+v, want %+v", name, f, c.want)
		}
	}
	spec := &Case{Output: &Output{Meta: map[string]string{"source_format": "spec"}}}
	if f := ids(t.Context(), spec); !reflect.DeepEqual(f, skipped("the workload was made of a specification, and its ids are of no source")) {
		t.Errorf("of a specification: %+v", f)
	}
}

// Ids that are computed count wherever they stand, by scheme.
func TestIDsComputedOfAGuess(t *testing.T) {
	t.Parallel()
	tok, err := token.Open("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	of := func(text string, size int) uint64 { // of its first block
		d := &dictionary{ids: map[uint64]string{}}
		tokens := tok.Append(nil, text)
		for _, n := range []int{min(size, len(tokens))} {
			d.add(tok.Name(), size, tokens[:n])
		}
		var ids []uint64
		for id, scheme := range d.ids {
			if scheme == "xxh64" {
				ids = append(ids, id)
			}
		}
		return slices.Min(ids)
	}
	const guess = "the quick brown fox jumps over the lazy dog"
	for name, c := range map[string]struct {
		meta trace.Meta
		id   uint64
		want Status
	}{
		"of this block size":          {trace.Meta{BlockSize: 4}, of(guess, 4), Fail},
		"of another block size":       {trace.Meta{BlockSize: 5}, of(guess, 4), Pass},
		"without a size 512 is taken": {trace.Meta{}, of(guess, 512), Fail},
		"of an unknown tokenizer":     {trace.Meta{BlockSize: 4, Tokenizer: "tokenizer.json:0123456789abcdef"}, of(guess, 4), Fail},
		"of another tokenizer":        {trace.Meta{BlockSize: 4, Tokenizer: "cl100k_base"}, of(guess, 4), Pass},
		"of nothing that was guessed": {trace.Meta{BlockSize: 4}, of("something else altogether", 4), Pass},
	} {
		for _, out := range []bool{false, true} {
			r := trace.Request{Blocks: []uint64{c.id, c.id}}
			if out {
				r = trace.Request{Blocks: []uint64{0}, OutputBlocks: []uint64{c.id, c.id}}
			}
			c.meta.Tier, c.meta.Seed = anonymize.Partner, "1" // in any order
			f := ids(t.Context(), &Case{Output: &Output{Trace: linkTrace(t, c.meta, []trace.Request{r}), Meta: map[string]string{}}, Guesses: []string{guess}})
			if said := f.Why == "anybody who knows a text can compute its block ids"; said != (c.want == Fail) {
				t.Errorf("%s: %+v", name, f)
			}
			if c.want == Fail && (f.Figures["hits"] != 1 || !reflect.DeepEqual(f.Figures["schemes"], []string{"xxh64"})) {
				t.Errorf("%s: %v", name, f.Figures)
			}
		}
	}
}

// A thousand keys are tried: none, words, single bytes over and over, and numbers.
func TestWeakKeys(t *testing.T) {
	c := &Case{Output: &Output{Trace: linkTrace(t, trace.Meta{BlockSize: 4}, nil)}, Guesses: []string{"a"}}
	d, texts := c.dictionary()
	if len(d.plain) != 1000 || len(d.weak) != 1000 || texts != 1 {
		t.Fatalf("%d and %d keys, %d texts", len(d.plain), len(d.weak), texts)
	}
	seen := map[string]bool{}
	for i, k := range d.plain {
		var padded [32]byte
		copy(padded[:], k)
		if string(d.weak[i][:]) != string(padded[:]) {
			t.Errorf("key %d is %x, want %q", i, d.weak[i], k)
		}
		seen[k] = true
	}
	for _, k := range []string{"", "hunter2", "00000000", string(make([]byte, 32)), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "1", "2", "720"} {
		if !seen[k] {
			t.Errorf("%q is not tried", k)
		}
	}
	c.Guesses = nil
	if _, texts := c.dictionary(); texts != len(publicGuesses) {
		t.Errorf("%d texts for a judge who brings none", texts)
	}
}
