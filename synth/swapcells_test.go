package synth

import (
	"cmp"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func aSwapper(k, size int) *swapper {
	return &swapper{r: rand.New(rand.NewPCG(1, 2)), k: k, size: size}
}

// Labels with at least k tuples are groups; the rest are one, or join the first.
func TestSwapGroups(t *testing.T) {
	for _, c := range []struct {
		labels []int32
		want   [][]int
	}{
		{[]int32{0, 1, 0, 1, 0, 1, 0}, [][]int{{0, 2, 4, 6}, {1, 3, 5}}},
		{[]int32{2, 0, 1, 0, 1, 0, 1, 2}, [][]int{{1, 3, 5, 0, 7}, {2, 4, 6}}},
		{[]int32{2, 0, 3, 0, 0, 2}, [][]int{{1, 3, 4}, {0, 5, 2}}},
		{[]int32{2, 0}, [][]int{{0, 1}}},
	} {
		ts := make([]tuple, len(c.labels))
		for i, l := range c.labels {
			ts[i].label = l
		}
		if got := aSwapper(3, 16).groups(ts); !reflect.DeepEqual(got, c.want) {
			t.Errorf("labels %v: groups %v, want %v", c.labels, got, c.want)
		}
	}
}

// Cells are cut at the median of what is widest, as long as k are left on both sides.
func TestSwapCells(t *testing.T) {
	for name, c := range map[string]struct {
		k    int
		logs [][4]float64
		want [][]int
	}{
		"in two":          {2, [][4]float64{{3}, {1}, {2}, {0}}, [][]int{{0, 2}, {1, 3}}},
		"too few":         {2, [][4]float64{{3}, {1}, {2}}, [][]int{{0, 1, 2}}},
		"all alike":       {1, [][4]float64{{3}, {3}, {3}}, [][]int{{0, 1, 2}}},
		"alike below":     {2, [][4]float64{{0}, {0}, {0}, {1}}, [][]int{{0, 1, 2, 3}}},
		"alike above":     {2, [][4]float64{{0}, {0}, {1}, {1}, {1}}, [][]int{{0, 1}, {2, 3, 4}}},
		"another way":     {2, [][4]float64{{0, 0, 0, 5}, {0, 0, 0, 7}, {0, 0, 0, 6}, {9, 0, 0, 8}}, [][]int{{0, 2}, {1, 3}}},
		"by what is wide": {2, [][4]float64{{0, 0}, {1, 3}, {2, 6}, {3, 1}, {4, 4}, {5, 7}, {6, 2}, {7, 5}}, [][]int{{0, 3}, {1, 2}, {4, 6}, {5, 7}}},
		"in proportion":   {2, [][4]float64{{0, 0}, {10, .1}, {20, .6}, {30, .5}, {70, 0}, {71, .1}, {72, .6}, {73, .5}}, [][]int{{0, 1}, {2, 3}, {4, 5}, {6, 7}}},
	} {
		s := aSwapper(c.k, 16)
		s.logs = c.logs
		var all []int
		for i := range c.logs {
			all = append(all, i)
		}
		got := s.cells(all)
		for _, cell := range got {
			slices.Sort(cell)
		}
		slices.SortFunc(got, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: cells %v, want %v", name, got, c.want)
		}
	}
}

// Cells are cut by hit blocks, distance, fresh blocks and output; in a trace without
// blocks by the tokens of the input.
func TestSwapCutsByWhatIsAlike(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		set  func(t *tuple, v int32)
	}{
		"hit":      {16, func(t *tuple, v int32) { t.hit = v }},
		"distance": {16, func(t *tuple, v int32) { t.distance = int64(v) }},
		"fresh":    {16, func(t *tuple, v int32) { t.fresh = v }},
		"output":   {16, func(t *tuple, v int32) { t.output = v }},
		"input":    {0, func(t *tuple, v int32) { t.tail = v }},
	} {
		ts := make([]tuple, 40)
		for i := range ts {
			ts[i] = tuple{user: int64(i), reuse: reuse{turn: int32(i)}, fresh: 1, tail: 3}
			c.set(&ts[i], int32(i%2*7))
		}
		aSwapper(20, c.size).window(ts)
		moved := 0
		for i, x := range ts {
			if int(x.turn)%2 != i%2 || x.user != int64(i) {
				t.Errorf("%s: place %d of user %d has the reuse of place %d", name, i, x.user, x.turn)
			}
			if int(x.turn) != i {
				moved++
			}
		}
		if moved < 20 {
			t.Errorf("%s: only %d of 40 moved", name, moved)
		}
	}
}

// Swaps stay within 2,000 requests; a rest of less than half as many belongs to the
// window before it.
func TestSwapWindows(t *testing.T) {
	for n, ends := range map[int][]int{2999: {2999}, 3000: {2000, 3000}, 4999: {2000, 4999}, 900: {900}} {
		ts := make([]tuple, n)
		for i := range ts {
			ts[i] = tuple{reuse: reuse{back: int64(i)}, fresh: 1, tail: 5}
		}
		if err := swapTuples(ts, n, 16, rand.NewChaCha8([32]byte{1})); err != nil {
			t.Fatal(err)
		}
		var cuts []int
		furthest := int64(0)
		for i := range ts {
			furthest = max(furthest, ts[i].back)
			if int(furthest) == i {
				cuts = append(cuts, i+1)
			}
		}
		// A place whose reuse did not move at the very end of the rest is rare.
		if !slices.Contains(cuts, ends[len(ends)-1]) || slices.Contains(cuts, 2000) != slices.Contains(ends, 2000) {
			t.Errorf("of %d requests none moves beyond %v, want %v", n, cuts, ends)
		}
	}
}

// The jitter of what is long: 5 % for fresh blocks and outputs, 0.5 % for the last
// block, 5 % for a prompt without blocks. What is short stays.
func TestJitterDeviates(t *testing.T) {
	const n = 4000
	var cell []int
	for i := range n {
		cell = append(cell, i)
	}
	deviation := func(ts []tuple, was int32, of func(*tuple) int32) float64 {
		sum := 0.0
		for i := range ts {
			x := math.Log(float64(of(&ts[i])) / float64(was))
			sum += x * x
		}
		return math.Sqrt(sum / n)
	}
	fresh, tail, output := func(t *tuple) int32 { return t.fresh }, func(t *tuple) int32 { return t.tail }, func(t *tuple) int32 { return t.output }
	for name, c := range map[string]struct {
		size             int
		old              tuple
		fresh, tail, out float64
	}{
		"long":            {1 << 20, tuple{fresh: 1e5, tail: 1e5, ending: ending{output: 1e5}}, 0.05, 0.005, 0.05},
		"short":           {16, tuple{fresh: 4, tail: 8, ending: ending{output: 8}}, 0, 0, 0},
		"a full block":    {1 << 17, tuple{fresh: 1e5, tail: 1 << 17, ending: ending{output: 8}}, 0.05, 0, 0},
		"without blocks":  {0, tuple{tail: 1e5, ending: ending{output: 1e5}}, 0, 0.05, 0.05},
		"a short prompt":  {0, tuple{tail: 8, ending: ending{output: 1e5}}, 0, 0, 0.05},
		"what is on hand": {1 << 20, tuple{tail: 1e5, ending: ending{output: 1e5}}, 0, 0, 0.05},
	} {
		old := slices.Repeat([]tuple{c.old}, n)
		ts := slices.Clone(old)
		aSwapper(2, c.size).cell(ts, old, cell)
		for what, x := range map[string]struct {
			was  int32
			of   func(*tuple) int32
			want float64
		}{"fresh": {c.old.fresh, fresh, c.fresh}, "tail": {c.old.tail, tail, c.tail}, "output": {c.old.output, output, c.out}} {
			if x.was == 0 {
				if slices.ContainsFunc(ts, func(t tuple) bool { return x.of(&t) != 0 }) {
					t.Errorf("%s: %s is not 0", name, what)
				}
			} else if got := deviation(ts, x.was, x.of); math.Abs(got-x.want) > x.want/15 {
				t.Errorf("%s: %s deviates by %.4f, want %.4f", name, what, got, x.want)
			}
		}
	}
	for _, x := range [][3]int32{{8, 8, 8}, {1, 0, 1}, {math.MaxInt32, 8, math.MaxInt32 / 2}} {
		s := aSwapper(2, 16)
		for range 30 {
			if got := s.jitter(x[0], x[1], 1e-9); got != x[2] {
				t.Errorf("%d becomes %d, want %d", x[0], got, x[2])
			}
		}
		if got := s.jitter(9, 8, 1e9); got != 1 && got != math.MaxInt32/2 {
			t.Errorf("a wide jitter of 9 gives %d", got)
		}
	}
	// A partial block stays one.
	old := slices.Repeat([]tuple{{fresh: 1, tail: 999}}, n)
	ts := slices.Clone(old)
	aSwapper(2, 1000).cell(ts, old, cell)
	if most := slices.MaxFunc(ts, func(a, b tuple) int { return cmp.Compare(a.tail, b.tail) }); most.tail != 999 {
		t.Errorf("a last block of 999 tokens gets up to %d of 1,000", most.tail)
	}
}

// Reasoning stays the same part of the output, and the limit that was asked for holds
// unless it did not hold before.
func TestJitterOfEndings(t *testing.T) {
	s := aSwapper(2, 16)
	beyond, same, scaled := 0, 0, 0
	for range 300 {
		reasoning, limit, low := int32(60), int32(1010), int32(100)
		old := ending{output: 1000, end: 3, extra: &extra{reasoning: &reasoning, maxTokens: &limit}}
		e := s.jitterEnding(old)
		if e.output > limit || *e.extra.reasoning != 60*e.output/1000 || reasoning != 60 || e.end != 3 || e.extra.maxTokens != &limit {
			t.Fatalf("%+v with %d of reasoning", e, *e.extra.reasoning)
		}
		if e.output == 1000 && e.extra != old.extra {
			t.Fatal("an output that stays has another ending")
		}
		if *e.extra.reasoning != 60 {
			scaled++
		}
		if s.jitterEnding(ending{output: 1000, extra: &extra{maxTokens: &low}}).output > 1000 {
			beyond++
		}
		limit = 1000
		if s.jitterEnding(ending{output: 1000, extra: &extra{maxTokens: &limit}}).output == 1000 {
			same++
		}
	}
	if beyond < 100 || same != 300 || scaled < 100 {
		t.Errorf("%d outputs beyond their limit grew, %d at it stayed, %d have another reasoning", beyond, same, scaled)
	}
}
