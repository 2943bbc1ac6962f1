package synth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"reprise/trace/arrival"
)

// Options say what to generate from a [Model]. There are two ways to more load,
// and they differ: more Users bring more sessions side by side, with the same
// think times, and push each other's prefixes deeper into the LRU stack; a
// higher Speed brings the same requests in less time, and leaves distances as
// they are.
type Options struct {
	Seed uint64
	// Requests is how many requests to generate. Beyond those fitted the
	// process continues: see [Model.Generate]. 0 means as many as Duration says.
	Requests int64
	// Duration is the length of the workload. 0, without Requests, means that
	// of the trace divided by Speed.
	Duration time.Duration
	// Users is the number of independent populations, each the size of the
	// trace's; 0 means 1. They share the prefixes that more than half of the
	// requests of a cache domain carry, and nothing else.
	Users int
	// Speed divides all times; 0 means 1.
	Speed float64
	// Progress, when not nil, is called with the number of requests placed so
	// far, now and then, from any goroutine.
	Progress func(requests int64)
}

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
		m = m.drawn(counts)
	}
	w := &Workload{model: m, options: o, crowds: make([]crowd, o.Users)}
	domains := domainsOf(m.labels)
	var placed atomic.Int64
	var wait sync.WaitGroup
	errs := make([]error, o.Users)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range w.crowds {
		wait.Add(1)
		slots <- struct{}{}
		go func() {
			defer wait.Done()
			errs[i] = m.crowd(ctx, &w.crowds[i], i, counts[i], span, o, domains, &placed)
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

func (o *Options) check() error {
	o.Users = max(o.Users, 1)
	if o.Speed == 0 {
		o.Speed = 1
	}
	switch {
	case o.Users > 1<<16:
		return fmt.Errorf("more than %d populations of users", 1<<16)
	case !(o.Speed > 0) || math.IsInf(o.Speed, 0):
		return errors.New("the speed must be above 0")
	case o.Requests < 0 || o.Duration < 0:
		return errors.New("neither requests nor duration can be negative")
	case o.Requests > 0 && o.Duration > 0:
		return errors.New("give requests or a duration: the rate of the model makes one of the other")
	}
	return nil
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
		return nil, 0, errors.New("a workload has at most 2^31-1 requests within 2^62 nanoseconds: ask for fewer")
	}
	if total == 0 {
		return nil, 0, errors.New("so short a duration has no request")
	}
	if float64(span) >= math.MaxInt64/2*o.Speed {
		return nil, 0, errors.New("at so low a speed the workload takes more than 2^62 nanoseconds")
	}
	return share(total, slices.Repeat([]int64{1}, o.Users)), max(span, 1), nil
}

// mulDiv is x·num/den rounded down, and the greatest int64 where that is more.
func mulDiv(x, num, den int64) int64 {
	hi, lo := bits.Mul64(uint64(x), uint64(num))
	if hi >= uint64(den) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(den))
	return int64(min(q, math.MaxInt64))
}

// share splits total in proportion to weights, so that the sum is exact: each
// gets what the running total allows.
func share(total int64, weights []int64) []int64 {
	var sum, upTo, done int64
	for _, w := range weights {
		sum += w
	}
	out := make([]int64, len(weights))
	for i, w := range weights {
		upTo += w
		out[i] = mulDiv(total, upTo, sum) - done
		done += out[i]
	}
	return out
}

// A crowd is one population with what it was made of.
type crowd struct {
	population
	tuples []int32 // by request: of the model
}

// crowd generates population i.
func (m *Model) crowd(ctx context.Context, c *crowd, i int, n, span int64, o Options, domains []uint16, placed *atomic.Int64) error {
	if m.cells != nil {
		return m.drawCrowd(ctx, c, i, span, o, placed)
	}
	queues := m.queues()
	own := make([]int64, len(queues))
	for j := range queues {
		own[j] = int64(len(queues[j].tuples))
	}
	own = share(n, own)
	c.size, c.sourced = m.meta.BlockSize, m.sourced
	c.domains = make([]domain, domainCount(domains))
	c.times = make([]int64, 0, n)
	c.tuples = make([]int32, 0, n)
	from := m.arrivals(c, queues, own, i, span, o.Seed)
	for j := range queues {
		queues[j].begin(stream(o.Seed, "tuples", i, j), i > 0)
	}
	for r, j := range from {
		if r%progressRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if done := placed.Add(int64(min(r, progressRows))); o.Progress != nil {
				o.Progress(done)
			}
		}
		t := queues[j].next()
		c.tuples = append(c.tuples, t)
		c.place(&m.tuples[t], domains[m.tuples[t].label])
	}
	c.release()
	return nil
}

// arrivals draws the arrivals of all clients, puts the times in order into c,
// and returns which client each is of.
func (m *Model) arrivals(c *crowd, queues []queue, own []int64, i int, span int64, seed uint64) []uint8 {
	type at struct {
		ns     int64
		client uint8
	}
	var all []at
	for j := range queues {
		r := stream(seed, "arrivals", i, j)
		for _, t := range m.clients[j].arrivals.Times(r, int(own[j]), span) {
			all = append(all, at{t, uint8(j)})
		}
	}
	slices.SortStableFunc(all, func(a, b at) int {
		switch {
		case a.ns < b.ns:
			return -1
		case a.ns > b.ns:
			return 1
		}
		return 0
	})
	from := make([]uint8, len(all))
	for r, a := range all {
		c.times = append(c.times, a.ns)
		from[r] = a.client
	}
	return from
}

// stream is the random stream of one purpose of one client of one population.
func stream(seed uint64, purpose string, population, client int) *rand.Rand {
	return arrival.Stream(seed, fmt.Sprintf("synth/%s/%d/%d", purpose, population, client))
}

// A queue hands out the tuples of one client.
type queue struct {
	tuples []int32
	done   int
	again  bool // only the second half is left
	r      *rand.Rand
}

// queues parts the tuples by client.
func (m *Model) queues() []queue {
	out := make([]queue, len(m.clients))
	of := m.clientOf()
	for i := range m.tuples {
		q := &out[of(&m.tuples[i])]
		q.tuples = append(q.tuples, int32(i))
	}
	return out
}

// shuffled is the length of the windows in which a further population takes the
// tuples in an order of its own.
const shuffled = 200

// begin readies a queue. The first population takes the tuples in the order of
// the model, which swapping mixed already.
func (q *queue) begin(r *rand.Rand, shuffle bool) {
	q.r = r
	for from := 0; shuffle && from < len(q.tuples); from += shuffled {
		w := q.tuples[from:min(from+shuffled, len(q.tuples))]
		r.Shuffle(len(w), func(i, j int) { w[i], w[j] = w[j], w[i] })
	}
}

// next returns the next tuple. Beyond the last, it deals the second half of them
// again and again, each time in another order: draws with replacement would
// keep the mean of what is known no better than a sample of that size does, and
// runs of consecutive tuples kept the curve no better than single ones.
func (q *queue) next() int32 {
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

// domainsOf returns the cache domain of each label.
func domainsOf(labels []label) []uint16 {
	var known numbering[[2]string]
	out := make([]uint16, len(labels))
	for i, l := range labels {
		out[i] = uint16(known.of([2]string{l.model, l.adapter}))
	}
	return out
}

// domainCount is how many domains the labels have.
func domainCount(labels []uint16) int {
	n := 0
	for _, d := range labels {
		n = max(n, int(d)+1)
	}
	return n
}

// release drops what only placing needs.
func (p *population) release() {
	for i := range p.domains {
		p.domains[i] = domain{trunk: p.domains[i].trunk}
	}
	p.seat, p.chain = nil, nil
	p.sessions = sessions{session: p.session}
	p.forest.low, p.forest.steps, p.forest.stack = nil, nil, weights{}
}
