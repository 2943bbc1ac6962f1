package contract

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"reprise/replay/report"
	"reprise/trace/page"
	units "reprise/trace/quantity"
)

// Error budgets and burn rates are those of Google's Site Reliability Workbook (2018),
// chapter 5, "Alerting on SLOs". An objective of 99 % good requests leaves a budget of 1 %
// that may be bad. The burn rate of a window is the share of its requests that are bad over
// that budget: at 1 the budget lasts just as long as the period that it is for. With several
// windows a burn counts where all of them that end together have it (its approach 6): the long
// one tells that it matters, the short one that it goes on.

// Bounds of windows. Burn rates are looked at each tenth of the shortest window.
const (
	leastWindow     = 100 * time.Millisecond
	mostWindow      = 90 * 24 * time.Hour
	looksPerWindow  = 10
	mostWindowRatio = 100_000 // longest to shortest
	mostWindows     = 4
)

// parseWindows reads durations such as 60s,5s, the longest first.
func parseWindows(s string) ([]time.Duration, error) {
	var out []time.Duration
	for part := range strings.SplitSeq(s, ",") {
		d, err := units.Duration(strings.TrimSpace(part))
		switch {
		case err != nil:
			return nil, fmt.Errorf("want durations such as 60s,5s: %w", err)
		case d < leastWindow || d > mostWindow:
			return nil, fmt.Errorf("a window is from %v to %v long", leastWindow, mostWindow)
		case len(out) > 0 && d >= out[len(out)-1]:
			return nil, errors.New("want the longest window first, such as 60s,5s")
		}
		out = append(out, d)
	}
	if len(out) > mostWindows || out[0]/out[len(out)-1] > mostWindowRatio {
		return nil, fmt.Errorf("want %d windows at most, the longest at most %d times as long as the shortest", mostWindows, mostWindowRatio)
	}
	return out, nil
}

func windowsText(windows []time.Duration) string {
	var parts []string
	for _, w := range windows {
		parts = append(parts, w.String())
	}
	return strings.Join(parts, ",")
}

// parts of a target: a share is kept in billionths, so that the budget that it leaves is exact.
const billionth = 1_000_000_000

// A burn counts good and bad requests by when they were due, and judges a clause about
// error budgets.
type burn struct {
	clause    int
	slo       report.SLO // empty asks of a request that it succeeds
	origin    int
	step      int64 // ns between two looks
	bins      map[int64]*tally
	good, bad int64
}

// A tally is of the requests that were due in one step.
type tally struct{ good, bad int64 }

func newBurn(clause int, c *Clause) *burn {
	b := &burn{clause: clause, slo: c.slo, origin: c.origin, bins: map[int64]*tally{}}
	if n := len(c.windows); n > 0 {
		b.step = int64(c.windows[n-1]) / looksPerWindow
	}
	return b
}

func (b *burn) add(dueNS int64, good bool) {
	t := &tally{}
	if b.step > 0 {
		at := dueNS / b.step
		if dueNS < 0 && dueNS%b.step != 0 {
			at-- // of a run whose first requests were due before its start
		}
		if b.bins[at] == nil {
			b.bins[at] = t
		}
		t = b.bins[at]
	}
	if good {
		t.good, b.good = t.good+1, b.good+1
	} else {
		t.bad, b.bad = t.bad+1, b.bad+1
	}
}

// rate is the burn rate of so many requests, 0 of none.
func (c *Clause) rate(good, bad int64) float64 {
	if good+bad == 0 {
		return 0
	}
	return *report.Rounded(float64(bad)*billionth/(float64(good+bad)*float64(c.budget())), 1e6)
}

// budget is the share of requests that may be bad, in billionths.
func (c *Clause) budget() int64 { return billionth - int64(math.Round(c.target*billionth)) }

// neededForTarget is how many requests a budget takes: of fewer, a single one that is bad
// spends more than all of it.
func (c *Clause) neededForTarget() int64 { return (billionth + c.budget() - 1) / c.budget() }

// spent judges how much of the error budget the run spent: the budget of the run, or with a
// period that of as many requests as the period would have at the same rate.
func (b *burn) spent(c *Clause, r *report.ClauseResult, durationNS int64) {
	r.Samples, r.Needed = b.good+b.bad, c.neededForTarget()
	switch {
	case r.Samples == 0:
		r.Why = "no request succeeded or failed"
	case c.period > 0 && durationNS <= 0:
		r.Why = "the run has no duration"
	case r.Samples < r.Needed:
		r.Why = fmt.Sprintf("a target of %s takes %s, and there %s %s", page.Percent(c.target), page.Many(r.Needed, "request"), page.Was(r.Samples), page.Brief(r.Samples))
	default:
		v := c.rate(b.good, b.bad)
		if c.period > 0 {
			v = *report.Rounded(v*float64(durationNS)/float64(c.period), 1e9)
		}
		r.Measured = &v
		c.decide(r)
		return
	}
	r.Outcome = report.Unjudged
}

// almost is the share of a window that a run must have lasted to be one.
const almost = 0.95

// worst judges the highest burn rate. A look is at the windows that end at one instant, and
// its burn rate is the lowest of theirs. A longest window with too few requests for the target
// says neither that the clause holds nor that it fails, and the clause cannot be judged where
// one of them has a higher rate than is allowed and none of the others does.
func (b *burn) worst(c *Clause, r *report.ClauseResult, durationNS int64) {
	r.Samples, r.Needed = b.good+b.bad, c.neededForTarget()
	long := c.windows[0]
	unjudged := func(format string, args ...any) { r.Outcome, r.Why = report.Unjudged, fmt.Sprintf(format, args...) }
	keys := slices.Sorted(maps.Keys(b.bins))
	if len(keys) == 0 {
		unjudged("no request succeeded or failed")
		return
	}
	first, end := keys[0], keys[len(keys)-1]+1
	if lasted := max((end-first)*b.step, durationNS); float64(lasted) < almost*float64(long) {
		unjudged("the run took %s s, which is less than a window of %v", page.Number(*report.Rounded(float64(lasted)/1e9, 1e3)), long)
		return
	}
	sums := make([]tally, len(keys)+1) // of the bins before
	for i, key := range keys {
		t := b.bins[key]
		sums[i+1] = tally{sums[i].good + t.good, sums[i].bad + t.bad}
	}
	before := func(bin int64) tally {
		return sums[sort.Search(len(keys), func(i int) bool { return keys[i] >= bin })]
	}
	over := func(w time.Duration, end int64) tally {
		from, to := before(end-int64(w)/b.step), before(end)
		return tally{to.good - from.good, to.bad - from.bad}
	}
	var worst, thin *float64
	var at, thinAt, thinHas int64
	for _, look := range c.looks(keys, b.step) {
		all := over(long, look)
		rate := c.rate(all.good, all.bad)
		for _, w := range c.windows[1:] {
			t := over(w, look)
			rate = min(rate, c.rate(t.good, t.bad))
		}
		switch few := all.good+all.bad < r.Needed; {
		case few && (thin == nil || rate > *thin):
			thin, thinAt, thinHas = &rate, look, all.good+all.bad
		case !few && (worst == nil || rate > *worst):
			worst, at = &rate, look
		}
	}
	seconds := func(bin int64) float64 { return *report.Seconds(bin * b.step) }
	switch {
	case worst != nil && (!c.allows(*worst) || thin == nil || c.allows(*thin)):
		r.Measured = worst
		r.Window = &report.Stretch{FromS: seconds(at - int64(long)/b.step), ToS: seconds(at), DurationS: long.Seconds()}
		c.decide(r)
	case worst == nil:
		unjudged("a target of %s takes %s in a window, and none of %v has as many", page.Percent(c.target), page.Many(r.Needed, "request"), long)
	default:
		unjudged("the window of %v that ends at %s s burns %s times the budget, of %s; a target of %s takes %s", long, page.Number(seconds(thinAt)), page.Number(*thin),
			page.Many(thinHas, "request"), page.Percent(c.target), page.Brief(r.Needed))
	}
}

// looks are the instants at which windows may have a higher burn rate than a step before:
// where a request has come into one, or left it. They are ends of windows of which the longest
// begins when the first request was due or later; in a run that is no longer than such a
// window there is one.
func (c *Clause) looks(keys []int64, step int64) []int64 {
	end := keys[len(keys)-1] + 1
	first := min(keys[0]+int64(c.windows[0])/step, end)
	out := []int64{first, end}
	for _, key := range keys {
		out = append(out, key+1)
		for _, w := range c.windows {
			out = append(out, key+1+int64(w)/step)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(at int64) bool { return at < first || at > end })
}
