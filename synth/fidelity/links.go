package fidelity

import (
	"math"
	"slices"

	"reprise/trace"
)

// longSessions is how many of the longest sessions are averaged.
const longSessions = 10

// turnCounts are the turns that count of each session, the most first.
func (t *sessionTally) turnCounts() []int64 {
	list := slices.DeleteFunc(slices.Clone(t.turns), func(n int64) bool { return n == 0 })
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

// turnQuantiles compares the turns of sessions beyond the median, up to the longest. The
// sessions are those of turns_ks.
func (c *comparison) turnQuantiles(ref, cand *sessionTally) {
	a, b := ref.turnCounts(), cand.turnCounts()
	of := func(turns []int64, what func([]int64) float64) *float64 {
		if len(turns) == 0 {
			return nil
		}
		return trace.Ptr(what(turns))
	}
	quantile := func(percent int) func([]int64) float64 {
		return func(turns []int64) float64 { return float64(turns[(len(turns)-1)*(100-percent)/100]) }
	}
	for _, q := range []struct {
		name string
		what func([]int64) float64
	}{{"turns_p90", quantile(90)}, {"turns_p99", quantile(99)}} {
		x, y := of(a, q.what), of(b, q.what)
		c.add(q.name, x, y, relative(x, y), "sessions")
	}
	for _, q := range []struct {
		name string
		what func([]int64) float64
	}{
		{"turns_top10_log2", func(turns []int64) float64 {
			longest := turns[:min(longSessions, len(turns))]
			var sum float64
			for _, n := range longest {
				sum += float64(n)
			}
			return sum / float64(len(longest))
		}},
		{"turns_max_log2", func(turns []int64) float64 { return float64(turns[0]) }},
	} {
		x, y := of(a, q.what), of(b, q.what)
		var d *float64
		if c.f.Sessions == "inferred" && c.ref.oneIn != c.cand.oneIn {
			// fewer have no such long ones
			c.add(q.name, nil, nil, nil, "the longest sessions of as large a sample of trees as the other")
			continue
		}
		if x != nil && y != nil {
			d = trace.Ptr(log2Ratio(*x, *y))
		}
		c.add(q.name, x, y, d, "sessions")
	}
}

// growth lists how many tokens longer each request is than its parent, by links.
func (k *keptRows) growth() valueCounts {
	counts := valueCounts{}
	for row := k.from; row < len(k.at); row++ {
		if p := k.parent[row]; p >= 0 {
			counts[int64(k.in[row])-int64(k.in[p])]++
		}
	}
	return counts
}

// quantile is that of percent, by linear interpolation; nil without values.
func (l valueList) quantile(percent int64) *float64 {
	if len(l) == 0 {
		return nil
	}
	place := percent * (l.total() - 1)
	at := func(i int64) float64 {
		for _, b := range l {
			if i -= b.n; i < 0 {
				return float64(b.v)
			}
		}
		return float64(l[len(l)-1].v)
	}
	low := at(place / 100)
	return trace.Ptr(low + (at(place/100+1)-low)*float64(place%100)/100)
}

// fanOut counts how many rows that count have several children, and the most children of
// any.
func (k *keptRows) fanOut() (several, most int) {
	children := make([]int, len(k.at))
	for row := k.from; row < len(k.at); row++ {
		if p := k.parent[row]; p >= 0 {
			children[p]++
		}
	}
	for _, n := range children {
		if n > 1 {
			several++
		}
		most = max(most, n)
	}
	return several, most
}

// topBlock is how often the block is used that is used most, of those that no row has
// where the global prefix is.
func (k *keptRows) topBlock() int {
	last := uint32(0)
	for _, id := range k.blocks {
		last = max(last, id)
	}
	uses, global := make([]int32, last+1), make([]bool, last+1)
	for row := k.from; row < len(k.at); row++ {
		for depth, id := range k.path(row) {
			uses[id]++
			global[id] = global[id] || depth < k.global
		}
	}
	most := 1
	for id, n := range uses {
		if !global[id] {
			most = max(most, int(n))
		}
	}
	return most
}

// growthCurve names the distribution of growth on the page.
const growthCurve = "growth over the parent"

// links compares what requests build on.
func (c *comparison) links() {
	ref, cand := c.ref.kept, c.cand.kept
	growth := cdfPair{name: growthCurve, unit: "tokens", per: 1, ref: ref.growth().sorted(),
		cand: cand.growth().sorted()}
	c.f.curves = append(c.f.curves, growth)
	const built = "requests that build on another"
	for _, q := range []struct {
		name    string
		percent int64
	}{{"growth_p10", 10}, {"growth_p50", 50}, {"growth_p90", 90}} {
		a, b := growth.ref.quantile(q.percent), growth.cand.quantile(q.percent)
		c.add(q.name, a, b, difference(a, b), built)
	}
	c.addKS("growth_ks", growth, built)
	value := func(blocks bool, v float64) *float64 {
		if !blocks {
			return nil
		}
		return &v
	}
	const what = "prefix blocks"
	severalA, mostA := ref.fanOut()
	severalB, mostB := cand.fanOut()
	a := value(c.ref.blocks, float64(severalA)/float64(ref.counted()))
	b := value(c.cand.blocks, float64(severalB)/float64(cand.counted()))
	c.add("fanout", a, b, difference(a, b), what)
	a, b = value(c.ref.blocks, float64(mostA)), value(c.cand.blocks, float64(mostB))
	c.add("fanout_max", a, b, difference(a, b), what)
	a, b = value(c.ref.blocks, float64(ref.topBlock())), value(c.cand.blocks, float64(cand.topBlock()))
	var d *float64
	if a != nil && b != nil {
		d = trace.Ptr(log2Ratio(*a, *b))
	}
	c.add("top_block_log2", a, b, d, what)
}

// chains lists the chains of three turns by links that end in a row that counts, or in
// any.
func (k *keptRows) chains(any bool) [][3]int32 {
	var list [][3]int32
	for row := range int32(len(k.at)) {
		if p := k.parent[row]; p >= 0 && k.parent[p] >= 0 && (any || int(row) >= k.from) {
			list = append(list, [3]int32{k.parent[p], p, row})
		}
	}
	return list
}

// inTolerance tells whether a length is another but for a share of it.
func inTolerance(length, of int32, share float64) bool {
	return math.Abs(float64(length)-float64(of)) <= share*float64(of)
}
