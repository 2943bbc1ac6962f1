package audit

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/synth/release"
	"reprise/trace"
)

// Terms are how a release was made, as its card says, and from which trace.
type terms struct {
	statement *dp.SessionStatement
	meta      trace.Meta
}

func termsOf(c *Case) (*terms, error) {
	card, err := anonymize.ParseCard(c.Output.Meta["card"], c.Output.Meta["card_sha256"])
	if err != nil {
		return nil, err
	}
	return &terms{statement: card.Sessions}, nil
}

func (r *terms) options(epsilon float64) release.Options {
	o := drawnOptions(r.statement)
	o.Budget.Epsilon = epsilon
	return o
}

// rehearse prepares the measurement of a log at another claim.
func (r *terms) rehearse(ctx context.Context, rows []trace.Request, epsilon float64) (rehearsal, error) {
	return release.Rehearse(ctx, &trace.SliceReader[trace.Request]{Rows: rows}, r.meta, r.options(epsilon))
}

// A gameLog is a small log of some units of a source.
type gameLog struct {
	rows  []trace.Request
	of    []int32 // unit of each row
	units int
	leave []extremeUnit // who comes and goes
}

// An extremeUnit is one that is hard to hide.
type extremeUnit struct {
	name string
	unit int32
}

// without are the rows of everybody else.
func (l *gameLog) without(unit int32) []trace.Request {
	var out []trace.Request
	for i, r := range l.rows {
		if l.of[i] != unit {
			out = append(out, r)
		}
	}
	return out
}

// draw takes the units that are hardest to hide, and random others.
func (r *terms) draw(ctx context.Context, src anonymize.Source, seed uint64) (*gameLog, error) {
	number, rows := map[any]int32{}, []int32{} // of each unit
	type cell struct {
		rows    int
		unit    int32
		longest int64
	}
	cells := map[[2]int]cell{}
	last := int32(0)
	each := func(f func(unit int32, q *trace.Request)) error {
		of, err := release.Units(r.meta, r.options(1))
		if err != nil {
			return err
		}
		return eachRow(ctx, src, func(_ int64, q *trace.Request) error {
			if q.Status == trace.StatusFailed {
				return nil
			}
			key := of(q)
			u, ok := number[key]
			if !ok {
				u = int32(len(rows))
				number[key], rows = u, append(rows, 0)
			}
			f(u, q)
			return nil
		})
	}
	err := each(func(u int32, q *trace.Request) {
		rows[u]++
		last = u
		at := [2]int{bits.Len32(uint32(q.InputTokens)), bits.Len32(uint32(q.OutputOr(0)))}
		k := cells[at]
		if n := int64(q.InputTokens) + int64(q.OutputOr(0)); n > k.longest {
			k.longest, k.unit = n, u
		}
		k.rows++
		cells[at] = k
	})
	if err != nil || len(rows) == 0 {
		return &gameLog{}, err
	}
	heaviest, rarest := int32(0), cell{rows: math.MaxInt}
	for u := range rows {
		if rows[u] > rows[heaviest] {
			heaviest = int32(u)
		}
	}
	for _, k := range cells {
		if k.rows < rarest.rows || k.rows == rarest.rows && (k.longest > rarest.longest || k.longest == rarest.longest && k.unit < rarest.unit) {
			rarest = k
		}
	}
	l := &gameLog{}
	kept, size := map[int32]int32{}, 0 // rows taken
	take := func(u int32) {
		if _, ok := kept[u]; !ok {
			kept[u], size = 0, size+int(min(rows[u], gamePerUnit))
		}
	}
	for _, x := range []extremeUnit{{"first", 0}, {"last", last}, {"heaviest", heaviest}, {"rarest", rarest.unit}} {
		if !slices.ContainsFunc(l.leave, func(y extremeUnit) bool { return y.unit == x.unit }) {
			l.leave = append(l.leave, x)
			take(x.unit)
		}
	}
	for _, u := range rand.New(rand.NewPCG(seed, 31)).Perm(len(rows)) {
		if len(kept) >= gameUnits || size >= gameRows {
			break
		}
		take(int32(u))
	}
	l.units = len(kept)
	err = each(func(u int32, q *trace.Request) {
		if n, ok := kept[u]; ok && n < gamePerUnit {
			kept[u]++
			row := *q
			row.Blocks, row.OutputBlocks, row.Parents = slices.Clone(q.Blocks), nil, nil
			l.rows, l.of = append(l.rows, row), append(l.of, u)
		}
	})
	return l, err
}
