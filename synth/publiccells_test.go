package synth

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"reprise/anonymize/dp"
	"reprise/trace"
)

// someNodes are two public prefixes of one and of four blocks, one below the other,
// and one of two blocks beside them.
func someNodes() *publicNodes {
	return &publicNodes{index: map[uint64]int{10: 0, 40: 1, 21: 2}, list: []publicNode{{depth: 0, parent: none}, {depth: 2, parent: 0}, {depth: 1, parent: none}}}
}

// The category of a record, what is known or new of it, and what all know of it.
func TestClassify(t *testing.T) {
	one, four := []uint64{10}, []uint64{10, 20, 40}
	for _, c := range []struct {
		r              record
		want           category
		blocks, shared int32
	}{
		{record{}, uncategorised, 0, 0},
		{record{length: 3, nodes: []uint64{11, 20}}, cold, 0, 0},
		{record{length: 3, nodes: one}, global, 1, 1},
		{record{length: 3, hit: 1, nodes: one}, global, 1, 1},
		{record{length: 9, hit: 3, nodes: four}, global, 4, 4},
		{record{length: 4, hit: 3, nodes: four}, duplicate, 0, 4},
		{record{length: 4, hit: 4, nodes: one}, duplicate, 0, 1},
		{record{length: 1, nodes: one}, duplicate, 0, 1},
		{record{length: 9, hit: 5, extends: true, nodes: four}, continuation, 4, 4},
		{record{length: 9, hit: 5, nodes: four}, branch, 5, 4},
		{record{length: 9, hit: 2, extends: true}, continuation, 7, 0},
		{record{length: 9, hit: 2}, branch, 2, 0},
	} {
		got, blocks, shared := someNodes().classify(&c.r)
		if got != c.want || blocks != c.blocks || shared != c.shared {
			t.Errorf("%+v: %v of %d blocks, %d shared; want %v, %d, %d", c.r, got, blocks, shared, c.want, c.blocks, c.shared)
		}
	}
}

// A node has the requests that end at it, and carries those that end below it. More
// than half of all must carry the prefix that most begin with.
func TestPublicNodesWeigh(t *testing.T) {
	p := someNodes()
	for _, c := range []struct {
		shares      []float64
		ends, share [3]float64
		trunk       int
	}{
		{[]float64{0.25, 0.25, 0.375, 0.125}, [3]float64{0.25, 0.375, 0.125}, [3]float64{0.625, 0.375, 0.125}, 0},
		{[]float64{0, 0.375, 0.625, 0}, [3]float64{0.375, 0.625, 0}, [3]float64{1, 0.625, 0}, 2},
		{[]float64{0.25, 0, 0, 0.75}, [3]float64{0, 0, 0.75}, [3]float64{0, 0, 0.75}, 1},
		{[]float64{0.5, 0, 0.5, 0}, [3]float64{0, 0.5, 0}, [3]float64{0.5, 0.5, 0}, none},
		{nil, [3]float64{}, [3]float64{}, none},
	} {
		p.weigh(c.shares)
		var ends, share [3]float64
		for i, n := range p.list {
			ends[i], share[i] = n.ends, n.share
		}
		if ends != c.ends || share != c.share || p.trunk() != c.trunk {
			t.Errorf("%v: %v end, %v carry, trunk %d; want %v, %v, %d", c.shares, ends, share, p.trunk(), c.ends, c.share, c.trunk)
		}
	}
}

// A unit counts in at most eight nodes, the shallowest first, and of one depth in
// those that it has most often.
func TestNodesOfAUnit(t *testing.T) {
	path := func(ids ...uint64) record { return record{nodes: ids} }
	units := []unit{
		{Sample: dp.Sample[record]{Kept: []record{path(1, 2, 3), path(1, 2, 4), path(1, 5, 4), path(6)}}},
		{Sample: dp.Sample[record]{Kept: []record{path(1, 2)}}},
		{},
		{Sample: dp.Sample[record]{Kept: []record{path(1, 11, 21, 31), path(2, 12, 22, 32), path(3, 13, 23, 32)}}},
	}
	for i, want := range [][]uint64{{1, 6, 2, 5, 4, 3}, {1, 2}, {}, {1, 2, 3, 11, 12, 13, 21, 22}} {
		if got := units[i].candidates(); !slices.Equal(got, want) {
			t.Errorf("unit %d counts in %v, want %v", i, got, want)
		}
	}
	blocks, count := countNodes(units[:3])
	if want := (map[uint64]int64{1: 2, 2: 2, 3: 1, 4: 1, 5: 1, 6: 1}); !reflect.DeepEqual(count, want) || !slices.Equal(blocks, []uint64{1, 6, 2, 5, 4, 3}) {
		t.Errorf("%v count %v, want %v", blocks, count, want)
	}
	// Of requests, users count, and those of none as one.
	requests := make([]unit, 9)
	for i := range requests {
		requests[i] = unit{Sample: dp.Sample[record]{Kept: []record{path(1, 2)}}, user: int64(i / 4)}
		if i%4 == 3 {
			requests[i].Kept[0] = path(7)
		}
	}
	if _, count := countNodes(requests); !reflect.DeepEqual(count, map[uint64]int64{1: 3, 2: 3, 7: 2}) {
		t.Errorf("nine requests of two users and of none count %v", count)
	}
	named := namedNodes(units[:3], []uint64{4, 1})
	if want := []publicNode{{depth: 2, parent: 1}, {depth: 0, parent: none}}; !reflect.DeepEqual(named.list, want) || !reflect.DeepEqual(named.index, map[uint64]int{4: 0, 1: 1}) {
		t.Errorf("the nodes are %+v, want %+v", named, want)
	}
	for want, r := range map[int]record{none: path(7, 8), 1: path(1, 8), 0: path(1, 5, 4)} {
		if got := named.deepest(&r); got != want {
			t.Errorf("%v: the deepest node is %d, want %d", r.nodes, got, want)
		}
	}
}

// aLayout has limits of 7 input and 3 output tokens and blocks of 2.
func aLayout(t testing.TB, size int, sessions bool, unit string) *layout {
	o := PublicOptions{Unit: unit, MaxInput: 7, MaxOutput: 3}
	meta := trace.Meta{BlockSize: size, Capture: trace.RelativeCapture(0, 2400)}
	if err := o.defaults(meta); err != nil {
		t.Fatal(err)
	}
	return newLayout(&o, meta, sessions)
}

// Which histograms are measured, with how many cells and what one unit adds.
func TestPublicMeasurements(t *testing.T) {
	for _, c := range []struct {
		size     int
		sessions bool
		unit     string
		want     string
	}{
		{2, true, UnitUser, "requests 1 64 4096, periods by category 144 8 64, input by output 12 8 16, input 8 8 16, output 4 8 16, " +
			"reuse 33 8 64, public prefixes 4 8 64, shared 24 8 64, gap 222 8 64, turn 84 8 64, pause 38 8 64, "},
		{2, false, UnitUser, "requests 1 64 4096, periods by category 144 8 64, input by output 12 8 16, input 8 8 16, output 4 8 16, " +
			"reuse 33 8 64, public prefixes 4 8 64, shared 24 8 64, gap 222 8 64, turn 84 8 64, "},
		{0, true, UnitSession, "requests 1 64 4096, periods by category 144 8 64, input by output 12 8 16, input 8 8 16, output 4 8 16, " +
			"gap 222 8 64, turn 84 8 64, pause 38 8 64, "},
		{0, false, UnitRequest, "requests 1 1 1, periods by category 144 1 1, input by output 12 1 1, input 8 1 1, output 4 1 1, "},
	} {
		l := aLayout(t, c.size, c.sessions, c.unit)
		l.nodes = someNodes()
		ms, which := l.measurements()
		got := ""
		for i, m := range ms {
			got += fmt.Sprintf("%s %d %d %d, ", m.Name, m.Cells, m.L1, m.L2Squared)
			if m.Weight != histogramWeights[which[i]] || m.Name != histogramNames[which[i]] {
				t.Errorf("measurement %d is %+v of histogram %d", i, m, which[i])
			}
		}
		if got != c.want {
			t.Errorf("blocks of %d, sessions %v, unit %s:\n%s\nwant\n%s", c.size, c.sessions, c.unit, got, c.want)
		}
	}
	sum := selectionShare
	for _, w := range histogramWeights {
		sum += w
	}
	if math.Abs(sum-0.98) > 1e-9 {
		t.Errorf("the shares of the budget add up to %g", sum)
	}
}

// Where a record counts in each histogram.
func TestPublicCells(t *testing.T) {
	l := aLayout(t, 2, true, UnitUser)
	l.nodes = someNodes()
	// Inputs of 0, 1, 2-3 and 4-7 tokens, outputs of 0, 1 and 2-3, blocks of 0, 1, 2-3
	// and 4; six categories.
	for _, c := range []struct {
		name string
		r    record
		want map[int]int
	}{
		{"cold", record{at: 99, input: 5, output: 2, length: 3, gap: none, pause: none},
			map[int]int{ofHours: 1, ofLengths: 3*3 + 2, ofInput: 5, ofOutput: 2, ofNodes: 0, ofShared: none, ofGap: none, ofTurn: 1 * 14, ofPause: none}},
		{"a branch of the third turn", record{at: 2399, input: 7, output: 1, length: 4, hit: 3, gap: 5e6, turn: 2, pause: 0, nodes: []uint64{10}},
			map[int]int{ofHours: 23*6 + 5, ofLengths: 3*3 + 1, ofInput: 7, ofOutput: 1, ofNodes: 1, ofShared: 5*4 + 1, ofGap: 5*37 + 3, ofTurn: 5*14 + 2, ofPause: 1}},
		{"beyond the limits", record{at: 100, input: 900, output: 900, length: 450, hit: 2, extends: true, gap: 1 << 62, turn: 1 << 20, pause: 3e6},
			map[int]int{ofHours: 1*6 + 4, ofLengths: 3*3 + 2, ofInput: 7, ofOutput: 3, ofNodes: 0, ofShared: 4 * 4, ofGap: 4*37 + 36, ofTurn: 4*14 + 13, ofPause: 1 + 2}},
		{"a turn that does not wait", record{input: 4, length: 2, turn: 1, gap: 999_999, pause: none, nodes: []uint64{10}},
			map[int]int{ofHours: 2, ofLengths: 3 * 3, ofInput: 4, ofOutput: 0, ofNodes: 1, ofShared: none, ofGap: 2 * 37, ofTurn: 2*14 + 1, ofPause: 0}},
		{"a duplicate", record{input: 6, length: 3, hit: 3, gap: none, pause: none, nodes: []uint64{1, 21}},
			map[int]int{ofHours: 3, ofLengths: 3 * 3, ofInput: 6, ofOutput: 0, ofNodes: 3, ofShared: 3*4 + 2, ofGap: none, ofTurn: 3 * 14, ofPause: none}},
	} {
		for h, want := range c.want {
			if got := l.cell(h, &c.r); got != want {
				t.Errorf("%s: cell %d of %s, want %d", c.name, got, histogramNames[h], want)
			}
		}
	}
	// Reuse: the category, the octave of the input, and where it matters that of the blocks.
	for want, r := range map[reuseCell]record{
		{cold, 2, 0}:         {input: 3, length: 2},
		{global, 3, 1}:       {input: 7, length: 4, nodes: []uint64{10}},
		{continuation, 3, 2}: {input: 7, length: 4, hit: 1, extends: true},
		{branch, 3, 2}:       {input: 7, length: 4, hit: 3},
		{duplicate, 3, 0}:    {input: 7, length: 4, hit: 4},
	} {
		at := l.cell(ofReuse, &r)
		if at < 0 || l.reuse[at] != want {
			t.Errorf("%+v counts in reuse cell %d, want %+v", r, at, want)
		}
	}
	if at := l.cell(ofReuse, &record{input: 1, length: 9, hit: 8}); at != none {
		t.Errorf("more blocks than tokens count in reuse cell %d", at)
	}
}

// How many requests a unit counts with, and how many in one cell.
func TestPublicCountIsBounded(t *testing.T) {
	l := aLayout(t, 0, false, UnitUser)
	var units []unit
	for _, n := range []int{1, 3, 8} {
		u := unit{Sample: dp.Sample[record]{Seen: int64(30 * n)}}
		for i := range n {
			u.Kept = append(u.Kept, record{at: int64(100 * i), input: int64(i / 4), output: 3})
		}
		units = append(units, u)
	}
	for h, want := range map[int]struct {
		cells   map[int]int64
		dropped int64
	}{
		ofRequests: {map[int]int64{0: 30 + 64 + 64}, 0},
		ofInput:    {map[int]int64{0: 1 + 2 + 2, 1: 2}, 1 + 4},
		ofOutput:   {map[int]int64{3: 1 + 2 + 2}, 1 + 6},
		ofLengths:  {map[int]int64{2: 1 + 2 + 2, 5: 2}, 1 + 4},
		ofHours:    {map[int]int64{0: 3, 6: 2, 12: 2, 18: 1, 24: 1, 30: 1, 36: 1, 42: 1}, 0},
	} {
		cells, dropped := l.count(h, units)
		got := map[int]int64{}
		for i, n := range cells {
			if n != 0 {
				got[i] = n
			}
		}
		if !reflect.DeepEqual(got, want.cells) || dropped != want.dropped {
			t.Errorf("%s: %v, %d dropped; want %v, %d", histogramNames[h], got, dropped, want.cells, want.dropped)
		}
	}
}

// A cell stands out when it is above the threshold. Along a line it must be above six
// standard deviations, or beside such a cell, on either side.
func TestWhatStandsOut(t *testing.T) {
	h := &noisy{dp.NoiseSpec{SD: 10, Variance: 100 * dp.Denominator, Measurement: dp.Measurement{Cells: 8}}, []int64{22, 30, 60, 61, 25, 30, 21, 40}}
	// 10·√(2 ln 8) is 20.4, so more than 21 is no noise.
	if got, want := h.clean(), []float64{22, 30, 60, 61, 25, 30, 0, 40}; !slices.Equal(got, want) {
		t.Errorf("%v stand out, want %v", got, want)
	}
	if got, want := h.line(), []float64{22, 30, 60, 61, 25, 30, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("%v stand out in line, want %v", got, want)
	}
	if got, want := shares([]float64{1, 0, 3}), []float64{0.25, 0, 0.75}; !slices.Equal(got, want) {
		t.Errorf("the shares are %v", got)
	}
	if shares([]float64{0, 0}) != nil || shares([]float64{math.NaN(), 1}) != nil || shares(nil) != nil {
		t.Error("nothing has shares")
	}
}
