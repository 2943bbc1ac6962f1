package audit

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/synth/release"
	"reprise/trace"
)

// A small mechanism counts requests in a few cells by their length. Every unit is one
// request.
type small struct {
	cells []int64
	noise *dp.Noise
	spec  dp.NoiseSpec
	least int64 // a count without noise below it has no cell
}

func (s *small) Exact(string) ([][]int64, error) { return [][]int64{s.cells}, nil }

func (s *small) Measure() (dp.Measured, error) {
	noisy := slices.Clone(s.cells)
	if s.noise == nil {
		s = &small{s.cells, dp.NewNoiseFrom(rand.NewChaCha8([32]byte{1})), s.spec, s.least}
	}
	if err := s.spec.Add(s.noise, noisy); err != nil {
		return dp.Measured{}, err
	}
	for s.cells[len(noisy)-1] < s.least {
		noisy = noisy[:len(noisy)-1]
	}
	return dp.Measured{Tables: []dp.Noisy{{Spec: s.spec, Cells: noisy}}}, nil
}

// smallGame rehearses by the mechanism, which change may break.
func smallGame(t testing.TB, change func(*small)) func(*terms, []trace.Request, float64) (rehearsal, error) {
	t.Helper()
	return func(r *terms, rows []trace.Request, epsilon float64) (rehearsal, error) {
		s, seed := &small{cells: make([]int64, 4)}, [32]byte{byte(epsilon), byte(len(rows))}
		for i := range rows {
			s.cells[rows[i].InputTokens%4]++
			seed[2] += byte(rows[i].InputTokens)
		}
		s.noise = dp.NewNoiseFrom(rand.NewChaCha8(seed)) // of the log alone: goroutines begin in any order
		var err error
		s.spec, err = dp.Measurement{Name: "lengths", L2Squared: 1, Cells: 4}.WithRho(dp.Rho(epsilon, r.statement.Budget.Delta))
		if change != nil {
			change(s)
		}
		return s, err
	}
}

// ofGame is a case of a drawn release of single requests, and of their trace.
func ofGame(t testing.TB, rows []trace.Request, s dp.SessionStatement) *Case {
	t.Helper()
	path := filepath.Join(t.TempDir(), "internal.parquet")
	meta := trace.Meta{Tier: anonymize.Internal, Capture: trace.RelativeCapture(0, time.Hour), Sessions: "source"}
	err := trace.Create(path, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		_, err := dst.Write(rows)
		return meta, err
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &Case{Game: true, Seed: 3}
	if c.Internal, err = trace.Open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Internal.Close() })
	of := meta
	of.Tier = anonymize.Partner
	card := anonymize.SessionsCard(s, of)
	text, sum, err := card.JSON()
	if err != nil {
		t.Fatal(err)
	}
	c.Output = &Output{Kind: "release", Meta: map[string]string{"tier": anonymize.Partner, "card": text, "card_sha256": sum}}
	return c
}

// requests are units of their own, in one of four cells but for the last, which has one
// for itself.
func requests(n int) (rows []trace.Request) {
	for i := range n {
		rows = append(rows, trace.Request{ArrivalNS: int64(i) * 1e9, InputTokens: int32(4 * (1 + i%9)), OutputTokens: trace.Ptr(int32(1 + i%5)), Status: trace.StatusOK,
			Session: trace.Ptr(int64(i))})
	}
	rows[n-1].InputTokens = 4003
	return rows
}

var ofRequests = dp.SessionStatement{Unit: synth.UnitRequest, Budget: dp.Budget{Epsilon: 8, Delta: 1e-6}, CaptureNS: int64(time.Hour), MaxInput: 1 << 17, MaxOutput: 1 << 14}

// A mechanism that is right passes at each claim, and one with a bug does not.
func TestGame(t *testing.T) {
	t.Parallel()
	c := ofGame(t, requests(40), ofRequests)
	f := playGame(t.Context(), c, 800, smallGame(t, nil))
	all, _ := f.Figures["bounds"].(lines[gameBound])
	if f.Status != Pass || len(all) != 9 || f.Figures["units"] != 40 || f.Figures["requests"] != 40 {
		t.Fatalf("%s: %s %v", f.Status, f.Why, f.Figures)
	}
	for i, b := range all {
		if want := gameEpsilons[i/3]; b.Claimed != want || b.Control != (i%3 == 2) || b.Runs != 800 || b.Control && b.Lower <= want || !b.Control && b.Lower > want {
			t.Errorf("bound %d: %s", i, b)
		}
	}
	if !strings.Contains(f.Why, "at a claimed ε of 4, 800 runs a side, the worst of 2 units each; a request that counts 43 times is seen (") {
		t.Error(f.Why)
	}
	for name, bug := range map[string]func(*small){
		"too little noise":       func(s *small) { s.spec.Variance /= 400 },
		"no noise":               func(s *small) { s.spec.Variance = 1 },
		"one seed for all":       func(s *small) { s.noise = nil },
		"cells of few left out":  func(s *small) { s.least = 1 },
		"a unit counts 43 times": func(s *small) { s.cells[3] *= 43 },
	} {
		if f := playGame(t.Context(), c, 800, smallGame(t, bug)); f.Status != Fail || !strings.Contains(f.Why, "one request more or less is told apart: empirical ε ≥ ") {
			t.Errorf("%s: %s: %s", name, f.Status, f.Why)
		}
	}
	// Noise that hides even the control would hide a bug.
	if f := playGame(t.Context(), c, 800, smallGame(t, func(s *small) { s.spec.Variance *= 1e6 })); f.Status != Inconclusive || !strings.Contains(f.Why, "the game sees too little") {
		t.Errorf("much noise: %s: %s", f.Status, f.Why)
	}
}

// What the game is not for, and what it cannot do.
func TestGameIsNotPlayed(t *testing.T) {
	t.Parallel()
	c := ofGame(t, requests(19), ofRequests)
	if f := playGame(t.Context(), c, 4, smallGame(t, nil)); f.Status != Inconclusive || f.Why != "the source has 19 units, and the game wants 20" {
		t.Errorf("few: %s: %s", f.Status, f.Why)
	}
	hours := ofRequests
	hours.CaptureNS *= 2
	if f := playGame(t.Context(), ofGame(t, requests(30), hours), 4, smallGame(t, nil)); f.Status != Inconclusive || !strings.Contains(f.Why, "another capture window") {
		t.Errorf("another source: %s: %s", f.Status, f.Why)
	}
	bad := errors.New("no noise")
	c = ofGame(t, requests(30), ofRequests)
	if f := playGame(t.Context(), c, 4, func(*terms, []trace.Request, float64) (rehearsal, error) { return nil, bad }); !f.broken {
		t.Errorf("without noise: %s: %s", f.Status, f.Why)
	}
	if c.Game = false; game(t.Context(), c).Status != Skipped {
		t.Error("it is played without being asked for")
	}
	c.Game = true
	c.Output = &Output{Kind: kindTrace, Meta: map[string]string{"tier": anonymize.Partner}}
	if f := game(t.Context(), c); f.Status != Skipped {
		t.Errorf("a release without a card: %s: %s", f.Status, f.Why)
	}
}

// The small log keeps the units that are hardest to hide, and of others a sample.
func TestLogOfGame(t *testing.T) {
	var rows []trace.Request
	for i := range 4000 {
		rows = append(rows, trace.Request{ArrivalNS: int64(i), InputTokens: 100, OutputTokens: trace.Ptr[int32](10), User: trace.Ptr(int64(i % 1000)), Status: trace.StatusOK})
		if i == 2000 {
			for range 600 {
				rows = append(rows, trace.Request{ArrivalNS: int64(i), InputTokens: 100, OutputTokens: trace.Ptr[int32](10), User: trace.Ptr(int64(5000)), Status: trace.StatusOK})
			}
		}
	}
	rows[1500].OutputTokens = trace.Ptr[int32](9000)
	rows[1501].Status, rows[1501].OutputTokens = trace.StatusFailed, trace.Ptr[int32](16000)
	r := &terms{statement: &dp.SessionStatement{Unit: synth.UnitUser, Budget: dp.Budget{Epsilon: 1, Delta: 1e-6}, MaxInput: 1 << 17, MaxOutput: 1 << 14}, meta: trace.Meta{Tier: anonymize.Internal, Capture: trace.RelativeCapture(0, time.Hour)}}
	src := anonymize.Source{Open: func() (trace.Reader[trace.Request], error) { return &trace.SliceReader[trace.Request]{Rows: rows}, nil }}
	l, err := r.draw(t.Context(), src, 7)
	if err != nil || l.units != gameUnits || len(l.leave) != 4 {
		t.Fatalf("%d units, %v, %v", l.units, l.leave, err)
	}
	user := map[string]int64{"first": 0, "last": 999, "heaviest": 5000, "rarest": 500}
	for _, x := range l.leave {
		without := l.without(x.unit)
		of := func(q trace.Request) bool { return *q.User == user[x.name] }
		kept := 0
		for _, q := range l.rows {
			if of(q) {
				kept++
			}
		}
		if want := min(gamePerUnit, kept); kept == 0 || len(l.rows)-len(without) != want || slices.ContainsFunc(without, of) || x.name == "heaviest" && kept != gamePerUnit {
			t.Errorf("%s has %d rows, and %d of %d are left", x.name, kept, len(without), len(l.rows))
		}
	}
	if slices.ContainsFunc(l.rows, func(q trace.Request) bool { return q.Status == trace.StatusFailed }) {
		t.Error("failed requests are kept")
	}
	again, err := r.draw(t.Context(), src, 8)
	if err != nil || slices.Equal(l.of, again.of) {
		t.Error("another seed draws the same")
	}
}

// The ratio of likelihoods, by the distributions themselves.
func TestLogRatio(t *testing.T) {
	const d = dp.Denominator
	for _, c := range []struct{ x, with, without float64 }{{3, 5, 2}, {-7, 1, 0}, {2, 2, 9}} {
		bell := func(mean float64) float64 { return math.Exp(-(c.x - mean) * (c.x - mean) / (2 * 6)) }
		if got, want := logRatio(dp.NoiseSpec{Variance: 6 * d}, c.x, c.with, c.without), math.Log(bell(c.with)/bell(c.without)); math.Abs(got-want) > 1e-9 {
			t.Errorf("Gaussian %v: %v, want %v", c, got, want)
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
	return rows, trace.Meta{Tier: anonymize.Internal, Capture: trace.RelativeCapture(0, time.Hour), Sessions: "source", BlockSize: 64, Convention: trace.PartialTail}
}

// A rehearsal measures as a release does: without its noise it counts the same, in the
// cells that the measurement chose, and its noise is as large as it says.
func TestRehearsals(t *testing.T) {
	t.Parallel()
	rows, meta := chats(60)
	budget := dp.Budget{Epsilon: 90, Delta: 1e-6}
	of := map[string]rehearsal{}
	var err error
	if of["by session"], err = release.Rehearse(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, meta, release.Options{Budget: budget, Unit: synth.UnitSession}); err != nil {
		t.Fatal(err)
	}
	if of["by user"], err = release.Rehearse(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, meta, release.Options{Budget: budget, Unit: synth.UnitUser}); err != nil {
		t.Fatal(err)
	}
	for tier, r := range of {
		var before dp.Measured
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

// The whole game by the code of releases: minutes.
func TestGameAtFullLength(t *testing.T) {
	if os.Getenv("REPRISE_TEST_DP") == "" {
		t.Skip("set REPRISE_TEST_DP=1 to play 2,000 runs a side")
	}
	rows, meta := chats(300)
	s := ofRequests
	s.Unit = synth.UnitSession
	c := ofGame(t, rows, s)
	c.Internal.Meta = meta
	begin := time.Now()
	f := playGame(t.Context(), c, gameRuns, func(r *terms, rows []trace.Request, epsilon float64) (rehearsal, error) {
		return r.rehearse(t.Context(), rows, epsilon)
	})
	t.Logf("in %v: %s %v", time.Since(begin), f.Why, f.Figures["bounds"])
	if f.Status != Pass {
		t.Errorf("%s: %s", f.Status, f.Why)
	}
}
