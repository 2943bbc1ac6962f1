package trace

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// A shelf gives back each row that was written, in any order, and no other.
func TestShelf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var rows []Request
	for i := range 3000 {
		r := Request{ArrivalNS: int64(i), Session: Ptr(int64(i % 7)), InputTokens: int32(i), Category: Cold, Status: StatusOK, Kind: "chat"}
		if i%3 > 0 {
			r.Parents, r.ThinkNS = []int64{int64(i - 1)}, Ptr(rng.Int64())
		}
		for range rng.IntN(300) { // beyond what is written at once
			r.Blocks = append(r.Blocks, rng.Uint64())
		}
		if len(r.Blocks) == 0 {
			r.Blocks = []uint64{}
		}
		rows = append(rows, r)
	}
	s, err := NewShelf(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for from := 0; from < len(rows); from += 128 {
		if _, err := s.Write(rows[from:min(from+128, len(rows))]); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for _, i := range rng.Perm(len(rows)) {
			var got Request
			if err := s.Row(int64(i), &got); err != nil || !reflect.DeepEqual(got, rows[i]) {
				t.Fatalf("row %d: %+v, want %+v, %v", i, got, rows[i], err)
			}
		}
	}
	n := 0
	err = Each(s.Reader(), func(i int64, r *Request) error {
		if n++; !reflect.DeepEqual(*r, rows[i]) {
			t.Fatalf("row %d in order: %+v, want %+v", i, *r, rows[i])
		}
		return nil
	})
	if err != nil || n != len(rows) {
		t.Fatalf("%d rows in order, want %d, %v", n, len(rows), err)
	}
	for _, i := range []int64{-1, 3000} {
		if err := s.Row(i, new(Request)); err == nil {
			t.Errorf("there is a row %d", i)
		}
	}
	var none Request
	empty, err := NewShelf(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Close()
	if empty.Row(0, &none) == nil {
		t.Error("an empty shelf has a row")
	}
}

// Rows belong together by sessions and parents, directly or through others: as a search
// over all links finds.
func TestGroups(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		const n = 60
		var g Groups
		var links [n][n]bool
		session := map[int64]int{}
		for i := range n {
			var s *int64
			var parents []int64
			if rng.IntN(2) == 0 {
				s = Ptr(rng.Int64N(12))
				if k, ok := session[*s]; ok {
					links[i][k], links[k][i] = true, true
				}
				session[*s] = i
			}
			for range rng.IntN(2) * rng.IntN(2) * min(i, 2) {
				p := rng.IntN(i)
				parents = append(parents, int64(p))
				links[i][p], links[p][i] = true, true
			}
			g.Add(int64(i), s, parents)
		}
		for i := range n {
			first, seen, todo := i, map[int]bool{i: true}, []int{i}
			for len(todo) > 0 {
				k := todo[0]
				todo = todo[1:]
				first = min(first, k)
				for j := range n {
					if links[k][j] && !seen[j] {
						seen[j] = true
						todo = append(todo, j)
					}
				}
			}
			if got := g.First(int64(i)); got != int64(first) {
				t.Fatalf("row %d belongs to row %d, want %d", i, got, first)
			}
		}
	}
}
