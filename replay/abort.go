package replay

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"reprise/replay/figure"
)

// A Condition ends a run: when it holds over a window of ten seconds with at
// least twenty requests, nothing more is sent.
//
// The requests of a window are those that ended in it, so a latency is only of answers
// that came. A server that answers nothing is noticed by the number of requests in
// flight, which the condition on the queue is about.
type Condition struct {
	Of    figure.Figure // the error rate, the requests in flight, or a percentile of TTFT, ITL or the send lag
	Above float64       // in the unit of the figure
}

// The window of a Condition.
const (
	abortLooks    = 10 // one each second
	abortRequests = 20
)

// abortLatencies are those that the meters of a run have; abortPercentiles are told of them.
var (
	abortLatencies   = []*figure.Subject{figure.TTFT, figure.ITL, figure.SendLag}
	abortPercentiles = []figure.Statistic{figure.P50, figure.P90, figure.P95, figure.P99}
)

// abortable tells whether a run can be watched for a figure: the requests in flight are told at every look in
// the window.
func abortable(f figure.Figure) bool {
	return f.Subject == figure.ErrorRate || f.Subject == figure.InFlight ||
		slices.Contains(abortLatencies, f.Subject) && slices.Contains(abortPercentiles, f.Statistic)
}

// AbortMetrics are names of figures that conditions can be about.
func AbortMetrics() []string { return figure.Offered(abortable) }

// ParseConditions reads conditions that are separated by commas, such as
// error_rate>5%,in_flight>100,p99_ttft>10s, with the names of figures in any spelling. An error
// names the condition by its position and does not quote it.
func ParseConditions(s string) ([]Condition, error) {
	var out []Condition
	for i, part := range strings.Split(s, ",") {
		c, err := parseCondition(part)
		if err != nil {
			return nil, fmt.Errorf("condition %d: %w", i+1, err)
		}
		for _, other := range out {
			if other.Of == c.Of {
				return nil, fmt.Errorf("condition %d: there are two of %s", i+1, c.Of)
			}
		}
		out = append(out, c)
	}
	return out, nil
}

func parseCondition(s string) (c Condition, err error) {
	what, value, found := strings.Cut(s, ">")
	if !found {
		return c, errors.New("want WHAT>VALUE, such as error_rate>5%, in_flight>100 or p99_ttft>10s")
	}
	if c.Of, err = figure.Parse(what, abortable); err != nil {
		return c, err
	}
	if c.Above, err = c.Of.ParseLimit(strings.TrimSpace(value)); err != nil {
		return c, fmt.Errorf("%s: %w", c.Of, err)
	}
	if c.Of.Unit == figure.Share && c.Above >= 1 {
		return c, fmt.Errorf("%s: want less than 100%%, or it never holds", c.Of)
	}
	return c, nil
}

// aborted is the cause of a run that a Condition has ended.
type aborted struct {
	Condition
	measured float64
	requests int64
}

func (a *aborted) Error() string {
	measured, above := a.Of.FormatLimit(math.Round(a.measured*1e4)/1e4), a.Of.FormatLimit(a.Above)
	if a.Of.Unit == figure.Requests {
		return fmt.Sprintf("the condition to abort on holds: at least %s requests were in flight for %d s, above %s",
			measured, abortLooks, above)
	}
	return fmt.Sprintf("the condition to abort on holds: %s was %s in %d s with %d requests, above %s",
		a.Of, measured, abortLooks, a.requests, above)
}

// An aborter keeps the last looks at a run and holds conditions against them.
type aborter struct {
	conditions []Condition
	looks      []look // the last ones, the oldest first
}

// A look is what came in one second.
type look struct {
	done, failed int64
	inFlight     int64
	latencies    [3]*hdr.Histogram // as abortLatencies
}

// look takes what a second has brought, and returns the first condition that
// holds over the window. A window that is not full says nothing.
func (a *aborter) look(done, failed, inFlight int64, m *meters) *aborted {
	if a == nil {
		return nil
	}
	var l look
	if len(a.looks) == abortLooks {
		l = a.looks[0] // its histograms serve again
		a.looks = append(a.looks[:0], a.looks[1:]...)
	}
	l.done, l.failed, l.inFlight = done, failed, inFlight
	for i, h := range []*hdr.Histogram{m.ttft.interval, m.itl.interval, m.lag.interval} {
		about := func(c Condition) bool { return c.Of.Subject == abortLatencies[i] }
		if !slices.ContainsFunc(a.conditions, about) {
			continue
		}
		if l.latencies[i] == nil {
			l.latencies[i] = newHistogram()
		}
		l.latencies[i].Reset()
		l.latencies[i].Merge(h)
	}
	if a.looks = append(a.looks, l); len(a.looks) < abortLooks {
		return nil
	}
	for _, c := range a.conditions {
		if v, n := a.measure(c); n >= abortRequests && v > c.Above {
			return &aborted{c, v, n}
		}
	}
	return nil
}

// measure is what a condition is about, over the window, and of how many requests.
func (a *aborter) measure(c Condition) (v float64, requests int64) {
	var done, failed int64
	least := int64(math.MaxInt64)
	for _, l := range a.looks {
		done, failed, least = done+l.done, failed+l.failed, min(least, l.inFlight)
	}
	switch c.Of.Unit {
	case figure.Share:
		return float64(failed) / float64(max(done, 1)), done
	case figure.Requests:
		return float64(least), done + least
	}
	all := newHistogram()
	for _, l := range a.looks {
		all.Merge(l.latencies[slices.Index(abortLatencies, c.Of.Subject)])
	}
	share, _ := c.Of.Statistic.Share()
	return float64(all.ValueAtQuantile(100*share)) / 1e3, done
}
