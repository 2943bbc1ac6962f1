package replay

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"reprise/trace/quantity"
)

// A Condition ends a run: when it holds over a window of ten seconds with at
// least twenty requests, nothing more is sent.
//
// The requests of a window are those that ended in it, so a latency is only of answers
// that came. A server that answers nothing is noticed by the number of requests in
// flight, which the condition on the queue is about.
type Condition struct {
	What  string  // errors, queue, or a latency and its percentile, such as ttft-p99
	Above float64 // a share, a number of requests, or seconds
}

// What a [Condition] may be about, besides latencies.
const (
	abortErrors = "errors" // share of failed requests
	abortQueue  = "queue"  // requests in flight, at every look in the window
)

// The window of a Condition.
const (
	abortLooks    = 10 // one each second
	abortRequests = 20
)

var abortLatencies = []string{"ttft", "itl", "lag"}

// ParseConditions reads conditions that are separated by commas, such as
// errors>5%,queue>100,ttft-p99>10s. A latency is ttft, itl or lag (of the sending),
// with -p50, -p90, -p95 or -p99. An error names the condition by its position and
// does not quote it.
func ParseConditions(s string) ([]Condition, error) {
	var out []Condition
	for i, part := range strings.Split(s, ",") {
		c, err := parseCondition(part)
		if err != nil {
			return nil, fmt.Errorf("condition %d: %w", i+1, err)
		}
		for _, other := range out {
			if other.What == c.What {
				return nil, fmt.Errorf("condition %d: there are two of %s", i+1, c.What)
			}
		}
		out = append(out, c)
	}
	return out, nil
}

func parseCondition(s string) (c Condition, err error) {
	what, value, found := strings.Cut(s, ">")
	if !found {
		return c, errors.New("want WHAT>VALUE, such as errors>5%, queue>100 or ttft-p99>10s")
	}
	c.What = what
	switch {
	case what == abortErrors:
		if c.Above, err = quantity.Share(value); err != nil || !strings.HasSuffix(value, "%") || c.Above >= 1 {
			return c, errors.New("errors: want a percentage from 0% to below 100%, such as errors>5%")
		}
	case what == abortQueue:
		n, err := quantity.Count(value)
		if err != nil || n > math.MaxInt32 {
			return c, errors.New("queue: want a number of requests in flight, such as queue>100")
		}
		c.Above = float64(n)
	default:
		if _, _, ok := c.latency(); !ok {
			return c, errors.New("want errors, queue, or one of ttft, itl and lag with -p50, -p90, -p95 or -p99, such as ttft-p99>10s")
		}
		d, err := quantity.Latency(value)
		if err != nil || d <= 0 {
			return c, errors.New("want a duration above 0, such as 500ms or 10s, after the name of a latency")
		}
		c.Above = d.Seconds()
	}
	return c, nil
}

// latency says which latency c is about, by its place, and which percentile.
func (c Condition) latency() (i int, percentile float64, ok bool) {
	name, p, _ := strings.Cut(c.What, "-p")
	for i, n := range abortLatencies {
		if n != name {
			continue
		}
		switch p {
		case "50", "90", "95", "99":
			percentile, _ = strconv.ParseFloat(p, 64)
			return i, percentile, true
		}
	}
	return 0, 0, false
}

// aborted is the cause of a run that a Condition has ended.
type aborted struct {
	Condition
	measured float64
	requests int64
}

func (a *aborted) Error() string {
	value := func(v float64) string {
		switch a.What {
		case abortErrors:
			return strconv.FormatFloat(math.Round(1e4*v)/100, 'f', -1, 64) + " %"
		case abortQueue:
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		return time.Duration(v * 1e9).Round(time.Microsecond).String()
	}
	if a.What == abortQueue {
		return fmt.Sprintf("the condition to abort on holds: at least %s requests were in flight for %d s, above %s", value(a.measured), abortLooks, value(a.Above))
	}
	return fmt.Sprintf("the condition to abort on holds: %s was %s in %d s with %d requests, above %s", a.What, value(a.measured), abortLooks, a.requests, value(a.Above))
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
		about := func(c Condition) bool { at, _, ok := c.latency(); return ok && at == i }
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
	switch c.What {
	case abortErrors:
		return float64(failed) / float64(max(done, 1)), done
	case abortQueue:
		return float64(least), done + least
	}
	i, percentile, _ := c.latency()
	all := newHistogram()
	for _, l := range a.looks {
		all.Merge(l.latencies[i])
	}
	return float64(all.ValueAtQuantile(percentile)) / 1e6, done
}
