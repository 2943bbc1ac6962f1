package synth

import (
	"math"
	"math/rand/v2"
	"testing"

	"reprise/trace"
)

func TestLog2(t *testing.T) {
	last := int64(-1)
	for x := int64(1); x < 1<<62; x += 1 + x/37 {
		got := log2(x)
		if want := math.Log2(float64(x)) * logOne; math.Abs(float64(got)-want) > 2 {
			t.Fatalf("log2(%d) = %d, want %.2f", x, got, want)
		}
		if got < last {
			t.Fatalf("log2(%d) = %d is less than that of a smaller number", x, got)
		}
		last = got
	}
	if log2(0) != 0 || log2(1) != 0 || log2(1<<40) != 40*logOne {
		t.Error("powers of two are not exact")
	}
}

func TestWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var w weights
	var plain []int64
	for range 700 {
		if n := len(plain); n == 0 || r.IntN(3) > 0 {
			v := int64(r.IntN(4))
			w.pushWeight(v)
			plain = append(plain, v)
		} else {
			i := r.IntN(n)
			delta := int64(r.IntN(5)) - min(2, plain[i])
			w.addWeight(i, delta)
			plain[i] += delta
		}
		sum := int64(0)
		for i := len(plain) - 1; i >= 0; i-- {
			if got := w.weightAfter(i); got != sum {
				t.Fatalf("%d is behind place %d of %d, want %d", got, i, len(plain), sum)
			}
			for d := sum + 1; d <= sum+plain[i]; d++ {
				if got := w.placeAt(d); got != i {
					t.Fatalf("depth %d is at place %d, want %d", d, got, i)
				}
			}
			sum += plain[i]
		}
		if w.total != sum {
			t.Fatalf("the total is %d, want %d", w.total, sum)
		}
	}
}

// What is touched again and again takes no more memory.
func TestForestReusesSteps(t *testing.T) {
	var f forest
	f.appendRequest(none, 0, 100, nil)
	for i := range int32(5000) {
		f.appendRequest(0, 1+i%100, 0, nil)
	}
	if len(f.steps) > 101 {
		t.Errorf("%d steps for 100 blocks", len(f.steps))
	}
}

// A link leads to the request that last touched the deepest known block, unless all that
// is known lies on a template, and says where on its prompt the request leaves.
func TestLinksLeadToTheLastToucher(t *testing.T) {
	for _, k := range []talk{{block: 16, models: 2}, {block: 1, models: 1}} {
		rows := k.rows(5, 300)
		m := fitted(t, rows, trace.Meta{BlockSize: k.block}, 1, 0)
		carriers, requests := map[uint64]int{}, map[string]int{}
		for _, r := range rows {
			requests[r.Model]++
			for _, b := range r.Blocks {
				carriers[b]++
			}
		}
		last := map[uint64]int{} // by block: the request that touched it last
		linked := 0
		for i, r := range rows {
			hit, trunk := 0, 0
			for hit < len(r.Blocks) {
				if _, ok := last[r.Blocks[hit]]; !ok {
					break
				}
				hit++
			}
			for trunk < len(r.Blocks) && 2*carriers[r.Blocks[trunk]] > requests[r.Model] {
				trunk++
			}
			p := m.places[i]
			if hit <= trunk {
				if p.class != opens || p.parent != none || int(p.trunk) != trunk || int(p.fresh) != len(r.Blocks)-trunk {
					t.Fatalf("row %d, with %d blocks on the trunk, is %+v", i, trunk, p)
				}
			} else {
				linked++
				up := last[r.Blocks[hit-1]]
				want := branches
				switch full := int(rows[up].InputTokens) / k.block; {
				case hit == len(r.Blocks):
					want = repeats
				case hit == full:
					want = continues
				case full > 5 && full-hit <= max(4, full/5) && max(r.InputTokens-rows[up].InputTokens, rows[up].InputTokens-r.InputTokens) <= max(4*int32(k.block), rows[up].InputTokens/5):
					want = edits
				}
				if int(p.parent) != up || int(p.hit) != hit || p.class != want || int(p.parentLength) != len(rows[up].Blocks) {
					t.Fatalf("row %d, with %d blocks of row %d, %s, is %+v", i, hit, up, classNames[want], p)
				}
			}
			for _, b := range r.Blocks {
				last[b] = i
			}
		}
		if linked < 80 {
			t.Errorf("only %d rows have links", linked)
		}
	}
}

// A request of a model of histograms builds on what weighing every request finds.
func TestCellSearchFindsTheLeastCost(t *testing.T) {
	m := cellModels(t)["histograms"]
	drawn := m.drawnFrom([]int64{400})
	p := population{size: 16, templates: drawn.templates}
	c := cellPlacer{population: &p, model: drawn, r: rand.New(rand.NewPCG(1, 1))}
	p.taken = c.take
	cost := func(d *cellDraw, r int32) int64 {
		depth := c.depthOf(d, r)
		sum := abs(log2(c.distance(r, depth)) - log2(min(d.distance, c.stack.total)))
		sum += int64(max(depth-d.hit, d.hit-depth)) * depthWeight / int64(d.hit)
		sum += abs(log2(int64(c.chain[r])+2)-log2(int64(d.chain)+1)) / chainWeight
		return sum + int64(max(0, c.low[r]-p.overlap[r]))*takenWeight/int64(depth)
	}
	searched := 0
	for i := range drawn.places {
		probe := c
		probe.r = rand.New(rand.NewPCG(7, uint64(i)))
		d := m.cells.request(probe.r, 16)
		if d.hit > d.trunk {
			least, ok := int64(unfound), false
			for r := range int32(i) {
				depth := c.depthOf(&d, r)
				if depth <= p.overlap[r] || depth <= c.low[r] {
					continue
				}
				least, ok = min(least, cost(&d, r)), true
			}
			found := c.find(&d)
			if ok != (found != none) {
				t.Fatalf("request %d: found %d, of any %v", i, found, ok)
			}
			if ok {
				searched++
				if got := cost(&d, found); got != least {
					t.Fatalf("request %d: cost %d, want %d", i, got, least)
				}
			}
		}
		p.places = append(p.places, int32(i))
		c.addRequest(&drawn.places[i])
	}
	if searched < 100 {
		t.Errorf("only %d searches", searched)
	}
}
