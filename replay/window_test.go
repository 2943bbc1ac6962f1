package replay

import (
	"reflect"
	"testing"
	"time"

	"reprise/replay/result"
)

// Which requests a warm-up and a cool-down leave.
func TestWindowsOfSpans(t *testing.T) {
	at := func(due, row int64) *result.Place { return &result.Place{DueNS: due, Row: row} }
	places := []result.Place{*at(0, 0), *at(10, 1), *at(30, 3), *at(20, 2), *at(40, 4)}
	for name, c := range map[string]struct {
		warm, cool Span
		want       *result.Window
	}{
		"neither":                 {Span{}, Span{}, nil},
		"two requests":            {Span{Requests: 2}, Span{}, &result.Window{From: at(30, 3)}},
		"all requests":            {Span{Requests: 5}, Span{}, &result.Window{From: at(int64(never), 0)}},
		"a time":                  {Span{Time: 20}, Span{}, &result.Window{From: at(20, 0)}},
		"the last request":        {Span{}, Span{Requests: 1}, &result.Window{To: at(40, 4)}},
		"the last two":            {Span{}, Span{Requests: 2}, &result.Window{To: at(20, 2)}},
		"the last three":          {Span{}, Span{Requests: 3}, &result.Window{To: at(20, 2)}},
		"more than there are":     {Span{}, Span{Requests: 9}, &result.Window{To: at(0, 0)}},
		"a time before the end":   {Span{}, Span{Time: 15}, &result.Window{To: at(25, 0)}},
		"requests, then a time":   {Span{Requests: 1}, Span{Time: 15}, &result.Window{From: at(10, 1), To: at(25, 0)}},
		"a time, then requests":   {Span{Time: 11}, Span{Requests: 1}, &result.Window{From: at(11, 0), To: at(40, 4)}},
		"a time beyond the first": {Span{Time: time.Hour}, Span{}, &result.Window{From: at(int64(time.Hour), 0)}},
	} {
		w := windowTracker{warm: c.warm, cool: c.cool}
		for _, p := range places {
			w.addSent(p)
		}
		if got := w.window(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v; want %+v", name, got, c.want)
		}
	}
}

// Percentiles of drifts are interpolated; beyond the limit every second one counts.
func TestDriftsOfAFewTurns(t *testing.T) {
	d := drifts{limit: 4}
	if d.summary() != nil {
		t.Error("no turns have a drift")
	}
	for i, v := range []time.Duration{-5, 10, 20} {
		if d.add(v); i == 0 {
			if s := d.summary(); *s != (result.Drift{Turns: 1, MeanNS: -5, MaxNS: -5, P50NS: -5, Sample: 1}) {
				t.Errorf("one turn: %+v", s)
			}
		}
	}
	if s := d.summary(); *s != (result.Drift{Turns: 3, MeanNS: 8, MaxNS: 20, P50NS: 10, Sample: 3}) {
		t.Errorf("three turns: %+v", s)
	}
	d = drifts{limit: 4}
	for i := range 11 {
		d.add(time.Duration(i))
	}
	// 0 to 3 become 0 and 2, which 4 and 6 fill up; then 0 and 4, and 8.
	if s := d.summary(); *s != (result.Drift{Turns: 11, MeanNS: 5, MaxNS: 10, P50NS: 4, Sample: 3}) {
		t.Errorf("eleven turns: %+v", s)
	}
	d = drifts{limit: 1000}
	for i := range 101 {
		d.add(time.Duration(10 * i))
	}
	if s := d.summary(); s.P99NS == nil || *s.P99NS != 990 || s.P50NS != 500 {
		t.Errorf("a hundred turns: %+v", s)
	}
	d.add(1010)
	if s := d.summary(); *s.P99NS != 1000 {
		t.Errorf("the 99th of 102 is %d", *s.P99NS)
	}
}

func TestPeriodsOfLoops(t *testing.T) {
	for _, c := range [][4]int64{{5, 105, 11, 110}, {0, 0, 7, 1e9}, {0, 100, 1, 1e9}, {9, 3, 7, 1e9},
		{0, 100, 2, 200}, {0, 3, 10, 4}, {0, 1, 2, 2}} {
		if got := Period(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%d rows from %d to %d repeat after %d, want %d", c[2], c[0], c[1], got, c[3])
		}
	}
}
