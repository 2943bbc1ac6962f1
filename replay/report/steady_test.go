package report

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
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

func steadyOf(t *testing.T, results []result.Result) Steady {
	t.Helper()
	s, err := findSteady(result.Run{}, rereadOf(results), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plateau is ten users that begin 100 ms apart and send 160 requests each, one
// behind the other, 50 ms long with a token at 20, 30 and 50 ms. All ten are there
// from 0.9 s on, and the first leaves at 8 s.
func plateau() []result.Result {
	var results []result.Result
	for user := range int64(10) {
		for i := range int64(160) {
			results = append(results, answer(int64(len(results)), user*100+i*50, 0, 20, 30, 50))
		}
	}
	return results
}

// A plateau is found by hand: the ramp of a second and the drain are left out.
func TestSteadyByHand(t *testing.T) {
	s := steadyOf(t, plateau())
	if s.Reason != "" || s.Window == nil || s.Method != steadyMethod {
		t.Fatalf("%+v", s)
	}
	if s.Window.FromS < 0.7 || s.Window.FromS > 1 || s.Window.ToS < 7 || s.Window.ToS > 8.1 {
		t.Errorf("%+v", s.Window)
	}
	is(t, "TTFT", s.TTFT.P99, 20)
	is(t, "TPOT", s.TPOT.P50, 15)
	is(t, "ITL", s.ITLChunk.Max, 20)
	is(t, "E2E", s.E2E.Mean, 50)
	near(t, "requests/s", s.RequestsPerS, 200, 2)
	near(t, "in flight", s.InFlight, 10, 0.1)
	near(t, "Little's law", s.Little, 1, 0.02)
	near(t, "change", s.Change, 0, 0.01)
}

// A counting reader counts the rows that were read whole.
type countingReader struct {
	trace.Reader[result.Result]
	whole *int
	only  bool
}

func (c *countingReader) Only(...string) { c.only = true }

func (c *countingReader) Read(rows []result.Result) (int, error) {
	n, err := c.Reader.Read(rows)
	if !c.only {
		*c.whole += n
	}
	return n, err
}

// One pass gives what two passes apart give, and reads whole rows once.
func TestSummariseSteadyIsBoth(t *testing.T) {
	for name, results := range map[string][]result.Result{"steady": plateau(), "none": plateau()[:50]} {
		whole := 0
		reread := func() trace.Reader[result.Result] { return &countingReader{Reader: rereadOf(results)(), whole: &whole} }
		got, err := SummariseSteady(result.Run{}, reread, Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := Summarise(result.Run{}, rereadOf(results)(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		want.Steady = trace.Ptr(steadyOf(t, results))
		if (name == "steady") != (want.Steady.Reason == "") {
			t.Fatal(want.Steady.Reason)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: together\n%+v, apart\n%+v", name, got.Steady, want.Steady)
		}
		if whole != len(results) {
			t.Errorf("%s: %d whole rows were read of %d", name, whole, len(results))
		}
	}
}

// Throughput counts by instants: brute force over every event of every request.
func TestSteadyAgainstOracle(t *testing.T) {
	for seed := range uint64(8) {
		results := messy(rand.New(rand.NewPCG(seed, 12)), 3000)
		s := steadyOf(t, results)
		if s.Window == nil {
			t.Fatalf("seed %d: %s", seed, s.Reason)
		}
		from, to := int64(math.Round(s.Window.FromS*1e9)), int64(math.Round(s.Window.ToS*1e9))
		in := func(at int64) bool { return from <= at && at < to }
		var inside, finished int64
		var prompt, output, open, begun float64
		for i := range results {
			r := &results[i]
			if r.SentNS != nil && r.DoneNS != nil {
				open += float64(max(min(*r.DoneNS, to)-max(*r.SentNS, from), 0))
				if in(*r.SentNS) {
					begun += float64(*r.DoneNS - *r.SentNS)
				}
			}
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
		near(t, "in flight", s.InFlight, open/float64(to-from), 0.05)
		near(t, "Little's law", s.Little, open/begun, 0.01)
		if s.RequestsPerS != nil {
			seconds := float64(to-from) / 1e9
			near(t, "requests/s", s.RequestsPerS, float64(finished)/seconds, 1e-6)
			near(t, "prompt/s", s.PromptTokensPerS, prompt/seconds, 1e-6)
			near(t, "output/s", s.OutputTokensPerS, output/seconds, 1e-6)
		}
	}
}

// MSER-5 leaves out what a transient adds, and nothing of a series without one.
func TestMSER(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	var late, still, ramp []float64
	for i := range 400 {
		transient := 0.0
		if i < 60 {
			transient = 20
		}
		late, still, ramp = append(late, 10+transient+rng.NormFloat64()), append(still, 7), append(ramp, float64(i)+rng.NormFloat64())
	}
	for name, c := range map[string]struct {
		series  []float64
		from    int
		settled bool
	}{"transient": {late, 60, true}, "constant": {still, 0, true}, "ramp": {ramp, 200, false}} {
		if from, settled := mser(c.series); settled != c.settled || from < c.from-5 || from > c.from+15 {
			t.Errorf("%s: from %d, settled %v", name, from, settled)
		}
	}
}

// A run without a steady state gives a reason and no figure.
func TestSteadyReasons(t *testing.T) {
	// Each request takes longer than the one before: they pile up.
	var grows, falls, wave []result.Result
	for i := range int64(2000) {
		grows = append(grows, answer(i, i*10, 0, 20+i*2))
		falls = append(falls, answer(i, i*i/200, 0, 300))
		wave = append(wave, answer(i, i*10, 0, 400-int64(300*math.Cos(float64(i)/1000*math.Pi*2))))
	}
	instant := answer(0, 0, 0)
	instant.DoneNS, instant.HeadersNS = instant.SentNS, nil
	for want, results := range map[string][]result.Result{
		"80 requests in 3.95 s are too few to tell":       plateau()[:80],
		"1 request in 0 s are too few to tell":            {instant},
		"so that more were sent than the server finished": grows,
		"the requests in flight fell from":                falls,
		"more slowly than chance does":                    wave,
	} {
		s := steadyOf(t, results)
		if !strings.Contains(s.Reason, want) || s.TTFT != nil || s.RequestsPerS != nil {
			t.Errorf("want %q, got %+v", want, s)
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
	steady := steadyOf(t, results)
	s.Steady = &steady
	var text, html bytes.Buffer
	if err := Page(s).WriteText(&text, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	holdWidth(t, text.String())
	if err := Page(s).Write(&html); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*bytes.Buffer{&text, &html} {
		if !strings.Contains(w.String(), " requests in flight. ") {
			t.Errorf("the steady state is missing in\n%.3000s", w)
		}
	}
}

// A gap of a token is that of its chunk exactly where tokenEach says so, and the report
// keeps the two apart from the first row on where it is not.
func TestTokenEachIsPerToken(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	each := 0
	for range 2000 {
		r := result.Result{Events: int32(rng.IntN(6))}
		for range max(r.Events-1, 0) {
			r.GapsNS = append(r.GapsNS, rng.Int64N(1<<51))
		}
		if rng.IntN(3) > 0 {
			r.Output = trace.Ptr(int32(max(int(r.Events)+rng.IntN(5)-2, 0)))
		}
		if rng.IntN(2) > 0 {
			for range r.Events {
				r.EventTokens = append(r.EventTokens, int32(1+rng.IntN(8)/7))
			}
		}
		if tokenEach(&r) {
			each++
			if got := perToken(nil, &r); !slices.Equal(got, r.GapsNS) {
				t.Fatalf("%+v: per token %v", r, got)
			}
		}
	}
	if each < 300 || each > 1700 {
		t.Fatalf("%d of 2000 rows have a token in each event", each)
	}
}
