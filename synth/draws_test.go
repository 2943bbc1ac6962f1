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
	table := cellTable{newGroup(cold, 3, 9, one), newGroup(anyCategory, 5, 7, one), newGroup(cold, 0, 99, one), newGroup(onTemplate, 4, 4, one)}
	for _, c := range []struct {
		c     category
		given int64
		want  int
	}{{cold, 3, 0}, {cold, 9, 0}, {cold, 2, 2}, {cold, 10, 2}, {cold, 100, -1}, {onTemplate, 5, 1}, {onTemplate, 7, 1}, {onTemplate, 8, -1}, {onTemplate, 4, 3}, {branch, 6, 1}, {branch, 4, -1}} {
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
	if table.drawValue(r, onTemplate, 8, 77) != 77 || table.drawValue(r, onTemplate, 5, 77) != 1 {
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

// Gaps follow each other and are stretched to the span.
func TestTimesDrawn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var m cellModel
	for gap, want := range map[int64][]int64{10: {0, 20, 40, 60}, 0: {0, 0, 0, 0}, 1 << 60: {0, 20, 40, 60}} {
		m.tables[tableGap] = cellTable{every([]cell{{gap, gap, 1}})}
		if got := m.times(r, 4, 80); !slices.Equal(got, want) {
			t.Errorf("gaps of %d give %v, want %v", gap, got, want)
		}
	}
}

// drawn are tables that leave nothing to chance.
func drawn(values map[tableKind]int64) *cellModel {
	m := &cellModel{}
	for k, v := range values {
		m.tables[k] = cellTable{every([]cell{{v, v, 1}})}
	}
	return m
}

// A request whose tables have one value each.
func TestRequestsDrawn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	at := func(c category, more map[tableKind]int64) map[tableKind]int64 {
		out := map[tableKind]int64{tableCategory: int64(c), tableInput: 100, tableOutput: 7}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	type values = map[tableKind]int64
	for name, c := range map[string]struct {
		m    *cellModel
		size int
		want cellDraw
	}{
		"without blocks":              {drawn(at(uncategorised, nil)), 0, cellDraw{tokens: 100, output: 7}},
		"nothing known":               {drawn(nil), 16, cellDraw{category: cold, tokens: 1, output: 1, fresh: 1}},
		"no input":                    {drawn(values{tableInput: 0, tableCategory: int64(branch)}), 16, cellDraw{output: 1}},
		"cold":                        {drawn(at(cold, values{tableHit: 3, tableTurn: 4})), 16, cellDraw{category: cold, tokens: 100, output: 7, fresh: 7}},
		"template":                    {drawn(at(onTemplate, values{tableHit: 3, tableDistance: 8})), 16, cellDraw{category: onTemplate, tokens: 100, output: 7, hit: 3, fresh: 4, distance: 8}},
		"template, on the trunk":      {drawn(at(onTemplate, values{tableHit: 3, tableTrunk: 3, tableDistance: 8})), 16, cellDraw{category: onTemplate, tokens: 100, output: 7, hit: 3, fresh: 4, trunk: 3, distance: 1}},
		"template, it leaves early":   {drawn(at(onTemplate, values{tableHit: 2, tableTrunk: 3})), 16, cellDraw{category: onTemplate, tokens: 100, output: 7, hit: 2, fresh: 5, trunk: 2, distance: 1}},
		"template, all known but one": {drawn(at(onTemplate, values{tableHit: 99, tableDistance: 2})), 16, cellDraw{category: onTemplate, tokens: 100, output: 7, hit: 6, fresh: 1, distance: 2}},
		"a branch":                    {drawn(at(branch, values{tableHit: 5, tableDistance: 50, tableTrunk: 2})), 16, cellDraw{category: branch, tokens: 100, output: 7, hit: 5, fresh: 2, trunk: 2, distance: 50}},
		"a branch of no depth":        {drawn(at(branch, values{tableHit: 0, tableTurn: 3})), 16, cellDraw{category: branch, tokens: 100, output: 7, hit: 1, fresh: 6, distance: 1}},
		"a next turn":                 {drawn(at(continuation, values{tableFresh: 2, tableHit: 1, tableDistance: 50, tableTurn: 3})), 16, cellDraw{category: continuation, tokens: 100, output: 7, hit: 5, fresh: 2, distance: 50, chain: 3}},
		"all of it new":               {drawn(at(continuation, values{tableFresh: 99, tableTurn: 1})), 16, cellDraw{category: continuation, tokens: 100, output: 7, hit: 1, fresh: 6, distance: 1, chain: 1}},
		"nothing of it new":           {drawn(at(continuation, values{tableFresh: 0})), 16, cellDraw{category: continuation, tokens: 100, output: 7, hit: 6, fresh: 1, distance: 1, chain: 1}},
		"a duplicate":                 {drawn(at(duplicate, values{tableDistance: 9, tableTurn: 2})), 16, cellDraw{category: duplicate, tokens: 100, output: 7, hit: 7, distance: 9, chain: 2}},
		"a branch of one block":       {drawn(at(branch, values{tableTurn: 2, tableInput: 10})), 16, cellDraw{category: cold, tokens: 10, output: 7, fresh: 1}},
	} {
		if got := c.m.request(r, c.size); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
