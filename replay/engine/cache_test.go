package engine

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/trace/block"
)

func ids(ns ...int) []block.ID {
	out := make([]block.ID, len(ns))
	for i, n := range ns {
		binary.BigEndian.PutUint64(out[i][:], uint64(n))
	}
	return out
}

func TestCacheRule(t *testing.T) {
	c := newPrefixCache(0)
	for i, s := range []struct {
		ids    []block.ID
		prompt int
		want   int
	}{
		{ids(1, 2, 3), 48, 0},
		{ids(1, 2, 3), 48, 32}, // the last token must be computed, and with it its block
		{ids(1, 2, 3), 50, 48}, // a partial block follows
		{ids(1, 2, 4), 48, 32},
		{ids(5, 2, 3), 48, 0}, // a chain that begins otherwise is another
	} {
		if got := c.schedule(s.ids, s.prompt, 16); got != s.want {
			t.Errorf("step %d: %d cached tokens, want %d", i, got, s.want)
		}
	}
	if q, h := c.counts(); q != 242 || h != 112 {
		t.Errorf("counted %d and %d tokens", q, h)
	}
}

// A bounded cache equals a list that is searched and cut naively.
func TestCacheEqualsNaiveLRU(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, capacity := range []int{1, 5, 20} {
		c := newPrefixCache(capacity)
		var list []block.ID // most recent first
		for range 3000 {
			chain := make([]int, 1+r.IntN(6))
			for i := range chain {
				chain[i] = i*3 + r.IntN(3)
			}
			prompt := ids(chain...)
			hit := 0
			for hit < len(prompt) && slices.Contains(list, prompt[hit]) {
				hit++
			}
			for _, id := range slices.Backward(prompt) {
				list = slices.DeleteFunc(list, func(x block.ID) bool { return x == id })
				list = slices.Insert(list, 0, id)
			}
			list = list[:min(len(list), capacity)]
			if got := c.schedule(prompt, len(prompt)*16+1, 16); got != hit*16 {
				t.Fatalf("capacity %d: %d cached, want %d", capacity, got, hit*16)
			}
		}
	}
}
