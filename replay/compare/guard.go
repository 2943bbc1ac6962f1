package compare

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"reprise/replay/figure"
	"reprise/replay/report"
)

// The guarded metrics are what a user of a server feels: every latency at p50, p95 and p99,
// and failed requests. They are the same for all comparisons, so that no data choose them,
// and B is worse when it is significantly worse in any of them, whatever the primary metric
// says.
//
// They are tested together. Where nothing differs, A and B of a round could change places
// in all metrics at once; so the signs of whole rounds are flipped, in all 2^n ways, and the
// corrected p of a metric is the share of them in which the largest statistic of any metric is
// at least as large as what the metric has. This holds the error of all metrics
// together whatever their correlation is, and a large effect pays nothing for the number of
// metrics. P. H. Westfall, S. S. Young (1993), Resampling-based multiple testing, section 2.3.
var guardedStatistics = []figure.Statistic{figure.P50, figure.P95, figure.P99}

// guarded says whether a slowdown of the metric decides.
func (m *metric) guarded() bool {
	return m.Unit.IsTime() && slices.Contains(guardedStatistics, m.Statistic) || m.Subject == figure.ErrorRate
}

// guardNames says which metrics are guarded.
func guardNames() string {
	var of []string
	for _, l := range latencies {
		of = append(of, l.of.Label)
	}
	return "p50, p95 or p99 of " + orList(of) + ", or more errors"
}

// exactFlips is up to how many rounds all signs are tried: 2^14 ways.
const exactFlips = 14

// sampledFlips are the drawn signs of more rounds.
const sampledFlips = 20_000

// flips calls f with the signs of the rounds, first as they are.
func flips(rounds int, f func(signs []float64)) {
	signs := make([]float64, rounds)
	set := func(bits func(i int) bool) {
		for i := range signs {
			signs[i] = 1
			if bits(i) {
				signs[i] = -1
			}
		}
		f(signs)
	}
	if rounds <= exactFlips {
		for way := range 1 << rounds {
			set(func(i int) bool { return way>>i&1 == 1 })
		}
		return
	}
	set(func(int) bool { return false })
	rng := rand.New(rand.NewPCG(5, uint64(rounds)))
	for range sampledFlips - 1 {
		set(func(int) bool { return rng.Uint64()&1 == 1 })
	}
}

// flippedSum is |Σ ±d| ÷ √Σd², which grows with Student's |t|: t² = (n−1)·s² ÷ (n−s²). A round without a
// value is NaN and left out.
func flippedSum(differences, signs []float64) float64 {
	sum, squares := 0.0, 0.0
	for i, d := range differences {
		if !math.IsNaN(d) {
			sum += signs[i] * d
			squares += d * d
		}
	}
	if squares == 0 {
		return 0
	}
	return math.Abs(sum) / math.Sqrt(squares)
}

// guard tests the guarded metrics of an arm at a level, which is 0 where no verdict may come.
func (v *Versus) guard(level float64) {
	var members []*Contrast
	for i := range v.Metrics {
		if m := &v.Metrics[i]; m.Guarded && m.Rounds >= minRounds {
			members = append(members, m)
		}
	}
	if len(members) == 0 {
		return
	}
	seen := make([]float64, len(members))
	above := make([]int, len(members))
	var largest []float64 // statistic of each way
	flips(v.Rounds, func(signs []float64) {
		most := 0.0
		for i, m := range members {
			s := flippedSum(m.byRound, signs)
			if len(largest) == 0 {
				seen[i] = s
			}
			most = max(most, s)
		}
		largest = append(largest, most)
		for i := range members {
			if most >= seen[i]*(1-1e-9) {
				above[i]++
			}
		}
	})
	slices.Sort(largest)
	limit := largest[max(0, len(largest)-1-int(level*float64(len(largest))))]
	for i, m := range members {
		p := float64(above[i]) / float64(len(largest))
		m.GuardP = &p
		_, sd := stat.MeanStdDev(m.differences, nil)
		m.Regressed = level > 0 && p <= level*(1+1e-9) && m.worse()
		if size := guardDetectable(m.Rounds, limit) * sd; level > 0 && !math.IsInf(size, 0) && !math.IsNaN(size) {
			if m.Relative {
				size = math.Expm1(size)
			}
			m.GuardDetectable = report.Rounded(size, 1e9)
		}
	}
}

// guardDetectable is the shift, in standard deviations, that passes a limit of [flippedSum]
// with [power]; +Inf where n rounds cannot. It takes the noncentral t as normal, with the
// variance 1 + t² ÷ 2(n−1): N. L. Johnson, B. L. Welch (1940), Applications of the non-central t-distribution.
func guardDetectable(n int, limit float64) float64 {
	rounds := float64(n)
	if limit*limit >= rounds*(1-1e-12) {
		return math.Inf(1)
	}
	t := limit * math.Sqrt((rounds-1)/(rounds-limit*limit))
	return (t + distuv.UnitNormal.Quantile(power)*math.Sqrt(1+t*t/(2*(rounds-1)))) / math.Sqrt(rounds)
}

// worse says whether B is worse, significantly or not.
func (m *Contrast) worse() bool {
	return m.Change != nil && m.Change.Estimate != 0 && (m.Change.Estimate > 0) != m.Higher
}

// guardLevel is the largest p of a guarded metric that is a verdict after so many rounds. By a plan it is
// what this look may spend: the looks together spend alpha, whatever the statistic is.
func (o *Options) guardLevel(rounds int) float64 {
	p := o.Plan
	if p == nil {
		return o.Alpha
	}
	before := 0.0
	for _, look := range p.Looks {
		now := spent(look, p.Rounds(), p.Alpha)
		if look == rounds {
			return now - before
		}
		before = now
	}
	return 0
}

// regressions are the guarded metrics in which B is significantly worse, the largest change first.
func (v *Versus) regressions() (out []*Contrast) {
	for i := range v.Metrics {
		if v.Metrics[i].Regressed {
			out = append(out, &v.Metrics[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *Contrast) int {
		return cmp.Compare(math.Abs(b.Change.Estimate), math.Abs(a.Change.Estimate))
	})
	return out
}

// guardText names the latencies in which no slowdown was found, and says which the rounds would have found, and which
// guarded metrics they do not cover. Both are empty where no metric could be tested.
func (v *Versus) guardText() (covered, sizes string) {
	var tested []*Contrast
	var latencies []string
	open := slices.Clone(v.Uncovered)
	for i := range v.Metrics {
		switch m := &v.Metrics[i]; {
		case !m.Guarded || !m.Relative:
		case m.GuardDetectable == nil:
			open = append(open, m.Label)
		default:
			tested = append(tested, m)
			latencies = append(latencies, m.Label[:strings.LastIndex(m.Label, " ")])
		}
	}
	if len(tested) == 0 {
		return "", ""
	}

	bySize := func(a, b *Contrast) int { return cmp.Compare(*a.GuardDetectable, *b.GuardDetectable) }
	least, most := slices.MinFunc(tested, bySize), slices.MaxFunc(tested, bySize)
	covered = "; no slowdown found in " + orList(slices.Compact(latencies))
	sizes = fmt.Sprintf(" A slowdown of %s (%s) to %s (%s) would have been found.",
		size(least, *least.GuardDetectable), least.Label, size(most, *most.GuardDetectable), most.Label)
	if len(open) > 0 {
		sizes += " Not covered: " + strings.Join(open, ", ") + "."
	}
	return covered, sizes
}
