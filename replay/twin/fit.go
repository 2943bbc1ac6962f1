package twin

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat"

	"reprise/replay/engine"
)

const (
	leastFitted    = 200    // requests that were answered
	mostFitted     = 12_000 // requests that are played for a fit
	fitStarts      = 3
	fitEvaluations = 150 // of each
	fitSize        = 0.3 // of the simplex, as a natural logarithm
	fitBound       = 3.0 // of a cost in a start
	squaredMiss    = 0.5 // as a natural logarithm: larger misses count by themselves, not squared
	// settles is the share of a run after which its engine is no longer idle: before it
	// requests are played, and not fitted.
	settles = 10
)

var errFew = errors.New("twin: too few requests were answered to fit an engine to them")

// budgets are the step budgets that are tried: vLLM's defaults online and offline, and a small one.
var budgets = []int{2048, 8192, 512}

// tellsLimit is how many times smaller the misses have to be for places to count as limited.
const tellsLimit = 0.9

// Fit returns the engine that explains best how long the requests of some runs took, by the mean
// square of the logarithms of played over measured TTFT and E2E. Costs are fitted to the first 12,000
// requests of the longest run, what a request takes beside its steps ([engine.Costs].Request) among
// them; the step budget, and whether as many sequences as were ever seen are all that may run, are what
// explains all runs best.
//
// Where the runs do not tell that there is such a limit, the engine has none, and limited is the same
// engine with it: the server may be anything between the two. Else both are the same.
func Fit(runs [][]Request) (best, limited Engine, err error) {
	if len(runs) == 0 {
		return best, limited, errFew
	}
	longest := slices.MaxFunc(runs, func(a, b []Request) int { return len(a) - len(b) })
	f := &fit{requests: longest[:min(len(longest), mostFitted)]}
	start, ok := f.start(runs)
	if !ok {
		return best, limited, errFew
	}
	if limited, err = f.costs(start); err != nil {
		return best, limited, err
	}
	least := math.Inf(1)
	for _, budget := range budgets {
		tried := limited
		tried.Budget = budget
		if miss := missOf(runs, &tried); miss < least {
			limited, least = tried, miss
		}
	}
	if limited.Budget != start.Budget {
		if limited, err = f.costs(limited); err != nil {
			return best, limited, err
		}
		least = missOf(runs, &limited)
	}
	best = limited
	if best.Seqs = 0; least < tellsLimit*missOf(runs, &best) {
		best = limited
	}
	return best, limited, nil
}

// missOf is how badly an engine explains all runs.
func missOf(runs [][]Request, e *Engine) float64 {
	sum, n := 0.0, 0
	for _, run := range runs {
		f := fit{requests: run}
		sum, n = sum+f.miss(e)*float64(len(run)), n+len(run)
	}
	return sum / float64(n)
}

// A fit is of one engine to requests.
type fit struct {
	requests []Request
	kv       float64 // tokens, at most at once
}

// start is an engine from where the simplex begins: the steps that the records show, the
// share of the time in which prompts were computed that explains them best, and as many places
// as were taken at once in any run.
func (f *fit) start(runs [][]Request) (Engine, bool) {
	var ttft []float64
	prompts := 0.0
	for i := range f.requests {
		r := &f.requests[i]
		if prompts += float64(r.Prompt); r.TTFTNS > 0 && r.E2ENS >= r.TTFTNS {
			ttft = append(ttft, float64(r.TTFTNS))
		}
	}
	if len(ttft) < leastFitted || prompts == 0 {
		return Engine{}, false
	}
	step, kvToken, ok := stepsOf(f.requests)
	if !ok {
		return Engine{}, false
	}
	slices.Sort(ttft)
	most := 1
	for _, run := range runs {
		most = max(most, loadOf(run).most)
	}
	f.kv = float64(most) * prompts / float64(len(f.requests))
	span := float64(f.requests[len(f.requests)-1].DueNS - f.requests[0].DueNS)
	ps := func(ns float64) engine.Picos { return engine.Picos(max(ns*1e3, 1)) }
	e := Engine{Seqs: most, Budget: budgets[0], Costs: engine.Costs{Step: ps(step), KVToken: ps(kvToken), Request: ps(ttft[len(ttft)/50] / 2)}}
	least := math.Inf(1)
	for tried, share := e, 0.1; share < 1; share *= 1.2 {
		tried.Costs.PrefillToken = ps(span / prompts * share)
		if miss := f.miss(&tried); miss < least {
			e, least = tried, miss
		}
	}
	return e, true
}

// A load is what a run decoded at once.
type load struct {
	at   []int64   // instants at which a request began or ended
	sum  []float64 // KV tokens until then, times ns
	kv   []float64 // from then on
	most int       // requests
}

func loadOf(run []Request) (l load) {
	type change struct {
		at int64
		by int
		kv float64
	}
	var changes []change
	for i := range run {
		if r := &run[i]; r.TTFTNS > 0 && r.E2ENS >= r.TTFTNS {
			kv := float64(r.Prompt) + float64(r.Output)/2 // half of its answer on average
			changes = append(changes, change{r.DueNS + r.TTFTNS, 1, kv}, change{r.DueNS + r.E2ENS, -1, -kv})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	running, kv, sum := 0, 0.0, 0.0
	for i, c := range changes {
		if i > 0 {
			sum += kv * float64(c.at-changes[i-1].at)
		}
		running, kv = running+c.by, kv+c.kv
		l.most = max(l.most, running)
		l.at, l.sum, l.kv = append(l.at, c.at), append(l.sum, sum), append(l.kv, kv)
	}
	return l
}

// until is the KV tokens times ns up to an instant.
func (l *load) until(at int64) float64 {
	i, found := slices.BinarySearch(l.at, at)
	if !found {
		i--
	}
	return l.sum[i] + l.kv[i]*float64(at-l.at[i])
}

// stepsOf are the time of a step, in ns, and what each token of KV adds: a line through the
// fastest TPOT of requests that ran beside about as much KV, which shared the fewest steps with prompts.
func stepsOf(run []Request) (step, kvToken float64, ok bool) {
	const groups, fastest = 12, 10 // one in so many
	type pace struct{ kv, tpot float64 }
	l := loadOf(run)
	var paces []pace
	for i := range run {
		if r := &run[i]; r.TTFTNS > 0 && r.E2ENS > r.TTFTNS && r.Output > 8 {
			from, to := r.DueNS+r.TTFTNS, r.DueNS+r.E2ENS
			paces = append(paces, pace{(l.until(to) - l.until(from)) / float64(to-from), float64(to-from) / float64(r.Output-1)})
		}
	}
	if len(paces) < leastFitted {
		return 0, 0, false
	}
	slices.SortFunc(paces, func(a, b pace) int { return cmp.Compare(a.kv, b.kv) })
	var kv, tpot []float64
	for g := range groups {
		group := slices.Clone(paces[len(paces)*g/groups : len(paces)*(g+1)/groups])
		slices.SortFunc(group, func(a, b pace) int { return cmp.Compare(a.tpot, b.tpot) })
		kv, tpot = append(kv, group[len(group)/fastest].kv), append(tpot, group[len(group)/fastest].tpot)
	}
	step, kvToken = stat.LinearRegression(kv, tpot, nil, false)
	least := slices.Min(tpot)
	return min(max(step, least/10), least), max(kvToken, least/1e6), true
}

// costs fits the costs of an engine by the simplex of Nelder and Mead, begun three times, each
// time smaller. The time of a step is moved with its constant and its KV together: how long it takes at
// most, and the share of the KV.
func (f *fit) costs(from Engine) (Engine, error) {
	least := f.miss(&from)
	for i := range fitStarts {
		at := func(x []float64) *Engine {
			e, c := from, &from.Costs
			exp := func(i int) float64 { return math.Exp(max(min(x[i], fitBound), -fitBound)) }
			step, kv := float64(c.Step), f.kv*float64(c.KVToken)
			share := kv / step * exp(1)
			share /= 1 + share
			long := (step + kv) * exp(0)
			e.Costs.Step, e.Costs.KVToken = engine.Picos(long*(1-share)), engine.Picos(long*share/f.kv)
			e.Costs.PrefillToken, e.Costs.Request = engine.Picos(float64(c.PrefillToken)*exp(2)), engine.Picos(float64(c.Request)*exp(3))
			return &e
		}
		r, err := optimize.Minimize(optimize.Problem{Func: func(x []float64) float64 { return f.miss(at(x)) }}, make([]float64, 4),
			&optimize.Settings{FuncEvaluations: fitEvaluations}, &optimize.NelderMead{SimplexSize: fitSize / float64(1+2*i)})
		if r == nil {
			return from, err
		}
		if r.F < least {
			least, from = r.F, *at(r.X)
		}
	}
	return from, nil
}

// miss is how badly an engine explains the requests.
func (f *fit) miss(e *Engine) float64 {
	ttft, e2e := e.Answer(f.requests)
	sum, n := 0.0, 0
	for i := len(f.requests) / settles; i < len(f.requests); i++ {
		r := &f.requests[i]
		if r.TTFTNS <= 0 || r.E2ENS <= 0 {
			continue
		}
		n++
		for _, pair := range [2][2]int64{{ttft[i], r.TTFTNS}, {e2e[i], r.E2ENS}} {
			miss := math.Abs(math.Log(float64(max(pair[0], 1)) / float64(pair[1])))
			if miss > squaredMiss {
				sum += squaredMiss * (2*miss - squaredMiss)
				continue
			}
			sum += miss * miss
		}
	}
	return sum / float64(max(n, 1))
}
