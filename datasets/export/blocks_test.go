package export

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"reprise/trace"
)

// Regrouped ids against the tokens that the old ids show to be shared: two rows
// share their first i new blocks if and only if they end at the same token and
// that token is within the old blocks that both have.
func TestRegroup(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, from := range []int{1, 3, 8, 10, 16, 17, 18, 19, 24, 34, 64, 512} {
		for _, to := range []int{1, 5, 16, 32} {
			rows := randomRows(rng, 60, from)
			g := regroup(from, to)
			got := make([][]uint64, len(rows))
			names := map[uint64]string{} // what a new id stands for
			for i := range rows {
				ids, err := g.blocks(&rows[i])
				if err != nil || len(ids) != blocksOf(rows[i].InputTokens, to) {
					t.Fatalf("%d to %d: %d ids, %v", from, to, len(ids), err)
				}
				got[i] = append(got[i], ids...)
				for b, id := range ids {
					end := min((b+1)*to, int(rows[i].InputTokens))
					name := fmt.Sprint(b, end, rows[i].Blocks[:(end-1)/from+1])
					if was, ok := names[id]; ok && was != name {
						t.Fatalf("%d to %d: id %d is %s and %s", from, to, id, was, name)
					}
					names[id] = name
				}
			}
			for i := range rows {
				for j := range rows[:i] {
					if got, want := sharedBlocks(got[i], got[j]), shareable(&rows[i], &rows[j], from, to); got != want {
						t.Fatalf("%d to %d: rows %v and %v share %d blocks, want %d", from, to, rows[i].Blocks, rows[j].Blocks, got, want)
					}
				}
			}
		}
	}
}

func sharedBlocks(a, b []uint64) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// shareable counts, token by token, the new blocks whose every token is in an
// old block that both rows have.
func shareable(a, b *trace.Request, from, to int) int {
	tokens := 0 // that both are known to share
	for tokens < int(min(a.InputTokens, b.InputTokens)) && a.Blocks[tokens/from] == b.Blocks[tokens/from] {
		tokens++
	}
	blocks := tokens / to
	// The rest of both, when it is the same.
	if tokens%to != 0 && int(a.InputTokens) == tokens && int(b.InputTokens) == tokens {
		blocks++
	}
	return blocks
}

// The ids of a published trace stay as they are known: a 512-token block is 32
// blocks of 16, and its rest as many as it takes.
func TestRegroupMooncake(t *testing.T) {
	r := trace.Request{InputTokens: 512 + 33, Blocks: []uint64{7, 9}}
	ids, err := regroup(512, 16).blocks(&r)
	if err != nil || len(ids) != 32+3 || ids[0] != 7*32 || ids[31] != 7*32+31 || ids[32] != 9*32 || ids[34] != 9*32+2 {
		t.Errorf("%v, %v", ids, err)
	}
	same := trace.Request{InputTokens: 33, Blocks: []uint64{7, 8, 9}}
	if ids, err := regroup(16, 16).blocks(&same); err != nil || fmt.Sprint(ids) != "[7 8 9]" {
		t.Errorf("%v, %v", ids, err)
	}
}
