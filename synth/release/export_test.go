package release

import (
	"context"
	"errors"
	"slices"
	"testing"

	"reprise/trace"
)

// UnitWeight is what one unit of privacy adds to a table in all.
const UnitWeight = unit

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
	if like != nil {
		f.trunks, f.numbers = like.fit.trunks, like.fit.numbers
	} else if f.depth > 0 {
		var first []node
		for _, s := range f.source.sessions {
			if len(s.nodes) > 0 && len(first) < 3 && !slices.Contains(first, node{s.nodes[0], 0}) {
				first = append(first, node{s.nodes[0], 0})
			}
		}
		f.takeTrunks(first)
	}
	for t := range tables {
		if rows, columns := f.shape(t); rows > 0 {
			f.noisy[t] = make([]int64, rows*columns)
		}
	}
	f.noisy[ofSessions][0] = unit * int64(len(f.source.units))
	if err := f.count(); err != nil {
		t.Fatal(err)
	}
	return &Fitted{f}
}

// A Fitted is a fit before its noise.
type Fitted struct{ fit *fit }

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
	return m.meanSums(m.sums)
}

// Within measures a trace whose sessions are in files beyond so many bytes: the noisy tables,
// their cells and the trunks. It tells whether some were in files.
func Within(t testing.TB, most int, rows []trace.Request, meta trace.Meta, o Options) (measured any, inFiles bool) {
	t.Helper()
	if err := o.defaults(meta); err != nil {
		t.Fatal(err)
	}
	f := newFit(meta, o)
	f.source.most = most
	defer f.source.close()
	if err := f.source.read(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, nil); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.plan(), f.measure()); err != nil {
		t.Fatal(err)
	}
	return []any{f.noisy, f.rate, f.trunks, f.selected}, f.source.files != nil
}
