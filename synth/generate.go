package synth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"reprise/trace/arrival"
	"reprise/trace/crash"
)

// Generate makes a workload: for each arrival the next place of its population's sequence,
// which extends the prompt that the place's parent has. Arrivals go by the model's gaps where the workload
// is one user's and as long as the trace, and are drawn from its cascade otherwise. A stack distance follows from how
// many requests lie between the two. So the workload keeps the curve of hit ratios and the trees of
// sessions, which independent draws from a tree do not. Beyond the length of the trace, passes deal whole
// sessions in random order, and the parts of the rate's course likewise.
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
		m = m.drawnFrom(counts)
	}
	w := &Workload{model: m, options: o, populations: make([]population, len(counts))}
	g := generator{model: m, options: o, span: span, counts: counts}
	var wait sync.WaitGroup
	errs := make([]error, len(w.populations))
	if m.copies() > 1 {
		g.orders = make([][]dealt, len(counts))
		for user := range o.Users {
			g.orderCopies(user, w.populations)
		}
	}
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range w.populations {
		wait.Add(1)
		slots <- struct{}{}
		go func() {
			defer wait.Done()
			defer crash.Caught()
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
	if m.sampled != nil {
		n = m.sampled.Requests
	}
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
		return nil, 0, errors.New("a workload has at most 2^31-1 requests within 2^62 nanoseconds: ask for " +
			"fewer requests")
	}
	if m.arrivals != nil && span/m.span >= int64(arrival.MaxParts/len(m.arrivals.Parts())) {
		return nil, 0, errors.New("a workload is at most some million parts of the trace's time long: ask for " +
			"fewer requests")
	}
	if total == 0 {
		return nil, 0, errors.New("the duration is too short for one request: raise it")
	}
	if float64(span) >= math.MaxInt64/2*o.Speed {
		return nil, 0, errors.New("at this speed the workload takes more than 2^62 nanoseconds: raise the speed")
	}
	return share(total, slices.Repeat([]int64{1}, o.Users*m.copies())), max(span, 1), nil
}

// A generator grows the populations of one workload, several at a time.
type generator struct {
	model   *Model
	options Options
	span    int64   // of the model's time
	counts  []int64 // by population, the copies of a user one after the other: its requests

	orders [][]dealt // by population: the order of its places, where there are copies of a sample

	placed atomic.Int64 // requests of all populations so far, for Options.Progress
}

// growPopulation generates population i: its arrivals, and for each a request.
func (g *generator) growPopulation(ctx context.Context, i int, p *population) error {
	m, n := g.model, g.counts[i]
	p.size, p.templates = m.meta.BlockSize, m.templates
	if m.sourced {
		p.session, p.prior = make([]int32, 0, n), make([]int32, 0, n)
	}
	p.places = make([]int32, 0, n)
	var add func(r int)
	if m.cells != nil {
		add = g.drawCells(i, p)
	} else {
		var s *sequence
		if g.orders == nil {
			s = newSequence(m.places, i, n, g.stream("places", i))
		}
		switch {
		case s == nil:
			s, g.orders[i] = orderedSequence(m.places, g.orders[i]), nil
		case m.gaps != nil && n == int64(len(m.gaps)) && len(g.counts) == 1 && g.span == m.span:
			r := g.stream("arrivals", i)
			p.times = s.arrange(m.timesByGaps(r))
			m.arrivals.OffTicks(r, p.times)
		default:
			p.times = g.times(i, n)
		}
		add = func(int) {
			at, pass, parent, after := s.nextPlace()
			p.places = append(p.places, at)
			p.addPlace(&m.places[at], pass, parent, after)
		}
	}
	for r := range int(n) {
		if r%progressRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if done := g.placed.Add(int64(min(r, progressRows))); g.options.Progress != nil {
				g.options.Progress(done)
			}
		}
		add(r)
	}
	p.release()
	return nil
}

// times draws the arrivals of one of the users.
func (g *generator) times(user int, n int64) []int64 {
	m := g.model
	parts := course(m.arrivals.Parts(), g.stream("course", user), g.options.Users, g.span, m.span,
		int64(g.options.SharedAbove))
	return m.arrivals.Times(g.stream("arrivals", user), int(n), parts)
}

// stream is the random stream of one purpose of one population.
func (g *generator) stream(purpose string, population int) *rand.Rand {
	return arrival.Stream(g.options.Seed, fmt.Sprintf("synth/%s/%d", purpose, population))
}
