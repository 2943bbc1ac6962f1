package calibrate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"reprise/replay/engine"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// A Record is the requests of one recorded run: what was sent, when, and when its tokens
// came.
type Record struct {
	Name  string // of the file
	Level string // its load, such as poisson:5, concurrency:8 or recorded
	About result.Run
	// Untrusted says why the run cannot be trusted; empty where it can.
	Untrusted string

	requests []request
	closed   int // requests in flight of a closed loop; 0 is an open one
}

// A request is one of a record. Times are in seconds, NaN where they are not known.
type request struct {
	sent           engine.Picos
	done           engine.Picos // 0 is not known
	cut            engine.Picos // from sent until the client hung up; 0 is never
	input, output  int
	reused, known  int // prompt tokens that the server found in its cache, and that earlier requests sent
	measured       bool
	ttft, e2e, gap float64 // gap is the median of those between tokens
	gaps           []int64 // in nanoseconds; none where tokens have no events of their own
	after          []int   // requests that have to be over first, and how long after
	wait           engine.Picos
}

// tpot is the time per output token after the first.
func (r *request) tpot() float64 {
	if r.output < 2 {
		return math.NaN()
	}
	return (r.e2e - r.ttft) / float64(r.output-1)
}

// leastRequests is how many measured requests a record must have.
const leastRequests = 20

// ErrFew is the error of a run that is too short for [Read].
var ErrFew = errors.New("too few requests to fit an engine to")

// Read takes the requests of a results file, ours or another tool's. metrics opens what was
// measured at the servers beside it, nil where nothing was.
func Read(name string, f *result.File, metrics func() trace.Reader[result.Metric]) (*Record, error) {
	r := &Record{Name: name, About: f.Run, Level: levelOf(&f.Run)}
	switch run := &f.Run; {
	case run.Read != nil && !run.Read.Instants:
		return nil, fmt.Errorf("%s: %s does not say when each request was sent, and an engine is fitted to that: "+
			"record with reprise replay", name, run.Read.Tool)
	case len(run.Endpoints) > 1 || run.Instances > 1:
		return nil, fmt.Errorf("%s: the requests went to several servers: an engine is fitted to one", name)
	case run.Timing == result.ClosedLoop:
		r.closed = run.Concurrency
	}
	rows := map[result.RequestKey]int{}
	var parents [][]result.RequestKey
	err := trace.Each(f.Reader(), func(_ int64, row *result.Result) error {
		q, ok := r.requestOf(row)
		if !ok {
			return nil
		}
		rows[row.Key()] = len(r.requests)
		var of []result.RequestKey
		for _, p := range row.Parents {
			of = append(of, result.RequestKey{Round: row.Round, Row: p})
		}
		parents = append(parents, of)
		r.requests = append(r.requests, q)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if f.Run.Timing == result.Causal {
		r.link(rows, parents)
	}
	r.sort()
	n := 0
	for i := range r.requests {
		if r.requests[i].measured {
			n++
		}
	}
	if n < leastRequests {
		return nil, fmt.Errorf("%s: %w: %d were answered and measured, want %d at least", name,
			ErrFew, n, leastRequests)
	}
	s, err := report.Summarise(f.Run, f.Reader(), report.Options{Metrics: metrics})
	if err == nil && !s.Verdict.Trustworthy {
		r.Untrusted = s.Verdict.Reasons[0].Text
	}
	return r, err
}

// levelOf names the load of a run.
func levelOf(run *result.Run) string {
	switch {
	case run.Timing == result.ClosedLoop && run.Concurrency > 0:
		return "concurrency:" + strconv.Itoa(run.Concurrency)
	case run.Rate != "":
		return run.Rate
	case run.Speed > 0 && run.Speed != 1:
		return fmt.Sprintf("recorded,speed=%v", run.Speed)
	}
	return "recorded"
}

// requestOf is not ok for a row that was no load to the engine: one that was not sent, or
// that the server refused.
func (r *Record) requestOf(row *result.Result) (q request, ok bool) {
	in, out := cmp.Or(value(row.Input), row.WantInput), value(row.WantOutput)
	if row.Output != nil {
		out = *row.Output
	}
	failed := row.Error != ""
	if row.SentNS == nil || in < 1 || out < 1 || failed && (row.FirstTokenNS == nil || row.DoneNS == nil) {
		return q, false
	}
	sent := *row.SentNS
	q = request{sent: picos(sent), input: int(in), output: int(out), reused: int(min(value(row.Cached), in-1)),
		known: int(value(row.Known)),
		ttft:  math.NaN(), e2e: math.NaN(), gap: math.NaN()}
	if row.DoneNS != nil {
		q.done = picos(*row.DoneNS)
	}
	if failed { // it was load until the client went away
		q.output = int(max(value(row.WantOutput), out))
		q.cut = max(picos(*row.DoneNS-sent), 1)
		return q, true
	}
	before, after := r.About.Window.Holds(row)
	q.measured = !before && !after && row.FirstTokenNS != nil
	if row.FirstTokenNS != nil {
		q.ttft = seconds(*row.FirstTokenNS - sent)
	}
	if row.LastTokenNS != nil {
		q.e2e = seconds(*row.LastTokenNS - sent)
		q.done = max(q.done, picos(*row.LastTokenNS))
	}
	if d := int(row.Events) - q.output; d*50 < -q.output || d*50 > q.output {
		return q, true // its gaps are not those between tokens
	}
	for _, gap := range row.Gaps {
		q.gaps = append(q.gaps, gap)
	}
	if n := len(q.gaps); n >= 3 {
		sorted := slices.Sorted(slices.Values(q.gaps))
		q.gap = seconds(sorted[n/2])
	}
	return q, true
}

// link says after which others a request was sent, and how long after.
func (r *Record) link(rows map[result.RequestKey]int, parents [][]result.RequestKey) {
	for i := range r.requests {
		q, over := &r.requests[i], engine.Picos(0)
		for _, key := range parents[i] {
			if p, ok := rows[key]; ok && r.requests[p].done > 0 && r.requests[p].done <= q.sent {
				q.after = append(q.after, p)
				over = max(over, r.requests[p].done)
			}
		}
		q.wait = q.sent - over
	}
}

// sort puts the requests in the order in which they were sent.
func (r *Record) sort() {
	order := make([]int, len(r.requests))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.requests[a].sent, r.requests[b].sent) })
	place := make([]int, len(order))
	sorted := make([]request, len(order))
	for to, from := range order {
		place[from], sorted[to] = to, r.requests[from]
	}
	for i := range sorted {
		for k, p := range sorted[i].after {
			sorted[i].after[k] = place[p]
		}
	}
	r.requests = sorted
}

// A peak is the most that a record had at once, by when its tokens came.
type peak struct {
	inFlight int // requests that were sent and not over
	decoding int // those of them that had their first token
	kv       int // tokens of the prompts and answers of these
}

func (r *Record) peak() (p peak) {
	type edge struct {
		at       engine.Picos
		flight   int
		decoding int
		kv       int
	}
	var edges []edge
	for i := range r.requests {
		q := &r.requests[i]
		if q.done == 0 || math.IsNaN(q.ttft) {
			continue
		}
		first := q.sent + engine.Picos(q.ttft*1e12)
		edges = append(edges, edge{q.sent, 1, 0, 0}, edge{first, 0, 1, q.input},
			edge{q.done, -1, -1, -q.input - q.output})
		for k := 1; k <= 4; k++ { // the answer grows
			edges = append(edges, edge{first + (q.done-first)*engine.Picos(k)/5, 0, 0, q.output / 4})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.flight, b.flight))
	})
	var now peak
	for _, e := range edges {
		now.inFlight, now.decoding, now.kv = now.inFlight+e.flight, now.decoding+e.decoding, now.kv+e.kv
		p.inFlight, p.decoding, p.kv = max(p.inFlight, now.inFlight), max(p.decoding, now.decoding), max(p.kv, now.kv)
	}
	return p
}

// oneServer refuses records that say that they are of different models.
func oneServer(records []*Record) error {
	if len(records) == 0 {
		return errors.New("no results to fit an engine to")
	}
	for _, r := range records[1:] {
		first := &records[0].About
		if a, b := first.Model, r.About.Model; a != "" && b != "" && a != b {
			return fmt.Errorf("%s is of the model %s and %s of %s: fit an engine to one", records[0].Name, a, r.Name, b)
		}
	}
	return nil
}

func picos(ns int64) engine.Picos { return engine.Picos(ns) * 1000 }

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

func value(p *int32) int32 {
	if p == nil {
		return 0
	}
	return *p
}
