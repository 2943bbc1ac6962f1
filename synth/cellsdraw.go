package synth

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"reprise/trace"
)

// drawnPart is where the requests of one population lie among all that were
// drawn.
type drawnPart struct{ from, to int }

// drawn is the model with room for the tuples that the populations will draw.
// Memory is about 150 bytes for each request of the workload.
func (m *Model) drawn(counts []int64) *Model {
	d := *m
	d.labels, d.ends = []label{{stream: none}}, []end{{status: trace.StatusOK}}
	n := 0
	for _, k := range counts {
		d.parts = append(d.parts, drawnPart{n, n + int(k)})
		n += int(k)
	}
	d.tuples = make([]tuple, n)
	return &d
}

// drawCrowd generates population i: its arrivals, for each a tuple, and for
// each tuple a place in the forest.
func (m *Model) drawCrowd(ctx context.Context, c *crowd, i int, span int64, o Options, placed *atomic.Int64) error {
	part := m.parts[i]
	c.size, c.sourced, c.domains = m.meta.BlockSize, m.sourced, make([]domain, 1)
	c.times = m.cells.times(stream(o.Seed, "arrivals", i, 0), part.to-part.from, span, m.span)
	c.tuples = make([]int32, 0, part.to-part.from)
	r := stream(o.Seed, "cells", i, 0)
	for k, at := range c.times {
		if k%progressRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if done := placed.Add(int64(min(k, progressRows))); o.Progress != nil {
				o.Progress(done)
			}
		}
		t := part.from + k
		m.tuples[t] = m.cells.request(r, at%m.span, c.size)
		c.tuples = append(c.tuples, int32(t))
		c.place(&m.tuples[t], 0)
	}
	c.release()
	return nil
}

// times draws n arrivals within span, in order. Where the source tells the gaps
// between arrivals they are drawn independently and stretched to the span; else
// arrivals are Poisson at the rate of their cell of time, given their number.
// Beyond the period of the model its rates come again.
func (m *cellModel) times(r *rand.Rand, n int, span, period int64) []int64 {
	out := make([]int64, n)
	if g := m.tables[tableGap].of(anyCategory, 0); g != nil {
		at, end := int64(0), int64(1)
		for i := range out {
			out[i] = at
			at += min(g.draw(r), (1<<61)/int64(n))
			end = max(end, at)
		}
		for i := range out {
			out[i] = mulDiv(out[i], span, end)
		}
		return out
	}
	whole := m.tables[tableTime].of(anyCategory, 0)
	last := clipped(whole, span%period)
	for i := range out {
		turn := r.Int64N(span) / period
		g := whole
		if turn == span/period {
			g = last
		}
		out[i] = turn*period + g.draw(r)
	}
	slices.Sort(out)
	return out
}

// clipped is what of a group of times lies before end; when that is nothing,
// every time before end alike.
func clipped(g *group, end int64) *group {
	var cells []cell
	for _, c := range g.cells {
		if c.lo >= end {
			continue
		}
		if hi := min(c.hi, end-1); hi < c.hi {
			c.count, c.hi = mulDiv(c.count, hi-c.lo+1, c.hi-c.lo+1), hi
		}
		if c.count > 0 {
			cells = append(cells, c)
		}
	}
	if len(cells) == 0 {
		cells = []cell{{0, max(0, end-1), 1}}
	}
	out := every(cells)
	return &out
}
