package synth

import (
	"slices"
	"testing"
)

// What a swap left beyond its limits is said with its figure, and nothing else.
func TestSwapWarnings(t *testing.T) {
	good := swapFigures{Links: 1000, Cut: 10, Kept: 90, CurveMAE: .005, Hits: .5, TraceHits: .495, Turns: 12, WantTurns: 10}
	for _, c := range []struct {
		change func(s *swapFigures)
		want   []string
	}{
		{func(s *swapFigures) {}, nil},
		{func(s *swapFigures) { *s = swapFigures{} }, nil},
		{func(s *swapFigures) { s.Cut = 11 }, []string{"11 of 1,000 links (1.1 %) between requests had fewer than 10 alike and were cut: these requests open sessions of their own"}},
		{func(s *swapFigures) { s.Kept = 91 }, []string{"91 of 1,000 links (9.1 %) between requests are where they were in the trace"}},
		{func(s *swapFigures) { s.CurveMAE = .0061 }, []string{"swapping moved the LRU curve by 0.0061 on average; 0.005 is usual at most"}},
		{func(s *swapFigures) { s.Hits = .47 }, []string{"after swapping 47 % of the blocks hit without limit, in the trace 49.5 %"}},
		{func(s *swapFigures) { s.Turns, s.WantTurns = 29, 10 }, []string{"after swapping the longest session has 29 turns, and was to have 10"}},
		{func(s *swapFigures) { s.Turns, s.WantTurns = 30, 40 }, []string{"after swapping the longest session has 30 turns, and was to have 40"}},
		{func(s *swapFigures) { s.Turns, s.WantTurns = 4, 2 }, nil},
	} {
		s := good
		c.change(&s)
		if got := s.warnings(10); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", s, got, c.want)
		}
		m := &Model{kSwap: 10, places: make([]place, FewRequests), swapped: s}
		if got := m.Warnings(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: a model says %q, want %q", s, got, c.want)
		}
	}
	few := &Model{kSwap: 1, places: make([]place, 5), swapped: swapFigures{Kept: 5, Links: 5}}
	if got := few.Warnings(); len(got) != 1 || got[0] != few.Few() {
		t.Errorf("a model of five requests says %q", got)
	}
}
