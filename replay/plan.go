package replay

import (
	"container/heap"
	"time"

	"reprise/trace"
)

// A Planner says when a run would send the rows of a workload, and what load that
// is, without sending any. It knows how long requests take, since in a causal
// run and in a closed loop later rows wait for earlier ones, and nothing else of
// the server: an answer never fails, and a limit of requests in flight holds
// nothing back. It takes all rows in their order.
//
// Memory: what a run holds of parents whose turns are still to be read, and some
// 30 bytes for each second of the plan, up to [planSeconds].
type Planner struct {
	opt     Options
	took    func(*trace.Request) (time.Duration, bool)
	at      time.Duration // the next of the arrivals
	parents map[int64]*planned
	slots   slotEnds // of a closed loop
	next    int64
	late    bool // a row without parents was due after the duration
	plan    Plan
	seconds
}

// A planned row has turns that are still to come.
type planned struct {
	unread     int
	end, shift time.Duration
}

// A Plan is what a [Planner] found. Times are nanoseconds from the start, rates in
// requests per second. What is not known is null.
type Plan struct {
	Requests int64 `json:"requests"` // to be sent
	Excluded int64 `json:"excluded"` // failed in the source
	Beyond   int64 `json:"beyond"`   // due after the duration
	FirstNS  int64 `json:"first_due_ns"`
	LastNS   int64 `json:"last_due_ns"`
	EndNS    int64 `json:"end_ns"` // of the last request

	MeanRate *float64 `json:"mean_rate"`    // between the first and the last
	Peak1S   *float64 `json:"peak_rate_1s"` // of windows side by side from the start
	Peak10S  *float64 `json:"peak_rate_10s"`

	// Timed is how many requests it is known of how long they take; the others
	// count as over at once. Requests in flight are null unless all are.
	Timed        int64    `json:"requests_with_known_length"`
	MeanInFlight *float64 `json:"mean_in_flight"` // from the first due time to the last end (Little's law)
	PeakInFlight *float64 `json:"peak_in_flight"` // the mean over its busiest second

	busy time.Duration
}

// NewPlanner begins the plan of a run with options o. took returns how long a request
// takes from its due time to its end, and whether that is known.
func NewPlanner(o Options, took func(*trace.Request) (time.Duration, bool)) (*Planner, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Planner{opt: o, took: took, parents: map[int64]*planned{}, slots: o.slotTimes()}
	if o.Arrivals != nil {
		p.at = o.Arrivals.Next()
	}
	return p, nil
}

// Add takes the next row, and returns when it is due and whether it is sent.
func (p *Planner) Add(r *trace.Request) (due time.Duration, sent bool) {
	id := p.next
	p.next++
	children := 0
	if p.opt.Causal != nil {
		rows, _ := p.opt.Causal.children(id)
		children = len(rows)
	}
	excluded := p.opt.excludes(r)
	due, shift, turn := p.due(r, children > 0 || !excluded)
	end := due
	switch {
	case excluded:
		p.plan.Excluded++
		end += p.opt.recordedLength(r)
	case p.opt.Duration > 0 && due >= p.opt.Duration:
		p.plan.Beyond++
		p.late = p.late || !turn
	default:
		sent = true
		end = p.count(r, due)
		if p.opt.Concurrency > 0 {
			p.slots[0] = end
			heap.Fix(&p.slots, 0)
		}
	}
	if children > 0 {
		p.parents[id] = &planned{unread: children, end: end, shift: shift}
	}
	return due, sent
}

// count counts a row that is sent, and returns when it is over.
func (p *Planner) count(r *trace.Request, due time.Duration) (end time.Duration) {
	length, known := p.took(r)
	if r.Status == trace.StatusCancelled && r.E2ENS != nil {
		if cut := p.opt.recordedLength(r); !known || cut < length {
			length, known = cut, true
		}
	}
	length = max(length, 0)
	end = due + length
	s := &p.plan
	if s.Requests == 0 || int64(due) < s.FirstNS {
		s.FirstNS = int64(due)
	}
	s.Requests++
	s.LastNS, s.EndNS = max(s.LastNS, int64(due)), max(s.EndNS, int64(end))
	if known {
		s.Timed++
	}
	s.busy += length
	p.seconds.add(due, end)
	return end
}

// due says when a row is due and by what the schedule moved its session. One that
// takes none of the arrivals leaves them as they are.
func (p *Planner) due(r *trace.Request, arrives bool) (due, shift time.Duration, turn bool) {
	if p.opt.Concurrency > 0 {
		return p.slots[0], 0, false
	}
	latest := time.Duration(0)
	for _, parent := range r.Parents {
		e := p.parents[parent]
		if e == nil {
			continue
		}
		if !turn || e.shift > shift {
			turn, shift = true, e.shift
		}
		latest = max(latest, e.end)
		if e.unread--; e.unread == 0 {
			delete(p.parents, parent)
		}
	}
	due = p.opt.scaled(r.ArrivalNS)
	if !turn {
		if p.opt.Arrivals != nil && arrives {
			due, shift = p.at, p.at-due
			p.at += p.opt.Arrivals.Next()
		}
		return due, shift, false
	}
	if pause, known := pauseOf(r.ThinkNS, r.ToolNS); known {
		return latest + p.opt.thinking(pause), shift, true
	}
	return max(due+shift, latest), shift, true
}

// Timing is [result.Run].Timing of the run.
func (p *Planner) Timing() string { return p.opt.About.Timing }

// Over reports whether no further row would be sent, however many come.
func (p *Planner) Over() bool {
	switch o := &p.opt; {
	case o.Duration == 0:
		return false
	case o.Concurrency > 0:
		return p.slots[0] >= o.Duration
	default:
		return p.late && len(p.parents) == 0
	}
}

// Plan returns the plan of the rows so far.
func (p *Planner) Plan() Plan {
	s := p.plan
	if s.Requests == 0 {
		return s
	}
	if span := time.Duration(s.LastNS - s.FirstNS); span > 0 {
		s.MeanRate = trace.Ptr(float64(s.Requests-1) / span.Seconds())
	}
	if p.seconds.beyond {
		return s
	}
	s.Peak1S, s.Peak10S = trace.Ptr(p.peak(1)), trace.Ptr(p.peak(10))
	if s.Timed == s.Requests {
		level, most := 0., 0. // means of each second
		for i := range p.seconds.due {
			level += p.step[i]
			most = max(most, level+p.part[i])
		}
		s.PeakInFlight = &most
		if span := s.EndNS - s.FirstNS; span > 0 {
			s.MeanInFlight = trace.Ptr(float64(s.busy) / float64(span))
			*s.PeakInFlight = max(*s.PeakInFlight, *s.MeanInFlight) // of what lasts less than a second
		}
	}
	return s
}

// slotEnds are a heap of the ends of the requests that hold the slots of a closed loop.
type slotEnds []time.Duration

func (h slotEnds) Len() int { return len(h) }

func (h slotEnds) Less(i, j int) bool { return h[i] < h[j] }

func (h slotEnds) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *slotEnds) Push(x any) { *h = append(*h, x.(time.Duration)) }

func (h *slotEnds) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// planSeconds bounds the seconds that load is counted in, half a year.
const planSeconds = 1 << 24

// seconds count load by the second.
type seconds struct {
	due    []int32   // requests
	part   []float64 // of the second that requests begin and end in, the share that they are in flight
	step   []float64 // how many more are in flight throughout than in the second before
	beyond bool      // some were later than can be counted
}

func (s *seconds) add(due, end time.Duration) {
	from, to := int64(due/time.Second), int64(end/time.Second)
	if from < 0 || to >= planSeconds {
		s.beyond = true
		return
	}
	if n := int(to) + 2 - len(s.due); n > 0 {
		s.due = append(s.due, make([]int32, n)...)
		s.part = append(s.part, make([]float64, n)...)
		s.step = append(s.step, make([]float64, n)...)
	}
	s.due[from]++
	a, b := due.Seconds()-float64(from), end.Seconds()-float64(to)
	if from == to {
		s.part[from] += b - a
		return
	}
	s.part[from] += 1 - a
	s.part[to] += b
	s.step[from+1]++
	s.step[to]--
}

// peak is the highest rate of windows of so many seconds.
func (s *seconds) peak(width int) float64 {
	most := int64(0)
	for from := 0; from < len(s.due); from += width {
		n := int64(0)
		for _, d := range s.due[from:min(from+width, len(s.due))] {
			n += int64(d)
		}
		most = max(most, n)
	}
	return float64(most) / float64(width)
}
