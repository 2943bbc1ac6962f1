package calibrate

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"reprise/replay/engine"
	"reprise/trace/fleet"
)

// A played is what an engine in virtual time gave to the requests of a record, in seconds;
// NaN where a request had no such time.
type played struct {
	ttft, e2e, gap []float64
	gaps           [][]int64      // in nanoseconds; only where asked for
	sent           []engine.Picos // of each request
	over           engine.Picos   // the end of the last answer
}

// play sends the requests of a record to an engine. Each is sent when it was, or, where it
// waited for others, as long after these as it was. Cached tokens are those that were
// recorded: no request shares blocks with another.
func (r *Record) play(c engine.Config, gaps bool) (played, error) {
	p := player{r: r, at: make([]engine.Picos, len(r.requests)), left: make([]int, len(r.requests)), gaps: gaps}
	n := len(r.requests)
	p.out = played{ttft: nans(n), e2e: nans(n), gap: nans(n)}
	if gaps {
		p.out.gaps = make([][]int64, n)
	}
	var err error
	if p.fleet, err = engine.NewFleet(engine.FleetConfig{Engine: c, Replicas: 1, Router: fleet.RoundRobin},
		p.over); err != nil {
		return p.out, err
	}
	err = p.run()
	p.out.sent = p.at
	return p.out, err
}

// A player lets the requests of a record be due.
type player struct {
	r     *Record
	fleet *engine.Fleet
	out   played
	gaps  bool

	due    dueHeap
	at     []engine.Picos // when a request is due, as far as is known
	left   []int          // requests that it still waits for
	next   map[int][]int  // requests that wait for one
	queued int            // of a closed loop: the first that waits for a place
	lags   []engine.Picos // of a closed loop: from the k-th end to the send that it made way for
	ends   int
	now    engine.Picos // of the last request that was sent
}

func (p *player) run() error {
	p.schedule()
	for {
		until := engine.Never
		if len(p.due) > 0 {
			until = p.at[p.due[0]]
		}
		if (p.next != nil || p.lags != nil) && p.fleet.Advance(until) {
			continue
		}
		if len(p.due) == 0 {
			break
		}
		i := heap.Pop(heapOf{p}).(int)
		p.now = max(p.now, p.at[i])
		p.at[i] = p.now
		q := &p.r.requests[i]
		a := engine.Arrival{At: p.now,
			Job: engine.Job{ID: int64(i), Prompt: q.input, Output: q.output, Reused: q.reused}}
		if q.cut > 0 {
			a.Cut = p.now + q.cut
		}
		if err := p.fleet.Send(a); err != nil {
			return err
		}
	}
	return p.fleet.Finish()
}

// schedule makes those due that wait for nothing.
func (p *player) schedule() {
	first := cmp.Or(p.r.closed, len(p.r.requests))
	for i := range p.r.requests {
		q := &p.r.requests[i]
		p.at[i] = q.sent
		for _, before := range q.after {
			if p.next == nil {
				p.next = map[int][]int{}
			}
			p.next[before] = append(p.next[before], i)
		}
		if p.left[i] = len(q.after); p.left[i] > 0 {
			p.at[i] = 0
		} else if i < first {
			p.due = append(p.due, i)
		}
	}
	heap.Init(heapOf{p})
	if p.queued = first; first >= len(p.r.requests) {
		return
	}
	var ends []engine.Picos
	for i := range p.r.requests {
		if done := p.r.requests[i].done; done > 0 {
			ends = append(ends, done)
		}
	}
	slices.Sort(ends)
	p.lags = []engine.Picos{}
	for k := 0; first+k < len(p.r.requests) && k < len(ends); k++ {
		p.lags = append(p.lags, max(p.r.requests[first+k].sent-ends[k], 0))
	}
}

// over takes the answer of a request, and lets those be due that waited for it.
func (p *player) over(a *engine.Answer) error {
	i := int(a.Job.ID)
	p.out.over = max(p.out.over, a.Done)
	if n := len(a.Tokens); n > 0 && a.Err == nil {
		p.out.ttft[i] = secondsOf(a.Tokens[0] - a.At)
		p.out.e2e[i] = secondsOf(a.Tokens[n-1] - a.At)
		if n > 3 {
			p.out.gap[i] = medianGap(a.Tokens)
		}
		for k := 1; p.gaps && k < n; k++ {
			p.out.gaps[i] = append(p.out.gaps[i], int64((a.Tokens[k]-a.Tokens[k-1])/1000))
		}
	}
	for _, j := range p.next[i] {
		p.at[j] = max(p.at[j], a.Done+p.r.requests[j].wait)
		if p.left[j]--; p.left[j] == 0 {
			heap.Push(heapOf{p}, j)
		}
	}
	if p.lags != nil && p.queued < len(p.r.requests) {
		lag := engine.Picos(0)
		if p.ends < len(p.lags) {
			lag = p.lags[p.ends]
		}
		p.ends++
		p.at[p.queued] = a.Done + lag
		heap.Push(heapOf{p}, p.queued)
		p.queued++
	}
	return nil
}

// medianGap is the median of the gaps between instants, in seconds.
func medianGap(at []engine.Picos) float64 {
	gaps := make([]engine.Picos, len(at)-1)
	for i := range gaps {
		gaps[i] = at[i+1] - at[i]
	}
	slices.Sort(gaps)
	return secondsOf(gaps[len(gaps)/2])
}

func secondsOf(p engine.Picos) float64 { return float64(p) / 1e12 }

func nans(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = math.NaN()
	}
	return v
}

// dueHeap are requests by when they are due.
type dueHeap []int

type heapOf struct{ p *player }

func (h heapOf) Len() int { return len(h.p.due) }
func (h heapOf) Less(i, j int) bool {
	a, b := h.p.due[i], h.p.due[j]
	return cmp.Or(cmp.Compare(h.p.at[a], h.p.at[b]), cmp.Compare(a, b)) < 0
}
func (h heapOf) Swap(i, j int) { h.p.due[i], h.p.due[j] = h.p.due[j], h.p.due[i] }
func (h heapOf) Push(v any)    { h.p.due = append(h.p.due, v.(int)) }
func (h heapOf) Pop() any {
	last := len(h.p.due) - 1
	v := h.p.due[last]
	h.p.due = h.p.due[:last]
	return v
}
