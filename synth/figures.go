package synth

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"reprise/trace/page"
)

// swapFigures says what swapping did to a trace, by figures of the whole.
type swapFigures struct {
	Links     int     `json:"links"`                // requests that build on another's prompt or session in the trace
	Cut       int     `json:"links_cut"`            // of these, those with fewer than k alike: the request opens a session
	Kept      int     `json:"links_kept"`           // of these, those that are where they were, by chance
	CurveMAE  float64 `json:"curve_mae,omitempty"`  // mean difference of the LRU curve, before arrivals are drawn
	Hits      float64 `json:"hits"`                 // share of blocks that hit without limit
	TraceHits float64 `json:"trace_hits"`           // the same of the trace
	Turns     int     `json:"longest_turns"`        // turns of the longest session
	WantTurns int     `json:"longest_turns_wanted"` // the same as drawn from the tail of the trace's
}

func (s *swapFigures) text() string {
	b, _ := json.Marshal(s) // of numbers alone: there is no error
	return string(b)
}

func parseSwapped(text string) (s swapFigures, err error) {
	if json.Unmarshal([]byte(text), &s) != nil {
		return s, errors.New("its metadata " + keySwapped + " are not those of a swap")
	}
	return s, nil
}

// Limits of what is said of a swap. Those of the curve and of hits are the ones of a
// resynthesis that is as long as its trace.
const (
	mostCut      = 0.01 // of the links
	mostKept     = 0.09 // of the links: chance among ten alike
	mostCurve    = 0.005
	mostHits     = 0.01
	turnsFactor  = 1.2 // of the longest session to what was wanted
	leastAsTurns = 3   // turns that it is off at least
)

// warnings say what a swap left beyond its limits, with the figures.
func (s *swapFigures) warnings(k int) []string {
	var out []string
	of := func(n int) string {
		return fmt.Sprintf("%s of %s links (%.3g %%)", page.Count(int64(n)), page.Count(int64(s.Links)), 100*float64(n)/float64(s.Links))
	}
	if float64(s.Cut) > mostCut*float64(s.Links) {
		out = append(out, fmt.Sprintf("%s between requests had fewer than %d alike and were cut: these requests open sessions of their own", of(s.Cut), k))
	}
	if float64(s.Kept) > mostKept*float64(s.Links) {
		out = append(out, of(s.Kept)+" between requests are where they were in the trace")
	}
	if s.CurveMAE > mostCurve {
		out = append(out, fmt.Sprintf("swapping moved the LRU curve by %.2g on average; %.2g is usual at most", s.CurveMAE, mostCurve))
	}
	if math.Abs(s.Hits-s.TraceHits) > mostHits {
		out = append(out, fmt.Sprintf("after swapping %.3g %% of the blocks hit without limit, in the trace %.3g %%", 100*s.Hits, 100*s.TraceHits))
	}
	if off := max(s.Turns-s.WantTurns, s.WantTurns-s.Turns); off >= leastAsTurns && (float64(s.Turns) > turnsFactor*float64(s.WantTurns) || float64(s.WantTurns) > turnsFactor*float64(s.Turns)) {
		out = append(out, fmt.Sprintf("after swapping the longest session has %d turns, and was to have %d", s.Turns, s.WantTurns))
	}
	return out
}

// Warnings say what a model keeps less well than others, each with the figure: it was
// fitted to few requests, see [Model.Few], or swapping went beyond its limits. They do
// not depend on what is generated.
func (m *Model) Warnings() []string {
	var out []string
	if m.sampled != nil {
		out = append(out, m.sampled.sentence())
	}
	if few := m.Few(); few != "" {
		out = append(out, few)
	}
	if m.kSwap > 1 && m.cells == nil {
		out = append(out, m.swapped.warnings(m.kSwap)...)
	}
	return out
}
