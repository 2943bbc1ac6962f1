package synth

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"reprise/trace"
)

// Without swapping, places replayed in their order rebuild the trace but for
// the names of its blocks, which come by first appearance in both.
func TestPlacesRebuildTheTrace(t *testing.T) {
	for _, k := range []talk{
		{block: 16, models: 1},
		{block: 16, models: 3},
		{block: 4, models: 2, failed: true},
		{block: 1, models: 1},
		{block: 512, models: 1, sessions: true, users: 3},
	} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%+v/%d", k, seed), func(t *testing.T) {
				rows := k.rows(seed, 400)
				want := annotated(succeeded(rows), k.block)
				m := fitted(t, annotated(rows, k.block), trace.Meta{BlockSize: k.block}, 1, 0)
				sameRows(t, want, readAll(t, replayed(m, timesOf(want)).Reader()))
			})
		}
	}
}

func TestPlacesRebuildMooncake(t *testing.T) {
	rows := annotated(mooncake(t), 512)
	m := fitted(t, rows, trace.Meta{BlockSize: 512}, 1, 0)
	got := readAll(t, replayed(m, timesOf(rows)).Reader())
	sameRows(t, rows, got)
	want, have := curveOf(rows, 512), curveOf(got, 512)
	if e := have.error(want); e != 0 || want.infinite() != have.infinite() {
		t.Errorf("the curve of hit ratios differs by %g", e)
	}
	for name, share := range map[string]float64{trace.Template: 62.5, trace.Continuation: 30.3, trace.Branch: 6.2, trace.Duplicate: 1.0} {
		if got := categories(got)[name]; math.Abs(got-share) > 0.05 {
			t.Errorf("%.2f %% are %s, want %.1f", got, name, share)
		}
	}
}

// sameRows compares what a model keeps of rows. Blocks are numbered by first
// appearance, so the ids of equal prefixes are equal.
func sameRows(t *testing.T, want, got []trace.Request) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	var dense trace.Dense
	for i := range want {
		w, g := want[i], got[i]
		w.Blocks = slices.Clone(w.Blocks)
		dense.Apply(&w)
		if !slices.Equal(g.Blocks, w.Blocks) {
			t.Fatalf("row %d has blocks %v, want %v", i, g.Blocks, w.Blocks)
		}
		if g.InputTokens != w.InputTokens || *g.OutputTokens != *w.OutputTokens || g.Category != w.Category ||
			g.Model != w.Model || g.Status != w.Status || g.Kind != w.Kind || g.ArrivalNS != w.ArrivalNS-want[0].ArrivalNS {
			t.Fatalf("row %d is %+v, want %+v", i, g, w)
		}
		if opt(g.Session) != opt(w.Session) || opt(g.Turn) != opt(w.Turn) || !slices.Equal(g.Parents, w.Parents) ||
			opt(g.ThinkNS) != opt(w.ThinkNS) || opt(g.User) != opt(w.User) {
			t.Fatalf("row %d has session %d, turn %d, parents %v, user %d; want %d, %d, %v, %d", i, opt(g.Session), opt(g.Turn),
				g.Parents, opt(g.User), opt(w.Session), opt(w.Turn), w.Parents, opt(w.User))
		}
	}
}

func opt[T int32 | int64](p *T) T {
	if p == nil {
		return -1
	}
	return *p
}

// What no prefix tree can hold is refused, with the row.
func TestFitRefuses(t *testing.T) {
	for name, rows := range map[string][]trace.Request{
		"no requests": {{Status: trace.StatusFailed, InputTokens: 3}},
		"a block behind two prefixes": {
			{InputTokens: 32, Blocks: []uint64{0, 1}}, {InputTokens: 32, Blocks: []uint64{2, 1}}},
		"a block at two depths":    {{InputTokens: 32, Blocks: []uint64{0, 1}}, {InputTokens: 16, Blocks: []uint64{1}}},
		"a block twice":            {{InputTokens: 32, Blocks: []uint64{0, 0}}},
		"a known block behind new": {{InputTokens: 32, Blocks: []uint64{0, 1}}, {InputTokens: 48, Blocks: []uint64{0, 2, 1}}},
		"more blocks than tokens":  {{InputTokens: 16, Blocks: []uint64{0, 1}}},
		"negative lengths":         {{InputTokens: -1}},
	} {
		if _, err := Fit(t.Context(), cloned(rows), trace.Meta{BlockSize: 16}, FitOptions{KSwap: 1}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Fit(t.Context(), cloned([]trace.Request{{InputTokens: 9, Blocks: []uint64{0}}}), trace.Meta{}, FitOptions{KSwap: 1}); err == nil {
		t.Error("blocks without a block size: no error")
	}
}

// Blocks that a row does not name are fresh: they were suppressed since they
// occur once.
func TestFitCountsUnnamedBlocks(t *testing.T) {
	rows := []trace.Request{
		{InputTokens: 100, Blocks: []uint64{0, 1}},
		{ArrivalNS: 1, InputTokens: 90, Blocks: []uint64{0, 1}},
	}
	m := fitted(t, rows, trace.Meta{BlockSize: 16}, 1, 0)
	got := readAll(t, replayed(m, timesOf(rows)).Reader())
	if !slices.Equal(got[0].Blocks, []uint64{0, 1, 2, 3, 4, 5, 6}) || !slices.Equal(got[1].Blocks, []uint64{0, 1, 7, 8, 9, 10}) {
		t.Errorf("blocks are %v and %v", got[0].Blocks, got[1].Blocks)
	}
}
