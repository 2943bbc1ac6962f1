package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"reprise/anonymize"
	"reprise/anonymize/dp"
)

// A game has a user who does the worst that the bounds allow, in buckets that nobody
// else is in.
func TestGamesOfNoise(t *testing.T) {
	one := newDPGame(dp.Contribution{Records: 3, PerCell: 3}, dp.Budget{Epsilon: 1})
	if one.rare != 1 || one.buckets != 32 || len(one.user) != 100 || len(one.others) != 12 || one.budget.Epsilon != 1 {
		t.Errorf("%+v", one)
	}
	three := newDPGame(dp.Contribution{Records: 5, PerCell: 2}, dp.Budget{})
	if want := []dpRecord{31, 30, 29, 31, 30}; three.rare != 3 || !reflect.DeepEqual(three.user, want) {
		t.Errorf("%d buckets of the user: %v, want %v", three.rare, three.user, want)
	}
	for _, g := range []dpGame{one, three} {
		for i, records := range g.others {
			if len(records) != 1+i%g.bound.Records {
				t.Errorf("%d has %d records", i, len(records))
			}
			for j, r := range records {
				if want := dpRecord((7*i + j) % (32 - g.rare)); r != want {
					t.Errorf("record %d of %d is in %d, want %d", j, i, r, want)
				}
			}
		}
		for _, r := range g.user {
			if int(r) < 32-g.rare || r > 31 {
				t.Errorf("the user is in bucket %d of %d", r, g.rare)
			}
		}
	}
}

// What an event may be about: the user's counts, high or low, and what is shown.
func TestStatisticsOfNoise(t *testing.T) {
	g := &dpGame{buckets: 4, rare: 2}
	for name, c := range map[string]struct {
		o    dpOutput
		want [3]float64
	}{
		"all shown":   {dpOutput{1, 2, 30, -4}, [3]float64{26, -26, 4}},
		"one hidden":  {dpOutput{1, dpHidden, 30, 4}, [3]float64{34, -34, 3}},
		"the user's":  {dpOutput{1, 2, dpHidden, 4}, [3]float64{math.Inf(-1), math.Inf(-1), 3}},
		"all of them": {dpOutput{dpHidden, dpHidden, dpHidden, dpHidden}, [3]float64{math.Inf(-1), math.Inf(-1), 0}},
	} {
		for i, s := range dpStatistics {
			if got := s.of(g, c.o); got != c.want[i] {
				t.Errorf("%s: %s is %v, want %v", name, s.name, got, c.want[i])
			}
		}
	}
	for threshold, want := range map[float64]float64{0: 1, 1: 1, 1.5: 0.75, 2: 0.75, 3: 0.25, 4: 0} {
		if got := share([]float64{1, 2, 2, 3}, threshold); got != want {
			t.Errorf("%v or more: %v, want %v", threshold, got, want)
		}
	}
}

// The bound that an event proves, by its definition.
func TestLowerBound(t *testing.T) {
	lo, _ := clopperPearson(40, 100, 0.025)
	_, hi := clopperPearson(10, 100, 0.025)
	if got, want := lowerBound(0.4, 0.1, 100, 0.01), math.Log((lo-0.01)/hi); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := lowerBound(0.396, 0.104, 100, 0.01); got != lowerBound(0.4, 0.1, 100, 0.01) {
		t.Errorf("shares are not rounded to runs: %v", got)
	}
	if got := lowerBound(0, 0.1, 100, 0.01); got > -600 {
		t.Errorf("an event that never came true proves %v", got)
	}
}

// A play is blind when it shows less than it should by more than chance, and a
// mechanism is broken when it shows more than it may.
func TestBoundsOfAPlay(t *testing.T) {
	b := dpBound{Limit: 1, Achievable: 1, Runs: 201, With: 0.5, Without: 0.25}
	chance := 2 * math.Sqrt(1./50+1./25)
	for lower, want := range map[float64][2]bool{ // broken and blind
		1: {false, false}, 1.0001: {true, false}, 0.8 - chance: {false, false}, 0.8 - chance - 1e-9: {false, true},
	} {
		b.Lower = lower
		if got := [2]bool{b.Broken(), b.Blind()}; got != want {
			t.Errorf("%v: %v, want %v", lower, got, want)
		}
	}
	b.With, b.Without, b.Lower = 0, 0, 0.8-2*math.Sqrt2-1e-9 // no run is as good as one
	if !b.Blind() {
		t.Error("an event that never came true")
	}
	if b.Lower += 2e-9; b.Blind() {
		t.Error("an event that never came true, within chance")
	}
	said := dpBound{Epsilon: 1, Runs: 10, Lower: 1.5, Limit: 0.75, Achievable: 0.5, Statistic: "count", Threshold: 3, With: 0.25, Without: 0.125}
	if got, want := said.String(), "ε of 1.500 or more, claimed 1, at most 0.750; 0.500 can be shown in 10 runs a side (count of 3 or more: 0.2500 with the user, 0.1250 without)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The bound of Laplace noise that can be shown in no end of runs is its ε: the
// discrete distribution is shifted by the records of a user, and the ratio of its
// tails is e^(records/scale).
func TestBoundOfLaplaceNoise(t *testing.T) {
	games, err := dpGames()
	if err != nil {
		t.Fatal(err)
	}
	g := games[0]
	if got := g.achievable(1 << 50); math.Abs(got-1) > 0.01 {
		t.Errorf("%.4f of an ε of 1", got)
	}
	// In few runs, by a second way: the tail as a sum of the distribution's chances.
	const n = 1000
	q := math.Exp(-float64(dp.Denominator) / float64(g.spec.Scale))
	tail := func(from float64) (sum float64) {
		for k := from; k < from+4000; k++ {
			sum += (1 - q) / (1 + q) * math.Pow(q, math.Abs(k))
		}
		return sum
	}
	want := math.Inf(-1)
	shift := float64(g.bound.PerCell)
	for threshold := -60.; threshold < 60; threshold++ {
		want = max(want, lowerBound(tail(threshold-shift), tail(threshold), n, g.budget.Delta))
	}
	if got := g.achievable(n); math.Abs(got-want) > 0.02 || got > want+1e-9 {
		t.Errorf("%.4f in %d runs, want %.4f", got, n, want)
	}
	if g.rare != 1 || g.budget != (dp.Budget{Epsilon: 1, Delta: 1e-6}) || g.bound.Records != g.bound.PerCell {
		t.Errorf("%+v", g)
	}
	// Gaussian noise has the variance of its ρ for all that a user may change.
	s := games[1]
	if want := float64(s.measurement().L2Squared) / (2 * dp.Rho(4, 1e-6)); s.budget != (dp.Budget{Epsilon: 4, Delta: 1e-6}) || s.bound != dp.DefaultContribution ||
		math.Abs(float64(s.spec.Variance)/dp.Denominator-want) > 1/float64(dp.Denominator) || math.Abs(s.spec.SD-math.Sqrt(want)) > 1e-3 {
		t.Errorf("a variance of %v and a deviation of %v, want %v", float64(s.spec.Variance)/dp.Denominator, s.spec.SD, want)
	}
	// The best threshold by a look at each whole number.
	normal := distuv.Normal{Sigma: s.spec.SD * math.Sqrt(float64(s.rare))}
	best := math.Inf(-1)
	for threshold := -300.; threshold < 300; threshold++ {
		best = max(best, lowerBound(normal.Survival(threshold-0.5-float64(s.bound.Records)), normal.Survival(threshold-0.5), n, s.budget.Delta))
	}
	if got := s.achievable(n); math.Abs(got-best) > 0.02 || got > best+1e-6 {
		t.Errorf("of Gaussian noise %.4f, want %.4f", got, best)
	}
}

// A mechanism whose output is the truth is told apart by the event that tells most,
// chosen in one half of the runs and judged in the other.
func TestPlayOfTheTruth(t *testing.T) {
	t.Parallel()
	g := newDPGame(dp.Contribution{Records: 2, PerCell: 2}, dp.Budget{Epsilon: 1, Delta: 1e-6})
	g.spec = dp.NoiseSpec{Scale: 2 * dp.Denominator, SD: 2}
	runs := 0
	truth := func(n *dp.Noise, g *dpGame, users [][]dpRecord) (dpOutput, error) {
		runs++
		o := make(dpOutput, g.buckets)
		for _, records := range users {
			for _, r := range records {
				o[r]++
			}
		}
		return o, nil
	}
	b, err := g.play(truth, stillNoise(1), 101)
	if err != nil || runs != 202 {
		t.Fatal(runs, err)
	}
	lo, _ := clopperPearson(51, 51, 0.025)
	_, hi := clopperPearson(0, 51, 0.025)
	want := dpBound{Epsilon: 1, Delta: 1e-6, Runs: 101, Lower: math.Log((lo - 1e-6) / hi), Limit: b.Limit, Achievable: g.achievable(51),
		Statistic: "count in the buckets of the user", Threshold: 100, With: 1}
	if b != want || b.Limit > 1 || b.Limit < 0.9 {
		t.Errorf("%+v, want %+v", b, want)
	}
	// Buckets that are hidden tell by their number alone.
	hidden := func(n *dp.Noise, g *dpGame, users [][]dpRecord) (dpOutput, error) {
		o, err := truth(n, g, users)
		for i, v := range o {
			if o[i] = dpHidden; v > 0 && i >= g.buckets-1 {
				o[0] = 1
			}
		}
		return o, err
	}
	if b, err := g.play(hidden, stillNoise(1), 100); err != nil || b.Statistic != "buckets that are shown" || b.Threshold != 1 || b.With != 1 || b.Without != 0 {
		t.Errorf("%+v, %v", b, err)
	}
	low := func(n *dp.Noise, g *dpGame, users [][]dpRecord) (dpOutput, error) {
		o, err := truth(n, g, users)
		o[g.buckets-1] *= -1
		return o, err
	}
	if b, err := g.play(low, stillNoise(1), 100); err != nil || b.Statistic != "negative of the count in the buckets of the user" || b.Threshold != 100 {
		t.Errorf("%+v, %v", b, err)
	}
	bad := errors.New("no noise")
	if b, err := g.play(func(*dp.Noise, *dpGame, [][]dpRecord) (dpOutput, error) { return nil, bad }, stillNoise(1), 10); !errors.Is(err, bad) || b != (dpBound{}) {
		t.Errorf("%+v, %v", b, err)
	}
}

// What the check says: of which outputs it is, what was shown, and why it ended.
func TestFindingsOfNoise(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]*Output{
		"it is about the noise of what is drawn from noisy counts, and the output is of tier partner": {Kind: kindModel, Meta: map[string]string{"tier": anonymize.Partner}},
		"it is about the noise of what is drawn from noisy counts, and the output is of tier none":    {Kind: kindModel},
	} {
		if f := noise(t.Context(), &Case{Output: o}); !reflect.DeepEqual(f, skipped("%s", want)) {
			t.Errorf("%+v, want %s", f, want)
		}
	}
	f := playNoise(t.Context(), publish, stillNoise(0), 800)
	all, ok := f.Figures["bounds"].(lines[dpBound])
	if !ok || len(all) != 2 {
		t.Fatalf("%+v", f)
	}
	want := passed(Figures{"bounds": all}, "one user more or less cannot be told apart with more than the ε that is claimed: of 1, %.3f shows through Laplace noise; of 4, %.3f through Gaussian noise, of which %.3f can",
		all[0].Lower, all[1].Lower, all[1].Achievable)
	if !reflect.DeepEqual(f, want) {
		t.Errorf("%+v, want %+v", f, want)
	}
	f = playNoise(t.Context(), noUserBound, stillNoise(9), 1000)
	all = f.Figures["bounds"].(lines[dpBound])
	if len(all) != 1 || f.Why != fmt.Sprintf("with one user more or less an event is told apart with an %s", all[0]) || f.Status != Fail {
		t.Errorf("%+v", f)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if f := playNoise(ctx, publish, stillNoise(0), 10); !reflect.DeepEqual(f, broken(context.Canceled)) {
		t.Errorf("stopped: %+v", f)
	}
	silent := func() *dp.Noise { return dp.NewNoiseFrom(noBytes{}) }
	if f := playNoise(t.Context(), publish, silent, 10); !f.broken {
		t.Errorf("without randomness: %+v", f)
	}
}
