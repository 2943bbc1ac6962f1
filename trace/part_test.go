package trace

import (
	"io"
	"math/rand/v2"
	"slices"
	"testing"
)

// partRows makes rows of sessions whose turns follow one another, some of them
// joined by a parent in another session, and some rows without a session.
func partRows(seed uint64, n int) []Request {
	r := rand.New(rand.NewPCG(seed, 1))
	last := map[int64]int64{}
	var rows []Request
	for i := range n {
		q := Request{ArrivalNS: int64(i/3) * 1e9, InputTokens: 1 + r.Int32N(1<<r.IntN(16)), OutputTokens: Ptr(r.Int32N(100)), Blocks: []uint64{uint64(i)}}
		if r.IntN(4) > 0 {
			s := r.Int64N(int64(n)/5 + 1)
			q.Session = Ptr(s)
			if p, ok := last[s]; ok {
				q.Parents = append(q.Parents, p)
			}
			last[s] = int64(i)
		}
		if i > 0 && r.IntN(20) == 0 {
			q.Parents = append(q.Parents, r.Int64N(int64(i)))
		}
		rows = append(rows, q)
	}
	return rows
}

func partMembers(rows []Request) Reader[Member] {
	var out []Member
	for _, r := range rows {
		out = append(out, Member{Session: r.Session, Turn: r.Turn, Parents: slices.Clone(r.Parents),
			InputTokens: r.InputTokens, OutputTokens: r.OutputTokens})
	}
	return &SliceReader[Member]{Rows: out}
}

func partArrivals(rows []Request) Reader[Arrival] {
	var out []Arrival
	for _, r := range rows {
		out = append(out, Arrival{ArrivalNS: r.ArrivalNS})
	}
	return &SliceReader[Arrival]{Rows: out}
}

// partPicked reads the rows of a part in batches of a size of its own.
func partPicked(t *testing.T, rows []Request, p Part, fromNS int64, batch int) (out []Request) {
	t.Helper()
	var fresh []Request
	for _, r := range rows {
		r.Parents = slices.Clone(r.Parents)
		fresh = append(fresh, r)
	}
	src := Pick(&SliceReader[Request]{Rows: fresh}, p, p.Edit(fromNS))
	for {
		some := make([]Request, batch)
		n, err := src.Read(some)
		out = append(out, some[:n]...)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A window has the rows that a scan finds, with their blocks, and parents within
// it only.
func TestPartWindow(t *testing.T) {
	rows := partRows(1, 500)
	for _, w := range [][2]int64{{0, 0}, {0, 50e9}, {20e9, 0}, {20e9, 21e9}, {20e9 + 1, 90e9}, {900e9, 0}, {166e9, 167e9}} {
		p, err := Window(partArrivals(rows), w[0], w[1])
		if err != nil {
			t.Fatal(err)
		}
		var want []int64
		for i, r := range rows {
			if r.ArrivalNS >= w[0] && (w[1] == 0 || r.ArrivalNS < w[1]) {
				want = append(want, int64(i))
			}
		}
		got := partPicked(t, rows, p, w[0], 7)
		if len(got) != len(want) || p.Len() != int64(len(want)) {
			t.Fatalf("%v: %d rows, want %d", w, len(got), len(want))
		}
		partCheck(t, rows, got, want, p, w[0])
	}
}

// partCheck holds the rows of a part against the whole.
func partCheck(t *testing.T, rows, got []Request, want []int64, p Part, fromNS int64) {
	t.Helper()
	for i, r := range got {
		old := rows[want[i]]
		if p.Row(int64(i)) != want[i] || r.ArrivalNS != old.ArrivalNS-fromNS || r.Blocks[0] != uint64(want[i]) {
			t.Fatalf("row %d of the part is not row %d of the trace", i, want[i])
		}
		var parents []int64
		for _, q := range old.Parents {
			if at, ok := slices.BinarySearch(want, q); ok {
				parents = append(parents, int64(at))
			}
		}
		if !slices.Equal(r.Parents, parents) {
			t.Fatalf("row %d: parents %v, want %v", i, r.Parents, parents)
		}
	}
}

// A sample has whole groups, which an oracle finds by walking; the share of them
// to one; the same ones for a seed; and of every stratum its share within one.
func TestPartSample(t *testing.T) {
	rows := partRows(2, 4000)
	for _, share := range []float64{0, 0.1, 0.5, 1} {
		whole := Whole(int64(len(rows)))
		p, s, err := whole.Sample(partMembers(rows), share, 7)
		if err != nil {
			t.Fatal(err)
		}
		again, _, _ := whole.Sample(partMembers(rows), share, 7)
		other, _, _ := whole.Sample(partMembers(rows), share, 8)
		if !slices.Equal(p.rows, again.rows) || (share > 0 && share < 1) == slices.Equal(p.rows, other.rows) {
			t.Errorf("share %g: the seed does not decide the sample", share)
		}
		group := partOracle(rows)
		size, turns := map[int]int64{}, map[int]int{}
		for i, g := range group {
			size[g] += int64(rows[i].InputTokens + *rows[i].OutputTokens)
			turns[g]++
		}
		taken := map[int]int{}
		var want []int64
		for _, r := range p.rows {
			taken[group[r]]++
			want = append(want, int64(r))
		}
		for g, n := range taken {
			if n != turns[g] {
				t.Fatalf("share %g: %d of %d rows of a group", share, n, turns[g])
			}
		}
		if d := float64(len(taken)) - share*float64(len(turns)); d > 0.5 || d < -0.5 || s.Sessions != int64(len(taken)) || s.OfSessions != int64(len(turns)) || s.Rows != p.Len() || s.OfRows != 4000 {
			t.Errorf("share %g: %+v, %d of %d groups", share, s, len(taken), len(turns))
		}
		partStrata(t, share, size, turns, taken)
		partCheck(t, rows, partPicked(t, rows, p, 0, 64), want, p, 0)
	}
}

func partStrata(t *testing.T, share float64, size map[int]int64, turns map[int]int, taken map[int]int) {
	t.Helper()
	octave := func(n int64) (o int) {
		for ; n > 0; n >>= 1 {
			o++
		}
		return o
	}
	of, got := map[[2]int]float64{}, map[[2]int]float64{}
	for g := range turns {
		k := [2]int{octave(size[g]), octave(int64(turns[g]))}
		of[k]++
		if taken[g] > 0 {
			got[k]++
		}
	}
	for k, n := range of {
		if d := got[k] - share*n; d > 1 || d < -1 {
			t.Errorf("share %g: %g of %g groups of stratum %v", share, got[k], n, k)
		}
	}
}

// partOracle labels rows by walking to all that they are connected with.
func partOracle(rows []Request) []int {
	next := make([][]int, len(rows))
	link := func(a, b int) { next[a], next[b] = append(next[a], b), append(next[b], a) }
	first := map[int64]int{}
	for i, r := range rows {
		if r.Session != nil {
			if f, ok := first[*r.Session]; ok {
				link(f, i)
			} else {
				first[*r.Session] = i
			}
		}
		for _, p := range r.Parents {
			link(int(p), i)
		}
	}
	label := make([]int, len(rows))
	for i := range rows {
		if label[i] != 0 {
			continue
		}
		for todo := []int{i}; len(todo) > 0; {
			at := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if label[at] == 0 {
				label[at] = i + 1
				todo = append(todo, next[at]...)
			}
		}
	}
	return label
}

// A sample of a window has rows of the window, and its head the first of them.
func TestPartsCompose(t *testing.T) {
	rows := partRows(3, 900)
	w, err := Window(partArrivals(rows), 100e9, 200e9)
	if err != nil {
		t.Fatal(err)
	}
	p, s, err := w.Sample(partMembers(rows), 0.3, 1)
	if err != nil || s.OfRows != w.Len() || p.First() != w.First() {
		t.Fatal(s, err)
	}
	again, _, err := p.Sample(partMembers(rows), 0.5, 1)
	if err != nil || again.Len() == 0 || again.Len() >= p.Len() {
		t.Fatal(again, err)
	}
	for i := range rows { // every fourth row has no turn
		if rows[i].Turn = Ptr(int32(i % 4)); i%4 == 3 {
			rows[i].Turn = nil
		}
	}
	first, numbered, err := p.Turns(partMembers(rows), 1)
	if err != nil || numbered == 0 || numbered == p.Len() {
		t.Fatal(numbered, err)
	}
	kept := int64(0)
	for i := range p.Len() {
		if at := p.Row(i) % 4; at == 0 || at == 3 {
			kept++
		}
	}
	if first.Len() != kept {
		t.Errorf("%d rows are first turns or have none, want %d", first.Len(), kept)
	}
	for _, q := range []Part{p, p.Head(10), p.Head(1 << 40), again, w.Head(5), first} {
		var want []int64
		for i := range q.Len() {
			row := q.Row(i)
			if at, ok := q.Index(row); !ok || at != i || rows[row].ArrivalNS < 100e9 || rows[row].ArrivalNS >= 200e9 {
				t.Fatalf("row %d of the trace is not one of the window", row)
			}
			want = append(want, row)
		}
		partCheck(t, rows, partPicked(t, rows, q, 100e9, 50), want, q, 100e9)
	}
	if n := p.Head(10); n.Len() != 10 {
		t.Error(n.Len())
	}
}

// A trace that is shorter than the part was chosen from is an error.
func TestPickOfShortTrace(t *testing.T) {
	p := Whole(5)
	src := Pick(&SliceReader[Request]{Rows: make([]Request, 3)}, p, nil)
	var out SliceWriter[Request]
	if n, err := Copy(&out, src); err == nil || n != 3 {
		t.Error(n, err)
	}
}
