package synth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"reprise/trace"
	"reprise/trace/arrival"
)

// FitOptions are the settings of [Fit].
type FitOptions struct {
	// KSwap is how many requests at least are mixed with each other; 1 keeps
	// every place as it is, and 0 means [DefaultKSwap].
	KSwap int
	// Entropy drives the swapping. Nil means crypto/rand; only tests set it,
	// since whoever can repeat the swapping can undo it.
	Entropy io.Reader
	// Trees, when not nil, choose which requests are fitted; see [SurveyTrees].
	Trees *TreeSample
	// Progress, when not nil, is called with the number of rows read, now and
	// then.
	Progress func(rows int64)
	// Swaps, when not nil, is called before each swap that is tried with how many there were, and will be in all.
	Swaps func(tried, of int)
}

// Fit makes a model of the trace that meta describes. Rows that failed are left
// out. A trace with a block after two different prefixes cannot be fitted, nor
// can one without requests; errors name the row, counted from 0.
//
// Memory is about 1.6 kB for each request that is fitted, in each of the swaps that are made at once.
func Fit(ctx context.Context, src trace.Reader[trace.Request], meta trace.Meta, opts FitOptions) (*Model, error) {
	if opts.KSwap < 0 {
		return nil, errors.New("k_swap cannot be negative")
	}
	if opts.KSwap == 0 {
		opts.KSwap = DefaultKSwap
	}
	e := extractor{size: meta.BlockSize, cuts: map[int32]int32{}}
	var times []int64 // of all requests, where some are fitted
	err := trace.Each(src, func(row int64, r *trace.Request) error {
		if row%progressRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if opts.Progress != nil {
				opts.Progress(row)
			}
		}
		if opts.Trees == nil || r.Status == trace.StatusFailed {
			return e.addRow(row, r)
		}
		times = append(times, r.ArrivalNS)
		if !opts.Trees.Takes(r) {
			return nil
		}
		if err := e.addRow(row, r); err != nil {
			return err
		}
		e.cutBehind(r.Blocks[:opts.Trees.cut])
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(e.places) < 2 {
		return nil, errors.New("fewer than two requests of the trace succeeded: there is no traffic to fit")
	}
	if len(e.labels.values) > math.MaxUint16 {
		return nil, errTooManyLabels
	}
	if least := leastSwapped * opts.KSwap; opts.KSwap > 1 && len(e.places) < least {
		return nil, fmt.Errorf("%w: %d requests succeeded, and swapping among %d similar ones needs %d or more. "+
			"Use synth --mirror, or --k-swap 1, which keep the rows as they are", errTooFew, len(e.places),
			opts.KSwap, least)
	}
	e.finish(opts.KSwap)
	m := &Model{meta: meta, kSwap: opts.KSwap, places: e.places, templates: e.templates, labels: e.labels.values,
		ends: e.ends.values}
	if opts.Trees != nil {
		opts.Trees.some.distinct = float64(len(e.nodes))
		m.sampled = opts.Trees.sampled()
	} else {
		times = e.times
	}
	if err := m.fitArrivals(times); err != nil {
		return nil, err
	}
	e.times = m.arrivals.OnTicks(since(times[0], e.times))
	m.gaps, times = gapsBetween(e.times), nil
	if m.kSwap > 1 {
		if err := m.swap(ctx, &e, &opts); err != nil {
			return nil, err
		}
	}
	m.swapped.TraceHits = e.hits()
	// Labels and ends get the order in which the places name them, as in a file.
	var labels numbering[label]
	var ends numbering[end]
	for i := range m.places {
		t := &m.places[i]
		t.label, t.end = labels.numberOf(m.labels[t.label]), ends.numberOf(m.ends[t.end])
	}
	m.labels, m.ends = labels.values, ends.values
	m.finish()
	m.meta.Seed, m.meta.Breakers, m.meta.Source = "", "", ""
	m.meta.Capture = trace.Capture{} // arrivals are drawn: what is generated was never captured
	m.meta.Digest = m.digest()
	return m, nil
}

// errTooFew is the error for a trace with too few requests to swap among k.
var errTooFew = errors.New("the trace is too short")

// leastSwapped is how many requests for each of k a trace must have: fewer are not one
// part of the time of a cascade, and hardly any size has k alike.
const leastSwapped = 5

// fitArrivals fits a cascade to the arrivals.
func (m *Model) fitArrivals(times []int64) error {
	first, last := times[0], times[len(times)-1]
	if first < 0 || last-first < 0 || last-first > math.MaxInt64/2 {
		return errors.New("the trace's times are not between 0 and 2^62 nanoseconds")
	}
	// The process ends a mean gap after its last arrival, and a cascade wants
	// a microsecond at least.
	span := max(last-first+(last-first)/int64(max(len(times)-1, 1))+1, 1000)
	var err error
	if m.arrivals, err = arrival.FitCascade(since(times[0], times), span, max(m.kSwap, DefaultKSwap)); err != nil {
		return fmt.Errorf("arrivals: %w", err)
	}
	m.span = m.arrivals.Span()
	return nil
}

// since are times from an instant on.
func since(first int64, times []int64) []int64 {
	out := make([]int64, len(times))
	for i, at := range times {
		out[i] = at - first
	}
	return out
}
