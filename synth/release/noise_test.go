package release

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"reprise/anonymize/dp"
	"reprise/trace/longtest"
	"reprise/trace/sample"
)

// A epsilonBound is a lower bound of the ε that a mechanism really has, from playing it
// many times on two inputs that differ by one unit: whatever an (ε, δ) mechanism
// does, no event is more than e^ε times as likely with the unit than without, but
// for δ.
//
// It can refute a claim and not prove it: another input or event may tell more.
type epsilonBound struct {
	Of         string  // what is published
	Epsilon    float64 // as claimed
	Delta      float64 // as claimed
	Runs       int     // of each side; half of them choose the event
	Lower      float64 // bound of the real ε, 97.5 % sure on each side
	Limit      float64 // what a correct mechanism of this noise shows by this event, in no end of runs
	Achievable float64 // what a correct mechanism can be expected to show in so many runs
	Statistic  string  // that the event is about…
	Threshold  float64 // …being so much or more
	With       float64 // share of the runs with the unit in which it came true
	Without    float64
}

// leastSense is the least part of what is achievable that a bound must reach to say
// that the play would have found something.
const leastSense = 0.8

// Broken reports whether the mechanism cannot have the ε that it claims, or not
// the noise that makes it.
func (b *epsilonBound) Broken() bool { return b.Lower > b.Limit }

// Blind reports whether the play says nothing, by more than chance: twice the
// standard error of the logarithm of a ratio of two shares.
func (b *epsilonBound) Blind() bool {
	n := float64(b.Runs / 2)
	chance := math.Sqrt(1/max(n*b.With, 1) + 1/max(n*b.Without, 1))
	return b.Lower < leastSense*b.Achievable-2*chance
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
func playSides(g noiseGame, noise func() *dp.Noise, runs int) (epsilonBound, error) {
	n := noise()
	var duels []duel
	for _, name := range g.statistics() {
		duels = append(duels, duel{about: name})
	}
	for range runs {
		present, err := g.publish(n, true)
		if err != nil {
			return epsilonBound{}, err
		}
		absent, err := g.publish(n, false)
		if err != nil {
			return epsilonBound{}, err
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
	spec, err := noiseOfTable("cells", 32, dp.Rho(wide.Epsilon, wide.Delta))
	if err != nil {
		return nil, err
	}
	table := tableGame{wide, spec, unit}
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

func shareAbove(values []float64, threshold float64) float64 {
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
	lo, _ := sample.ClopperPearson(with, float64(n), 0.95)
	_, hi := sample.ClopperPearson(without, float64(n), 0.95)
	return math.Log(max(lo-delta, 1e-300) / hi)
}

func (b epsilonBound) String() string {
	shown := ""
	if b.Achievable > 0 {
		shown = fmt.Sprintf(", where %.3f can be shown", b.Achievable)
	}
	return fmt.Sprintf("ε is at least %.3f at a claim of %g%s, in %d runs a side (%s of %g or more: %.4f with the unit, %.4f without)",
		b.Lower, b.Epsilon, shown, b.Runs, b.Statistic, b.Threshold, b.With, b.Without)
}

// A duel is one quantity of what a mechanism publishes, in runs with a unit and in as
// many without.
type duel struct {
	about         string
	with, without []float64
}

// won is the event that tells the two sides of duels apart best. Half of the runs choose
// it, and the other half bound how much it tells, so that the choice costs nothing. told
// is the duel that it is about.
func won(duels []duel, delta float64) (best epsilonBound, told int) {
	best = epsilonBound{Lower: math.Inf(-1)}
	for i, d := range duels {
		half := len(d.with) / 2
		sorted, thresholds := slices.Sorted(slices.Values(d.with[:half])), []float64{}
		for j := range 200 { // quantiles
			if v := sorted[j*len(sorted)/200]; !math.IsInf(v, 0) {
				thresholds = append(thresholds, v)
			}
		}
		for _, t := range slices.Compact(thresholds) {
			if lower := lowerBound(shareAbove(d.with[:half], t), shareAbove(d.without[:half], t), half, delta); lower > best.Lower {
				best, told = epsilonBound{Lower: lower, Statistic: d.about, Threshold: t}, i
			}
		}
	}
	d := duels[told]
	half := len(d.with) / 2
	best.With, best.Without = shareAbove(d.with[half:], best.Threshold), shareAbove(d.without[half:], best.Threshold)
	best.Delta, best.Runs = delta, len(d.with)
	best.Lower = lowerBound(best.With, best.Without, len(d.with)-half, delta)
	return best, told
}

// stillNoise is noise that is the same each time a test runs.
func stillNoise(seed byte) func() *dp.Noise {
	return func() *dp.Noise { return dp.NewNoiseFrom(rand.NewChaCha8([32]byte{seed})) }
}

// The mechanisms of releases keep their ε, and show what they can of it: so a fifth more than is
// claimed would be noticed. REPRISE_TEST_DP=1 plays 200,000 runs a side with noise of this process.
func TestNoiseKeepsEpsilon(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	games, err := noiseGames()
	if err != nil {
		t.Fatal(err)
	}
	runs, seeds := 20_000, byte(2)
	noise := stillNoise
	if os.Getenv("REPRISE_TEST_DP") != "" {
		runs, seeds = 200_000, 1
		noise = func(byte) func() *dp.Noise { return dp.NewNoise }
	}

	for seed := range seeds {
		for _, g := range games {
			b, err := playSides(g, noise(seed), runs)
			t.Logf("seed %d: %s: %s", seed, b.Of, b)
			if err != nil || b.Broken() || b.Blind() || b.Achievable > 0 && b.Lower < leastSense*b.Achievable-0.2 {
				t.Errorf("seed %d: %v, %v", seed, b, err)
			}
			if b.Statistic != g.statistics()[0] {
				continue
			}

			// The event is as likely on both sides as the distribution says.
			with, without := g.chances(b.Threshold)
			for _, side := range [][2]float64{{b.With, with}, {b.Without, without}} {
				if se := math.Sqrt(side[1] * (1 - side[1]) / float64(runs/2)); math.Abs(side[0]-side[1]) > 4.5*se {
					t.Errorf("seed %d: the event came true in %.4f, want %.4f: %v", seed, side[0], side[1], b)
				}
			}
		}
	}
}

// The bound that can be shown of Gaussian noise is that of its trade-off function
// (Dong, Roth and Su, "Gaussian Differential Privacy", 2022), when nothing is lost
// to the intervals, and never above the ε that it was made for.
func TestBoundOfGaussianNoise(t *testing.T) {
	games, err := noiseGames()
	if err != nil {
		t.Fatal(err)
	}
	g := games[0].(tableGame)
	mu := float64(g.weight) / g.spec.SD
	unit := distuv.UnitNormal
	want := math.Inf(-1)
	for fpr := 1e-9; fpr < 1; fpr *= 1.01 {
		tpr := unit.Survival(unit.Quantile(1-fpr) - mu)
		want = max(want, math.Log((tpr-g.budget.Delta)/fpr))
	}

	if want > g.budget.Epsilon {
		t.Errorf("events down to a chance of 1e-9 show an ε of %.3f", want)
	}
	if got := achievable(g, 1<<50); math.Abs(got/want-1) > 0.1 {
		t.Errorf("without bounds on runs %.3f can be shown, the trade-off function says %.3f", got, want)
	}
}

// A faultyTable publishes otherwise than it claims.
type faultyTable struct {
	tableGame
	change func(*tableGame)
	after  func(statistics []float64, present bool)
}

func (g faultyTable) publish(n *dp.Noise, present bool) ([]float64, error) {
	does := g.tableGame
	if g.change != nil {
		g.change(&does)
	}
	s, err := does.publish(n, present)
	if g.after != nil && err == nil {
		g.after(s, present)
	}
	return s, err
}

// fixedSeed draws the noise of every release from one seed.
type fixedSeed struct{ noiseGame }

func (g fixedSeed) publish(_ *dp.Noise, present bool) ([]float64, error) {
	return g.noiseGame.publish(stillNoise(1)(), present)
}

// claims publishes as one game and claims what another does.
type claims struct {
	does noiseGame
	noiseGame
}

func (g claims) publish(n *dp.Noise, present bool) ([]float64, error) {
	return g.does.publish(n, present)
}

// Every planted bug is told apart, and noise that drowns everything shows nothing.
func TestBoundsFindBugs(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	games, err := noiseGames()
	if err != nil {
		t.Fatal(err)
	}
	table, shared, alone := games[0].(tableGame), games[1].(prefixGame), games[2].(prefixGame)
	oneKey, low := shared, alone
	oneKey.selection.Scale /= 3
	low.selection.Threshold -= 8
	const runs = 10_000

	for name, bug := range map[string]noiseGame{
		"a unit counts twice": faultyTable{table, func(g *tableGame) { g.weight *= 2 }, nil},
		"half the noise":      faultyTable{table, func(g *tableGame) { g.spec.Variance /= 4 }, nil},
		"empty cells have none": faultyTable{table, nil, func(s []float64, present bool) {
			if !present {
				s[0], s[1] = 0, 0
			}
		}},
		"other cells move": faultyTable{table, nil, func(s []float64, present bool) {
			if present {
				s[2] += 20 * table.spec.SD
			}
		}},
		"fixed seed, table": fixedSeed{table}, "fixed seed, prefixes": fixedSeed{shared},
		"noise of one prefix": claims{oneKey, shared}, "a low threshold": claims{low, alone},
	} {
		if b, err := playSides(bug, stillNoise(9), runs); err != nil || !b.Broken() {
			t.Errorf("%s: %s, %v", name, b, err)
		}
	}

	loud := table
	loud.spec.Variance *= 10_000
	if b, err := playSides(claims{loud, table}, stillNoise(9), runs/2); err != nil || b.Broken() || !b.Blind() {
		t.Errorf("much noise: %s, %v", b, err)
	}
}
