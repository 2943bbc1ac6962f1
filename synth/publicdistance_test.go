package synth

import (
	"math"
	"reflect"
	"slices"
	"testing"
)

func TestFootprintEdges(t *testing.T) {
	f := footprint{0, 2.4, 7.5, 1e30}
	for _, c := range []struct {
		j      int
		above  float64
		lo, hi int64
	}{{0, 0, 1, 2}, {1, 0, 2, 8}, {1, 10.2, 13, 18}, {2, 0, 8, 1 << 40}, {0, 0.3, 1, 3}} {
		if lo, hi := f.edges(c.j, c.above); lo != c.lo || hi != c.hi {
			t.Errorf("cell %d above %g: %d to %d, want %d to %d", c.j, c.above, lo, hi, c.lo, c.hi)
		}
	}
	if lo, hi := (footprint{5.4, 5.4}).edges(0, 0); lo != 5 || hi != 5 {
		t.Errorf("nothing touched: %d to %d", lo, hi)
	}
}

func TestSurvival(t *testing.T) {
	live := survival([]float64{1, 0, 2, 1})
	var got []float64
	for j := range 5 {
		got = append(got, live(j))
	}
	if !slices.Equal(got, []float64{1, 0.75, 0.75, 0.25, 0}) {
		t.Errorf("the survival is %v", got)
	}
	if dead := survival([]float64{0, 0}); dead(0) != 0 || dead(2) != 0 {
		t.Error("nothing survives")
	}
}

// Nodes of one depth are touched at their share of the rate; each counts by how often
// it is touched last.
func TestSharedLife(t *testing.T) {
	s := &shaper{layout: &layout{nodes: &publicNodes{list: []publicNode{{depth: 1, ends: 0.3, share: 0.4}, {depth: 1, ends: 0.1, share: 0.1}, {depth: 1}, {depth: 2, ends: 0.5, share: 0.5}}}}}
	edges := []float64{0, 10, 100}
	const rate = 0.2
	for d, want := range map[int][3]float64{
		0: {},
		1: {1, 0.75*math.Exp(-0.8) + 0.25*math.Exp(-0.2), 0.75*math.Exp(-8) + 0.25*math.Exp(-2)},
		2: {1, math.Exp(-1), math.Exp(-10)},
	} {
		live := s.sharedLife(d, edges, rate)
		for j, w := range want {
			if !near(live(j), w) {
				t.Errorf("depth %d after %g ms: %g, want %g", d, edges[j], live(j), w)
			}
		}
	}
}

func TestCellsInOrder(t *testing.T) {
	for _, c := range []struct{ cells, want []cell }{
		{nil, nil},
		{[]cell{{1, 3, 5}, {4, 6, 7}}, []cell{{1, 3, 5}, {4, 6, 7}}},
		{[]cell{{1, 3, 5}, {3, 6, 7}}, []cell{{1, 3, 5}, {4, 6, 7}}},
		{[]cell{{1, 3, 5}, {1, 3, 7}, {2, 4, 1}}, []cell{{1, 3, 12}, {4, 4, 1}}},
		{[]cell{{1, 3, 5}, {9, 9, 7}}, []cell{{1, 3, 5}, {9, 9, 7}}},
	} {
		if got := inOrder(slices.Clone(c.cells)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v in order are %v, want %v", c.cells, got, c.want)
		}
	}
}

// What tables that leave nothing to chance give on average.
func TestMeansOfTables(t *testing.T) {
	s := &shaper{layout: &layout{size: 16, blocks: octaves(8)}, model: drawn(true, map[tableKind]int64{tableInput: 100, tableHit: 3, tableTurn: 0})}
	s.model.tables[tableCategory] = cellTable{every([]cell{{int64(cold), int64(cold), 1}, {int64(global), int64(global), 1}, {int64(branch), int64(branch), 2}})}
	m := s.means()
	about := func(a, b float64) bool { return math.Abs(a-b) < 0.05*max(1, b) }
	if !about(m.fresh, 7.0/4+4.0/4+4.0/2) || m.first != 1 || m.hit != [categoryCount]float64{global: 3, branch: 3} {
		t.Errorf("on average %+v", m)
	}
	if !about(m.share[cold], 0.25) || !about(m.share[global], 0.25) || !about(m.share[branch], 0.5) || len(m.shared) != 5 || !near(m.shared[1], 3*m.share[global]) || sumOf(m.shared) != m.shared[1] {
		t.Errorf("of the categories %v, shared %v", m.share, m.shared)
	}
	s.model.tables[tableTurn] = cellTable{every([]cell{{0, 1, 1}})}
	if m := s.means(); !about(m.first, 0.5) {
		t.Errorf("%g begin a session", m.first)
	}
}
