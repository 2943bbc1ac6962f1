package audit

import (
	"context"
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"reprise/anonymize/dp"
	"reprise/synth/release"
)

// dpRuns is how many times each side is played: enough to show 0.8 of ε and a
// third of it in some ten seconds.
const dpRuns = 200_000

// noise plays the mechanisms that releases are made by. It judges the build and not the
// file: of the file only the claim matters, that it is one.
func noise(ctx context.Context, c *Case) Finding {
	switch o := c.Output; {
	case !o.drawn():
		return c.notDrawn(fmt.Sprintf("it is about the noise of what is drawn from noisy counts, and the output is of tier %s", orNone(o.Tier())))
	case o.Trace != nil && c.Internal == nil && c.Log == nil:
		return skipped("it plays the build that made the release, and not the file: it is run where the source is at hand (--source, --internal), or of a model")
	}
	games, err := noiseGames()
	if err != nil {
		return broken(err)
	}
	return playNoise(ctx, games, dp.NewNoise, dpRuns)
}

const kindModel = "model"

// playNoise judges the build by all games.
func playNoise(ctx context.Context, games []noiseGame, noise func() *dp.Noise, runs int) Finding {
	var all lines[dpBound]
	var blind bool
	var shown []string
	for _, g := range games {
		if err := ctx.Err(); err != nil {
			return broken(err)
		}
		b, err := playSides(g, noise, runs)
		if err == nil && b.Broken() { // by chance once in some hundred plays of a mechanism that is right
			b, err = playSides(g, noise, runs)
		}
		if err != nil {
			return broken(err)
		}
		all = append(all, b)
		if b.Broken() {
			return failed(Figures{"bounds": all}, "with one unit more or less an event is told apart with an %s", b)
		}
		blind = blind || b.Blind()
		if b.Achievable > 0 {
			shown = append(shown, fmt.Sprintf("%s show ε ≥ %.3f at a claimed ε of %g, where about %.3f is expected", b.Of, b.Lower, b.Epsilon, b.Achievable))
		}
	}
	fig := Figures{"bounds": all}
	if blind {
		return inconclusive(fig, "the play shows less than it should of a mechanism that is right: it might have missed one that is not")
	}
	return passed(fig, "one unit more or less cannot be told apart with more than the ε that is claimed: %s", strings.Join(shown, "; "))
}

// A dpBound is a lower bound of the ε that a mechanism really has, from playing it
// many times on two inputs that differ by one unit: whatever an (ε, δ) mechanism
// does, no event is more than e^ε times as likely with the unit than without, but
// for δ.
//
// It can refute a claim and not prove it: another input or event may tell more.
type dpBound struct {
	Of         string  `json:"of,omitempty"` // what is published
	Epsilon    float64 `json:"epsilon"`      // as claimed
	Delta      float64 `json:"delta"`        // as claimed
	Runs       int     `json:"runs"`         // of each side; half of them choose the event
	Lower      float64 `json:"lower"`        // bound of the real ε, 97.5 % sure on each side
	Limit      float64 `json:"limit"`        // what a correct mechanism of this noise shows by this event, in no end of runs
	Achievable float64 `json:"achievable"`   // what a correct mechanism can be expected to show in so many runs
	Statistic  string  `json:"statistic"`    // that the event is about…
	Threshold  float64 `json:"threshold"`    // …being so much or more
	With       float64 `json:"with"`         // share of the runs with the unit in which it came true
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

// A noiseGame is a mechanism of releases and a unit that does the worst that it can.
type noiseGame interface {
	// about says what is published, and at which budget.
	about() (of string, b dp.Budget)
	// statistics name what events are about, the most telling one of a mechanism that
	// is right first.
	statistics() []string
	// publish draws once with the unit or without it, and returns the statistics.
	publish(n *dp.Noise, present bool) ([]float64, error)
	// chances are those of the first statistic being so much or more with the unit and
	// without it, by the distribution of the noise; thresholds are where to ask.
	chances(threshold float64) (with, without float64)
	thresholds() (from, to float64)
}

// A tableGame is a table of weights. The unit puts its whole weight into a cell in which
// nobody else is.
type tableGame struct {
	budget dp.Budget
	spec   dp.NoiseSpec
	weight int64 // of a unit
}

// tableOthers is how many other units there are, in the first cells.
const tableOthers = 12

func (g tableGame) about() (string, dp.Budget) { return "tables", g.budget }

func (g tableGame) statistics() []string {
	return []string{"weight in the cell of the unit", "negative of the weight in the cell of the unit", "sum of the other cells"}
}

func (g tableGame) publish(n *dp.Noise, present bool) ([]float64, error) {
	cells := make([]int64, g.spec.Cells)
	for i := range tableOthers {
		cells[i] += g.weight
	}
	last := len(cells) - 1
	if present {
		cells[last] += g.weight
	}
	if err := g.spec.Add(n, cells); err != nil {
		return nil, err
	}
	others := int64(0)
	for _, w := range cells[:last] {
		others += w
	}
	x := float64(cells[last])
	return []float64{x, -x, float64(others)}, nil
}

func (g tableGame) chances(t float64) (with, without float64) {
	normal := distuv.Normal{Sigma: g.spec.SD}
	return normal.Survival(t - 0.5 - float64(g.weight)), normal.Survival(t - 0.5) // whole numbers
}

func (g tableGame) thresholds() (from, to float64) { return -8 * g.spec.SD, 8 * g.spec.SD }

// A prefixGame is the selection of prefixes. The unit begins with as many of them as it
// can, and so many other units begin with each.
type prefixGame struct {
	budget    dp.Budget
	selection dp.Selection
	keys      int
	others    int64
}

func (g prefixGame) about() (string, dp.Budget) {
	if g.others == 0 {
		return "prefixes of one unit", g.budget
	}
	return "shared prefixes", g.budget
}

func (g prefixGame) statistics() []string {
	return []string{"least count of the prefixes of the unit", "negative of the largest count of the prefixes of the unit", "selected prefixes"}
}

// publish returns a count of -∞ for a prefix that is not selected.
func (g prefixGame) publish(n *dp.Noise, present bool) ([]float64, error) {
	least, most, selected := math.Inf(1), math.Inf(-1), 0.0
	units := g.others
	if present {
		units++
	}
	for range g.keys {
		noisy, kept, err := g.selection.Keep(n, units)
		if err != nil {
			return nil, err
		}
		count := math.Inf(-1)
		if kept {
			count = float64(noisy)
			selected++
		}
		least, most = min(least, count), max(most, count)
	}
	return []float64{least, -most, selected}, nil
}

func (g prefixGame) chances(t float64) (with, without float64) {
	q := math.Exp(-float64(dp.Denominator) / float64(g.selection.Scale))
	all := func(units int64) float64 { // counts are the threshold or more, and selected
		if units == 0 {
			return 0
		}
		x, p := max(t, float64(g.selection.Threshold))-float64(units), 0.0
		if x <= 0 {
			p = 1 - math.Pow(q, 1-x)/(1+q)
		} else {
			p = math.Pow(q, x) / (1 + q)
		}
		return math.Pow(p, float64(g.keys))
	}
	return all(g.others + 1), all(g.others)
}

func (g prefixGame) thresholds() (from, to float64) {
	reach := 8 * float64(g.selection.Scale) / dp.Denominator
	return float64(g.others) - reach, float64(g.others) + reach
}

// playSides plays with and without the unit, as often as that.
func playSides(g noiseGame, noise func() *dp.Noise, runs int) (dpBound, error) {
	n := noise()
	var duels []duel
	for _, name := range g.statistics() {
		duels = append(duels, duel{about: name})
	}
	for range runs {
		present, err := g.publish(n, true)
		if err != nil {
			return dpBound{}, err
		}
		absent, err := g.publish(n, false)
		if err != nil {
			return dpBound{}, err
		}
		for i := range duels {
			duels[i].with, duels[i].without = append(duels[i].with, present[i]), append(duels[i].without, absent[i])
		}
	}
	of, budget := g.about()
	best, _ := won(duels, budget.Delta)
	best.Of, best.Epsilon = of, budget.Epsilon
	best.Lower, best.Achievable = max(0, best.Lower), max(0, achievable(g, runs-runs/2))
	best.Limit = budget.Epsilon
	if best.Statistic == duels[0].about {
		if with, without := g.chances(best.Threshold); without > 0 {
			best.Limit = min(best.Limit, max(0, math.Log(max(with-budget.Delta, 1e-300)/without)))
		}
	}
	return best, nil
}

// achievable is the bound that a correct mechanism shows when its events come true
// just as often as they should: the best over all thresholds.
func achievable(g noiseGame, n int) float64 {
	best := math.Inf(-1)
	_, b := g.about()
	from, to := g.thresholds()
	for i := range 401 {
		with, without := g.chances(math.Round(from + (to-from)*float64(i)/400))
		best = max(best, lowerBound(with, without, n, b.Delta))
	}
	return best
}

// noiseGames are the games. The budgets are those at which so many runs show most: of
// Gaussian noise for an ε of 1 the most telling events are rare.
func noiseGames() ([]noiseGame, error) {
	wide := dp.Budget{Epsilon: 4, Delta: 1e-6}
	spec, err := release.NoiseOfTable("cells", 32, dp.Rho(wide.Epsilon, wide.Delta))
	if err != nil {
		return nil, err
	}
	table := tableGame{wide, spec, release.UnitWeight}
	const keys = 3 // of prefixes of up to 4 blocks
	shared := prefixGame{budget: dp.Budget{Epsilon: 1, Delta: 1e-6}, keys: keys}
	if shared.selection, err = dp.NewSelection(shared.budget, keys); err != nil {
		return nil, err
	}
	shared.others = 3 * shared.selection.Threshold
	// Of a smaller δ so many runs would see nothing.
	alone := prefixGame{budget: dp.Budget{Epsilon: 1, Delta: 0.005}, keys: keys}
	if alone.selection, err = dp.NewSelection(alone.budget, keys); err != nil {
		return nil, err
	}
	return []noiseGame{table, shared, alone}, nil
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

// String is a line for people.
func (b dpBound) String() string {
	return fmt.Sprintf("ε of %.3f or more, claimed %g, at most %.3f; %.3f can be shown in %d runs a side (%s of %g or more: %.4f with the unit, %.4f without)",
		b.Lower, b.Epsilon, b.Limit, b.Achievable, b.Runs, b.Statistic, b.Threshold, b.With, b.Without)
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
