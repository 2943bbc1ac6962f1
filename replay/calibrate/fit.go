package calibrate

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"reprise/replay/engine"
	"reprise/replay/figure"
	"reprise/trace/crash"
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
			for _, t := range [timesOf][2]float64{{p.ttft[i], q.ttft}, {p.e2e[i], q.e2e}, {tpot, q.tpot()},
				{p.gap[i], q.gap}} {
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
			defer crash.Caught()
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

// lossOf is what a fit makes least; immense once the fit is interrupted, so that it ends.
func (f *fitted) lossOf(c engine.Config) float64 {
	if f.ctx.Err() != nil {
		return math.Inf(1)
	}
	all, err := misses(f.records, c, f.of)
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
	memory := engine.Costs{Step: ps(step), KVToken: ps(kv), PrefillToken: ps(prefill), DecodeSeq: ps(step / most / 8),
		Request: ps(ttft)}
	compute := engine.Costs{Step: ps(step * 0.9), KVToken: ps(kv / 4), PrefillToken: ps(prefill),
		DecodeSeq: ps(slow / most), Request: ps(ttft)}
	fast := engine.Costs{Step: ps(step * 0.9), KVToken: ps(kv / 2), PrefillToken: ps(prefill / 4),
		DecodeSeq: ps(step / most / 4), Request: ps(ttft)}
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
	return statisticOf(figure.Percentile(float64(percent)/100), v) / 1e3
}

// Evaluations are those of each round of a fit: from one of several starts, from the best
// of them, and from a start that is near.
const (
	firstEvaluations = 30
	laterEvaluations = 150
	nearEvaluations  = 50
)

// fitCosts fits the costs of names, beginning at starts, with the rest of the engine as it
// is, and returns the engine and what it misses.
func (f *fitted) fitCosts(c engine.Config, names []string, starts []engine.Costs) (engine.Config, float64, error) {
	at := func(costs engine.Costs) float64 {
		c := c
		c.Costs = costs
		return f.lossOf(c)
	}
	best, least, size, later := starts[0], math.Inf(1), 0.6, laterEvaluations
	if len(starts) == 1 { // which is near
		size, later = 0.1, nearEvaluations
	}
	from := func(start engine.Costs, evaluations int) error {
		costs, l, err := engine.FitCosts(start, names, evaluations, size, at)
		if l < least {
			best, least = costs, l
		}
		return errors.Join(err, f.ctx.Err())
	}
	if len(starts) > 1 {
		for _, start := range starts {
			if err := from(start, firstEvaluations); err != nil {
				return c, least, err
			}
		}
	}
	err := from(best, later)
	if err == nil {
		best, least, err = f.descend(c, best, names, least)
	}
	c.Costs = best
	return c, least, err
}

// descents bounds the steps of [fitted.descend].
const descents = 12

// descend goes on from costs by the steps of Levenberg (1944) and Marquardt (1963), as long
// as they lead to less than the loss so far: near the best costs misses change smoothly
// with them, and the simplex is slow.
func (f *fitted) descend(c engine.Config, costs engine.Costs, names []string,
	least float64) (engine.Costs, float64, error) {
	damping := 1e-3
	for range descents {
		c.Costs = costs
		slopes, err := sensitivity(f.records, c, names, f.of)
		if err != nil {
			return costs, least, err
		}
		all, err := misses(f.records, c, f.of)
		if err != nil {
			return costs, least, err
		}
		square, toward := normalEquations(all, slopes, len(names))
		was := least
		for damping < 1e3 && least == was && f.ctx.Err() == nil {
			step, ok := dampedStep(square, toward, damping)
			if !ok {
				damping *= 10
				continue
			}
			next := costs.Scaled(names, step)
			c.Costs = next
			if l := f.lossOf(c); l < least {
				costs, least = next, l
				damping /= 10
			} else {
				damping *= 10
			}
		}
		if least > was*0.9999 {
			break
		}
	}
	return costs, least, nil
}

// normalEquations are those of the weighted least squares of misses, in the logarithms of
// costs.
func normalEquations(all [][]miss, slopes [][][]float64, n int) (square *mat.SymDense, toward *mat.VecDense) {
	square, toward = mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for k := range all {
		for i, m := range all[k] {
			weight := 1 / float64(len(all[k]))
			if far := math.Abs(m.log); far > farMiss {
				weight *= farMiss / far
			}
			row := mat.NewVecDense(n, slopes[k][i])
			square.SymRankOne(square, weight, row)
			toward.AddScaledVec(toward, -weight*m.log, row)
		}
	}
	return square, toward
}

// dampedStep is where the least squares lead, no farther than a factor of e in any cost.
func dampedStep(square *mat.SymDense, toward *mat.VecDense, damping float64) ([]float64, bool) {
	n := square.SymmetricDim()
	damped := mat.NewSymDense(n, nil)
	damped.CopySym(square)
	for i := range n {
		damped.SetSym(i, i, square.At(i, i)*(1+damping)+1e-12)
	}
	var step mat.VecDense
	if err := step.SolveVec(damped, toward); err != nil {
		return nil, false
	}
	for i := range n {
		if !(math.Abs(step.AtVec(i)) <= 1) {
			return nil, false
		}
	}
	return step.RawVector().Data, true
}
