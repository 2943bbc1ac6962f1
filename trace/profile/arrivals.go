package profile

import (
	"math/bits"
	"slices"
)

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

func (a *arrivals) summary() Arrivals {
	s := Arrivals{InterArrival: a.gaps.stats(second), ZeroShare: share(a.zeros, max(a.n-1, 0)),
		Clock: a.clock.summary()}
	if sd := a.gaps.sd(); sd != nil && a.gaps.mean > 0 {
		s.CV = new(*sd / a.gaps.mean)
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

// A Clock says that the times of a trace are quantised: requests arrive on
// ticks only, as in the Mooncake traces with their ticks of 3,000±3 ms. What
// happens within a tick is then unknowable, and statistics below some ten ticks
// describe the clock.
type Clock struct {
	TickS       float64 `json:"tick_s"`
	ZeroShare   float64 `json:"zero_gap_share"`   // of the gaps looked at, those within one tick
	OnTickShare float64 `json:"on_tick_share"`    // of the other gaps, those that are a multiple of the tick
	IDC         []IDC   `json:"tick_aligned_idc"` // over windows of 1, 2, 10, 20 and 100 ticks
	tick        int64
}

const (
	clockInstants  = 1 << 16 // distinct instants to decide by
	clockGaps      = 20      // gaps between instants that a decision takes at least
	clockZeroShare = 0.05    // gaps of 0 that make ticks matter: λ·tick of a Poisson process
	clockOnTick    = 0.99    // gaps between instants that must be multiples of the tick
	clockJitter    = 100     // a hundredth of a tick off is on it
	clockSpan      = 20      // ticks that the median of these gaps may take
	minTicks       = 10      // windows of fewer ticks show the clock
)

var tickMultiples = [...]int64{1, 2, 10, 20, 100}

// An instant is a time at which requests arrived.
type instant struct{ gap, count int64 } // ns since the instant before; requests

// A clockFinder looks for ticks among the first clockInstants instants. It
// keeps these, 1 MB, until it has decided; a tick that it has found it then
// counts by as rows pass.
type clockFinder struct {
	instants []instant
	decided  bool
	clock    *Clock
	at       int64 // the tick of the last instant
	windows  [len(tickMultiples)]windowCounter
}

// add takes the gap before an arrival, 0 for the first.
func (f *clockFinder) add(gap int64) {
	switch {
	case f.decided && f.clock == nil:
	case f.decided:
		f.step(gap, 1)
	case len(f.instants) > 0 && gap == 0:
		f.instants[len(f.instants)-1].count++
	default:
		f.instants = append(f.instants, instant{gap, 1})
		if len(f.instants) == clockInstants {
			f.decide()
		}
	}
}

// decide looks for the tick, counts what was kept by it, and drops that.
func (f *clockFinder) decide() {
	f.decided = true
	f.clock = findClock(f.instants)
	if f.clock != nil {
		for _, in := range f.instants {
			f.step(in.gap, in.count)
		}
	}
	f.instants = nil
}

// step counts arrivals by tick. Ticks are counted from instant to instant and
// not from the first one, so that a tick that is a little off does not drift.
func (f *clockFinder) step(gap, count int64) {
	f.at += nearest(gap, f.clock.tick)
	for range count {
		for i, m := range tickMultiples {
			f.windows[i].add(f.at / m)
		}
	}
}

func nearest(gap, tick int64) int64 { return (gap + tick/2) / tick }

func (f *clockFinder) summary() *Clock {
	if !f.decided {
		// A copy decides for the rows so far; more may follow.
		c := *f
		c.decide()
		return c.summary()
	}
	if f.clock == nil {
		return nil
	}
	c := *f.clock
	c.IDC = nil
	for i, m := range tickMultiples {
		w := f.windows[i]
		if (f.at+1)%m == 0 {
			w.add(w.window + 1) // the last tick fills its window
		}
		one := IDC{WindowS: float64(m*c.tick) / second}
		one.Windows, one.IDC = w.idc()
		c.IDC = append(c.IDC, one)
	}
	return &c
}

// findClock returns the longest tick that the gaps between instants are
// multiples of, or nil when they are not or too few gaps are 0 for it to
// matter. Candidates are the gaps that a tick would make likely, and the
// greatest common divisor, which finds a clock without jitter at once.
//
// Requests that were sent in groups also have gaps of 0, and every clock has a
// unit. A unit is a tick only when chance alone would fill it so often: where a
// twentieth of a Poisson process' gaps are 0, one tick in ten has requests, so a
// median gap of many more ticks means groups.
func findClock(instants []instant) *Clock {
	var gaps []int64
	var zeros int64
	for i, in := range instants {
		zeros += in.count - 1
		if i > 0 {
			gaps = append(gaps, in.gap)
		}
	}
	zeroShare := float64(zeros) / float64(zeros+int64(len(gaps)))
	if len(gaps) < clockGaps || zeroShare < clockZeroShare {
		return nil
	}
	slices.Sort(gaps)
	frequent, most, run := gaps[0], 0, 0 // the most frequent gap
	var divisor int64                    // the greatest common divisor
	for i, gap := range gaps {
		if i > 0 && gap != gaps[i-1] {
			run = 0
		}
		if run++; run > most {
			frequent, most = gap, run
		}
		for gap != 0 {
			divisor, gap = gap, divisor%gap
		}
	}
	candidates := []int64{gaps[len(gaps)/2], gaps[len(gaps)/20], gaps[0], frequent, divisor}
	slices.Sort(candidates)
	for i := len(candidates) - 1; i >= 0; i-- {
		tick, on := refine(gaps, candidates[i])
		if on >= clockOnTick && gaps[len(gaps)/2] <= clockSpan*tick {
			return &Clock{TickS: float64(tick) / second, ZeroShare: zeroShare, OnTickShare: on, tick: tick}
		}
	}
	return nil
}

// refine returns the mean tick of the gaps that are multiples of about tick,
// and the share of these.
func refine(gaps []int64, tick int64) (int64, float64) {
	var time, ticks, on int64
	for _, gap := range gaps {
		n := nearest(gap, tick)
		if off := gap - n*tick; n > 0 && max(off, -off) <= tick/clockJitter {
			on++
			time += gap
			ticks += n
		}
	}
	if on == 0 {
		return tick, 0
	}
	return (time + ticks/2) / ticks, float64(on) / float64(len(gaps))
}
