package synth

import (
	"cmp"
	"math"
	"slices"

	"reprise/trace"
	"reprise/trace/fleet"
	"reprise/trace/profile"
)

// keptFigures are figures of places that a swap should keep.
type keptFigures struct {
	ratios []float64  // hit ratios by block of an LRU cache of rising capacity, and without limit last
	known  float64    // mean share of a prompt that is known
	tokens float64    // mean length of a prompt
	turned float64    // hit ratio by block behind a router that takes its replicas in turn
	shared int        // prompts that share a block which no trunk has, at most
	lags   []reuseLag // of requests and their parents
	copied float64    // share of the requests whose length and output are those of one of the trace
	varied float64    // how far the dispersions of arrivals are from those of the trace, see [arrival.Cascade.Apart]
	linked float64    // share of the requests that are like one of the trace, in lengths and place
}

const (
	curvePoints = 61
	curveLeast  = 100     // blocks
	curveMost   = 200_000 // blocks

	turnReplicas = 8  // of the router that takes them in turn,
	turnCapacity = .2 // each with a cache of this share of all distinct blocks
)

// keptOf replays places in their order. With all it has what only tells swaps apart; this takes
// some 350 bytes for each of a fifth of the distinct blocks, for the caches of the replicas.
func (s *swapper) keptOf(places []place, templates []template, times []int64, all bool) keptFigures {
	m := &Model{places: places, templates: templates, labels: s.labels, ends: s.ends}
	m.meta.BlockSize = s.size
	w := replayed(m, make([]int64, len(places)))
	c := keptFigures{ratios: []float64{0}}
	p := &w.populations[0]
	for r := range p.tail {
		tokens := p.tokens(int32(r))
		c.tokens += float64(tokens) / float64(len(places))
		if all && s.like(r, tokens, places[r].output) {
			c.linked += 1 / float64(len(places))
		}
		if all && s.pairs[lengthPair{tokens, places[r].output}] {
			c.copied += 1 / float64(len(places))
		}
		c.known += float64(p.hit[r]) / float64(max(1, p.forest.length[r])) / float64(len(places))
	}
	if s.size == 0 {
		return c
	}
	u := profile.NewReuse(s.size, profile.ReuseOptions{})
	var paths [][]uint32
	distinct := uint32(0)
	_ = trace.Each(w.Reader(), func(_ int64, r *trace.Request) error { // neither gives an error
		if u.Add(r); !all {
			return nil
		}
		path := make([]uint32, len(r.Blocks))
		for i, b := range r.Blocks {
			path[i] = uint32(b)
			distinct = max(distinct, path[i]+1)
		}
		paths = append(paths, path)
		return nil
	})
	if all {
		c.lags = p.reuseLags(times)
		if s.arrivals != nil {
			c.varied = float64(s.arrivals.Apart(times)) / 1e6
		}
		c.turned, c.shared = turned(paths, int64(turnCapacity*float64(distinct))), p.mostShared()
	}
	capacities := make([]int64, curvePoints)
	for i := range capacities {
		capacities[i] = int64(curveLeast * math.Pow(curveMost/curveLeast, float64(i)/(curvePoints-1)))
	}
	sum := u.Summary()
	c.ratios = append(u.LRUHitRatios(capacities), float64(sum.HitBlocks)/float64(max(1, sum.ReferencesBlocks)))
	return c
}

// What makes two requests alike for who knows when one came, and how long it was.
const (
	linkReach     = 20  // places
	linkTolerance = .05 // of both lengths
)

// like tells whether a request of the trace came about when the one at a place does, and has
// about its lengths.
func (s *swapper) like(place int, input int64, output int32) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) <= linkTolerance*max(a, b) }
	for i := max(0, place-linkReach); i < min(len(s.came), place+linkReach+1); i++ {
		if near(float64(input), float64(s.came[i].input)) && near(float64(output), float64(s.came[i].output)) {
			return true
		}
	}
	return false
}

// turned is the hit ratio by block of prompts that go to replicas in turn.
func turned(paths [][]uint32, capacity int64) float64 {
	caches := fleet.NewCaches(turnReplicas, max(1, capacity))
	hits, references := 0, 0
	for r, path := range paths {
		hits += caches.Depths(path)[r%turnReplicas]
		references += len(path)
		caches.Send(r%turnReplicas, path)
	}
	return float64(hits) / float64(max(1, references))
}

// mostShared is how many prompts share a block that is behind the trunk, at most.
func (p *population) mostShared() int {
	most := 0
	root := make([]int32, len(p.owner)) // by request: the first of those with which it shares such a block
	count := make([]int, len(p.owner))
	for r, owner := range p.owner {
		root[r] = int32(r)
		if owner != none && p.hit[r] > p.overlap[r] {
			root[r] = root[owner]
		}
		count[root[r]]++
		most = max(most, count[root[r]])
	}
	return most
}

// A reuseLag is a time, in nanoseconds, since blocks were last used, and how many these are.
type reuseLag struct{ ns, blocks int64 }

// reuseLags are those of all requests, which come at these times.
func (p *population) reuseLags(times []int64) []reuseLag {
	var lags []reuseLag
	for r, owner := range p.owner {
		if owner != none && p.hit[r] > 0 {
			lags = append(lags, reuseLag{times[r] - times[owner], int64(p.hit[r])})
		}
	}
	return lags
}

// lagDistance is the distance of Kolmogorov and Smirnov between two distributions of reused blocks.
func lagDistance(a, b []reuseLag) float64 {
	type step struct{ at, by float64 }
	var steps []step
	for side, lags := range [...][]reuseLag{a, b} {
		of := float64(1 - 2*side)
		for _, l := range lags {
			of += float64(1-2*side) * float64(l.blocks)
		}
		for _, l := range lags {
			steps = append(steps, step{float64(l.ns), float64(l.blocks) / of})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	apart, most := 0.0, 0.0
	for i, s := range steps {
		if apart += s.by; i+1 == len(steps) || steps[i+1].at > s.at {
			most = max(most, math.Abs(apart))
		}
	}
	return most
}

// replayed makes one population of the places of a model in their order, at given times.
func replayed(m *Model, times []int64, before ...func(p *population, i int32)) *Workload {
	w := &Workload{model: m, options: Options{Users: 1, Speed: 1}, populations: make([]population, 1)}
	p := &w.populations[0]
	*p = population{size: m.meta.BlockSize, templates: m.templates, times: times}
	if m.sourced {
		p.session = []int32{}
	}
	for i := range m.places {
		t := &m.places[i]
		p.places = append(p.places, int32(i))
		for _, f := range before {
			f(p, int32(i))
		}
		p.addPlace(t, 0, t.parent, t.after)
	}
	w.prepare()
	return w
}

// hits is the hit ratio without limit.
func (c *keptFigures) hits() float64 { return c.ratios[len(c.ratios)-1] }

// error is the mean difference of two curves.
func (c *keptFigures) error(o *keptFigures) float64 {
	sum := 0.0
	for i := range c.ratios[:len(c.ratios)-1] {
		sum += math.Abs(c.ratios[i] - o.ratios[i])
	}
	return sum / float64(max(1, len(c.ratios)-1))
}

// off is by how much the figures of a swap miss those of the trace, about in units of the
// curve; and how much of the lengths it gives away.
func (c *keptFigures) off(o *keptFigures) float64 {
	return c.error(o) + math.Abs(c.hits()-o.hits())/2 + math.Abs(c.known-o.known)/2 + math.Abs(math.Log((c.tokens+1)/(o.tokens+1)))/10 +
		math.Abs(math.Log((c.turned+.001)/(o.turned+.001)))/15 +
		math.Abs(math.Log(float64(c.shared+1)/float64(o.shared+1)))/100 +
		lagDistance(c.lags, o.lags)/4 + c.copied/4 + c.linked/4 + c.varied/100
}

// A lengthPair is how long a prompt and its output are, in tokens.
type lengthPair struct {
	input  int64
	output int32
}
