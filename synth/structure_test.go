package synth

import (
	"math"
	"math/rand/v2"
	"slices"
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

func TestSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	var s spans
	var low, full []int32
	for range 400 {
		if n := len(low); n == 0 || r.IntN(2) == 0 {
			low, full = append(low, int32(r.IntN(5))), append(full, int32(r.IntN(20)))
			s.appendSpan(low[n], full[n])
		} else {
			i := r.IntN(n)
			low[i] += int32(r.IntN(6))
			s.setSpan(i, low[i], full[i])
		}
		for depth := int32(1); depth < 20; depth += 3 {
			match := func(i int) bool { return low[i] < depth && depth < full[i] }
			from := r.IntN(len(low) + 1)
			next, prev := none, none
			for i := from; i < len(low) && next == none; i++ {
				if match(i) {
					next = i
				}
			}
			for i := min(from, len(low)-1); i >= 0 && prev == none; i-- {
				if match(i) {
					prev = i
				}
			}
			if got := s.nextMatch(from, depth); got != next {
				t.Fatalf("the next span behind %d at depth %d is %d, want %d", from, depth, got, next)
			}
			if got := s.prevMatch(min(from, len(low)-1), depth); got != prev {
				t.Fatalf("the last span before %d at depth %d is %d, want %d", from, depth, got, prev)
			}
		}
	}
}

// Places that lost their node are swept out of a list when they are more than half of
// it, unless it is short.
func TestLostPlacesAreSwept(t *testing.T) {
	for n, want := range map[int32][]int{8: {8, 8, 8, 8, 8, 8, 8, 8}, 9: {9, 9, 9, 9, 4, 4, 4, 4}, 10: {10, 10, 10, 10, 10, 4, 4, 4}} {
		var b byDepth
		for place := range n {
			b.addPlace(3, place)
		}
		if len(b.placesAt(2)) != 0 || len(b.placesAt(4)) != 0 {
			t.Errorf("other depths have places: %v", b.lists)
		}
		var got []int
		for lost := range int32(8) {
			b.dropPlace(3, func(place int32) bool { return place > lost })
			got = append(got, len(b.placesAt(3)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %d places %v are left, want %v", n, got, want)
		}
	}
}

// What is touched again and again takes no more memory.
func TestForestReusesSteps(t *testing.T) {
	var f forest
	nothing := func(int32, int32) {}
	f.appendRequest(none, 0, 100, nothing)
	for i := range int32(5000) {
		f.appendRequest(0, 1+i%100, 0, nothing)
	}
	if len(f.steps) > 101 {
		t.Errorf("%d steps for 100 blocks", len(f.steps))
	}
}

// The distances of tuples are those of a list that is searched from its end.
func TestDistancesAreThoseOfAnLRUStack(t *testing.T) {
	for _, k := range []talk{{block: 16, models: 2}, {block: 1, models: 1}} {
		rows := k.rows(5, 300)
		m := fitted(t, rows, trace.Meta{BlockSize: k.block}, 1, 0)
		var stack []uint64 // most recent last
		depth := func(b uint64) int64 { return int64(len(stack) - slices.Index(stack, b)) }
		for i, r := range rows {
			got := m.tuples[i]
			want := reuse{}
			for int(want.hit) < len(r.Blocks) && slices.Contains(stack, r.Blocks[want.hit]) {
				want.hit++
			}
			if h := want.hit; h > 0 {
				want.distance = depth(r.Blocks[h-1])
				for q := range want.profile {
					want.profile[q] = depth(r.Blocks[int(math.Ceil(float64(h)*float64(q+1)/4))-1])
				}
			}
			if got.hit != want.hit || got.distance != want.distance || got.profile != want.profile {
				t.Fatalf("row %d has %d blocks at %d, %v; want %d at %d, %v", i, got.hit, got.distance, got.profile,
					want.hit, want.distance, want.profile)
			}
			for _, b := range slices.Backward(r.Blocks) {
				if j := slices.Index(stack, b); j >= 0 {
					stack = slices.Delete(stack, j, j+1)
				}
				stack = append(stack, b)
			}
		}
	}
}

// The search finds what weighing every node finds.
func TestSearchFindsTheLeastCost(t *testing.T) {
	searched := 0
	for seed := range uint64(30) {
		k := talk{block: 2, models: 2}
		m := fitted(t, k.rows(seed, 60), trace.Meta{BlockSize: k.block}, 5, seed)
		domains := domainsOf(m.labels)
		p := population{size: k.block, domains: make([]domain, domainCount(domains))}
		for i := range m.tuples {
			tup := &m.tuples[i]
			dom := domains[tup.label]
			if tup.hit > tup.trunk && len(p.domains[dom].members) > 0 {
				if least, ok := leastCost(&p, tup, dom); ok {
					f := p.find(&p.domains[dom], tup)
					if got := costOf(&p, tup, f.owner, f.depth); got != least {
						t.Fatalf("seed %d, tuple %d: cost %d, want %d", seed, i, got, least)
					}
					searched++
				}
			}
			p.placeTuple(tup, dom)
		}
	}
	if searched < 300 {
		t.Errorf("only %d searches", searched)
	}
}

// leastCost weighs every node of the tuple's class within 5 % of its depth.
func leastCost(p *population, t *tuple, dom uint16) (least int64, ok bool) {
	least = unfound
	for r := range p.forest.length {
		if p.domain[r] != dom {
			continue
		}
		for depth := p.forest.low[r] + 1; depth <= p.forest.length[r]; depth++ {
			off := max(depth-t.hit, t.hit-depth)
			if p.overlap[r] != t.trunk || depth <= t.trunk {
				continue
			}
			if off > t.hit/20 || t.fresh > 0 && depth >= t.hit+t.fresh || t.fresh == 0 && depth > t.hit {
				continue
			}
			full := p.full(int32(r))
			partial, end := depth > full, depth == full
			switch {
			case t.fresh == 0 && int(t.tail) < p.size:
				if !partial {
					continue
				}
			case partial, t.fresh > 0 && t.category == continuation && !end, t.fresh > 0 && t.category == branch && end:
				continue
			}
			least, ok = min(least, costOf(p, t, int32(r), depth)), true
		}
	}
	return least, ok
}

func costOf(p *population, t *tuple, r, depth int32) int64 {
	gap := func(a, b int64) int64 { return abs(log2(a) - log2(b)) }
	cost := int64(max(depth-t.hit, t.hit-depth)) * depthWeight / int64(t.hit)
	cost += gap(p.forest.distance(r, depth), min(t.distance, p.forest.stack.total))
	if t.category > global {
		cost += gap(int64(p.chain[r])+2, int64(t.chain)+1) / chainWeight
	}
	for q := range t.profile {
		cost += gap(p.forest.ancestor(r, quarter(depth, q+1)), t.profile[q]) / 3
	}
	return cost
}
