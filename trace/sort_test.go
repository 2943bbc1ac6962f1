package trace_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"reprise/trace"
)

// A shuffled trace sorts back to the naive stable sort, in memory and through
// spills alike, with parents that follow their rows.
func TestSorter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 100, 3000} {
		rows := randomRows(r, n)
		r.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		want := naiveSort(rows)
		for _, limit := range []int64{1 << 40, 200_000, 20_000} {
			dir := t.TempDir()
			s := trace.NewSmallSorter(dir, limit)
			for i := 0; i < n; i += 7 {
				if _, err := s.Write(rows[i:min(n, i+7)]); err != nil {
					t.Fatal(err)
				}
			}
			sorted, err := s.Sort()
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for range 2 { // read twice
				src, err := sorted.Reader()
				if err != nil {
					t.Fatal(err)
				}
				got := readAll(t, src)
				if digest(got) != digest(want) {
					t.Errorf("%d rows, %d bytes: not the naive order", n, limit)
				}
				for i := range got { // what a caller does to its rows stays its own
					clear(got[i].Blocks)
				}
			}
			err = sorted.Order(func(row, written int64) error {
				if rows[written].ArrivalNS != want[row].ArrivalNS || rows[written].InputTokens != want[row].InputTokens {
					t.Errorf("row %d is not the one written as %d", row, written)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if files, _ := os.ReadDir(dir); len(files) > 0 {
				t.Errorf("%d spill files have a name", len(files))
			}
			if err := sorted.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func naiveSort(rows []trace.Request) []trace.Request {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(rows[a].ArrivalNS - rows[b].ArrivalNS) })
	out := make([]trace.Request, 0, len(rows))
	for _, i := range order {
		q := rows[i]
		q.Parents = nil
		for _, p := range rows[i].Parents {
			q.Parents = append(q.Parents, int64(slices.Index(order, int(p))))
		}
		out = append(out, q)
	}
	return out
}

func TestSlice(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(3, 4)), 2000)
	from, to := rows[500].ArrivalNS, rows[1500].ArrivalNS
	got := readAll(t, &trace.Slice{Src: &trace.SliceReader[trace.Request]{Rows: cloneRows(rows)}, From: from, To: to})
	first := slices.IndexFunc(rows, func(q trace.Request) bool { return q.ArrivalNS >= from })
	var want []trace.Request
	for _, q := range rows[first:] {
		if q.ArrivalNS < to {
			want = append(want, q)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	blocks := map[uint64]uint64{}
	next := uint64(0)
	for i, g := range got {
		w := want[i]
		if g.ArrivalNS != w.ArrivalNS-from || g.InputTokens != w.InputTokens {
			t.Fatalf("row %d is not its source", i)
		}
		var parents []int64
		for _, p := range w.Parents {
			if p >= int64(first) {
				parents = append(parents, p-int64(first))
			}
		}
		if !slices.Equal(g.Parents, parents) {
			t.Fatalf("row %d has parents %v, want %v", i, g.Parents, parents)
		}
		for j, id := range w.Blocks {
			if _, ok := blocks[id]; !ok {
				blocks[id] = g.Blocks[j]
			}
			if g.Blocks[j] > next {
				t.Fatalf("row %d: block %d is not numbered densely", i, j)
			}
			next = max(next, g.Blocks[j]+1)
			if blocks[id] != g.Blocks[j] {
				t.Fatalf("row %d: block %d has two names", i, j)
			}
		}
		for _, id := range g.OutputBlocks {
			next = max(next, id+1)
		}
	}
}

func cloneRows(rows []trace.Request) []trace.Request {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Blocks, rows[i].OutputBlocks = slices.Clone(rows[i].Blocks), slices.Clone(rows[i].OutputBlocks)
	}
	return rows
}

// Renumber agrees with a map, whatever the ids.
func TestRenumber(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var n trace.Renumber
	want := map[uint64]uint64{}
	for i := range 200_000 {
		old := uint64(r.IntN(100_000))
		kind := r.IntN(10)
		if i < 5000 {
			kind = 10
		}
		switch kind {
		case 10: // numbered so already
			old = uint64(r.IntN(len(want) + 1))
		case 0:
			old = 1<<63 + uint64(r.IntN(1000))
		case 1:
			old = 1<<20 + uint64(r.IntN(3_000_000)) // far at first, near later
		}
		if _, ok := want[old]; !ok {
			want[old] = uint64(len(want))
		}
		if got := n.ID(old); got != want[old] {
			t.Fatalf("%d became %d, want %d", old, got, want[old])
		}
	}
	if n.Len() != len(want) {
		t.Errorf("%d ids, want %d", n.Len(), len(want))
	}
}
