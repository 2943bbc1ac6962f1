package audit

import (
	"context"
	"math/rand/v2"
	"slices"

	"reprise/anonymize"
	"reprise/trace"
)

// extent is how far the ids of a trace of tier internal go, and its names.
type extent struct {
	rows, blocks, sessions, users int64
	last                          int64 // arrival of the last row
}

func extentOf(ctx context.Context, src anonymize.Source) (x extent, err error) {
	err = eachRow(ctx, src, func(_ int64, r *trace.Request) error {
		x.rows++
		x.last = r.ArrivalNS
		for _, ids := range [][]uint64{r.Blocks, r.OutputBlocks} {
			for _, b := range ids {
				x.blocks = max(x.blocks, int64(b)+1)
			}
		}
		if r.Session != nil {
			x.sessions = max(x.sessions, *r.Session+1)
		}
		if r.User != nil {
			x.users = max(x.users, *r.User+1)
		}
		return nil
	})
	return x, err
}

// A permutation of the numbers below n: x·a + c, with an a that shares no factor
// with n. It needs no memory, and keeps no order.
type permutation struct{ n, a, c uint64 }

func newPermutation(rng *rand.Rand, n int64) permutation {
	if n < 2 {
		return permutation{1, 0, 0}
	}
	p := permutation{n: uint64(n), c: rng.Uint64N(uint64(n))}
	for {
		p.a = 1 + rng.Uint64N(p.n-1)
		factor, rest := p.a, p.n // Euclid: the greatest that both share
		for rest != 0 {
			factor, rest = rest, factor%rest
		}
		if factor == 1 {
			return p
		}
	}
}

// apply is the number for x. Numbers of 32 bits at most do not overflow, and beyond
// four billion blocks [extentOf] has taken hours.
func (p permutation) apply(x uint64) uint64 { return (x*p.a + p.c) % p.n }

// A renamed source has the rows of another with all names changed, one to one, and
// all arrivals later by one distance. Names keep their order, since names of tier
// internal are labels in the order of their appearance, which says nothing that the
// rows do not.
type renamed struct {
	blocks, sessions, users permutation
	shift                   int64
}

func (n *renamed) source(src anonymize.Source) anonymize.Source {
	open := src.Open
	src.Open = func() (trace.Reader[trace.Request], error) {
		rows, err := open()
		return &renamedReader{n, rows}, err
	}
	return src
}

type renamedReader struct {
	*renamed
	rows trace.Reader[trace.Request]
}

func (r *renamedReader) Read(rows []trace.Request) (int, error) {
	n, err := r.rows.Read(rows)
	for i := range rows[:n] {
		q := &rows[i]
		q.ArrivalNS += r.shift
		q.Blocks, q.OutputBlocks = r.list(q.Blocks), r.list(q.OutputBlocks)
		if q.Session != nil {
			q.Session = trace.Ptr(int64(r.sessions.apply(uint64(*q.Session))))
		}
		if q.User != nil {
			q.User = trace.Ptr(int64(r.users.apply(uint64(*q.User))))
		}
		for _, name := range []*string{&q.Model, &q.Adapter} {
			if *name != "" {
				*name = "x" + *name
			}
		}
		for _, name := range []**string{&q.Class, &q.Replica} {
			if *name != nil && **name != "" {
				*name = trace.Ptr("x" + **name)
			}
		}
	}
	return n, err
}

func (n *renamed) list(ids []uint64) []uint64 {
	ids = slices.Clone(ids)
	for i, id := range ids {
		ids[i] = n.blocks.apply(id)
	}
	return ids
}
