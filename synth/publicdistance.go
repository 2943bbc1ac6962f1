package synth

import (
	"math"

	"reprise/trace/arrival"
)

// A request's distance in the LRU stack counts what everyone touched since, so
// it cannot be measured within a bound. What can be is the time since the unit
// itself touched the prefix. How many blocks are touched in a time then follows
// from the other histograms, as the footprint of a cache does from its reuse
// times (Denning and Slutz, "Generalized working sets for segment reference
// strings", 1978; Xiang, Ding, Luo and Bao, "HOTL", ASPLOS 2013): each request
// adds to a window those of its blocks that were not touched within it.
//
// A prefix that many share is touched by others. Its node's share of the requests
// is known as well, so the times between touches are taken to be
// exponential at that share of the rate.

// A footprint is the mean number of distinct blocks, or sessions, touched in the
// times at the edges of a scale.
type footprint []float64

// newFootprint adds up what lives[i](t) of amounts[i] a request touches was not
// touched for t ms, at a rate of requests per ms.
func newFootprint(edges []float64, rate float64, amounts []float64, lives []func(edge int) float64) footprint {
	f := make(footprint, len(edges))
	for j := 1; j < len(edges); j++ {
		sum := 0.0
		for i, a := range amounts {
			sum += a * (lives[i](j-1) + lives[i](j)) / 2
		}
		f[j] = f[j-1] + rate*(edges[j]-edges[j-1])*sum
	}
	return f
}

// edges returns the blocks of cell j, with those that lie above the node on its
// own path.
func (f footprint) edges(j int, above float64) (lo, hi int64) {
	at := func(x float64) int64 { return int64(math.Round(math.Min(x, 1<<40))) }
	lo = max(1, at(f[j]+above))
	return lo, max(lo, at(f[j+1]+above))
}

// distances fills the tables of distances and of how long ago sessions were
// active.
func (s *shaper) distances(end int64) {
	h := s.noisy[ofGap]
	if h == nil {
		return
	}
	gaps := h.clean()
	n := s.ms.cells()
	edges := make([]float64, n+1)
	for j := range n {
		lo, hi := s.ms.edges(j)
		edges[j], edges[j+1] = float64(lo), float64(hi+1)
	}
	rate := float64(s.model.requests) / (float64(end) / float64(nsPerMS))
	pooled := make([]float64, n)
	var own [categoryCount][]float64
	for c := range own {
		own[c] = gaps[c*n : (c+1)*n]
		for j, v := range own[c] {
			pooled[j] += v
		}
	}
	life := func(x []float64) func(int) float64 {
		if shares(x) == nil {
			x = pooled
		}
		return survival(x)
	}
	forever := func(int) float64 { return 1 }

	m := s.means()
	amounts, lives := []float64{m.fresh}, []func(int) float64{forever}
	for _, c := range []category{duplicate, continuation, branch} {
		amounts, lives = append(amounts, m.hit[c]*m.share[c]), append(lives, life(own[c]))
	}
	for d, x := range m.shared {
		amounts, lives = append(amounts, x), append(lives, s.sharedLife(d, edges, rate))
	}
	blocks := newFootprint(edges, rate, amounts, lives)
	t := &s.model.tables[tableDistance]
	add := func(c category, from, to int64, weights []float64) {
		cells := cellsOf(weights, func(j int) (int64, int64) { return blocks.edges(j, m.hit[c]) })
		if cells = inOrder(cells); len(cells) > 0 {
			*t = append(*t, newGroup(c, from, to, cells))
		}
	}
	if s.size > 0 {
		for d := range s.blocks.cells() {
			if live := s.sharedLife(d, edges, rate); live(0) > 0 {
				weights := make([]float64, n)
				for j := range weights {
					weights[j] = math.Max(0, live(j)-live(j+1))
				}
				add(global, 1<<d, 1<<(d+1)-1, weights)
			}
		}
		for _, c := range []category{global, duplicate, continuation, branch} {
			x := own[c]
			if shares(x) == nil {
				x = pooled
			}
			add(c, 0, math.MaxInt64, x)
		}
	}
	if s.sessions {
		again := life(pooled)
		sessions := newFootprint(edges, rate, []float64{m.first, 1 - m.first}, []func(int) float64{forever, again})
		s.model.tables[tableBack] = s.byCategory(gaps, s.ms, func(j int) (int64, int64) { return sessions.edges(j, 0) })
		for i := range s.model.tables[tableBack] {
			g := &s.model.tables[tableBack][i]
			*g = newGroup(g.category, g.from, g.to, inOrder(g.cells))
		}
	}
}

// survival is the share of the cells from an edge on.
func survival(x []float64) func(edge int) float64 {
	left := make([]float64, len(x)+1)
	for j := len(x) - 1; j >= 0; j-- {
		left[j] = left[j+1] + x[j]
	}
	return func(j int) float64 {
		if left[0] == 0 {
			return 0
		}
		return left[j] / left[0]
	}
}

// sharedLife is the survival of the time between touches of a public node at
// depth 2^d, weighed by how often each is touched.
func (s *shaper) sharedLife(d int, edges []float64, rate float64) func(edge int) float64 {
	sum := 0.0
	for _, v := range s.nodes.list {
		if v.depth == d {
			sum += v.ends
		}
	}
	return func(j int) float64 {
		x := 0.0
		for _, v := range s.nodes.list {
			if v.depth == d && v.ends > 0 {
				x += v.ends / sum * math.Exp(-rate*v.share*edges[j])
			}
		}
		return x
	}
}

// inOrder puts cells that touch or overlap in order: where little happens in a
// short time many cells hold the same few blocks.
func inOrder(cells []cell) []cell {
	var out []cell
	for _, c := range cells {
		if n := len(out); n > 0 && c.lo <= out[n-1].hi {
			if c.lo = out[n-1].hi + 1; c.lo > c.hi {
				out[n-1].count += c.count
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

// means are what the tables give on average.
type means struct {
	fresh  float64                // new blocks of a request
	first  float64                // share of the requests that begin a session
	hit    [categoryCount]float64 // known blocks of a request of a category
	share  [categoryCount]float64 // of the requests
	shared []float64              // blocks of a request known from public nodes, by log2 of the depth
}

// means draws from the tables so far, by a seed that is always the same.
func (s *shaper) means() means {
	const draws = 20000
	m := means{shared: make([]float64, s.blocks.cells())}
	r := arrival.Stream(0, "synth/means")
	for range draws {
		at := s.model.tables[tableTime].drawValue(r, anyCategory, 0, 0)
		t := s.model.request(r, at, s.size)
		m.fresh += float64(t.fresh)
		if t.turn == 0 {
			m.first++
		}
		m.hit[t.category] += float64(t.hit)
		m.share[t.category]++
		if t.category == global {
			m.shared[s.blocks.cellOf(int64(t.hit))-1] += float64(t.hit) / draws
		}
	}
	m.fresh, m.first = m.fresh/draws, m.first/draws
	for c := range m.hit {
		m.hit[c] /= math.Max(1, m.share[c])
		m.share[c] /= draws
	}
	return m
}
