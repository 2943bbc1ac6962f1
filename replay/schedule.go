package replay

import (
	"errors"
	"strconv"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// A Span is a number of requests or a length of time; the zero value is neither.
type Span struct {
	Requests int64
	Time     time.Duration
}

var errSpan = errors.New("want a number of requests, such as 100, or a duration, such as 30s")

// ParseSpan reads a number of requests or a duration, neither below zero; the
// empty string is the zero Span.
func ParseSpan(s string) (Span, error) {
	if s == "" {
		return Span{}, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 {
		return Span{Requests: n}, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return Span{}, errSpan
	}
	return Span{Time: d}, nil
}

func (s Span) bad() bool { return s.Requests < 0 || s.Time < 0 }

// A windower finds the window of a run as requests are sent.
type windower struct {
	warm, cool Span
	n          int64
	from       *result.Place
	last       time.Duration
	ring       []result.Place // the last of those sent, as many as cool says
}

// sent takes a request as it is let go, and says whether it is measured, as far
// as the warm-up is concerned.
func (w *windower) sent(fl *flight) bool {
	w.count(result.Place{DueNS: int64(fl.due), Row: fl.result.RowID, Round: fl.result.Round})
	return w.n > w.warm.Requests && fl.due >= w.warm.Time
}

func (w *windower) count(at result.Place) {
	if w.n == w.warm.Requests && w.n > 0 {
		w.from = &at
	}
	if n := w.cool.Requests; n > 0 {
		if int64(len(w.ring)) < n {
			w.ring = append(w.ring, at)
		} else {
			w.ring[w.n%n] = at
		}
	}
	w.n++
	w.last = max(w.last, time.Duration(at.DueNS))
}

// window is nil without warm-up and cool-down. A warm-up that no request
// outlasted holds none.
func (w *windower) window() *result.Window {
	if w.warm == (Span{}) && w.cool == (Span{}) {
		return nil
	}
	out := &result.Window{From: w.from}
	switch {
	case w.warm.Time > 0:
		out.From = &result.Place{DueNS: int64(w.warm.Time)}
	case w.warm.Requests > 0 && w.from == nil:
		out.From = &result.Place{DueNS: int64(never)}
	}
	for _, p := range w.ring {
		if out.To == nil || p.Before(*out.To) {
			out.To = &result.Place{DueNS: p.DueNS, Row: p.Row, Round: p.Round}
		}
	}
	if w.cool.Time > 0 {
		out.To = &result.Place{DueNS: int64(w.last - w.cool.Time)}
	}
	return out
}

// maxCooldown bounds what a windower keeps.
const maxCooldown = 1 << 20

var (
	errClosed   = errors.New("replay: in a closed loop the server sets the pace: it takes no parents, arrivals, speed or limit in flight")
	errCooldown = errors.New("replay: a cool-down has a million requests at most")
)

// check refuses what makes no sense together.
func (o *Options) check() error {
	switch {
	case o.RampUp < 0 || o.RampUp > 0 && o.Concurrency == 0:
		return errors.New("replay: a ramp-up is that of a closed loop, and not negative")
	case o.Concurrency < 0 || o.Duration < 0 || o.Warmup.bad() || o.Cooldown.bad():
		return errors.New("replay: neither concurrency, duration, warm-up nor cool-down may be negative")
	case o.Concurrency > 0 && (o.Causal != nil || o.Arrivals != nil || o.Speed != 1 || o.KeepThink || o.MaxInFlight > 0):
		return errClosed
	case o.Arrivals != nil && o.Causal == nil && o.Speed != 1:
		return errors.New("replay: arrivals replace recorded times, which a speed would divide")
	case o.Endless && o.Duration == 0:
		return errors.New("replay: a workload without an end takes a duration")
	case o.Thread != nil && o.Causal == nil:
		return errThreadOpen
	case o.Cooldown.Requests > maxCooldown:
		return errCooldown
	}
	return nil
}

// timing names what Run.Timing says.
func (o *Options) timing() string {
	switch {
	case o.Concurrency > 0:
		return result.ClosedLoop
	case o.Causal != nil:
		return result.Causal
	}
	return result.OpenLoop
}

// excludes says that a row is not sent, since it failed in the source.
func (o *Options) excludes(row *trace.Request) bool {
	return row.Status == trace.StatusFailed && !o.IncludeFailed
}

// recordedLength is how long a request took in the source, as far as is known.
func (o *Options) recordedLength(row *trace.Request) time.Duration {
	if row.E2ENS == nil {
		return 0
	}
	return o.scaled(max(*row.E2ENS, 0))
}

// cut is how long after it was sent a row is hung up on, as its user did; 0 is
// never.
func (o *Options) cut(row *trace.Request) time.Duration {
	if row.Status != trace.StatusCancelled || row.E2ENS == nil {
		return 0
	}
	return max(o.scaled(*row.E2ENS), 1) // also of one that was dropped at once
}

// scaled divides a recorded time by the speed.
func (o *Options) scaled(ns int64) time.Duration {
	if o.Speed == 1 {
		return time.Duration(ns)
	}
	return time.Duration(float64(ns) / o.Speed)
}

// thinking is how long a turn waits for who or what thinks.
func (o *Options) thinking(ns int64) time.Duration {
	if o.KeepThink {
		return time.Duration(ns)
	}
	return o.scaled(ns)
}

func (o *Options) holdLimit() int64 {
	if o.hold > 0 {
		return o.hold
	}
	return heldBytes
}

// origin says of which row of the workload, and of which round, a row that is
// read is.
func (o *Options) origin(id int64) (row int64, round int32) {
	if o.Origin == nil {
		return id, 0
	}
	return o.Origin(id)
}

// blank begins the Result of a row.
func (o *Options) blank(id int64, row *trace.Request, due time.Duration) result.Result {
	at, round := o.origin(id)
	r := result.Result{
		RowID: at, Round: round, Category: row.Category, DueNS: int64(due),
		WantInput: row.InputTokens, WantOutput: row.OutputTokens,
	}
	if row.Session != nil {
		r.Session = trace.Ptr(*row.Session)
	}
	if row.Class != nil {
		r.Class = *row.Class
	}
	return r
}
