package calibrate

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/optimize"

	"reprise/replay/engine"
)

// A recordedStep is a gap between two tokens of a request: a step of the engine, with what
// the records say was in it.
type recordedStep struct {
	seconds     float64
	kv          float64 // tokens of KV
	prefill     float64 // prompt tokens of the requests whose first token came in it
	decode      float64 // sequences
	uncertainly bool    // a prompt may have been under way that had no token yet
}

// mostSteps is how many gaps of a record are taken.
const mostSteps = 4000

// stepEvent is a token: what it changes in the steps that follow.
type stepEvent struct {
	at                 engine.Picos
	kv, decode         int
	first, firstTokens int // a first token, and the prompt tokens that were computed for it
}

// steps are the gaps of a record. What else was in a step is taken from the tokens of the
// other requests: those of one step come at about the same instant.
func (r *Record) steps() []recordedStep {
	var events []stepEvent
	total := 0
	for i := range r.requests {
		q := &r.requests[i]
		if !(q.ttft > 0) || q.output < 2 {
			continue
		}
		gaps := q.gaps
		if len(gaps) == 0 { // its tokens came at some instants between the first and the last
			gaps = slices.Repeat([]int64{nanos(q.tpot())}, q.output-1)
		} else {
			total += len(gaps)
		}
		at := q.sent + engine.Picos(q.ttft*1e12)
		events = append(events, stepEvent{at, q.input + 1, 1, 1, q.input - q.reused})
		for k, gap := range gaps {
			at += picos(gap)
			e := stepEvent{at: at, kv: 1}
			if k == len(gaps)-1 {
				e.kv, e.decode = -q.input-len(gaps), -1
			}
			events = append(events, e)
		}
	}
	slices.SortFunc(events, func(a, b stepEvent) int { return cmp.Compare(a.at, b.at) })
	sums := make([]stepEvent, len(events)+1)
	for i, e := range events {
		s := sums[i]
		sums[i+1] = stepEvent{e.at, s.kv + e.kv, s.decode + e.decode, s.first + e.first, s.firstTokens + e.firstTokens}
	}
	upTo := func(at engine.Picos) stepEvent {
		return sums[sort.Search(len(events), func(i int) bool { return events[i].at > at })]
	}
	waits := r.waits()
	every := max(total/mostSteps, 1)
	var out []recordedStep
	n := 0
	for i := range r.requests {
		q := &r.requests[i]
		if !(q.ttft > 0) || !q.measured {
			continue
		}
		at := q.sent + engine.Picos(q.ttft*1e12)
		for _, gap := range q.gaps {
			from, to := at, at+picos(gap)
			at = to
			if n++; n%every > 0 || gap <= 0 {
				continue
			}
			same := picos(gap) / 4 // later than this is another step
			before, after := upTo(from+same), upTo(to+same)
			if before.decode < 1 {
				continue
			}
			s := recordedStep{seconds: seconds(gap), decode: float64(before.decode),
				prefill: float64(after.firstTokens - before.firstTokens)}
			s.kv = float64(before.kv) + s.prefill
			s.uncertainly = waits(from, to+same)
			out = append(out, s)
		}
	}
	return out
}

// waits tells whether a request was sent before from and had no token at to.
func (r *Record) waits() func(from, to engine.Picos) bool {
	type span struct{ sent, latest engine.Picos } // latest first token of all that were sent by then
	var spans []span
	for i := range r.requests { // in the order in which they were sent
		q := &r.requests[i]
		first := q.sent
		if q.ttft > 0 {
			first += engine.Picos(q.ttft * 1e12)
		}
		if n := len(spans); n > 0 {
			first = max(first, spans[n-1].latest)
		}
		spans = append(spans, span{q.sent, first})
	}
	return func(from, to engine.Picos) bool {
		i := sort.Search(len(spans), func(i int) bool { return spans[i].sent > from })
		return i > 0 && spans[i-1].latest > to
	}
}

// leastSteps is how many gaps costs are taken from.
const leastSteps = 100

// stepCosts are the costs that explain the recorded gaps best, each by itself, given what
// was recorded to be in its step. It is not ok where the records have too few gaps.
func stepCosts(records []*Record, of part) (costs engine.Costs, ok bool) {
	var all []recordedStep
	for _, r := range records {
		only := *r
		only.requests = nil
		for i, q := range r.requests {
			q.measured = q.measured && of(r, i)
			only.requests = append(only.requests, q)
		}
		all = append(all, only.steps()...)
	}
	certain := slices.DeleteFunc(slices.Clone(all), func(s recordedStep) bool { return s.uncertainly })
	if len(certain) < leastSteps {
		certain = all
	}
	if len(certain) < leastSteps {
		return costs, false
	}
	best, least := []float64(nil), math.Inf(1)
	miss := func(x []float64) float64 {
		sum := 0.0
		for i := range certain {
			s := &certain[i]
			t := max(math.Exp(x[0])+math.Exp(x[1])*s.kv, math.Exp(x[2])*s.prefill+math.Exp(x[3])*s.decode)
			// four times, so that the square ends at a quarter of a factor of e
			m := miss{log: 4 * math.Log(t/s.seconds)}
			sum += m.square()
		}
		return sum
	}
	for _, start := range startingCosts(records) {
		x := []float64{math.Log(secondsOf(start.Step)), math.Log(secondsOf(start.KVToken)),
			math.Log(secondsOf(start.PrefillToken)), math.Log(secondsOf(start.DecodeSeq))}
		for range 4 {
			r, err := optimize.Minimize(optimize.Problem{Func: miss}, x, &optimize.Settings{FuncEvaluations: 400},
				&optimize.NelderMead{SimplexSize: 0.4})
			if r == nil {
				return costs, err == nil
			}
			if x = r.X; r.F < least {
				best, least = slices.Clone(r.X), r.F
			}
		}
	}
	ps := func(x float64) engine.Picos { return max(engine.Picos(math.Exp(x)*1e12), 1) }
	costs = engine.Costs{Step: ps(best[0]), KVToken: ps(best[1]), PrefillToken: ps(best[2]), DecodeSeq: ps(best[3])}
	costs.Request = requestCost(records, costs)
	return costs, true
}

// requestCost is what requests that found the engine idle took to their first token beyond
// their step; without any, a quarter of the shortest TTFT.
func requestCost(records []*Record, c engine.Costs) engine.Picos {
	var idle []int64
	shortest := math.Inf(1)
	for _, r := range records {
		over := engine.Picos(0)
		for i := range r.requests {
			q := &r.requests[i]
			if q.measured && q.ttft > 0 {
				shortest = min(shortest, q.ttft)
				if q.sent > over {
					computed := float64(q.input - q.reused)
					step := max(secondsOf(c.Step)+secondsOf(c.KVToken)*float64(q.input),
						secondsOf(c.PrefillToken)*computed)
					idle = append(idle, nanos(q.ttft-step))
				}
			}
			over = max(over, q.done)
		}
	}
	slices.Sort(idle)
	if len(idle) > 0 {
		if middle := idle[len(idle)/2]; middle > 0 {
			return picos(middle)
		}
	}
	return max(engine.Picos(shortest/4*1e12), 1)
}
