package synth

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"reprise/trace"
)

// swapped returns the tuples of a model before and after swapping, with its
// cells.
func swapped(t *testing.T, rows []trace.Request, size, k int) (before, after *Model) {
	t.Helper()
	meta := trace.Meta{BlockSize: size}
	return fitted(t, rows, meta, 1, 0), fitted(t, rows, meta, k, 7)
}

// Units move whole, none is lost, and what a place is stays there.
func TestSwapMovesUnits(t *testing.T) {
	k := talk{block: 8, models: 3, users: 4, failed: true}
	before, after := swapped(t, k.rows(1, 3000), k.block, 10)
	count := func(m *Model) map[reuse]int {
		c := map[reuse]int{}
		for i := range m.tuples {
			c[m.tuples[i].reuse]++
		}
		return c
	}
	want, got := count(before), count(after)
	for u, n := range want {
		if got[u] != n {
			t.Fatalf("%d times %+v, want %d", got[u], u, n)
		}
	}
	moved, outputs := 0, 0
	for i := range before.tuples {
		a, b := &before.tuples[i], &after.tuples[i]
		if a.user != b.user {
			t.Fatalf("tuple %d changed its user", i)
		}
		if (b.category == duplicate) != (b.fresh == 0 && b.hit > 0 && b.category > global) {
			t.Fatalf("tuple %d: %d fresh blocks of a %s", i, b.fresh, b.category)
		}
		if b.tail < 1 || int(b.tail) > k.block {
			t.Fatalf("tuple %d has %d tokens in its last block", i, b.tail)
		}
		if a.reuse != b.reuse {
			moved++
		}
		if a.ending.output != b.ending.output {
			outputs++
		}
	}
	if n := len(before.tuples); moved < n/2 || outputs < n/2 {
		t.Errorf("of %d tuples %d got other reuse and %d another output", n, moved, outputs)
	}
}

// Every cell has at least k tuples, and all are in one.
func TestCellsHaveK(t *testing.T) {
	k := talk{block: 8, models: 5}
	m := fitted(t, k.rows(2, 1500), trace.Meta{BlockSize: k.block}, 1, 0)
	for _, n := range []int{2, 10, 100, 1500, 4000} {
		s := swapper{r: rand.New(rand.NewPCG(1, 2)), k: n, size: k.block}
		ts := slices.Clone(m.tuples)
		s.window(ts)
		seen, cells := 0, 0
		for _, g := range s.groups(m.tuples) {
			for _, c := range s.cells(g) {
				if len(c) < min(n, len(ts)) {
					t.Errorf("k %d: a cell of %d", n, len(c))
				}
				seen, cells = seen+len(c), cells+1
			}
		}
		if seen != len(ts) || n == 10 && cells < len(ts)/30 {
			t.Errorf("k %d: %d of %d tuples in %d cells", n, seen, len(ts), cells)
		}
	}
}

// An output never stays with the last block that it came with.
func TestSwapPartsLengths(t *testing.T) {
	s := swapper{r: rand.New(rand.NewPCG(1, 2)), k: 8, size: 16}
	var cell []int
	old := make([]tuple, 8)
	for i := range old {
		cell = append(cell, i)
		old[i] = tuple{fresh: 1, tail: int32(i) + 1, ending: ending{output: int32(i) + 1}} // too small for jitter
	}
	for range 200 {
		ts := slices.Clone(old)
		s.cell(ts, old, cell)
		var tails []int32
		for i := range ts {
			if ts[i].tail == ts[i].output {
				t.Fatalf("the output of %d tokens is with its own last block", ts[i].output)
			}
			tails = append(tails, ts[i].tail)
		}
		if slices.Sort(tails); tails[0] != 1 || tails[7] != 8 || len(slices.Compact(tails)) != 8 {
			t.Fatalf("the last blocks are %v", tails)
		}
	}
}

func TestSwapNeedsItsRandomness(t *testing.T) {
	rows := talk{block: 8, models: 1}.rows(3, 300)
	meta := trace.Meta{BlockSize: 8}
	want := errors.New("no randomness")
	_, err := Fit(t.Context(), cloned(rows), meta, FitOptions{Entropy: iotest.ErrReader(want)})
	if !errors.Is(err, want) {
		t.Errorf("the error is %v", err)
	}
	if _, err = Fit(t.Context(), cloned(rows), meta, FitOptions{Entropy: bytes.NewReader(make([]byte, 100))}); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		t.Errorf("the error is %v", err)
	}
	if _, err = Fit(t.Context(), cloned(rows), meta, FitOptions{KSwap: -1}); err == nil {
		t.Error("a negative k is no error")
	}
	// By default each fit swaps otherwise: nothing that can be repeated drives it.
	a, err := Fit(t.Context(), cloned(rows), meta, FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Fit(t.Context(), cloned(rows), meta, FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if a.KSwap() != DefaultKSwap || a.Meta().Digest == b.Meta().Digest {
		t.Errorf("k is %d, and two fits have digests %s and %s", a.KSwap(), a.Meta().Digest, b.Meta().Digest)
	}
}

// The limit that was asked for holds after jitter, and reasoning is a part of
// the output still.
func TestJitterKeepsLimits(t *testing.T) {
	s := swapper{r: rand.New(rand.NewPCG(1, 2)), k: 10, size: 16}
	for range 2000 {
		out := int32(1 + s.r.IntN(400))
		limit := out + int32(s.r.IntN(10))
		reasoning := int32(s.r.IntN(int(out) + 1))
		e := s.jitterEnding(ending{output: out, extra: &extra{maxTokens: &limit, reasoning: &reasoning}})
		if e.output > limit || e.output < 1 || *e.extra.reasoning > e.output || out == limit && e.output != out {
			t.Fatalf("%d of at most %d tokens with %d of reasoning became %d with %d", out, limit, reasoning, e.output, *e.extra.reasoning)
		}
	}
}
