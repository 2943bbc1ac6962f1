package release

import (
	"context"
	"testing"

	"reprise/trace"
)

// Counted counts a trace as Fit does before the noise, with what noise would have chosen:
// 32 cells of arrivals, and the first blocks of the first three sessions as trunks, or
// those of another.
func Counted(t testing.TB, rows []trace.Request, meta trace.Meta, o Options, like *Fitted) *Fitted {
	t.Helper()
	if err := o.defaults(meta); err != nil {
		t.Fatal(err)
	}
	f := newFit(meta, o)
	if err := f.source.read(context.Background(), &trace.SliceReader[trace.Request]{Rows: rows}, nil); err != nil {
		t.Fatal(err)
	}
	f.rate = 32
	g := &Fitted{fit: f, blocks: map[uint64]int32{}}
	if like != nil {
		f.trunks, g.blocks = like.fit.trunks, like.blocks
	} else if f.depth > 0 {
		for _, s := range f.source.sessions {
			if len(s.nodes) > 0 {
				if _, ok := g.blocks[s.nodes[0]]; !ok && len(f.trunks) < 3 {
					g.blocks[s.nodes[0]] = int32(len(f.trunks))
					f.trunks = append(f.trunks, trunk{1, none})
				}
			}
		}
	}
	for i := range f.source.sessions {
		s := &f.source.sessions[i]
		if len(s.nodes) > 0 {
			if k, ok := g.blocks[s.nodes[0]]; ok {
				s.trunk = k
			}
		}
	}
	for t := range tables {
		if rows, columns := f.shape(t); rows > 0 {
			f.noisy[t] = make([]int64, rows*columns)
		}
	}
	f.noisy[ofSessions][0] = unit * int64(len(f.source.units))
	f.count()
	return g
}

// A Fitted is a fit before its noise.
type Fitted struct {
	fit    *fit
	blocks map[uint64]int32
}

// Tables are the counts, by table.
func (f *Fitted) Tables() map[string][]int64 {
	out := map[string][]int64{}
	for t, cells := range f.fit.noisy {
		if cells != nil {
			out[tableNames[t]] = cells
		}
	}
	return out
}

// Layout is all that the cells depend on, and what the card says of it.
func (f *Fitted) Layout() any {
	m := Model{layout: f.fit.layout}
	return []any{m.facts(), f.fit.input, f.fit.output, f.fit.gap, f.fit.statement().Public}
}

// SumsWhen are the sums of later turns that drawings have, when by times as many tokens
// are measured.
func (f *Fitted) SumsWhen(by float64) [2]float64 {
	var exact [tables]noisyTable
	for t, cells := range f.fit.noisy {
		_, columns := f.fit.shape(t)
		exact[t] = noisyTable{columns: columns, sd: .01}
		for _, x := range cells {
			exact[t].cells = append(exact[t].cells, float64(x)/unit)
		}
	}
	for i := range exact[ofLaterInput].cells {
		exact[ofLaterInput].cells[i] *= by
	}
	m, _ := f.fit.drawable(exact, nil)
	return m.meanSums(m.sumLimit())
}
