package synth

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// Products that do not fit 64 bits are divided all the same, and shares add up.
func TestWholeNumbers(t *testing.T) {
	const most = math.MaxInt64
	for _, c := range [][4]int64{{7, 3, 2, 10}, {0, 9, 5, 0}, {most, most, most, most}, {most, 2, 4, most / 2}, {most, 3, 2, most}, {1 << 62, 4, 2, most}, {1 << 62, 1 << 62, 1, most}, {1 << 40, 1 << 40, 1 << 30, 1 << 50}} {
		if got := mulDiv(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%d·%d/%d is %d, want %d", c[0], c[1], c[2], got, c[3])
		}
	}
	for _, c := range []struct {
		total         int64
		weights, want []int64
	}{
		{10, []int64{1, 1, 1}, []int64{3, 3, 4}}, {10, []int64{1, 2, 7}, []int64{1, 2, 7}}, {2, []int64{1, 1, 1}, []int64{0, 1, 1}}, {0, []int64{4, 1}, []int64{0, 0}},
		{most / 4, []int64{1 << 40, 1 << 40}, []int64{most / 8, most/8 + 1}},
	} {
		if got := share(c.total, c.weights); !slices.Equal(got, c.want) {
			t.Errorf("%d by %v is %v, want %v", c.total, c.weights, got, c.want)
		}
	}
	if abs(-3) != 3 || abs(3) != 3 || abs(0) != 0 {
		t.Error("absolute values")
	}
}

// A group draws each cell by its count, and in it each value alike.
func TestGroupDraws(t *testing.T) {
	g := newGroup(cold, 3, 9, []cell{{5, 5, 1}, {7, 8, 6}, {10, 10, 3}})
	if want := (group{cold, 3, 9, []cell{{5, 5, 1}, {7, 8, 6}, {10, 10, 3}}, []int64{1, 7, 10}}); !reflect.DeepEqual(g, want) || g.total() != 10 {
		t.Errorf("the group is %+v, want %+v", g, want)
	}
	r := rand.New(rand.NewPCG(1, 1))
	count := map[int64]float64{}
	const n = 40000
	for range n {
		count[g.drawValue(r)] += 10.0 / n
	}
	for v, want := range map[int64]float64{5: 1, 7: 3, 8: 3, 10: 3} {
		if math.Abs(count[v]-want) > 0.1 {
			t.Errorf("%d is %.2f tenths, want %g", v, count[v], want)
		}
	}
	if len(count) != 4 {
		t.Errorf("drawn are %v", count)
	}
}

// The first group that fits a request counts.
func TestGroupFor(t *testing.T) {
	one := []cell{{1, 1, 1}}
	table := cellTable{newGroup(cold, 3, 9, one), newGroup(anyCategory, 5, 7, one), newGroup(cold, 0, 99, one), newGroup(global, 4, 4, one)}
	for _, c := range []struct {
		c     category
		given int64
		want  int
	}{{cold, 3, 0}, {cold, 9, 0}, {cold, 2, 2}, {cold, 10, 2}, {cold, 100, -1}, {global, 5, 1}, {global, 7, 1}, {global, 8, -1}, {global, 4, 3}, {branch, 6, 1}, {branch, 4, -1}} {
		got := -1
		for i := range table {
			if table.groupFor(c.c, c.given) == &table[i] {
				got = i
			}
		}
		if got != c.want {
			t.Errorf("%v, %d: group %d, want %d", c.c, c.given, got, c.want)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	if table.drawValue(r, global, 8, 77) != 77 || table.drawValue(r, global, 5, 77) != 1 {
		t.Error("what is drawn where no group fits")
	}
}

func TestWeightsBecomeCells(t *testing.T) {
	edges := func(i int) (int64, int64) { return int64(10 * i), int64(10*i + 5) }
	for _, c := range []struct {
		weights []float64
		want    []cell
	}{
		{[]float64{1, 0, 3}, []cell{{0, 5, 1 << 28}, {20, 25, 3 << 28}}},
		{[]float64{1e-12, 1}, []cell{{10, 15, 1 << 30}}},
		{[]float64{-1, 3}, []cell{{10, 15, 3 << 29}}},
		{[]float64{0, 0}, nil},
		{nil, nil},
	} {
		if got := cellsOf(c.weights, edges); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, want %v", c.weights, got, c.want)
		}
	}
}

// What of a time table lies before its end: whole cells, and the part of the last.
func TestTimesClipped(t *testing.T) {
	g := every([]cell{{0, 9, 100}, {10, 29, 1000}, {30, 39, 10}})
	for end, want := range map[int64][]cell{
		40: {{0, 9, 100}, {10, 29, 1000}, {30, 39, 10}},
		30: {{0, 9, 100}, {10, 29, 1000}},
		15: {{0, 9, 100}, {10, 14, 250}},
		11: {{0, 9, 100}, {10, 10, 50}},
		10: {{0, 9, 100}},
		1:  {{0, 0, 10}},
		0:  {{0, 0, 1}},
	} {
		if got := g.clipped(end); !reflect.DeepEqual(got.cells, want) || got.total() != every(want).sums[len(want)-1] {
			t.Errorf("before %d: %v, want %v", end, got.cells, want)
		}
	}
	late := every([]cell{{5, 9, 3}})
	if got := late.clipped(4); !reflect.DeepEqual(got.cells, []cell{{0, 3, 1}}) {
		t.Errorf("before anything: %v", got.cells)
	}
}

// Gaps follow each other and are stretched to the span; times repeat with the period.
func TestTimesDrawn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var m cellModel
	m.tables[tableGap] = cellTable{every([]cell{{10, 10, 1}})}
	if got := m.times(r, 4, 80, 1000); !slices.Equal(got, []int64{0, 20, 40, 60}) {
		t.Errorf("even gaps give %v", got)
	}
	m.tables[tableGap] = cellTable{every([]cell{{0, 0, 1}})}
	if got := m.times(r, 3, 80, 1000); !slices.Equal(got, []int64{0, 0, 0}) {
		t.Errorf("no gaps give %v", got)
	}
	m.tables[tableGap] = cellTable{every([]cell{{1 << 60, 1 << 60, 1}})}
	if got := m.times(r, 4, 800, 1000); !slices.Equal(got, []int64{0, 200, 400, 600}) {
		t.Errorf("great gaps give %v", got)
	}
	m.tables[tableGap] = nil
	m.tables[tableTime] = cellTable{every([]cell{{0, 9, 3}, {50, 59, 1}})}
	var parts [6]int
	times := m.times(r, 60000, 250, 100)
	if !slices.IsSorted(times) {
		t.Error("times are not in order")
	}
	for _, at := range times {
		if x := at % 100; x > 9 && x < 50 || x > 59 {
			t.Fatalf("a request at %d", at)
		}
		parts[at/50]++
	}
	// Two periods of 24,000 requests and half a one of 12,000, where only the first cell is.
	for i, want := range []int{18000, 6000, 18000, 6000, 12000, 0} {
		if d := parts[i] - want; d < -500 || d > 500 {
			t.Errorf("part %d has %d requests, want %d", i, parts[i], want)
		}
	}
}

// drawn are tables that leave nothing to chance.
func drawn(sessions bool, values map[tableKind]int64) *cellModel {
	m := &cellModel{sessions: sessions}
	for k, v := range values {
		m.tables[k] = cellTable{every([]cell{{v, v, 1}})}
	}
	return m
}

// The tuple of a request whose tables have one value each.
func TestRequestsDrawn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	at := func(c category, more map[tableKind]int64) map[tableKind]int64 {
		out := map[tableKind]int64{tableCategory: int64(c), tableInput: 100, tableOutput: 7}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	think := int64(9)
	for name, c := range map[string]struct {
		m    *cellModel
		size int
		want tuple
	}{
		"without blocks": {drawn(false, at(uncategorised, nil)), 0, tuple{user: none, tail: 100, ending: ending{output: 7}}},
		"nothing known":  {drawn(false, nil), 16, tuple{user: none, reuse: reuse{category: cold}, fresh: 1, tail: 1, ending: ending{output: 1}}},
		"no input":       {drawn(false, map[tableKind]int64{tableInput: 0, tableCategory: int64(branch)}), 16, tuple{user: none, ending: ending{output: 1}, reuse: reuse{chain: 0}}},
		"cold":           {drawn(false, at(cold, map[tableKind]int64{tableHit: 3, tableTurn: 4})), 16, tuple{user: none, reuse: reuse{category: cold}, fresh: 7, tail: 4, ending: ending{output: 7}}},
		"global": {drawn(false, at(global, map[tableKind]int64{tableHit: 3, tableDistance: 8, tableTurn: 4})), 16,
			tuple{user: none, reuse: reuse{category: global, hit: 3, distance: 8, profile: [3]int64{6, 7, 8}}, fresh: 4, tail: 4, ending: ending{output: 7}}},
		"global, all known but one": {drawn(false, at(global, map[tableKind]int64{tableHit: 99, tableDistance: 2})), 16,
			tuple{user: none, reuse: reuse{category: global, hit: 6, distance: 2, profile: [3]int64{1, 1, 1}}, fresh: 1, tail: 4, ending: ending{output: 7}}},
		"a branch": {drawn(false, at(branch, map[tableKind]int64{tableHit: 5, tableDistance: 50, tableShared: 2})), 16,
			tuple{user: none, reuse: reuse{category: branch, hit: 5, distance: 50, profile: [3]int64{50, 48, 49}, chain: 1}, fresh: 2, tail: 4, ending: ending{output: 7}}},
		"a branch of no depth": {drawn(false, at(branch, map[tableKind]int64{tableHit: 0, tableTurn: 3})), 16,
			tuple{user: none, reuse: reuse{category: branch, hit: 1, distance: 1, profile: [3]int64{1, 1, 1}, chain: 3}, fresh: 6, tail: 4, ending: ending{output: 7}}},
		"a next turn": {drawn(true, at(continuation, map[tableKind]int64{tableFresh: 2, tableHit: 1, tableDistance: 50, tableTurn: 3, tablePause: 9, tableBack: 4})), 16,
			tuple{user: none, reuse: reuse{category: continuation, hit: 5, distance: 50, profile: [3]int64{47, 48, 49}, chain: 3, join: byTree, turn: 3, waits: true, pause: &pause{think: &think}},
				fresh: 2, tail: 4, ending: ending{output: 7}}},
		"all of it new": {drawn(true, at(continuation, map[tableKind]int64{tableFresh: 99, tableTurn: 1, tablePause: noPause})), 16,
			tuple{user: none, reuse: reuse{category: continuation, hit: 1, distance: 1, profile: [3]int64{1, 1, 1}, chain: 1, join: byTree, turn: 1}, fresh: 6, tail: 4, ending: ending{output: 7}}},
		"nothing of it new": {drawn(true, at(continuation, map[tableKind]int64{tableFresh: 0})), 16,
			tuple{user: none, reuse: reuse{category: continuation, hit: 6, distance: 1, profile: [3]int64{1, 1, 1}, chain: 1, join: opens}, fresh: 1, tail: 4, ending: ending{output: 7}}},
		"a duplicate": {drawn(true, at(duplicate, map[tableKind]int64{tableDistance: 9, tableTurn: 2, tableBack: 4})), 16,
			tuple{user: none, reuse: reuse{category: duplicate, hit: 7, distance: 9, profile: [3]int64{4, 6, 8}, chain: 2, join: byRecency, back: 4, turn: 2}, tail: 4, ending: ending{output: 7}}},
		"of a session long ago": {drawn(true, at(branch, map[tableKind]int64{tableTurn: 2, tableBack: 0, tableInput: 10})), 16,
			tuple{user: none, reuse: reuse{category: cold, join: byRecency, back: 1, turn: 2}, fresh: 1, tail: 10, ending: ending{output: 7}}},
	} {
		if got := c.m.request(r, 5, c.size); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// How deep the trunk is is one depth for all, in the middle of its bounds. What knows
// about as much knows the trunk, and brings the rest.
func TestTrunkOfRequestsDrawn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for name, c := range map[string]struct {
		c                  category
		hit, shared        int64
		lo, hi             int64
		trunk, want, fresh int32
		profile            [3]int64
	}{
		"less":                        {global, 2, 0, 4, 7, 0, 2, 8, [3]int64{29, 29, 30}},
		"about as much":               {global, 4, 0, 4, 7, 5, 5, 5, [3]int64{27, 28, 29}},
		"as much, at most":            {global, 7, 0, 4, 7, 5, 5, 5, [3]int64{27, 28, 29}},
		"more":                        {global, 8, 0, 4, 7, 5, 8, 2, [3]int64{24, 26, 28}},
		"less than what is exact":     {global, 2, 0, 4, 4, 2, 2, 8, [3]int64{29, 29, 30}},
		"what is exact":               {global, 4, 0, 4, 4, 4, 4, 6, [3]int64{27, 28, 29}},
		"a branch behind the trunk":   {branch, 8, 6, 4, 7, 5, 8, 2, [3]int64{27, 29, 28}},
		"a branch before the trunk":   {branch, 8, 2, 4, 7, 0, 8, 2, [3]int64{30, 26, 28}},
		"a branch that shares all":    {branch, 3, 9, 4, 7, 0, 3, 7, [3]int64{28, 29, 30}},
		"a branch beyond the trunk":   {branch, 9, 8, 4, 7, 5, 9, 1, [3]int64{25, 27, 29}},
		"a branch of what is exact":   {branch, 8, 2, 4, 4, 0, 8, 2, [3]int64{30, 26, 28}},
		"a branch, all of its prompt": {branch, 9, 4, 4, 20, 10, 9, 1, [3]int64{24, 26, 28}},
	} {
		m := drawn(false, map[tableKind]int64{tableDistance: 30, tableShared: c.shared})
		m.tables[tableTrunk] = cellTable{every([]cell{{c.lo, c.hi, 1}})}
		got := tuple{reuse: reuse{category: c.c, hit: int32(c.hit)}, fresh: int32(10 - c.hit)}
		m.depth(r, &got)
		if got.trunk != c.trunk || got.hit != c.want || got.fresh != c.fresh || got.distance != 30 || got.profile != c.profile {
			t.Errorf("%s: %+v, want trunk %d, hit %d, fresh %d, %v", name, got, c.trunk, c.want, c.fresh, c.profile)
		}
	}
}
