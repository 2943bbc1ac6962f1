package prompt

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// In a further round of a workload its prompts share with one another what they
// share in the first, tails included, and nothing with those of the first.
func TestRepeatedTails(t *testing.T) {
	const size = 16
	rows := conversations(rand.New(rand.NewPCG(7, 1)), 150, size)
	blocks := uint64(0)
	for _, r := range rows {
		blocks = max(blocks, slices.Max(r.Blocks)+1)
	}
	tails := readTails(t, rows, size)
	p := newTestPrompter(t, "o200k_base", size, WithTails(tails.Repeat(blocks)))
	if p.Blocks() < 1e9 {
		t.Errorf("only %d block ids", p.Blocks())
	}
	first, third := make([][]uint32, len(rows)), make([][]uint32, len(rows))
	for i, r := range rows {
		first[i] = tokensOf(t, p, &r)
		if plain := tokensOf(t, newTestPrompter(t, "o200k_base", size, WithTails(tails)), &r); !slices.Equal(plain, first[i]) {
			t.Fatalf("row %d: the first round differs from a workload played once", i)
		}
		r.Blocks = slices.Clone(r.Blocks)
		for k := range r.Blocks {
			r.Blocks[k] += 2 * blocks
		}
		third[i] = tokensOf(t, p, &r)
	}
	naive, inTails := naiveTails(rows, size), 0
	for i := range rows {
		for j := range i {
			want := sharedTokens(naive, &rows[i], &rows[j], size)
			if got := sharedPrefix(third[i], third[j]); got < want || got > want+2 {
				t.Fatalf("rows %d and %d share %d tokens in the third round, %d in the first", j, i, got, want)
			}
			if want%size > 0 {
				inTails++
			}
			if n := sharedPrefix(third[i], first[j]); n > 2 {
				t.Fatalf("row %d of the third round shares %d tokens with row %d of the first", i, n, j)
			}
		}
	}
	if inTails < 50 {
		t.Errorf("only %d pairs share a tail", inTails)
	}
	if none := (*Tails)(nil).Repeat(3); none != nil {
		t.Error("no tails become some")
	}
}
