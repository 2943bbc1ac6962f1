package calibrate

import (
	"math"
	"runtime"
	"slices"
	"sync"

	"reprise/replay/engine"
)

// A miss counts by its square up to farMiss, a factor of e, and by its size beyond, as Huber
// (1964) has it, so that one request that went another way does not decide. One that was not
// answered at all counts as noAnswer.
const (
	farMiss  = 1.0
	noAnswer = 10.0
)

// A part takes requests of a record to compare: by their place in the order of sending.
type part func(r *Record, i int) bool

func whole(*Record, int) bool { return true }

// firstHalf are the requests of the first half of each record.
func firstHalf(r *Record, i int) bool { return i < len(r.requests)/2 }

func secondHalf(r *Record, i int) bool { return !firstHalf(r, i) }

// A miss is one predicted time against the measured one.
type miss struct {
	record, request int
	log             float64 // of predicted over measured
}

func (m *miss) square() float64 {
	if far := math.Abs(m.log); far > farMiss {
		return farMiss * (2*far - farMiss)
	}
	return m.log * m.log
}

// timesOf are what a request is compared by: TTFT, E2E, TPOT, and the median gap between
// tokens, where decoding that no prefill delays shows.
const timesOf = 4

// misses plays all records, several at once, and compares the requests of the part.
func misses(records []*Record, c engine.Config, of part) ([][]miss, error) {
	all := make([][]miss, len(records))
	errs := make([]error, len(records))
	each(len(records), func(k int) {
		r := records[k]
		p, err := r.play(c, false)
		if err != nil {
			errs[k] = err
			return
		}
		for i := range r.requests {
			q := &r.requests[i]
			if !q.measured || !of(r, i) {
				continue
			}
			tpot := math.NaN()
			if q.output > 1 {
				tpot = (p.e2e[i] - p.ttft[i]) / float64(q.output-1)
			}
			for _, t := range [timesOf][2]float64{{p.ttft[i], q.ttft}, {p.e2e[i], q.e2e}, {tpot, q.tpot()}, {p.gap[i], q.gap}} {
				if !(t[1] > 0) {
					continue // not measured
				}
				l := noAnswer
				if t[0] > 0 {
					l = math.Log(t[0] / t[1])
				}
				all[k] = append(all[k], miss{k, i, l})
			}
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// each calls f for 0 to n−1, on as many goroutines as there are processors.
func each(n int, f func(i int)) {
	var wait sync.WaitGroup
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		places <- struct{}{}
		wait.Go(func() {
			f(i)
			<-places
		})
	}
	wait.Wait()
}

// meanSquare is the mean over records of the mean square of their misses: each load counts
// as much as another, whatever its number of requests.
func meanSquare(all [][]miss) float64 {
	sum, n := 0.0, 0
	for _, record := range all {
		if len(record) == 0 {
			continue
		}
		squares := 0.0
		for _, m := range record {
			squares += m.square()
		}
		sum += squares / float64(len(record))
		n++
	}
	return sum / float64(max(n, 1))
}

// loss is what a fit makes least.
func loss(records []*Record, c engine.Config, of part) float64 {
	all, err := misses(records, c, of)
	if err != nil {
		return math.Inf(1)
	}
	return meanSquare(all)
}

// startingCosts are where a fit begins: of the order that the times of the records suggest.
// In one, reading memory decides how long a step takes, in another arithmetic.
func startingCosts(records []*Record) []engine.Costs {
	var gaps, ttfts, perToken, sequences []float64
	for _, r := range records {
		decoding := float64(max(r.peak().decoding, 1))
		sequences = append(sequences, decoding)
		for i := range r.requests {
			if q := &r.requests[i]; q.measured {
				if t := q.tpot(); t > 0 {
					gaps = append(gaps, t)
				}
				ttfts = append(ttfts, q.ttft)
				perToken = append(perToken, q.ttft/float64(max(q.input-q.reused, 16)))
			}
		}
	}
	ps := func(s float64) engine.Picos { return engine.Picos(max(s, 1e-9) * 1e12) }
	// Requests that waited say nothing of prefill: it is taken from the fastest, and from
	// what servers usually need for a token of a prompt beside a step.
	step, slow, most := lowest(gaps, 5), lowest(gaps, 95), slices.Max(sequences)
	prefill, ttft := min(lowest(perToken, 2), step/50), min(lowest(ttfts, 2)/4, step)
	kv := max(min(slow, 4*step)-step, step/4) / (most * 500)
	memory := engine.Costs{Step: ps(step), KVToken: ps(kv), PrefillToken: ps(prefill), DecodeSeq: ps(step / most / 8), Request: ps(ttft)}
	compute := engine.Costs{Step: ps(step * 0.9), KVToken: ps(kv / 4), PrefillToken: ps(prefill), DecodeSeq: ps(slow / most), Request: ps(ttft)}
	fast := engine.Costs{Step: ps(step * 0.9), KVToken: ps(kv / 2), PrefillToken: ps(prefill / 4), DecodeSeq: ps(step / most / 4), Request: ps(ttft)}
	return []engine.Costs{memory, compute, fast}
}

// lowest is the percentile of times in seconds.
func lowest(times []float64, percent int64) float64 {
	if len(times) == 0 {
		return 0.01
	}
	v := make([]int64, len(times))
	for i, t := range times {
		v[i] = nanos(t)
	}
	slices.Sort(v)
	return statistic{of: percent}.over(v) / 1e3
}

// evaluations are those of a round of a fit from each of the starts, and of the rounds
// that follow from the best.
const (
	firstEvaluations = 30
	laterEvaluations = 150
)

// fitCosts fits the costs of names, beginning at starts, with the rest of the engine as it
// is.
func fitCosts(records []*Record, c engine.Config, names []string, starts []engine.Costs, of part) (engine.Config, float64, error) {
	at := func(costs engine.Costs) float64 {
		c := c
		c.Costs = costs
		return loss(records, c, of)
	}
	best, least := starts[0], math.Inf(1)
	for _, start := range starts {
		evaluations := firstEvaluations
		if len(starts) == 1 {
			evaluations = laterEvaluations
		}
		costs, l, err := engine.FitCosts(start, names, evaluations, at)
		if err != nil {
			return c, l, err
		}
		if l < least {
			best, least = costs, l
		}
	}
	if len(starts) > 1 {
		costs, l, err := engine.FitCosts(best, names, laterEvaluations, at)
		if err != nil {
			return c, l, err
		}
		if l < least {
			best, least = costs, l
		}
	}
	c.Costs = best
	return c, least, nil
}
