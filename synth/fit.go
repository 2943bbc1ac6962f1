package synth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"reprise/trace"
	"reprise/trace/arrival"
)

// FitOptions are the settings of [Fit].
type FitOptions struct {
	// KSwap is how many requests at least are mixed with each other; 1 keeps
	// every tuple as it is, and 0 means [DefaultKSwap].
	KSwap int
	// Entropy drives the swapping. Nil means crypto/rand; only tests set it,
	// since whoever can repeat the swapping can undo it.
	Entropy io.Reader
	// Progress, when not nil, is called with the number of rows read, now and
	// then.
	Progress func(rows int64)
}

// Fit makes a model of the trace that meta describes. Rows that failed are left
// out. A trace with a block after two different prefixes cannot be fitted, nor
// can one without requests; errors name the row, counted from 0.
//
// Memory is about 200 bytes for each request and 24 for each distinct block.
func Fit(ctx context.Context, src trace.Reader[trace.Request], meta trace.Meta, opts FitOptions) (*Model, error) {
	if opts.KSwap < 0 {
		return nil, errors.New("k_swap cannot be negative")
	}
	if opts.KSwap == 0 {
		opts.KSwap = DefaultKSwap
	}
	e := extractor{size: meta.BlockSize}
	err := trace.Each(src, func(row int64, r *trace.Request) error {
		if row%progressRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if opts.Progress != nil {
				opts.Progress(row)
			}
		}
		return e.addRow(row, r)
	})
	if err != nil {
		return nil, err
	}
	if len(e.tuples) < 2 {
		return nil, errors.New("fewer than two requests of the trace succeeded: there is no traffic to fit")
	}
	if len(e.labels.values) > math.MaxUint16 {
		return nil, errTooManyLabels
	}
	if meta.Sessions == sessionsInferred {
		// They are inferred again from what is generated.
		for i := range e.tuples {
			t := &e.tuples[i]
			t.join, t.back, t.turn, t.waits, t.pause = joinless, 0, 0, false, nil
		}
	}
	e.finish()
	m := &Model{meta: meta, kSwap: opts.KSwap, tuples: e.tuples, labels: e.labels.values, ends: e.ends.values}
	if err := m.fitArrivals(e.times); err != nil {
		return nil, err
	}
	if m.kSwap > 1 {
		if err := swapTuples(m.tuples, m.kSwap, meta.BlockSize, opts.Entropy); err != nil {
			return nil, err
		}
	}
	// Labels and ends get the order in which the tuples name them, as in a file.
	var labels numbering[label]
	var ends numbering[end]
	for i := range m.tuples {
		t := &m.tuples[i]
		t.label, t.end = labels.numberOf(m.labels[t.label]), ends.numberOf(m.ends[t.end])
	}
	m.labels, m.ends = labels.values, ends.values
	m.finish()
	m.meta.Seed, m.meta.Breakers = "", ""
	m.meta.Capture = trace.Capture{} // arrivals are drawn: what is generated was never captured
	m.meta.Digest = m.digest()
	return m, nil
}

// Rules for clients of their own. A cascade of fewer arrivals would keep little
// but the places of its coarse bins, and superposing many clients is smooth in
// any case.
const (
	clientRequests = 1000
	maxClients     = 64
)

// fitArrivals fits a cascade to the arrivals of each of the users with the most
// requests, at most maxClients with clientRequests each, and one to all others.
func (m *Model) fitArrivals(times []int64) error {
	first, last := times[0], times[len(times)-1]
	if first < 0 || last-first < 0 || last-first > math.MaxInt64/2 {
		return errors.New("the trace's times are not between 0 and 2^62 nanoseconds")
	}
	// The process ends a mean gap after its last arrival, and a cascade wants
	// a microsecond at least.
	m.span = max(last-first+(last-first)/int64(max(len(times)-1, 1))+1, 1000)
	own := m.ownClients()
	var rest []int64
	by := make([][]int64, len(own))
	place := map[int64]int{}
	for i, u := range own {
		place[u] = i
	}
	for i := range m.tuples {
		at := times[i] - first
		if c, ok := place[m.tuples[i].user]; ok {
			by[c] = append(by[c], at)
		} else {
			rest = append(rest, at)
		}
	}
	if n := len(by); len(rest) == 1 && n > 0 {
		// One arrival is no process: it joins the least busy of the clients.
		i, _ := slices.BinarySearch(by[n-1], rest[0])
		by[n-1], own[n-1] = slices.Insert(by[n-1], i, rest[0]), none
	} else if len(rest) > 0 {
		by, own = append(by, rest), append(own, none)
	}
	for i, times := range by {
		c, err := arrival.FitCascade(times, m.span)
		if err != nil {
			return fmt.Errorf("arrivals: %w", err)
		}
		m.clients = append(m.clients, client{own[i], c})
	}
	return nil
}

// ownClients lists the users that are clients of their own, the busiest first.
func (m *Model) ownClients() []int64 {
	var counts []int
	for i := range m.tuples {
		if u := m.tuples[i].user; u != none {
			for int(u) >= len(counts) {
				counts = append(counts, 0)
			}
			counts[u]++
		}
	}
	var own []int64
	for u, n := range counts {
		if n >= clientRequests {
			own = append(own, int64(u))
		}
	}
	slices.SortStableFunc(own, func(a, b int64) int { return cmp.Compare(counts[b], counts[a]) })
	return own[:min(len(own), maxClients)]
}
