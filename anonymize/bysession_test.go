package anonymize

import (
	"math/rand/v2"
	"testing"
)

// Ids may be dense, come in any order, or be far apart: each has its own.
func TestBySession(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, next := range map[string]func(i int) int64{
		"dense":    func(i int) int64 { return int64(i) },
		"backward": func(i int) int64 { return 50_000 - int64(i) },
		"apart":    func(i int) int64 { return int64(i)*7919 - 1e6 },
		"edges":    func(i int) int64 { return []int64{4097, 0, 4097, 12291, 4097, 12291, 4098, 12291}[i%8] },
		"any":      func(int) int64 { return rng.Int64N(100_000) },
	} {
		var s bySession[int]
		want := map[int64]int{}
		for i := range 30_000 {
			id := next(i)
			if got := s.get(id); got != want[id] {
				t.Fatalf("%s: %d has %d, not %d", name, id, got, want[id])
			}
			s.set(id, i+1)
			want[id] = i + 1
		}
		for id, v := range want {
			if s.get(id) != v {
				t.Fatalf("%s: %d has %d, not %d", name, id, s.get(id), v)
			}
		}
	}
}
