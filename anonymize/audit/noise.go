package audit

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"reprise/anonymize/dp"
)

// dpRuns is how many times each side is played: enough to show 0.8 of ε and a
// third of it in some ten seconds.
const dpRuns = 200_000

// noise plays the mechanism that releases are made by. It judges the build and not the
// file: of the file only the claim matters, that it is one.
func noise(ctx context.Context, c *Case) Finding {
	switch o := c.Output; {
	case !o.drawn():
		return c.notDrawn(fmt.Sprintf("it is about the noise of what is drawn from noisy counts, and the output is of tier %s", orNone(o.Tier())))
	case o.Trace != nil && c.Internal == nil && c.Log == nil:
		return skipped("it plays the build that made the release, and not the file: it is run where the source is at hand (--source, --internal), or of a model")
	}
	return playNoise(ctx, publish, dp.NewNoise, dpRuns)
}

const kindModel = "model"

// playNoise judges a mechanism by all games.
func playNoise(ctx context.Context, m dpMechanism, noise func() *dp.Noise, runs int) Finding {
	games, err := dpGames()
	if err != nil {
		return broken(err)
	}
	var all lines[dpBound]
	var blind bool
	for i := range games {
		if err := ctx.Err(); err != nil {
			return broken(err)
		}
		b, err := games[i].play(m, noise, runs)
		if err == nil && b.Broken() { // by chance once in some hundred plays of a mechanism that is right
			b, err = games[i].play(m, noise, runs)
		}
		if err != nil {
			return broken(err)
		}
		all = append(all, b)
		if b.Broken() {
			return failed(Figures{"bounds": all}, "with one user more or less an event is told apart with an %s", b)
		}
		blind = blind || b.Blind()
	}
	fig := Figures{"bounds": all}
	if blind {
		return inconclusive(fig, "the play shows less than it should of a mechanism that is right: it might have missed one that is not")
	}
	return passed(fig, "one user more or less cannot be told apart with more than the ε that is claimed: of 1, %.3f shows through Laplace noise; of %g, %.3f through Gaussian noise, of which %.3f can", all[0].Lower, all[1].Epsilon, all[1].Lower, all[1].Achievable)
}

// A dpBound is a lower bound of the ε that a mechanism really has, from playing it
// many times on two inputs that differ by one user: whatever an (ε, δ) mechanism
// does, no event is more than e^ε times as likely with the user than without, but
// for δ.
//
// It can refute a claim and not prove it: another input or event may tell more.
type dpBound struct {
	Epsilon    float64 `json:"epsilon"`    // as claimed
	Delta      float64 `json:"delta"`      // as claimed
	Runs       int     `json:"runs"`       // of each side; half of them choose the event
	Lower      float64 `json:"lower"`      // bound of the real ε, 97.5 % sure on each side
	Limit      float64 `json:"limit"`      // what a correct mechanism of this noise shows at the most, in no end of runs
	Achievable float64 `json:"achievable"` // what a correct mechanism can be expected to show in so many runs
	Statistic  string  `json:"statistic"`  // that the event is about…
	Threshold  float64 `json:"threshold"`  // …being so much or more
	With       float64 `json:"with"`       // share of the runs with the user in which it came true
	Without    float64 `json:"without"`
}

// dpSense is the least part of what is achievable that a bound must reach to say
// that the play would have found something.
const dpSense = 0.8

// Broken reports whether the mechanism cannot have the ε that it claims, or not
// the noise that makes it.
func (b *dpBound) Broken() bool { return b.Lower > b.Limit }

// Blind reports whether the play says nothing, by more than chance: twice the
// standard error of the logarithm of a ratio of two shares.
func (b *dpBound) Blind() bool {
	n := float64(b.Runs / 2)
	chance := math.Sqrt(1/max(n*b.With, 1) + 1/max(n*b.Without, 1))
	return b.Lower < dpSense*b.Achievable-2*chance
}

// A dpRecord is a record of the play: the bucket it is in.
type dpRecord int

// A dpGame is a histogram of few buckets and one user who comes or not. The others
// leave the user's buckets empty. The user has as many records in a bucket as the
// bound for each of them allows, and where that is one bucket, far more: the worst
// that a user can do.
type dpGame struct {
	buckets int
	bound   dp.Contribution
	spec    dp.NoiseSpec
	budget  dp.Budget
	others  [][]dpRecord
	user    []dpRecord
	rare    int // buckets of the user, the last ones
}

const (
	dpBuckets = 32
	dpOthers  = 12
	dpRecords = 100 // of the user
)

func newDPGame(bound dp.Contribution, b dp.Budget) dpGame {
	g := dpGame{buckets: dpBuckets, bound: bound, budget: b, rare: (bound.Records + bound.PerCell - 1) / bound.PerCell}
	for i := range dpOthers {
		var records []dpRecord
		for j := range 1 + i%bound.Records {
			records = append(records, dpRecord((i*7+j)%(g.buckets-g.rare)))
		}
		g.others = append(g.others, records)
	}
	// Of records in several buckets a sample would seldom have as many of each as
	// it may: there the user has what is kept and no more.
	n := dpRecords
	if g.rare > 1 {
		n = bound.Records
	}
	for i := range n {
		g.user = append(g.user, dpRecord(g.buckets-1-i%g.rare))
	}
	return g
}

// measurement is what the game measures.
func (g *dpGame) measurement() dp.Measurement { return g.bound.Measurement("audit", g.buckets, 1) }

// A dpOutput is what a mechanism publishes: counts by bucket, or dpHidden.
type dpOutput []int64

const dpHidden = math.MinInt64

// A dpMechanism publishes a histogram of the records of users.
type dpMechanism func(n *dp.Noise, g *dpGame, users [][]dpRecord) (dpOutput, error)

// publish is the mechanism that releases are made by: the records of a user are
// sampled and bounded, and every bucket gets noise. See [dp.Sample], [dp.Bounded]
// and [dp.NoiseSpec.Add].
func publish(n *dp.Noise, g *dpGame, users [][]dpRecord) (dpOutput, error) {
	cells := make([]int64, g.buckets)
	for _, records := range users {
		var s dp.Sample[dpRecord]
		for _, r := range records {
			s.Offer(n, g.bound, r)
		}
		dp.Bounded(g.bound, &s, func(r dpRecord) dpRecord { return r }, func(r dpRecord) { cells[r]++ })
	}
	if err := g.spec.Add(n, cells); err != nil {
		return nil, err
	}
	return cells, n.Err()
}

// dpStatistics are what the events are about. A count may tell by being low as
// well, when the noise depends on who is there.
var dpStatistics = []struct {
	name string
	of   func(g *dpGame, o dpOutput) float64
}{
	{"count in the buckets of the user", (*dpGame).count},
	{"negative of the count in the buckets of the user", func(g *dpGame, o dpOutput) float64 {
		if n := g.count(o); !math.IsInf(n, 0) {
			return -n
		}
		return math.Inf(-1)
	}},
	{"buckets that are shown", func(_ *dpGame, o dpOutput) float64 {
		n := 0.0
		for _, c := range o {
			if c != dpHidden {
				n++
			}
		}
		return n
	}},
}

// count is what is published of the user's buckets, -∞ where one is not shown.
func (g *dpGame) count(o dpOutput) float64 {
	sum := 0.0
	for i := range g.rare {
		n := o[g.buckets-1-i]
		if n == dpHidden {
			return math.Inf(-1)
		}
		sum += float64(n)
	}
	return sum
}

// play runs a mechanism with and without the user, as often as that.
func (g *dpGame) play(m dpMechanism, noise func() *dp.Noise, runs int) (dpBound, error) {
	n := noise()
	duels := make([]duel, len(dpStatistics))
	users := append(slices.Clone(g.others), g.user)
	for range runs {
		present, err := m(n, g, users)
		if err != nil {
			return dpBound{}, err
		}
		absent, err := m(n, g, g.others)
		if err != nil {
			return dpBound{}, err
		}
		for i, s := range dpStatistics {
			duels[i].about = s.name
			duels[i].with, duels[i].without = append(duels[i].with, s.of(g, present)), append(duels[i].without, s.of(g, absent))
		}
	}
	best, _ := won(duels, g.budget.Delta)
	best.Epsilon = g.budget.Epsilon
	best.Achievable = g.achievable(runs - runs/2)
	best.Limit = min(g.budget.Epsilon, g.achievable(math.MaxInt64>>12))
	return best, nil
}

func share(values []float64, threshold float64) float64 {
	n := 0
	for _, v := range values {
		if v >= threshold {
			n++
		}
	}
	return float64(n) / float64(len(values))
}

// lowerBound is the ε that an event proves which came true in such shares of n
// runs each: ln((TPR − δ)/FPR), with the lower end of the interval of the one and
// the upper end of the other.
func lowerBound(with, without float64, n int, delta float64) float64 {
	lo, _ := clopperPearson(int(math.Round(with*float64(n))), n, 0.025)
	_, hi := clopperPearson(int(math.Round(without*float64(n))), n, 0.025)
	return math.Log(max(lo-delta, 1e-300) / hi)
}

// achievable is the bound that a correct mechanism shows when its events come true
// just as often as they should: the best over all thresholds of a Laplace or a
// Gaussian distribution that the user moves.
func (g *dpGame) achievable(n int) float64 {
	shift := float64(min(g.bound.Records, g.rare*g.bound.PerCell))
	var above func(t float64) float64
	if g.spec.Scale > 0 {
		// Only one bucket: a sum of several is no Laplace distribution.
		shift = float64(g.bound.PerCell)
		q := math.Exp(-float64(dp.Denominator) / float64(g.spec.Scale))
		above = func(t float64) float64 { // of the discrete distribution
			if t <= 0 {
				return 1 - math.Pow(q, 1-t)/(1+q)
			}
			return math.Pow(q, t) / (1 + q)
		}
	} else {
		sd := math.Sqrt(float64(g.spec.Variance) / dp.Denominator * float64(g.rare))
		normal := distuv.Normal{Sigma: sd}
		above = func(t float64) float64 { return normal.Survival(t - 0.5) } // whole numbers
	}
	best := math.Inf(-1)
	reach := 8 * g.spec.SD * math.Sqrt(float64(g.rare))
	for i := range 400 {
		t := math.Round(-reach + 2*reach*float64(i)/400)
		best = max(best, lowerBound(above(t-shift), above(t), n, g.budget.Delta))
	}
	return best
}

// String is a line for people.
func (b dpBound) String() string {
	return fmt.Sprintf("ε of %.3f or more, claimed %g, at most %.3f; %.3f can be shown in %d runs a side (%s of %g or more: %.4f with the user, %.4f without)",
		b.Lower, b.Epsilon, b.Limit, b.Achievable, b.Runs, b.Statistic, b.Threshold, b.With, b.Without)
}

// dpGames are the games: a histogram of Laplace noise where all records of a user
// may fall in one bucket, and one of Gaussian noise with the bounds of a release.
func dpGames() ([]dpGame, error) {
	budget := dp.Budget{Epsilon: 1, Delta: 1e-6}
	// Of Gaussian noise for an ε of 1 so many runs would show too little to tell:
	// its most telling events are rare.
	larger := dp.Budget{Epsilon: 4, Delta: 1e-6}
	c := dp.DefaultContribution.Records
	laplace := newDPGame(dp.Contribution{Records: c, PerCell: c}, budget)
	plan, err := dp.NewPlan(budget, []dp.Measurement{laplace.measurement()})
	if err != nil {
		return nil, err
	}
	laplace.spec = plan.Noise[0]
	gaussian := newDPGame(dp.DefaultContribution, larger)
	// The noise that a plan would give one measurement, also where Laplace noise is less.
	m := gaussian.measurement()
	v := math.Ceil(float64(m.L2Squared) / (2 * dp.Rho(larger.Epsilon, larger.Delta)) * dp.Denominator)
	gaussian.spec = dp.NoiseSpec{Measurement: m, Variance: uint64(v), SD: math.Sqrt(v / dp.Denominator)}
	return []dpGame{laplace, gaussian}, nil
}

// clopperPearson returns the exact confidence interval of a probability, given hits in n
// draws. side is the probability of error on each side: 0.025 for an interval of 95 %
// (Clopper and Pearson, Biometrika 1934).
func clopperPearson(hits, n int, side float64) (lo, hi float64) {
	lo, hi = 0, 1
	if n <= 0 {
		return lo, hi
	}
	if hits > 0 {
		lo = distuv.Beta{Alpha: float64(hits), Beta: float64(n - hits + 1)}.Quantile(side)
	}
	if hits < n {
		hi = distuv.Beta{Alpha: float64(hits + 1), Beta: float64(n - hits)}.Quantile(1 - side)
	}
	return lo, hi
}
