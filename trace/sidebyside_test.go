package trace

import (
	"cmp"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
)

// A reusing reader writes into the slices of the rows that it is given, as it may.
type reusing struct{ arrivals []int64 }

func (r *reusing) Read(rows []Request) (int, error) {
	n := min(len(rows), len(r.arrivals))
	for i, at := range r.arrivals[:n] {
		rows[i].ArrivalNS, rows[i].Blocks = at, append(rows[i].Blocks[:0], uint64(at))
	}
	if r.arrivals = r.arrivals[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Rows of all readers come in order, those of one instant in the order of the readers, and what
// came earlier keeps its slices.
func TestSideBySide(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	type at struct {
		arrival int64
		reader  int
	}
	var want, got []at
	var readers []Reader[Request]
	for i, n := range []int{10, 0, 37, 1} {
		var arrivals []int64
		for range n {
			arrivals = append(arrivals, random.Int64N(20))
		}
		slices.Sort(arrivals)
		for _, a := range arrivals {
			want = append(want, at{a, i})
		}
		readers = append(readers, &reusing{arrivals})
	}
	slices.SortStableFunc(want, func(a, b at) int { return cmp.Compare(a.arrival, b.arrival) })
	s := NewSideBySide(readers, 4, func(_ int, a *Request, _ int, b *Request) int { return cmp.Compare(a.ArrivalNS, b.ArrivalNS) })
	var rows []Request
	for {
		i, row, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got, rows = append(got, at{row.ArrivalNS, i}), append(rows, *row)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, r := range rows {
		if r.Blocks[0] != uint64(r.ArrivalNS) {
			t.Fatalf("the row of %d has the blocks of %d", r.ArrivalNS, r.Blocks[0])
		}
	}
	if _, _, err := s.Next(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}
