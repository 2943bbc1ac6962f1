package row

import (
	"testing"
	"time"

	"reprise/datasets/internal/fault"
)

// timesRow is a record that has times alone.
type timesRow map[string]any

func (r timesRow) Value(path string) (any, bool) { return Lookup(map[string]any(r), path) }

func (r timesRow) Place(string) (line, column int64) { return 0, 0 }

func (r timesRow) Cut() bool { return false }

// Latencies come of times that are written alike, in a unit that is clear.
func TestLatencies(t *testing.T) {
	paths := Latencies{Start: []string{"a"}, First: []string{"b"}, End: []string{"c"}}
	n := func(s string) any { return Number(s) }
	for name, c := range map[string]struct {
		r         timesRow
		unit      time.Duration
		e2e, ttft any
		backwards bool
	}{
		"seconds": {timesRow{"a": n("1700000000.5"), "b": n("1700000000.75"), "c": n("1700000002")}, 0,
			n("1500000000"), n("250000000"), false},
		"milliseconds": {timesRow{"a": n("1700000000000"), "c": n("1700000000001.5")}, 0, n("1500000"), nil,
			false},
		"dates": {timesRow{"a": "2026-01-02T03:04:05Z", "b": "2026-01-02T03:04:05.25Z",
			"c": "2026-01-02T03:04:06Z"}, 0, n("1000000000"), n("250000000"), false},
		"without a zone": {timesRow{"a": "2026-01-02 03:04:05", "c": "2026-01-02 03:04:06"}, 0,
			n("1000000000"), nil, false},
		"of two styles": {timesRow{"a": "2026-01-02T03:04:05Z", "c": "2026-01-02 03:04:06"}, 0, nil, nil,
			false},
		"at the end": {timesRow{"a": n("1700000000"), "b": n("1700000002"), "c": n("1700000002")}, 0,
			n("2000000000"), nil, false},
		"just before the end": {timesRow{"a": n("1700000000"), "b": n("1700000001.999999999"),
			"c": n("1700000002")}, 0, n("2000000000"), n("1999999999"), false},
		"without an end": {timesRow{"a": n("1700000000"), "b": n("1700000002")}, 0, nil, n("2000000000"),
			false},
		"at once": {timesRow{"a": n("1700000000"), "b": n("1700000000"), "c": n("1700000000")}, 0,
			n("0"), nil, false},
		"backwards": {timesRow{"a": n("1700000001"), "c": n("1700000000")}, 0, nil, nil, true},
		"the first is before": {timesRow{"a": n("1700000001"), "b": n("1700000000.999999999"),
			"c": n("1700000003")}, 0, nil, nil, true},
		"small, without a unit": {timesRow{"a": n("1"), "c": n("3")}, 0, nil, nil, false},
		"small, in a unit":      {timesRow{"a": n("1"), "c": n("3.5")}, time.Millisecond, n("2500000"), nil, false},
		"sixty days": {timesRow{"a": n("0"), "c": n("5184000")}, time.Second, n("5184000000000000"), nil,
			false},
		"more than sixty":        {timesRow{"a": n("0"), "c": n("5184001")}, time.Second, nil, nil, false},
		"sixty days backwards":   {timesRow{"a": n("5184000"), "c": n("0")}, time.Second, nil, nil, true},
		"more of them backwards": {timesRow{"a": n("5184001"), "c": n("0")}, time.Second, nil, nil, false},
		"no start":               {timesRow{"c": n("3")}, time.Second, nil, nil, false},
		"no times":               {timesRow{"a": "x", "b": "y", "c": true}, time.Second, nil, nil, false},
	} {
		v, tell := NewView(c.r), fault.Notes{}
		v.PutLatencies(paths, c.unit, &tell)
		if v.Made["e2e"] != c.e2e || v.Made["ttft"] != c.ttft || (len(tell.Lines()) == 1) != c.backwards {
			t.Errorf("%s: %v, %q, want %v and %v", name, v.Made, tell.Lines(), c.e2e, c.ttft)
		}
	}
}
