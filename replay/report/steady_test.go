package report

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/textpage"
)

func rereadOf(results []result.Result) Reread {
	return func() trace.Reader[result.Result] { return &trace.SliceReader[result.Result]{Rows: results} }
}

func steadyOf(t *testing.T, share float64, results []result.Result) Steady {
	t.Helper()
	s, err := FindSteady(result.Run{}, rereadOf(results), share, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plateau is ten users that begin 100 ms apart and send 40 requests each, one
// behind the other, 50 ms long with a token at 20, 30 and 50 ms. All ten are there
// from 0.9 s on, and the first leaves at 2 s.
func plateau() []result.Result {
	var results []result.Result
	for user := range int64(10) {
		for i := range int64(40) {
			results = append(results, answer(int64(len(results)), user*100+i*50, 0, 20, 30, 50))
		}
	}
	return results
}

func TestSteadyByHand(t *testing.T) {
	s := steadyOf(t, 1, plateau())
	// The tenth user is seen at the first edge behind its beginning.
	if s.Peak != 10 || s.AtLeast != 10 || s.Window == nil {
		t.Fatalf("%+v", s)
	}
	is(t, "from", &s.Window.FromS, 0.901)
	is(t, "to", &s.Window.ToS, 2.0)
	// 21 full answers of each between 0.95 and 2.0 s; those that end at 0.95 began before.
	if s.Inside != 10*21-10 || s.Finished != 10*21 {
		// Those that end at 2.0 s do so outside: the window ends without its last instant.
		t.Errorf("%d inside, %d finished", s.Inside, s.Finished)
	}
	is(t, "TTFT", s.TTFT.P99, 20)
	is(t, "TPOT", s.TPOT.P50, 15)
	is(t, "ITL", s.ITLChunk.Max, 20)
	is(t, "E2E", s.E2E.Mean, 50)
	near(t, "requests/s", s.RequestsPerS, 210/1.099, 1e-6)
	// The 8-user share begins when the eighth comes and ends when the third leaves.
	if s = steadyOf(t, 0.8, plateau()); s.AtLeast != 8 {
		t.Fatalf("%+v", s)
	}
	is(t, "from", &s.Window.FromS, 0.701)
	is(t, "to", &s.Window.ToS, 2.2)
}

// Throughput counts by instants: brute force over every event of every request.
func TestSteadyAgainstOracle(t *testing.T) {
	for seed := range uint64(8) {
		results := messy(rand.New(rand.NewPCG(seed, 12)), 3000)
		s := steadyOf(t, 0.3+0.05*float64(seed%3), results)
		if s.Window == nil {
			t.Fatalf("seed %d: %s", seed, s.Reason)
		}
		from, to := int64(math.Round(s.Window.FromS*1e9)), int64(math.Round(s.Window.ToS*1e9))
		holdStretch(t, &s, results, from, to)
		in := func(at int64) bool { return from <= at && at < to }
		var inside, finished int64
		var prompt, output float64
		for i := range results {
			r := &results[i]
			if r.Error != "" || r.SentNS == nil || r.DoneNS == nil {
				continue
			}
			if in(*r.DoneNS) {
				finished++
				if in(*r.SentNS) {
					inside++
				}
			}
			if r.FirstTokenNS == nil {
				continue
			}
			at := *r.FirstTokenNS
			if in(at) {
				prompt += float64(InputTokens(r))
			}
			for e := range int(r.Events) {
				if e > 0 {
					at += r.GapsNS[e-1]
				}
				switch {
				case !in(at):
				case r.EventTokens != nil:
					output += float64(r.EventTokens[e])
				case r.Output != nil:
					output += float64(*r.Output) / float64(r.Events)
				}
			}
		}
		if s.Inside != inside || s.Finished != finished {
			t.Errorf("seed %d: %d inside, %d finished; want %d, %d", seed, s.Inside, s.Finished, inside, finished)
		}
		if s.RequestsPerS != nil {
			seconds := float64(to-from) / 1e9
			near(t, "requests/s", s.RequestsPerS, float64(finished)/seconds, 1e-6)
			near(t, "prompt/s", s.PromptTokensPerS, prompt/seconds, 1e-6)
			near(t, "output/s", s.OutputTokensPerS, output/seconds, 1e-6)
		}
	}
}

// holdStretch counts the requests in flight at every edge of the run: none of
// the window is below, none is above the peak, and no longer stretch exists.
func holdStretch(t *testing.T, s *Steady, results []result.Result, from, to int64) {
	t.Helper()
	width := int64(math.Round(*s.ResolutionS * 1e9))
	var peak, longest, begin int64
	var sent, done []int64
	for i := range results {
		if r := &results[i]; r.SentNS != nil && r.DoneNS != nil {
			sent, done = append(sent, *r.SentNS), append(done, *r.DoneNS)
		}
	}
	slices.Sort(sent)
	slices.Sort(done)
	begin = -1
	for at := width; at < 62e9; at += width {
		begun, _ := slices.BinarySearch(sent, at)
		over, _ := slices.BinarySearch(done, at)
		open := int64(begun - over)
		peak = max(peak, open)
		switch {
		case open < s.AtLeast:
			begin = -1
			if from <= at && at <= to {
				t.Fatalf("only %d in flight at %d", open, at)
			}
		case begin < 0:
			begin = at
		default:
			longest = max(longest, at-begin)
		}
	}
	if peak != s.Peak || longest != to-from {
		t.Errorf("peak %d, longest %d; want %d, %d", s.Peak, to-from, peak, longest)
	}
}

// Too short a stretch, and a run without one, give a reason and no figure.
func TestSteadyReasons(t *testing.T) {
	instant := answer(0, 0, 0)
	instant.DoneNS, instant.HeadersNS = instant.SentNS, nil
	for want, results := range map[string][]result.Result{
		"100 are needed":           plateau()[:80],
		"no request was in flight": {instant},
		"for an instant only":      {answer(0, 0, 0)},
	} {
		s := steadyOf(t, 0.8, results)
		if !strings.Contains(s.Reason, want) || s.TTFT != nil || s.RequestsPerS != nil {
			t.Errorf("want %q, got %+v", want, s)
		}
	}
	for _, share := range []float64{0, -1, 1.1, math.NaN()} {
		if _, err := FindSteady(result.Run{}, rereadOf(nil), share, Options{}); err == nil {
			t.Errorf("share %v is accepted", share)
		}
	}
}

// A run longer than the bins doubles their width and keeps every request.
func TestCurveFolds(t *testing.T) {
	var c Curve
	c.Add(0, 5e9)
	c.Add(1e9, 7200e9)
	c.Add(7100e9, 7200e9)
	if c.width <= firstBin || len(c.up) > maxBins {
		t.Fatalf("%d bins of %d ns", len(c.up), c.width)
	}
	at := map[float64]int64{}
	for i, open := range c.levels {
		edge := float64(i+1) * float64(c.width) / 1e9
		for _, s := range []float64{0.5, 3, 100, 7150} {
			if edge <= s && s < edge+float64(c.width)/1e9 {
				at[s] = open
			}
		}
	}
	if at[0.5] != 1 || at[3] != 2 || at[100] != 1 || at[7150] != 2 {
		t.Errorf("in flight: %v", at)
	}
}

func TestSteadyWriters(t *testing.T) {
	results := plateau()
	s := summarise(t, result.Run{}, Options{}, results...)
	steady := steadyOf(t, 1, results)
	s.Steady = &steady
	var text, html bytes.Buffer
	if err := WriteText(&text, s, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	holdWidth(t, text.String())
	if err := Page(s).Write(&html); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*bytes.Buffer{&text, &html} {
		if !strings.Contains(w.String(), "Steady from 0.901 s to 2 s") {
			t.Errorf("the steady state is missing in\n%.3000s", w)
		}
	}
}
