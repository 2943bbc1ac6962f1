package release_test

import (
	"testing"
	"time"

	"reprise/synth"
	"reprise/synth/release"
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
