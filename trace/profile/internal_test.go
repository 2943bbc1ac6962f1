package profile

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/trace/sample"
)

// The stack agrees with a plain list over many rounds of new positions.
func TestLRUDepths(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := newLRU(1 << 20)
	var list []uint32 // the most recent last
	for i := range 200_000 {
		// Recent blocks come again often, others rarely, new ones now and then.
		id := uint32(rng.ExpFloat64() * 40)
		if rng.IntN(100) == 0 {
			id = uint32(100 + i/100)
		}
		at := slices.Index(list, id)
		want := 0
		if at >= 0 {
			want = len(list) - at
			list = slices.Delete(list, at, at+1)
		}
		list = append(list, id)
		if got := s.depth(id); got != want {
			t.Fatalf("touch %d: the depth is %d; want %d", i, got, want)
		}
		s.touch(id)
	}
	if s.live != len(list) || len(s.bits)*64 > 4*s.live+minLines*lineBits {
		t.Errorf("%d blocks, want %d, over %d positions", s.live, len(list), len(s.bits)*64)
	}
}

// The stack grows with the distinct blocks and shrinks to its sample.
func TestLRUMemory(t *testing.T) {
	s := newLRU(50_000)
	for id := range uint32(300_000) {
		s.touch(id)
		for s.full() {
			s.thin(s.shift + 1)
		}
	}
	if s.live > 50_000 || s.live < 10_000 || len(s.far) != s.live {
		t.Errorf("%d blocks in the sample, %d in the map", s.live, len(s.far))
	}
	if n := len(s.bits) * 64; n > 4*50_000 {
		t.Errorf("%d positions for at most 50,000 blocks", n)
	}
	for id := range uint32(300_000) {
		if (s.depth(id) > 0) != s.sampled(id) {
			t.Fatalf("block %d: depth %d, in the sample: %v", id, s.depth(id), s.sampled(id))
		}
	}
	a := s.clone()
	a.touch(slices.Sorted(keys(s.far))[0])
	if a.next != s.next+1 {
		t.Error("a clone moves its original")
	}
}

func keys(m map[uint32]uint32) func(func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestCoarseDistribution(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	exact, coarse := distribution{}, distribution{limit: 1000}
	for range 20_000 {
		v := int64(math.Exp(rng.NormFloat64()*3 + 14))
		exact.add(v)
		coarse.add(v)
	}
	want, got := exact.stats(1), coarse.stats(1)
	if want.Approximate || !got.Approximate || len(coarse.far) != 0 {
		t.Fatalf("approximate: %v and %v", want.Approximate, got.Approximate)
	}
	if got.Mean != want.Mean || *got.SD != *want.SD || got.Min != want.Min || got.Max != want.Max {
		t.Error("the moments are not exact")
	}
	for i, pair := range [][2]float64{{got.P50, want.P50}, {got.P90, want.P90}, {got.P95, want.P95}, {got.P99, want.P99},
		{got.P999, want.P999}} {
		if math.Abs(pair[0]-pair[1]) > 0.01*pair[1] {
			t.Errorf("quantile %d is %v; want %v", i, pair[0], pair[1])
		}
	}
}

func TestRankCells(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	exact, cells := ranks{limit: 1 << 20}, ranks{limit: 1000}
	for range 20_000 {
		in := int32(math.Exp(rng.NormFloat64() + 8))
		out := int32(float64(in)*rng.Float64()) + rng.Int32N(2000)
		exact.add(in, out)
		cells.add(in, out)
	}
	want, got := exact.correlation(), cells.correlation()
	if want.Method != "exact" || got.Method != "cells" || cells.pairs != nil {
		t.Fatalf("methods %s and %s", want.Method, got.Method)
	}
	if math.Abs(*want.Rho-*got.Rho) > 1e-3 || *want.Rho < 0.1 {
		t.Errorf("by cells %v; want about %v", *got.Rho, *want.Rho)
	}
}

// clockOf feeds arrivals at times that ns makes of a Poisson process.
func clockOf(n int, rate float64, ns func(s float64, rng *rand.Rand) int64) Arrivals {
	rng := rand.New(rand.NewPCG(7, 8))
	times := make([]int64, n)
	s := 0.0
	for i := range times {
		s += rng.ExpFloat64() / rate
		times[i] = ns(s, rng)
	}
	slices.Sort(times)
	a := newArrivals()
	for _, at := range times {
		a.add(at)
	}
	return a.summary()
}

func TestClock(t *testing.T) {
	tests := []struct {
		name string
		rate float64
		ns   func(s float64, rng *rand.Rand) int64
		tick float64 // 0 is none
	}{
		{"nanoseconds", 10, func(s float64, _ *rand.Rand) int64 { return int64(s * second) }, 0},
		{"milliseconds that matter little", 10, func(s float64, _ *rand.Rand) int64 { return int64(s*1e3) * 1e6 }, 0},
		{"milliseconds that matter", 300, func(s float64, _ *rand.Rand) int64 { return int64(s*1e3) * 1e6 }, 0.001},
		{"whole seconds", 5, func(s float64, _ *rand.Rand) int64 { return int64(s) * second }, 1},
		{"sparse seconds", 0.2, func(s float64, _ *rand.Rand) int64 { return int64(s) * second }, 1},
		{"3 s with jitter", 10, func(s float64, _ *rand.Rand) int64 {
			tick := int64(s / 3)
			return tick*3*second + tick*7919%7*1e6 - 3e6
		}, 3},
		{"sparse 3 s with jitter", 0.3, func(s float64, _ *rand.Rand) int64 {
			tick := int64(s / 3)
			return tick*3*second + tick*7919%7*1e6 - 3e6
		}, 3},
		{"groups at any time", 3, func(s float64, _ *rand.Rand) int64 {
			group := uint64(s)
			return int64(group)*second + int64(sample.Mix64((uint64(uint32(group))+1)*sample.Golden)%second)
		}, 0},
	}
	for _, test := range tests {
		a := clockOf(100_000, test.rate, test.ns)
		switch {
		case test.tick == 0 && a.Clock != nil:
			t.Errorf("%s: ticks of %v s were found", test.name, a.Clock.TickS)
		case test.tick == 0:
		case a.Clock == nil:
			t.Errorf("%s: no ticks were found", test.name)
		case math.Abs(a.Clock.TickS-test.tick) > 1e-3*test.tick:
			t.Errorf("%s: ticks of %v s; want %v", test.name, a.Clock.TickS, test.tick)
		default:
			// By ticks, it is the Poisson process that it was.
			for _, one := range a.Clock.IDC[:2] {
				if math.Abs(*one.IDC-1) > 0.1 {
					t.Errorf("%s: the IDC by %v s is %v", test.name, one.WindowS, *one.IDC)
				}
			}
		}
	}
}

// The tick decides itself in the midst of the rows as at their end.
func TestClockDecidesOnce(t *testing.T) {
	var early, late clockFinder
	for i := range int64(3 * clockInstants) {
		gap := int64(0)
		if i%3 == 0 {
			gap = (1 + i%2) * second
		}
		early.add(gap)
		late.instants = append(late.instants, instant{gap, 1})
	}
	if !early.decided || early.instants != nil || early.clock.tick != second {
		t.Fatalf("decided: %v, %d instants kept", early.decided, len(early.instants))
	}
	if late.summary(); late.decided {
		t.Error("a summary decided for the rows to come")
	}
	var naive clockFinder
	naive.clock, naive.decided = early.clock, true
	for _, in := range late.instants {
		naive.step(in.gap, in.count)
	}
	if naive.windows != early.windows || naive.at != early.at {
		t.Error("rows before the decision are not counted as those behind it")
	}
}

// A last tick that fills its window ends it.
func TestTickWindows(t *testing.T) {
	a := newArrivals()
	for i := range int64(40) {
		for range 1 + i%2*2 { // 1 and 3 in turn
			a.add(i * second)
		}
	}
	c := a.summary().Clock
	if c == nil {
		t.Fatal("no ticks were found")
	}
	for i, want := range []struct {
		windows int64
		idc     float64 // -1 is null
	}{{40, 40.0 / 39 / 2}, {20, 0}, {4, 0}, {2, 0}, {0, -1}} {
		got := c.IDC[i]
		if got.Windows != want.windows || (got.IDC == nil) != (want.idc < 0) || got.IDC != nil && math.Abs(*got.IDC-want.idc) > 1e-12 {
			t.Errorf("windows of %v s: %+v; want %+v", got.WindowS, got, want)
		}
	}
}

// A block with d−1 others above it has half as many of these in half a sample.
func TestThinnedDepths(t *testing.T) {
	u := reusePass{stack: newLRU(1 << 20), found: []int64{0, 1, 10, 100, 1000}}
	u.hits = 1111
	for _, want := range [][]int64{{0, 11, 1100}, {0, 1111}} {
		u.thin(u.stack.shift + 1)
		if !slices.Equal(u.found[:len(want)], want) {
			t.Fatalf("hits by depth are %v; want %v", u.found, want)
		}
	}
	if got := u.hitsWithin([]int64{0, 1, 4, 5}); !slices.Equal(got, []int64{0, 1111, 1111, 1111}) {
		t.Errorf("hits by capacity are %v", got)
	}
	// One in four: of blocks at depth 5 half have one of the sample above them or none; all of
	// those at depth 7 and above have.
	u.found = []int64{0, 1000, 100}
	if got := u.hitsWithin([]int64{0, 1, 3, 4, 5, 7}); !slices.Equal(got, []int64{0, 1011, 1011, 1036, 1061, 1111}) {
		t.Errorf("hits by capacity are %v", got)
	}
}
