package release_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"testing/iotest"
	"time"

	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/synth/release"
	"reprise/trace"
)

// Drawings follow the sums of later turns that were measured, where those of the tables
// of single turns are others.
func TestDrawnSums(t *testing.T) {
	rows, meta := published(t, "mooncake_conversation.jsonl"), metaOf(3540*time.Second)
	f := release.Counted(t, rows, meta, release.Options{Unit: synth.UnitSession}, nil)
	less, more := f.SumsWhen(.9), f.SumsWhen(1.1)
	for i := range less {
		if by := more[i] / less[i]; by < 1.04 || by > 1.3 {
			t.Errorf("sum %d is %.2f times as large where 1.22 times as much was measured", i, by)
		}
	}
}

// Turns may rise: sessions of an agent have ten turns more often than two.
func TestDrawnTurnsRise(t *testing.T) {
	k := newTraffic(3)
	for i := range int64(300) {
		k.session(i, i, 9+k.r.IntN(4))
	}
	m := fitted(t, k.inOrder(), windowed("source"), release.Options{Unit: synth.UnitSession})
	turns := map[int64]int{}
	for _, q := range drawn(t, m, release.Drawing{Seed: 1}) {
		turns[*q.Session]++
	}
	short := 0
	for _, n := range turns {
		if n < 9 {
			short++
		}
	}
	if short > len(turns)/10 {
		t.Errorf("%d of %d sessions are shorter than all of the trace", short, len(turns))
	}
}

// Chats of a log without blocks grow by what is typed, and not by a share of the prompt: with
// next to no noise a drawing has the tokens of the source, though its limits are far above these.
func TestDrawnWithoutBlocks(t *testing.T) {
	rows := predictedLog{unit: synth.UnitSession, turns: .6}.rows(rand.New(rand.NewPCG(1, 2)), 4000)
	meta := trace.Meta{Tier: "internal", Sessions: "source", Capture: trace.RelativeCapture(0, time.Hour)}
	m := fitted(t, rows, meta, release.Options{Unit: synth.UnitSession, Budget: dp.Budget{Epsilon: 100, Delta: 1e-6}})
	var was, is int64
	for i := range rows {
		was += int64(rows[i].InputTokens)
	}
	for _, q := range drawn(t, m, release.Drawing{Seed: 1}) {
		is += int64(q.InputTokens)
	}
	if off := float64(is)/float64(was) - 1; math.Abs(off) > .08 {
		t.Errorf("%d input tokens are drawn of %d, %+.1f %%", is, was, 100*off)
	}
}

// A release is committed to once, before noise is drawn, and none is where that fails.
func TestCommit(t *testing.T) {
	rows := predictedLog{unit: synth.UnitSession}.rows(rand.New(rand.NewPCG(1, 2)), 300)
	meta := trace.Meta{Tier: "internal", Sessions: "source", Capture: trace.RelativeCapture(0, time.Hour)}
	full, calls := errors.New("full"), 0
	o := release.Options{Unit: synth.UnitSession, Noise: dp.NewNoiseFrom(iotest.ErrReader(errors.New("noise was drawn"))), Commit: func(rho, selection float64) error {
		if calls++; rho != dp.Rho(8, 1e-6) || selection != 0 {
			t.Errorf("it costs ρ = %g and δ = %g", rho, selection)
		}
		return full
	}}
	if _, spent, err := release.Fit(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, meta, o); spent || !errors.Is(err, full) || calls != 1 {
		t.Errorf("spent %v after %d calls: %v", spent, calls, err)
	}
	for name, o := range map[string]release.Options{
		"too little for the noise": {Unit: synth.UnitSession, Budget: dp.Budget{Epsilon: 1e-9, Delta: 1e-9}, Commit: o.Commit},
		"no unit":                  {Commit: o.Commit},
	} {
		if _, spent, err := release.Fit(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, meta, o); spent || err == nil || calls != 1 {
			t.Errorf("%s: spent %v after %d calls: %v", name, spent, calls, err)
		}
	}
}
