package profile

import "math/bits"

const second = 1_000_000_000 // ns

// idcWindows are the widths at which counts are compared, in ns.
var idcWindows = [...]int64{second / 10, second, 10 * second, 60 * second, 300 * second}

// An IDC is the index of dispersion for counts at one width of window: the
// sample variance of the number of arrivals in a window over its mean, over
// whole windows from the first arrival. It is 1 for a Poisson process, above
// for bursts, 0 for a metronome.
type IDC struct {
	WindowS float64  `json:"window_s"`
	Windows int64    `json:"windows"`
	IDC     *float64 `json:"idc"` // null below two windows
	// TickArtefact is set when the window is shorter than ten ticks of the
	// clock, so that the value says more of the clock than of the traffic.
	TickArtefact bool `json:"tick_artefact,omitempty"`
}

// Arrivals describes when requests arrive.
type Arrivals struct {
	// InterArrival is of the time from each request to the next, in seconds.
	InterArrival *Stats   `json:"inter_arrival_s"`
	CV           *float64 `json:"inter_arrival_cv"` // coefficient of variation: sd/mean
	ZeroShare    *float64 `json:"zero_gap_share"`   // of the gaps, those of 0 ns
	IDC          []IDC    `json:"idc"`
	Clock        *Clock   `json:"clock,omitempty"` // when times are quantised
}

// A windowCounter adds up counts of whole windows as they pass.
type windowCounter struct {
	window     int64  // the window being counted
	count      uint64 // arrivals in it
	sum, sumSq uint64 // over the windows before it
}

// add takes one arrival in window k, which never falls.
func (c *windowCounter) add(k int64) {
	if k != c.window {
		c.sum += c.count
		c.sumSq += c.count * c.count
		c.window, c.count = k, 0
	}
	c.count++
}

// idc returns variance over mean of the windows before the current one. The
// difference n·Σc² − (Σc)² is taken in 128 bits: it cancels almost wholly for
// regular arrivals.
func (c *windowCounter) idc() (windows int64, idc *float64) {
	n := uint64(c.window)
	if n < 2 || c.sum == 0 {
		return c.window, nil
	}
	ahi, alo := bits.Mul64(n, c.sumSq)
	bhi, blo := bits.Mul64(c.sum, c.sum)
	lo, borrow := bits.Sub64(alo, blo, 0)
	hi, _ := bits.Sub64(ahi, bhi, borrow)
	scaled := float64(hi)*0x1p64 + float64(lo) // n(n−1) times the variance
	v := scaled / float64(n-1) / float64(c.sum)
	return c.window, &v
}

// arrivals gathers the times of requests, which never fall.
type arrivals struct {
	n, first, last, zeros int64
	gaps                  distribution
	windows               [len(idcWindows)]windowCounter
	clock                 clockFinder
}

func newArrivals() arrivals { return arrivals{gaps: distribution{limit: exactValues}} }

// add takes the next arrival and returns the gap before it; the first has none.
func (a *arrivals) add(ns int64) (gap int64, ok bool) {
	if a.n == 0 {
		a.first, a.last = ns, ns
	}
	gap, ok = ns-a.last, a.n > 0
	if ok {
		a.gaps.add(gap)
	}
	if ok && gap == 0 {
		a.zeros++
	}
	a.n++
	a.last = ns
	for i, width := range idcWindows {
		a.windows[i].add((ns - a.first) / width)
	}
	a.clock.add(gap)
	return gap, ok
}

func (a *arrivals) duration() float64 { return float64(a.last-a.first) / second }

func (a *arrivals) summary() Arrivals {
	s := Arrivals{InterArrival: a.gaps.stats(second), ZeroShare: share(a.zeros, max(a.n-1, 0)), Clock: a.clock.summary()}
	if sd := a.gaps.sd(); sd != nil && a.gaps.mean > 0 {
		cv := *sd / a.gaps.mean
		s.CV = &cv
	}
	for i, width := range idcWindows {
		one := IDC{WindowS: float64(width) / second}
		// The window of the last arrival is never whole: it would have to end
		// before that arrival.
		one.Windows, one.IDC = a.windows[i].idc()
		one.TickArtefact = s.Clock != nil && width < minTicks*s.Clock.tick
		s.IDC = append(s.IDC, one)
	}
	return s
}
