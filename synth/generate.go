package synth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"reprise/trace"
	"reprise/trace/arrival"
)

// Generate makes a workload: arrivals drawn from the clients' cascades, each
// taking the next tuple of its client, and for each tuple a prefix found in the
// LRU stack of what was generated so far: the node at the tuple's depth and of
// its class that is nearest to its distances. So it keeps the curve of hit
// ratios, which independent draws from a tree do not.
//
// Beyond the fitted tuples a client deals the second half of its own again, in
// another order each time: the beginning of a trace knows too little to be repeated.
//
// The result is a function of the model and the options. It is the same on
// every machine: what decides is integer arithmetic.
//
// Memory is some 90 bytes for each request of the workload; blocks take none.
func (m *Model) Generate(ctx context.Context, o Options) (*Workload, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	counts, span, err := m.amounts(o)
	if err != nil {
		return nil, err
	}
	if m.cells != nil {
		// The workload refers to tuples of its model: this copy has room for those
		// that the populations will draw, each in a stretch of its own.
		drawn := *m
		drawn.labels, drawn.ends = []label{{stream: none}}, []end{{status: trace.StatusOK}}
		total := int64(0)
		for _, n := range counts {
			total += n
		}
		drawn.tuples = make([]tuple, total)
		m = &drawn
	}
	w := &Workload{model: m, options: o, populations: make([]population, o.Users)}
	g := generator{model: m, options: o, span: span, counts: counts, domains: domainsOf(m.labels)}
	var wait sync.WaitGroup
	errs := make([]error, o.Users)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range w.populations {
		wait.Add(1)
		slots <- struct{}{}
		go func() {
			defer wait.Done()
			errs[i] = g.growPopulation(ctx, i, &w.populations[i])
			<-slots
		}()
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	w.prepare()
	return w, nil
}

// amounts returns how many requests each population makes, and in which span of
// the model's time.
func (m *Model) amounts(o Options) (counts []int64, span int64, err error) {
	n := int64(m.Requests())
	total := n * int64(o.Users)
	span = m.span
	switch {
	case o.Requests > 0:
		total = o.Requests
		span = mulDiv(m.span, total, n*int64(o.Users))
	case o.Duration > 0:
		// One rounding of a product and one conversion, the same everywhere.
		t := float64(o.Duration) * o.Speed
		if t >= math.MaxInt64/2 {
			return nil, 0, errors.New("the duration is too long")
		}
		span = int64(t)
		total = mulDiv(n*int64(o.Users), span, m.span)
	}
	if total >= math.MaxInt32 || span >= math.MaxInt64/2 {
		return nil, 0, errors.New("a workload has at most 2^31-1 requests within 2^62 nanoseconds: ask for fewer requests")
	}
	if total == 0 {
		return nil, 0, errors.New("the duration is too short for one request: raise it")
	}
	if float64(span) >= math.MaxInt64/2*o.Speed {
		return nil, 0, errors.New("at this speed the workload takes more than 2^62 nanoseconds: raise the speed")
	}
	return share(total, slices.Repeat([]int64{1}, o.Users)), max(span, 1), nil
}

// A generator grows the populations of one workload, several at a time.
type generator struct {
	model   *Model
	options Options
	span    int64    // of the model's time
	counts  []int64  // by population: its requests
	domains []uint16 // by label: the cache domain

	placed atomic.Int64 // requests of all populations so far, for Options.Progress
}

// A tupleSampler decides when the requests of one population arrive, and which tuple
// of the model each of them takes.
type tupleSampler interface {
	// sampleTimes returns the arrivals in order, by the model's clock. It is called first.
	sampleTimes() []int64
	// sampleTuple returns the tuple of request r. It is called for each request, in
	// their order.
	sampleTuple(r int) int32
}

// growPopulation generates population i: its arrivals, for each a tuple, and for each
// tuple a place in the forest.
func (g *generator) growPopulation(ctx context.Context, i int, p *population) error {
	m := g.model
	var sampler tupleSampler
	if m.cells != nil {
		sampler = &cellSampler{g: g, population: i, r: g.stream("cells", i, 0)}
	} else {
		sampler = newClientSampler(g, i)
	}
	p.size, p.sourced = m.meta.BlockSize, m.sourced
	p.domains = make([]domain, domainCount(g.domains))
	p.times = sampler.sampleTimes()
	p.tuples = make([]int32, 0, len(p.times))
	for r := range p.times {
		if r%progressRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if done := g.placed.Add(int64(min(r, progressRows))); g.options.Progress != nil {
				g.options.Progress(done)
			}
		}
		t := sampler.sampleTuple(r)
		p.tuples = append(p.tuples, t)
		p.placeTuple(&m.tuples[t], g.domains[m.tuples[t].label])
	}
	p.release()
	return nil
}

// stream is the random stream of one purpose of one client of one population.
func (g *generator) stream(purpose string, population, client int) *rand.Rand {
	return arrival.Stream(g.options.Seed, fmt.Sprintf("synth/%s/%d/%d", purpose, population, client))
}

// A clientSampler is the [tupleSampler] of a model of tuples. Each client has arrivals
// of its own, and takes its own tuples.
type clientSampler struct {
	g          *generator
	population int
	queues     []tupleQueue // by client
	clients    []uint8      // by request: whose it is
}

func newClientSampler(g *generator, population int) *clientSampler {
	s := &clientSampler{g: g, population: population, queues: g.model.tupleQueues()}
	for j := range s.queues {
		q := &s.queues[j]
		q.r = g.stream("tuples", population, j)
		// The first population takes the tuples in the order of the model, which
		// swapping mixed already.
		for from := 0; population > 0 && from < len(q.tuples); from += shuffleWindow {
			w := q.tuples[from:min(from+shuffleWindow, len(q.tuples))]
			q.r.Shuffle(len(w), func(i, j int) { w[i], w[j] = w[j], w[i] })
		}
	}
	return s
}

// sampleTimes implements [tupleSampler]: it merges the arrivals of all clients.
func (s *clientSampler) sampleTimes() []int64 {
	type clientArrival struct {
		ns     int64
		client uint8
	}
	fitted := make([]int64, len(s.queues))
	for j := range s.queues {
		fitted[j] = int64(len(s.queues[j].tuples))
	}
	n := s.g.counts[s.population]
	all := make([]clientArrival, 0, n)
	for j, own := range share(n, fitted) {
		r := s.g.stream("arrivals", s.population, j)
		for _, t := range s.g.model.clients[j].arrivals.Times(r, int(own), s.g.span) {
			all = append(all, clientArrival{t, uint8(j)})
		}
	}
	slices.SortStableFunc(all, func(a, b clientArrival) int { return cmp.Compare(a.ns, b.ns) })
	times := make([]int64, len(all))
	s.clients = make([]uint8, len(all))
	for r, a := range all {
		times[r], s.clients[r] = a.ns, a.client
	}
	return times
}

// sampleTuple implements [tupleSampler]. Beyond the last tuple of a client, it deals the
// second half of them again and again, each time in another order. Draws with
// replacement would keep the mean of what is known no better than a sample of that size
// does; runs of consecutive tuples kept the curve of hit ratios no better than single
// ones.
func (s *clientSampler) sampleTuple(r int) int32 {
	q := &s.queues[s.clients[r]]
	if q.done == len(q.tuples) {
		if !q.again {
			q.tuples, q.again = q.tuples[len(q.tuples)/2:], true
		}
		q.r.Shuffle(len(q.tuples), func(i, j int) { q.tuples[i], q.tuples[j] = q.tuples[j], q.tuples[i] })
		q.done = 0
	}
	q.done++
	return q.tuples[q.done-1]
}

// A tupleQueue hands out the tuples of one client.
type tupleQueue struct {
	tuples []int32
	done   int
	again  bool // only the second half is left
	r      *rand.Rand
}

// tupleQueues parts the tuples by client.
func (m *Model) tupleQueues() []tupleQueue {
	clients := map[int64]int{} // by user
	others := 0
	for i, c := range m.clients {
		if c.user == none {
			others = i
		} else {
			clients[c.user] = i
		}
	}
	out := make([]tupleQueue, len(m.clients))
	for i := range m.tuples {
		c, ok := clients[m.tuples[i].user]
		if !ok {
			c = others
		}
		out[c].tuples = append(out[c].tuples, int32(i))
	}
	return out
}

// shuffleWindow is the length of the windows in which a further population takes the
// tuples in an order of its own.
const shuffleWindow = 200

// A cellSampler is the [tupleSampler] of a model of cells: it draws each tuple anew
// and puts it into the model's own. Memory is about 150 bytes for each request.
type cellSampler struct {
	g          *generator
	population int
	first      int // place of the population's first tuple
	times      []int64
	r          *rand.Rand
}

// sampleTimes implements [tupleSampler].
func (s *cellSampler) sampleTimes() []int64 {
	g := s.g
	for _, n := range g.counts[:s.population] {
		s.first += int(n)
	}
	s.times = g.model.cells.times(g.stream("arrivals", s.population, 0), int(g.counts[s.population]), g.span, g.model.span)
	return s.times
}

// sampleTuple implements [tupleSampler].
func (s *cellSampler) sampleTuple(r int) int32 {
	m, at := s.g.model, s.first+r
	m.tuples[at] = m.cells.request(s.r, s.times[r]%m.span, m.meta.BlockSize)
	return int32(at)
}
