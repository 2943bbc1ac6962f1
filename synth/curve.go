package synth

import (
	"math"

	"reprise/trace"
	"reprise/trace/profile"
)

// A lruCurve holds what a swap should keep: hit ratios by block of a cache of rising
// capacity, and without limit last; and means over the requests.
type lruCurve struct {
	ratios []float64
	known  float64 // mean share of a prompt that is known
	tokens float64 // mean length of a prompt
}

const (
	curvePoints = 61
	curveLeast  = 100     // blocks
	curveMost   = 200_000 // blocks
)

// curveOf replays places in their order into LRU caches.
func (s *swapper) curveOf(places []place) lruCurve {
	m := &Model{places: places, labels: s.labels, ends: s.ends}
	m.meta.BlockSize = s.size
	w := replayed(m, make([]int64, len(places)))
	c := lruCurve{ratios: []float64{0}}
	p := &w.populations[0]
	for r := range p.tail {
		c.tokens += float64(p.tokens(int32(r))) / float64(len(places))
		c.known += float64(p.hit[r]) / float64(max(1, p.forest.length[r])) / float64(len(places))
	}
	if s.size == 0 {
		return c
	}
	u := profile.NewReuse(s.size, profile.ReuseOptions{})
	_ = trace.Each(w.Reader(), func(_ int64, r *trace.Request) error { // neither gives an error
		u.Add(r)
		return nil
	})
	capacities := make([]int64, curvePoints)
	for i := range capacities {
		capacities[i] = int64(curveLeast * math.Pow(curveMost/curveLeast, float64(i)/(curvePoints-1)))
	}
	sum := u.Summary()
	c.ratios = append(u.LRUHitRatios(capacities), float64(sum.HitBlocks)/float64(max(1, sum.ReferencesBlocks)))
	return c
}

// replayed makes one population of the places of a model in their order, at given times.
func replayed(m *Model, times []int64) *Workload {
	w := &Workload{model: m, options: Options{Users: 1, Speed: 1}, populations: make([]population, 1)}
	domains := domainsOf(m.labels)
	p := &w.populations[0]
	*p = population{size: m.meta.BlockSize, trunks: make([]trunk, domainCount(domains)), times: times}
	if m.sourced {
		p.session = []int32{}
	}
	for i := range m.places {
		t := &m.places[i]
		p.places = append(p.places, int32(i))
		p.addPlace(t, domains[t.label], t.parent, t.after)
	}
	w.prepare()
	return w
}

// hits is the hit ratio without limit.
func (c *lruCurve) hits() float64 { return c.ratios[len(c.ratios)-1] }

// error is the mean difference of two curves.
func (c *lruCurve) error(o *lruCurve) float64 {
	sum := 0.0
	for i := range c.ratios[:len(c.ratios)-1] {
		sum += math.Abs(c.ratios[i] - o.ratios[i])
	}
	return sum / float64(max(1, len(c.ratios)-1))
}

// off is by how much a curve misses another.
func (c *lruCurve) off(o *lruCurve) float64 {
	off := c.error(o) + math.Abs(c.hits()-o.hits())/2 + math.Abs(c.known-o.known)/2
	return off + math.Abs(math.Log((c.tokens+1)/(o.tokens+1)))/10
}
