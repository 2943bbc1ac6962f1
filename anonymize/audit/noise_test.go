package audit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"reprise/anonymize/dp"
)

const dpTestRuns = 20_000

// stillNoise is noise that is the same each time a test runs.
func stillNoise(seed byte) func() *dp.Noise {
	return func() *dp.Noise { return dp.NewNoiseFrom(rand.NewChaCha8([32]byte{seed})) }
}

// The mechanisms of releases pass, and show what they can of their ε: so a fifth more
// than is claimed would be noticed.
func TestDPBoundOfTheRealMechanism(t *testing.T) {
	t.Parallel()
	seeds := byte(2)
	if os.Getenv("REPRISE_TEST_LONG") != "" {
		seeds = 4
	}
	games, err := noiseGames()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range seeds {
		for _, g := range games {
			b, err := playSides(g, stillNoise(seed), dpTestRuns)
			if err != nil || b.Broken() || b.Blind() || b.Achievable > 0 && b.Lower < dpSense*b.Achievable-0.2 {
				t.Errorf("seed %d: %v, %v", seed, b, err)
			}
			if b.Statistic != g.statistics()[0] {
				continue
			}
			// The event is as likely on both sides as the distribution says.
			with, without := g.chances(b.Threshold)
			for _, side := range [][2]float64{{b.With, with}, {b.Without, without}} {
				if se := math.Sqrt(side[1] * (1 - side[1]) / (dpTestRuns / 2)); math.Abs(side[0]-side[1]) > 4.5*se {
					t.Errorf("seed %d: the event came true in %.4f, want %.4f: %v", seed, side[0], side[1], b)
				}
			}
		}
	}
}

// The bound that can be shown of Gaussian noise is that of its trade-off function
// (Dong, Roth and Su, "Gaussian Differential Privacy", 2022), when nothing is lost
// to the intervals, and never above the ε that it was made for.
func TestDPBoundOfGaussianNoise(t *testing.T) {
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

// noUnitBound counts a unit twice.
type noUnitBound struct{ tableGame }

func (g noUnitBound) publish(n *dp.Noise, present bool) ([]float64, error) {
	g.weight *= 2
	return g.tableGame.publish(n, present)
}

// halfNoise adds noise of half the deviation that it claims.
type halfNoise struct{ tableGame }

func (g halfNoise) publish(n *dp.Noise, present bool) ([]float64, error) {
	g.spec.Variance /= 4
	return g.tableGame.publish(n, present)
}

// emptyCells have no noise.
type emptyCells struct{ tableGame }

func (g emptyCells) publish(n *dp.Noise, present bool) ([]float64, error) {
	s, err := g.tableGame.publish(n, present)
	if !present && err == nil {
		s[0], s[1] = 0, 0
	}
	return s, err
}

// fixedSeed draws the noise of every release from one seed.
type fixedSeed struct{ noiseGame }

func (g fixedSeed) publish(_ *dp.Noise, present bool) ([]float64, error) {
	return g.noiseGame.publish(stillNoise(1)(), present)
}

// otherCells move with the unit, beyond its weight.
type otherCells struct{ tableGame }

func (g otherCells) publish(n *dp.Noise, present bool) ([]float64, error) {
	s, err := g.tableGame.publish(n, present)
	if present && err == nil {
		s[2] += 20 * g.spec.SD
	}
	return s, err
}

// Every planted bug fails.
func TestDPBoundFindsBugs(t *testing.T) {
	t.Parallel()
	games, err := noiseGames()
	if err != nil {
		t.Fatal(err)
	}
	table, shared, alone := games[0].(tableGame), games[1].(prefixGame), games[2].(prefixGame)
	oneKey, low := shared, alone
	oneKey.selection.Scale /= 3
	low.selection.Threshold -= 8
	for name, bug := range map[string]noiseGame{
		"a unit counts twice": noUnitBound{table}, "half the noise": halfNoise{table}, "empty cells have none": emptyCells{table},
		"fixed seed, table": fixedSeed{table}, "fixed seed, prefixes": fixedSeed{shared}, "other cells move": otherCells{table},
		"noise of one prefix": claims{oneKey, shared}, "a low threshold": claims{low, alone},
	} {
		if f := playNoise(t.Context(), []noiseGame{bug}, stillNoise(9), dpTestRuns/2); f.Status != Fail || !strings.Contains(f.Why, "told apart") {
			t.Errorf("%s: %s, %s", name, f.Status, f.Why)
		}
	}
	// Noise that drowns everything shows nothing, which is no pass.
	loud := table
	loud.spec.Variance *= 10_000
	if f := playNoise(t.Context(), []noiseGame{claims{loud, table}}, stillNoise(9), dpTestRuns/4); f.Status != Inconclusive {
		t.Errorf("much noise: %s, %s", f.Status, f.Why)
	}
}

// claims publishes as one game and claims what another does.
type claims struct {
	does noiseGame
	noiseGame
}

func (g claims) publish(n *dp.Noise, present bool) ([]float64, error) {
	return g.does.publish(n, present)
}

type noBytes struct{}

func (noBytes) Read([]byte) (int, error) { return 0, fmt.Errorf("no randomness") }

// The intervals hold what they say: the chance to lie outside is below 2.5 % on
// each side, whatever the probability.
func TestClopperPearson(t *testing.T) {
	const n = 50
	for _, p := range []float64{0.001, 0.02, 0.3, 0.5, 0.9, 0.999} {
		binomial := distuv.Binomial{N: n, P: p}
		below, above := 0.0, 0.0
		for hits := range n + 1 {
			lo, hi := clopperPearson(hits, n, 0.025)
			if p < lo {
				below += binomial.Prob(float64(hits))
			}
			if p > hi {
				above += binomial.Prob(float64(hits))
			}
		}
		if below > 0.025 || above > 0.025 {
			t.Errorf("p %v: outside with %.4f and %.4f", p, below, above)
		}
	}
	if lo, hi := clopperPearson(0, 100, 0.025); lo != 0 || math.Abs(hi-0.0362) > 1e-4 {
		t.Errorf("none of 100: %v to %v, want 0 to 0.0362", lo, hi)
	}
	if lo, hi := clopperPearson(0, 0, 0.025); lo != 0 || hi != 1 {
		t.Errorf("none of none: %v to %v", lo, hi)
	}
}

// The whole play, as the command runs it: a minute.
func TestDPBoundAtFullLength(t *testing.T) {
	if os.Getenv("REPRISE_TEST_DP") == "" {
		t.Skip("set REPRISE_TEST_DP=1 to play 200,000 runs a side")
	}
	games, err := noiseGames()
	if err != nil {
		t.Fatal(err)
	}
	f := playNoise(t.Context(), games, dp.NewNoise, dpRuns)
	t.Log(f.Why, f.Figures["bounds"])
	if f.Status != Pass {
		t.Errorf("%s: %s", f.Status, f.Why)
	}
}
