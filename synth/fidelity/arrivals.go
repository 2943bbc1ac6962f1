package fidelity

import (
	"fmt"
	"math"

	"reprise/trace"
	"reprise/trace/profile"
)

const (
	leastWindows = 10   // of a scale, to compare counts by
	leastTicks   = 10   // of a quantised clock in a window
	tickSlack    = 0.01 // of a tick may be jitter
)

// An arrivalSide is what arrivals look like on one side.
type arrivalSide struct {
	name    string
	windows *[len(idcScales)]windowTally
	profile.Arrivals
}

// unusable says why the scale at width seconds tells nothing of this side, or
// is empty when it does.
func (s *arrivalSide) unusable(scale int, width float64) string {
	w := &s.windows[scale]
	switch idc := w.idc(); {
	case w.window < leastWindows:
		return fmt.Sprintf("fewer than %d windows in the %s", leastWindows, s.name)
	case s.Clock != nil && width < leastTicks*s.Clock.TickS*(1-tickSlack):
		return fmt.Sprintf("below %d ticks of the %s's clock, %.3f s each", leastTicks, s.name, s.Clock.TickS)
	case *idc == 0:
		return fmt.Sprintf("0 in the %s", s.name)
	}
	return ""
}

// arrivals compares the dispersion of arrivals across scales, and their gaps.
func (c *comparison) arrivals() {
	ref := arrivalSide{"reference", &c.ref.windows, c.ref.arrivals.Summary().Arrivals}
	cand := arrivalSide{"candidate", &c.cand.windows, c.cand.arrivals.Summary().Arrivals}
	var refs, cands, usable []float64 // logarithms of the IDC
	var sum float64
	for i, ms := range idcScales {
		p := IDCPair{WindowS: float64(ms) / 1000, Ref: ref.windows[i].idc(), Cand: cand.windows[i].idc()}
		if p.LeftOut = ref.unusable(i, p.WindowS); p.LeftOut == "" {
			usable = append(usable, math.Log2(*p.Ref))
			p.LeftOut = cand.unusable(i, p.WindowS)
		}
		if p.LeftOut == "" {
			refs, cands = append(refs, math.Log2(*p.Ref)), append(cands, math.Log2(*p.Cand))
			sum += math.Abs(math.Log2(*p.Cand / *p.Ref))
		}
		c.f.IDC = append(c.f.IDC, p)
	}
	var distance *float64
	if n := len(refs); n > 0 {
		distance = trace.Ptr(sum / float64(n))
	} else {
		refs = usable // the candidate then lacks what the reference has
	}
	c.add("idc_log2", geometricMean(refs), geometricMean(cands), distance, "scales at which counts can be compared")
	c.add("iat_cv", ref.CV, cand.CV, relative(ref.CV, cand.CV), "gaps between requests that vary")
}

// geometricMean is of numbers of which these are the binary logarithms.
func geometricMean(logs []float64) *float64 {
	if len(logs) == 0 {
		return nil
	}
	var sum float64
	for _, l := range logs {
		sum += l
	}
	return trace.Ptr(math.Exp2(sum / float64(len(logs))))
}
