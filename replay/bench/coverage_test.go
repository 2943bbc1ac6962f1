package bench

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"

	"reprise/replay/report"
	"reprise/trace/longtest"
	"reprise/trace/sample"
)

// A prefillQueue is a server in virtual time that prefills one prompt after the other, in
// order of arrival: the part of an engine that makes TTFT at high load. Prompts take 20 ms on
// average and are lognormally distributed with sigma 0.8. Its capacity is 50 req/s.
type prefillQueue struct {
	arrivals string  // poisson, gamma with a CV of 4, or sessions
	share    float64 // of its capacity that is offered
}

const prefillMS = 20.0

// A turn is the next of a session, when it is due.
type queuedTurn struct {
	at   float64
	left int // turns of the session after it
}

type queuedTurns []queuedTurn

func (q queuedTurns) Len() int           { return len(q) }
func (q queuedTurns) Less(i, j int) bool { return q[i].at < q[j].at }
func (q queuedTurns) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queuedTurns) Push(v any)        { *q = append(*q, v.(queuedTurn)) }
func (q *queuedTurns) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// run is the TTFT of n requests in nanoseconds, from an idle server. Sessions begin as a
// Poisson process, have five turns on average, geometrically distributed, and think for 400 ms
// on average, exponentially distributed, after each answer.
func (q prefillQueue) run(seed uint64, n int) []int64 {
	r := rand.New(rand.NewPCG(seed, 11))
	const turns = 5.0
	gap := func() float64 { // ms
		mean := prefillMS / q.share
		switch q.arrivals {
		case "gamma":
			return gammaOf(r, 1.0/16) * 16 * mean
		case "sessions":
			return r.ExpFloat64() * mean * turns
		}
		return r.ExpFloat64() * mean
	}
	out, free, next := make([]int64, n), 0.0, 0.0
	var later queuedTurns
	for i := range out {
		at, left := next, 0
		if len(later) > 0 && later[0].at <= next {
			t := heap.Pop(&later).(queuedTurn)
			at, left = t.at, t.left
		} else {
			next += gap()
			for q.arrivals == "sessions" && r.Float64() >= 1/turns {
				left++
			}
		}
		const sigma = 0.8
		free = max(free, at) + prefillMS*math.Exp(sigma*r.NormFloat64()-sigma*sigma/2)
		out[i] = int64((free - at) * 1e6)
		if left > 0 {
			heap.Push(&later, queuedTurn{free + r.ExpFloat64()*400, left - 1})
		}
	}
	return out
}

// gammaOf draws from a gamma distribution of shape k < 1 and scale 1 (Marsaglia and Tsang,
// "A simple method for generating gamma variables", 2000).
func gammaOf(r *rand.Rand, k float64) float64 {
	d := k + 1 - 1.0/3
	for {
		x := r.NormFloat64()
		v := 1 + x/math.Sqrt(9*d)
		v = v * v * v
		if v > 0 && math.Log(r.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v * math.Pow(r.Float64(), 1/k)
		}
	}
}

// The truths of [prefillQueue], in ms: p50, p95 and p99 of TTFT over 20 runs of 2.5 million
// requests each. TestTruthsOfTheQueue computes them again.
var queueTruths = map[prefillQueue][3]float64{
	{"poisson", 0.5}:   {25.68, 117.7, 194.7},
	{"poisson", 0.8}:   {63.49, 294.3, 461.8},
	{"poisson", 0.95}:  {261.3, 1148, 1765},
	{"gamma", 0.5}:     {191.2, 826.5, 1275},
	{"gamma", 0.8}:     {548.7, 2388, 3625},
	{"gamma", 0.95}:    {2327, 10110, 15250},
	{"sessions", 0.5}:  {25.75, 116.6, 190.4},
	{"sessions", 0.8}:  {64.21, 293.5, 453.6},
	{"sessions", 0.95}: {273.3, 1239, 1976},
}

// truth is that of a queue, from runs of some length.
func (q prefillQueue) truth(runs, n int) (out [3]float64) {
	var all sample.Values // a histogram: within 0.1 %
	for seed := range uint64(runs) {
		for _, v := range q.run(1<<40+seed, n+n/20)[n/20:] {
			all.Add(v)
		}
	}
	order := all.Order()
	for i, p := range ttftPercentiles {
		out[i] = float64(order.At(int64(p*1000), 1000)) / 1e6
	}
	return out
}

var queues = func() (out []prefillQueue) {
	for _, arrivals := range []string{"poisson", "gamma", "sessions"} {
		for _, share := range []float64{.5, .8, .95} {
			out = append(out, prefillQueue{arrivals, share})
		}
	}
	return out
}()

// eachOf does something for each of n, on all cores.
func eachOf(n int, do func(i int)) {
	var wait sync.WaitGroup
	work := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range work {
				do(i)
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wait.Wait()
}

func TestTruthsOfTheQueue(t *testing.T) {
	if os.Getenv("REPRISE_TEST_STATISTICS") == "" {
		t.Skip("REPRISE_TEST_STATISTICS is not set: 450 million requests in virtual time")
	}
	for _, q := range queues {
		t.Run(fmt.Sprintf("%s-%g", q.arrivals, 100*q.share), func(t *testing.T) {
			got := q.truth(20, 2_500_000)
			t.Logf("{%q, %v}: {%.4g, %.4g, %.4g},", q.arrivals, q.share, got[0], got[1], got[2])
			for j, want := range queueTruths[q] {
				if math.Abs(got[j]/want-1) > 0.001 {
					t.Errorf("%+v: p%v of TTFT is %v ms, and the table says %v", q, 100*ttftPercentiles[j], got[j], want)
				}
			}
		})
	}
}

// A covered cell says how intervals of one percentile did, over seeds.
type covered struct {
	given, holds, narrow, values int
}

// cover makes a level for each seed, by runs until its intervals are within ±10 % or its budget
// ends, as a sweep makes one. add measures another run; truth is in ms.
func cover(seeds int, budget int64, truth [3]float64, add func(m *measurement, seed uint64)) (out [3]covered) {
	s := Sweep{Precision: .1, Budget: budget}
	var lock sync.Mutex
	eachOf(seeds, func(seed int) {
		m := newMeasurement(&report.Options{}, false)
		m.budget = budget
		var got [3]sample.Interval
		var values [3]int
		for over := [3]bool{}; over != [3]bool{true, true, true} && (m.values == 0 || !s.spent(m)); {
			add(m, uint64(seed)<<8|uint64(m.runs))
			for i, f := range m.figures {
				if !over[i] {
					got[i], values[i] = f.interval(m.repeated(confidence, shownPower)), int(m.values)
					over[i] = m.narrow(f, s.Precision)
				}
			}
		}
		lock.Lock()
		defer lock.Unlock()
		for i := range out {
			c := &out[i]
			c.values += values[i]
			if got[i].Lacks != "" {
				continue
			}
			c.given++
			if got[i].Low <= truth[i] && truth[i] <= got[i].High {
				c.holds++
			}
			if got[i].Half() <= s.Precision {
				c.narrow++
			}
		}
	})
	return out
}

// measure adds a run to a level that is as long as all before it, or as its budget leaves.
func (q prefillQueue) measure(m *measurement, seed uint64, first, warmup int64) {
	n := first
	if m.values > 0 {
		n = min(m.values, m.budget-m.values)
	}
	m.take(q.run(seed, int(n+n/warmup))[n/warmup:])
}

// take adds the TTFTs of a run.
func (m *measurement) take(values []int64) {
	for _, f := range m.figures {
		f.values.Add(values)
	}
	m.runs, m.values = m.runs+1, m.values+int64(len(values))
}

// hold checks the cells of a level, of so many seeds: that intervals hold the truth at least and
// at most as often where nine of ten seeds get one, and that few are wrong.
func hold(t *testing.T, arrivals string, share float64, seeds int, cells [3]covered, least, most, mostWrong float64) {
	t.Helper()
	for i, c := range cells {
		n := float64(seeds)
		covers, wrong := float64(c.holds)/float64(max(c.given, 1)), float64(c.given-c.holds)/n
		t.Logf("| %s | %g %% | p%g | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %.0f |", arrivals, 100*share, 100*ttftPercentiles[i],
			100*float64(c.given)/n, 100*covers, 100*wrong, 100*float64(c.narrow)/n, float64(c.values)/n)
		switch {
		case wrong > mostWrong:
			t.Errorf("%.1f %% of all seeds have an interval of p%v that does not hold the truth", 100*wrong, 100*ttftPercentiles[i])
		case float64(c.given) >= .9*n && (covers < least || covers > most):
			t.Errorf("%.1f %% of the intervals of p%v hold the truth, want %v to %v", 100*covers, 100*ttftPercentiles[i], least, most)
		}
	}
}

// Of the 95 % intervals of TTFT, 95 of 100 hold the truth, at every load and with every kind
// of arrivals; where a level has too few requests to say, there is no interval. The long form
// has 1,000 seeds and more requests. docs/evidence/intervals.md has its table.
func TestIntervalsCover(t *testing.T) {
	longtest.Skip(t)
	seeds, budget, least, most := 200, int64(16_000), .90, .99
	if os.Getenv("REPRISE_TEST_STATISTICS") != "" {
		seeds, budget, least, most = 1000, 50_000, .92, .98
	}
	for _, q := range queues {
		t.Run(fmt.Sprintf("%s-%g", q.arrivals, 100*q.share), func(t *testing.T) {
			cells := cover(seeds, budget, queueTruths[q], func(m *measurement, seed uint64) { q.measure(m, seed, 2000, 4) })
			hold(t, q.arrivals, q.share, seeds, cells, least, most, .095)
		})
	}
}
