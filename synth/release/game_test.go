package release

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/trace"
	"reprise/trace/longtest"
)

// A measuring measures a log as a release does, as often as it is asked to.
type measuring interface {
	// Measure draws all noise anew.
	Measure() (Measured, error)
	// Exact counts without noise, in the cells that a measurement chose.
	Exact(chosen string) ([][]int64, error)
}

// A gamePlay is the membership game for one unit: a log is measured again and again with it and
// without, and an attacker who knows every other row, and this unit too, tells from the noisy tables
// which it was.
type gamePlay struct {
	with, without measuring
	weight        int64 // how many times the unit counts; 1 but for a control
	seen          map[string][2][][]float64
}

// known are the exact counts of both sides in the cells that a measurement chose, the means of 32 draws,
// since units are sampled.
func (p *gamePlay) known(chosen string) ([2][][]float64, error) {
	if k, ok := p.seen[chosen]; ok {
		return k, nil
	}
	const draws = 32
	var k [2][][]float64
	for range draws {
		for side, of := range []measuring{p.with, p.without} {
			counts, err := of.Exact(chosen)
			if err != nil {
				return k, err
			}
			for t, cells := range counts {
				if t == len(k[side]) {
					k[side] = append(k[side], make([]float64, len(cells)))
				}
				for i, x := range cells {
					k[side][t][i] += float64(x) / draws
				}
			}
		}
	}

	for t, cells := range k[0] {
		for i, x := range cells {
			cells[i] = k[1][t][i] + float64(p.weight)*(x-k[1][t][i])
		}
	}
	p.seen[chosen] = k
	return k, nil
}

// measure is what one measurement tells: the likelihood of its tables with the unit over that without, and
// how many cells there are.
func (p *gamePlay) measure(side measuring, present bool) (ratio, cells float64, err error) {
	m, err := side.Measure()
	if err != nil {
		return 0, 0, err
	}
	k, err := p.known(m.Chosen)
	if err != nil {
		return 0, 0, err
	}

	for t, table := range m.Tables {
		cells += float64(len(table.Cells))
		for i, n := range table.Cells {
			with, without := k[0][t][i], k[1][t][i]
			x := float64(n)
			if present { // the rest of what a control adds
				x += (with - without) * (1 - 1/float64(p.weight))
			}
			ratio += ((x-without)*(x-without) - (x-with)*(x-with)) * dp.Denominator / (2 * float64(table.Spec.Variance))
		}
	}
	return ratio, cells, nil
}

// play bounds what tells both sides apart: either may be the likelier one, by much or by little.
func (p *gamePlay) play(runs int, claim dp.Budget) (epsilonBound, error) {
	var values [2][2][]float64 // quantity, side
	for range runs {
		for side, of := range []measuring{p.with, p.without} {
			ratio, cells, err := p.measure(of, side == 0)
			if err != nil {
				return epsilonBound{}, err
			}
			values[0][side], values[1][side] = append(values[0][side], ratio), append(values[1][side], cells)
		}
	}

	negative := func(list []float64) (out []float64) {
		for _, x := range list {
			out = append(out, -x)
		}
		return out
	}
	var duels []duel
	for i, name := range []string{"likelihood ratio", "number of cells"} {
		with, without := values[i][0], values[i][1]
		duels = append(duels, duel{name, with, without}, duel{"negative " + name, negative(without), negative(with)},
			duel{"negative " + name, negative(with), negative(without)}, duel{name, without, with})
	}
	b, _ := won(duels, claim.Delta)
	b.Epsilon = claim.Epsilon
	return b, nil
}

// A countOfFew is a small mechanism that counts requests in four cells. Its last cell is that of one unit alone.
type countOfFew struct {
	cells []int64
	noise func() *dp.Noise
	spec  dp.NoiseSpec
	least int64 // a count without noise below it has no cell
}

func (s *countOfFew) Exact(string) ([][]int64, error) { return [][]int64{s.cells}, nil }

func (s *countOfFew) Measure() (Measured, error) {
	noisy := slices.Clone(s.cells)
	if err := s.spec.Add(s.noise(), noisy); err != nil {
		return Measured{}, err
	}
	for s.cells[len(noisy)-1] < s.least {
		noisy = noisy[:len(noisy)-1]
	}
	return Measured{Tables: []NoisyTable{{Spec: s.spec, Cells: noisy}}}, nil
}

// A mechanism that is right keeps its claim, one with a bug does not, and a unit that counts 43 times is seen.
func TestGameOfFew(t *testing.T) {
	t.Parallel()
	const claim, delta, runs = 2, 1e-6, 800
	played := func(weight int64, bug func(*countOfFew)) epsilonBound {
		t.Helper()
		p := gamePlay{weight: weight, seen: map[string][2][][]float64{}}
		for i, side := range []*measuring{&p.with, &p.without} {
			noise := stillNoise(byte(7 + i))()
			s := &countOfFew{cells: []int64{20, 12, 7, int64(1 - i)}, noise: func() *dp.Noise { return noise }}
			var err error
			if s.spec, err = (dp.Measurement{Name: "lengths", L2Squared: 1, Cells: 4}).WithRho(dp.Rho(claim, delta)); err != nil {
				t.Fatal(err)
			}
			if bug != nil {
				bug(s)
			}
			*side = s
		}
		b, err := p.play(runs, dp.Budget{Epsilon: claim, Delta: delta})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}

	if b := played(1, nil); b.Lower > claim {
		t.Errorf("a right mechanism: %s", b)
	}
	if b := played(43, nil); b.Lower <= claim {
		t.Errorf("a unit that counts 43 times is not seen: %s", b)
	}
	for name, bug := range map[string]func(*countOfFew){
		"too little noise":       func(s *countOfFew) { s.spec.Variance /= 400 },
		"no noise":               func(s *countOfFew) { s.spec.Variance = 1 },
		"one seed for all":       func(s *countOfFew) { s.noise = stillNoise(1) },
		"cells of few left out":  func(s *countOfFew) { s.least = 1 },
		"a unit counts 43 times": func(s *countOfFew) { s.cells[3] *= 43 },
	} {
		if b := played(1, bug); b.Lower <= claim {
			t.Errorf("%s is not seen: %s", name, b)
		}
	}
	if b := played(43, func(s *countOfFew) { s.spec.Variance *= 1e6 }); b.Lower > claim {
		t.Errorf("much noise shows %s", b)
	}
}

// The game by the code of releases, for the sessions that are hardest to hide: the first, the last and the
// longest. REPRISE_TEST_DP=1 plays 2,000 runs a side at three claims, for minutes.
func TestGameOfReleases(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	rows, meta := chats(60)
	runs, claims := 150, []float64{2}
	if os.Getenv("REPRISE_TEST_DP") != "" {
		rows, meta = chats(300)
		runs, claims = 2000, []float64{1, 2, 4}
	}
	first, last, longest := *rows[0].Session, *rows[len(rows)-1].Session, int64(0)
	turns := map[int64]int{}
	for _, r := range rows {
		if turns[*r.Session]++; turns[*r.Session] > turns[longest] {
			longest = *r.Session
		}
	}

	for _, claim := range claims {
		for _, c := range []struct {
			name   string
			unit   int64
			weight int64
		}{{"the first", first, 1}, {"the last", last, 1}, {"the longest", longest, 1}, {"the longest, counted 43 times", longest, 43}} {
			p := gamePlay{weight: c.weight, seen: map[string][2][][]float64{}}
			without := slices.DeleteFunc(slices.Clone(rows), func(r trace.Request) bool { return *r.Session == c.unit })
			for side, of := range map[*measuring][]trace.Request{&p.with: rows, &p.without: without} {
				var err error
				*side, err = Rehearse(t.Context(), &trace.SliceReader[trace.Request]{Rows: of}, meta,
					Options{Budget: dp.Budget{Epsilon: claim, Delta: 1e-6}, Unit: synth.UnitSession})
				if err != nil {
					t.Fatal(err)
				}
			}
			b, err := p.play(runs, dp.Budget{Epsilon: claim, Delta: 1e-6})
			t.Logf("%s: %s", c.name, b)
			if err != nil || (b.Lower > claim) != (c.weight > 1) {
				t.Errorf("%s: %s, %v", c.name, b, err)
			}
		}
	}
}

// chats are sessions of several turns, with prompts that begin alike.
func chats(n int) (rows []trace.Request, meta trace.Meta) {
	rng := rand.New(rand.NewPCG(4, 4))
	block := uint64(1)
	for s := range n {
		blocks, turns := []uint64{0}, 1+rng.IntN(5)
		if s == n/2 {
			turns = 40
		}
		at := rng.Int64N(int64(50 * time.Minute))
		for range turns {
			blocks = append(slices.Clone(blocks), block, block+1)
			block += 2
			rows = append(rows, trace.Request{ArrivalNS: at, InputTokens: int32(64 * len(blocks)), OutputTokens: trace.Ptr(int32(1 + rng.IntN(300))), Blocks: blocks,
				Session: trace.Ptr(int64(s)), User: trace.Ptr(int64(s / 2)), Status: trace.StatusOK})
			at += rng.Int64N(int64(10 * time.Second))
		}
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return int(a.ArrivalNS - b.ArrivalNS) })
	return rows, trace.Meta{Tier: "internal", Capture: trace.RelativeCapture(0, time.Hour), Sessions: "source", BlockSize: 64, Convention: trace.PartialTail}
}

// A rehearsal measures as a release does: without its noise it counts the same, in the
// cells that the measurement chose, and its noise is as large as it says.
func TestRehearsals(t *testing.T) {
	t.Parallel()
	rows, meta := chats(60)
	budget := dp.Budget{Epsilon: 90, Delta: 1e-6}
	of := map[string]measuring{}
	var err error
	if of["by session"], err = Rehearse(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, meta, Options{Budget: budget, Unit: synth.UnitSession}); err != nil {
		t.Fatal(err)
	}
	if of["by user"], err = Rehearse(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, meta, Options{Budget: budget, Unit: synth.UnitUser}); err != nil {
		t.Fatal(err)
	}
	for tier, r := range of {
		var before Measured
		for range 2 {
			m, err := r.Measure()
			if err != nil {
				t.Fatal(err)
			}
			exact, err := r.Exact(m.Chosen)
			if err != nil || len(exact) != len(m.Tables) || m.Chosen == "" {
				t.Fatalf("%s: %d tables, %d counted, %v", tier, len(m.Tables), len(exact), err)
			}
			differ, cells, sum := 0, 0, 0.0
			for i, table := range m.Tables {
				if len(table.Cells) != len(exact[i]) || len(table.Cells) != table.Spec.Cells {
					t.Fatalf("%s: table %d has %d cells, %d are counted", tier, i, len(table.Cells), len(exact[i]))
				}
				for j, n := range table.Cells {
					cells++
					if table.Spec.SD > 1 {
						sum += math.Pow(float64(n-exact[i][j])/table.Spec.SD, 2) // samples of units move counts by some more
					} else {
						sum++
					}
					if before.Tables != nil && j < len(before.Tables[i].Cells) && before.Tables[i].Cells[j] != n {
						differ++
					}
				}
			}
			if spread := sum / float64(cells); spread < 0.8 || spread > 1.3 {
				t.Errorf("%s: the noise has %.2f of the variance that it says", tier, spread)
			}
			if before.Tables != nil && differ < cells/4 {
				t.Errorf("%s: only %d of %d cells have other noise in a second measurement", tier, differ, cells)
			}
			before = m
		}
	}
	for tier, r := range of {
		if _, err := r.Exact("x"); err == nil {
			t.Errorf("%s: cells of no measurement", tier)
		}
	}
}
