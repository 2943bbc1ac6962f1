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

// The games are of the noise of releases: of a table, of prefixes that many begin with,
// and of those of one unit alone.
func TestNoiseGames(t *testing.T) {
	games, err := noiseGames()
	if err != nil || len(games) != 3 {
		t.Fatal(len(games), err)
	}
	table := games[0].(tableGame)
	if want := 840 * 840 / (2 * dp.Rho(4, 1e-6)); table.spec.Cells != 32 || table.weight != 840 || math.Abs(float64(table.spec.Variance)/dp.Denominator/want-1) > 1e-6 {
		t.Errorf("%+v, want a variance of %v", table, want)
	}
	shared, alone := games[1].(prefixGame), games[2].(prefixGame)
	if shared.selection.Scale < 3*dp.Denominator || shared.selection.Scale > 3*dp.Denominator+1 || shared.others < 2*shared.selection.Threshold {
		t.Errorf("%+v", shared)
	}
	if alone.others != 0 || alone.selection.Threshold >= shared.selection.Threshold {
		t.Errorf("%+v", alone)
	}
	for i, want := range []string{"tables", "shared prefixes", "prefixes of one unit"} {
		if of, _ := games[i].about(); of != want {
			t.Errorf("game %d is of %s", i, of)
		}
	}
}

// What is published of a table and of prefixes, without noise that counts.
func TestStatisticsOfNoise(t *testing.T) {
	quiet := tableGame{spec: dp.NoiseSpec{Measurement: dp.Measurement{Cells: 16}, Variance: 1}, weight: 840}
	n := stillNoise(1)()
	for present, want := range map[bool][]float64{true: {840, -840, 12 * 840}, false: {0, 0, 12 * 840}} {
		if got, err := quiet.publish(n, present); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %v, want %v, %v", present, got, want, err)
		}
	}
	none := math.Inf(-1)
	for name, c := range map[string]struct {
		g             prefixGame
		with, without []float64
	}{
		"many others": {prefixGame{selection: dp.Selection{Scale: 1, Threshold: 5}, keys: 2, others: 9}, []float64{10, -10, 2}, []float64{9, -9, 2}},
		"too few":     {prefixGame{selection: dp.Selection{Scale: 1, Threshold: 5}, keys: 2, others: 4}, []float64{5, -5, 2}, []float64{none, math.Inf(1), 0}},
		"nobody else": {prefixGame{selection: dp.Selection{Scale: 1, Threshold: 1}, keys: 3}, []float64{1, -1, 3}, []float64{none, math.Inf(1), 0}},
	} {
		with, err := c.g.publish(n, true)
		without, err2 := c.g.publish(n, false)
		if err != nil || err2 != nil || !reflect.DeepEqual(with, c.with) || !reflect.DeepEqual(without, c.without) {
			t.Errorf("%s: %v and %v, want %v and %v", name, with, without, c.with, c.without)
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
	if got, want := said.String(), "ε of 1.500 or more, claimed 1, at most 0.750; 0.500 can be shown in 10 runs a side (count of 3 or more: 0.2500 with the unit, 0.1250 without)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What can be shown, by second ways: the tail of Laplace noise as a sum of its chances,
// and each whole number of Gaussian noise as a threshold.
func TestAchievableOfNoise(t *testing.T) {
	games, err := noiseGames()
	if err != nil {
		t.Fatal(err)
	}
	const n = 1000
	shared := games[1].(prefixGame)
	q := math.Exp(-float64(dp.Denominator) / float64(shared.selection.Scale))
	tail := func(from float64) (sum float64) {
		for k := from; k < from+4000; k++ {
			sum += (1 - q) / (1 + q) * math.Pow(q, math.Abs(k))
		}
		return math.Pow(sum, 3)
	}
	want := math.Inf(-1)
	for threshold := -60.; threshold < 60; threshold++ {
		want = max(want, lowerBound(tail(threshold-1), tail(threshold), n, 1e-6))
	}
	if got := achievable(shared, n); math.Abs(got-want) > 0.02 || got > want+1e-9 || got < 0.3 {
		t.Errorf("%.4f in %d runs, want %.4f", got, n, want)
	}
	table := games[0].(tableGame)
	normal := distuv.Normal{Sigma: table.spec.SD}
	want = math.Inf(-1)
	for threshold := -4000.; threshold < 4000; threshold++ {
		want = max(want, lowerBound(normal.Survival(threshold-0.5-840), normal.Survival(threshold-0.5), n, 1e-6))
	}
	if got := achievable(table, n); math.Abs(got-want) > 0.02 || got > want+1e-6 {
		t.Errorf("of Gaussian noise %.4f, want %.4f", got, want)
	}
	// A prefix of one unit is selected as rarely as δ allows, so nothing shows.
	alone := games[2].(prefixGame)
	with, without := alone.chances(1)
	q = math.Exp(-float64(dp.Denominator) / float64(alone.selection.Scale))
	one := math.Pow(q, float64(alone.selection.Threshold-1)) / (1 + q)
	if math.Abs(with-one*one*one) > 1e-12 || without != 0 || 3*one > 0.005 || 3*one < 0.003 || achievable(alone, 1<<40) > 0 {
		t.Errorf("a chance of %g with the unit and %g without it, and %g for one prefix", with, without, one)
	}
}

// tell publishes a statistic that says who is there.
type tell struct {
	tableGame
	statistic int
	plays     *int
}

func (g tell) publish(_ *dp.Noise, present bool) ([]float64, error) {
	*g.plays++
	s := make([]float64, 3)
	if present {
		s[g.statistic] = 7
	}
	return s, nil
}

type silent struct{ tableGame }

var errSilent = errors.New("no noise")

func (silent) publish(*dp.Noise, bool) ([]float64, error) { return nil, errSilent }

// A mechanism whose output is the truth is told apart by the event that tells most,
// chosen in one half of the runs and judged in the other.
func TestPlayOfTheTruth(t *testing.T) {
	t.Parallel()
	games, err := noiseGames()
	if err != nil {
		t.Fatal(err)
	}
	table := games[0].(tableGame)
	for i, name := range table.statistics() {
		plays := 0
		b, err := playSides(tell{table, i, &plays}, stillNoise(1), 101)
		if err != nil || plays != 202 {
			t.Fatal(plays, err)
		}
		lo, _ := clopperPearson(51, 51, 0.025)
		_, hi := clopperPearson(0, 51, 0.025)
		want := dpBound{Of: "tables", Epsilon: 4, Delta: 1e-6, Runs: 101, Lower: math.Log((lo - 1e-6) / hi), Limit: b.Limit, Achievable: achievable(table, 51), Statistic: name, Threshold: 7, With: 1}
		if b != want || b.Limit > 4 {
			t.Errorf("%+v, want %+v", b, want)
		}
	}
	if b, err := playSides(silent{table}, stillNoise(1), 10); !errors.Is(err, errSilent) || b != (dpBound{}) {
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
	games, err := noiseGames()
	if err != nil {
		t.Fatal(err)
	}
	f := playNoise(t.Context(), games, stillNoise(0), 4000)
	all, ok := f.Figures["bounds"].(lines[dpBound])
	if !ok || len(all) != 3 {
		t.Fatalf("%+v", f)
	}
	want := passed(Figures{"bounds": all}, "one unit more or less cannot be told apart with more than the ε that is claimed: tables show ε ≥ %.3f at a claimed ε of 4, where about %.3f is expected; shared prefixes show ε ≥ %.3f at a claimed ε of 1, where about %.3f is expected",
		all[0].Lower, all[0].Achievable, all[1].Lower, all[1].Achievable)
	if !reflect.DeepEqual(f, want) {
		t.Errorf("%+v, want %+v", f, want)
	}
	plays := 0
	f = playNoise(t.Context(), []noiseGame{tell{games[0].(tableGame), 0, &plays}}, stillNoise(9), 1000)
	all = f.Figures["bounds"].(lines[dpBound])
	if len(all) != 1 || f.Why != fmt.Sprintf("with one unit more or less an event is told apart with an %s", all[0]) || f.Status != Fail || plays != 4000 {
		t.Errorf("%+v", f)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if f := playNoise(ctx, games, stillNoise(0), 10); !reflect.DeepEqual(f, broken(context.Canceled)) {
		t.Errorf("stopped: %+v", f)
	}
	if f := playNoise(t.Context(), games, func() *dp.Noise { return dp.NewNoiseFrom(noBytes{}) }, 10); !f.broken {
		t.Errorf("without randomness: %+v", f)
	}
}
