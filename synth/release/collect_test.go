package release_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/synth/release"
	"reprise/trace"
)

// TestSessionsInFiles measures sessions in memory, in files from the first row on, and from
// some row on: with the same noise they are the same.
func TestSessionsInFiles(t *testing.T) {
	k := newTraffic(3)
	for i := range 150 {
		k.session(int64(i), int64(i)/3, 1+k.r.IntN(3)*k.r.IntN(14))
	}
	k.session(1000, 1000, 90) // more turns than count
	rows := k.inOrder()
	for i := range rows {
		switch i % 50 {
		case 7:
			rows[i].User = nil
		case 8:
			rows[i].Session = nil
		case 9:
			rows[i].Status = trace.StatusFailed
		case 10:
			rows[i].Blocks = nil
		}
	}
	for _, c := range []struct{ unit, sessions string }{
		{synth.UnitUser, "source"}, {synth.UnitUser, "inferred"}, {synth.UnitSession, "source"}, {synth.UnitSession, "inferred"}, {synth.UnitRequest, "source"},
	} {
		o := release.Options{Unit: c.unit}
		var want any
		for _, most := range []int{0, 1, 300_000} {
			o.Noise = dp.NewNoiseFrom(rand.NewChaCha8([32]byte{1}))
			got, inFiles := release.Within(t, most, rows, windowed(c.sessions), o)
			switch {
			case inFiles != (most > 0):
				t.Fatalf("%v, %d bytes: in files is %v", c, most, inFiles)
			case most == 0:
				want = got
			case !reflect.DeepEqual(got, want):
				t.Errorf("%v: with %d bytes in memory it is another model", c, most)
			}
		}
	}
}
