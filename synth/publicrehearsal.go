package synth

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"reprise/anonymize/dp"
	"reprise/trace"
)

// A Rehearsal measures a trace as often as it is asked to, where [FitPublic] does so
// once. Audits play with it, and release nothing of it.
type Rehearsal struct {
	rows    []trace.Request
	meta    trace.Meta
	options PublicOptions
}

// Rehearse prepares to measure rows.
func Rehearse(rows []trace.Request, meta trace.Meta, o PublicOptions) (*Rehearsal, error) {
	return &Rehearsal{rows, meta, o}, o.defaults(meta)
}

// sample draws the requests of each unit that are measured.
func (r *Rehearsal) sample() (*publicFit, error) {
	o := r.options
	if err := o.defaults(r.meta); err != nil {
		return nil, err
	}
	c, err := o.collect(context.Background(), &trace.SliceReader[trace.Request]{Rows: r.rows}, r.meta, func(int64) *dp.Noise { return o.Noise })
	if err != nil {
		return nil, err
	}
	return &publicFit{options: o, layout: newLayout(&o, r.meta, c.sessions), source: c}, nil
}

// Measure samples, selects, counts and draws all noise anew, by the code of [FitPublic].
func (r *Rehearsal) Measure() (m dp.Measured, err error) {
	f, err := r.sample()
	if err != nil {
		return m, err
	}
	if err := f.measure(); err != nil {
		return m, err
	}
	var blocks []uint64 // in the order of their cells
	if f.nodes.index != nil {
		blocks = slices.SortedFunc(maps.Keys(f.nodes.index), func(a, b uint64) int { return f.nodes.index[a] - f.nodes.index[b] })
	}
	b, err := json.Marshal(blocks)
	m.Chosen = string(b)
	for _, n := range f.noisy {
		if n != nil {
			m.Tables = append(m.Tables, dp.Noisy{Spec: n.spec, Cells: n.cells})
		}
	}
	return m, err
}

// Exact samples and counts without noise, in the cells that a measurement chose.
func (r *Rehearsal) Exact(cells string) (out [][]int64, err error) {
	var blocks []uint64
	if err := json.Unmarshal([]byte(cells), &blocks); err != nil {
		return nil, fmt.Errorf("the cells of a measurement: %w", err)
	}
	f, err := r.sample()
	if err != nil {
		return nil, err
	}
	f.nodes = namedNodes(f.source.units, blocks)
	_, which := f.measurements()
	for _, h := range which {
		counts, _ := f.count(h, f.source.units)
		out = append(out, counts)
	}
	return out, nil
}
