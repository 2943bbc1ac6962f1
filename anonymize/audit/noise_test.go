package audit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
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

// The mechanism of releases passes, and shows 0.8 of its ε or more: so a fifth
// more than it claims would be noticed.
func TestDPBoundOfTheRealMechanism(t *testing.T) {
	t.Parallel()
	seeds := byte(2)
	if os.Getenv("REPRISE_TEST_LONG") != "" {
		seeds = 4
	}
	for seed := range seeds {
		games, err := dpGames()
		if err != nil {
			t.Fatal(err)
		}
		if games[0].spec.Scale == 0 || games[1].spec.Variance == 0 {
			t.Fatalf("the games are of %+v and %+v", games[0].spec, games[1].spec)
		}
		laplace, err := games[0].play(publish, stillNoise(seed), dpTestRuns)
		if err != nil || laplace.Lower < 0.8 || laplace.Lower > 1 || laplace.Blind() || laplace.Broken() {
			t.Errorf("seed %d: Laplace %v, %v", seed, laplace, err)
		}
		gaussian, err := games[1].play(publish, stillNoise(seed), dpTestRuns)
		if err != nil || gaussian.Broken() || gaussian.Blind() {
			t.Errorf("seed %d: Gaussian %v, %v", seed, gaussian, err)
		}
		// The event is as likely on both sides as the trade-off function says.
		sum := distuv.Normal{Sigma: games[1].spec.SD * math.Sqrt(float64(games[1].rare))}
		moved := float64(games[1].bound.Records)
		for _, side := range [][2]float64{{gaussian.With, sum.Survival(gaussian.Threshold - 0.5 - moved)}, {gaussian.Without, sum.Survival(gaussian.Threshold - 0.5)}} {
			if se := math.Sqrt(side[1] * (1 - side[1]) / (dpTestRuns / 2)); math.Abs(side[0]-side[1]) > 4.5*se {
				t.Errorf("seed %d: the event came true in %.4f, want %.4f: %v", seed, side[0], side[1], gaussian)
			}
		}
	}
}

// The bound that can be shown of Gaussian noise is that of its trade-off function
// (Dong, Roth and Su, "Gaussian Differential Privacy", 2022), when nothing is lost
// to the intervals, and never above the ε that it was made for.
func TestDPBoundOfGaussianNoise(t *testing.T) {
	games, err := dpGames()
	if err != nil {
		t.Fatal(err)
	}
	g := games[1]
	mu := math.Sqrt(float64(g.measurement().L2Squared)) / g.spec.SD
	unit := distuv.UnitNormal
	want := math.Inf(-1)
	for fpr := 1e-9; fpr < 1; fpr *= 1.01 {
		tpr := unit.Survival(unit.Quantile(1-fpr) - mu)
		want = max(want, math.Log((tpr-g.budget.Delta)/fpr))
	}
	if want > g.budget.Epsilon {
		t.Errorf("events down to a chance of 1e-9 show an ε of %.3f", want)
	}
	if got := g.achievable(1 << 50); math.Abs(got/want-1) > 0.1 {
		t.Errorf("without bounds on runs %.3f can be shown, the trade-off function says %.3f", got, want)
	}
}

// noUserBound counts all records of a user.
func noUserBound(n *dp.Noise, g *dpGame, users [][]dpRecord) (dpOutput, error) {
	loose := *g
	loose.bound = dp.Contribution{Records: 1 << 20, PerCell: 1 << 20}
	return publish(n, &loose, users)
}

// sensitivityOfOne adds noise as if a user had one record.
func sensitivityOfOne(n *dp.Noise, g *dpGame, users [][]dpRecord) (dpOutput, error) {
	small := *g
	c := uint64(g.bound.Records)
	small.spec.Scale, small.spec.Variance = g.spec.Scale/c, g.spec.Variance/(c*uint64(g.bound.PerCell))
	return publish(n, &small, users)
}

// fixedSeed draws the noise of every release from one seed.
func fixedSeed(_ *dp.Noise, g *dpGame, users [][]dpRecord) (dpOutput, error) {
	return publish(dp.NewNoiseFrom(rand.NewChaCha8([32]byte{1})), g, users)
}

// emptyDropped shows only buckets that somebody is in.
func emptyDropped(n *dp.Noise, g *dpGame, users [][]dpRecord) (dpOutput, error) {
	out, err := publish(n, g, users)
	for r := range dpRecord(g.buckets) {
		if !slices.ContainsFunc(users, func(records []dpRecord) bool { return slices.Contains(records, r) }) {
			out[r] = dpHidden
		}
	}
	return out, err
}

// topOfTheData ends the histogram at the last bucket that somebody is in.
func topOfTheData(n *dp.Noise, g *dpGame, users [][]dpRecord) (dpOutput, error) {
	out, err := publish(n, g, users)
	top := dpRecord(0)
	for _, records := range users {
		top = max(top, slices.Max(records))
	}
	for r := top + 1; int(r) < g.buckets; r++ {
		out[r] = dpHidden
	}
	return out, err
}

// Every planted bug fails.
func TestDPBoundFindsBugs(t *testing.T) {
	t.Parallel()
	for name, bug := range map[string]dpMechanism{
		"no user bound": noUserBound, "sensitivity 1": sensitivityOfOne, "fixed seed": fixedSeed,
		"empty buckets dropped": emptyDropped, "top edge of the data": topOfTheData,
	} {
		if f := playNoise(t.Context(), bug, stillNoise(9), dpTestRuns/20); f.Status != Fail || !strings.Contains(f.Why, "told apart") {
			t.Errorf("%s: %s, %s", name, f.Status, f.Why)
		}
	}
	if f := playNoise(t.Context(), publish, stillNoise(1), dpTestRuns); f.Status == Fail {
		t.Errorf("the real one: %s, %s", f.Status, f.Why)
	}
	// Noise that drowns everything shows nothing, which is no pass.
	drowned := func(n *dp.Noise, g *dpGame, users [][]dpRecord) (dpOutput, error) {
		loud := *g
		loud.spec.Scale, loud.spec.Variance = 100*g.spec.Scale, 10_000*g.spec.Variance
		return publish(n, &loud, users)
	}
	if f := playNoise(t.Context(), drowned, stillNoise(9), dpTestRuns/4); f.Status != Inconclusive {
		t.Errorf("much noise: %s, %s", f.Status, f.Why)
	}
	silent := func() *dp.Noise { return dp.NewNoiseFrom(noBytes{}) }
	if f := playNoise(t.Context(), publish, silent, 10); f.Status != Inconclusive {
		t.Errorf("without randomness: %s, %s", f.Status, f.Why)
	}
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
	f := playNoise(t.Context(), publish, dp.NewNoise, dpRuns)
	t.Log(f.Why, f.Figures["bounds"])
	if f.Status != Pass {
		t.Errorf("%s: %s", f.Status, f.Why)
	}
}
