package twin

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/replay/engine"
)

// costs are those of the preset l4-qwen2.5-0.5b.
var costs = engine.Costs{Step: 5_160_000_000, KVToken: 183_500, PrefillToken: 22_060_000, DecodeSeq: 957_000, Request: 24_140_000_000}

// bursts are requests that arrive some at a time, at a rate per second, with lognormal lengths.
func bursts(seed uint64, n int, perS float64) (out []Request) {
	r, at := rand.New(rand.NewPCG(seed, 3)), 0.0
	length := func(mean, least, most float64) int32 {
		return int32(min(max(mean*math.Exp(0.8*r.NormFloat64()-0.32), least), most))
	}
	for len(out) < n {
		at += r.ExpFloat64() * 8e9 / perS
		for range r.IntN(15) + 1 {
			at += 1 + r.Float64()*2e6
			out = append(out, Request{DueNS: int64(at), Prompt: length(500, 50, 4000), Output: length(100, 1, 800)})
		}
	}
	return out[:n]
}

// answered are the requests as package engine answers them.
func answered(t testing.TB, c engine.Config, requests []Request) []Request {
	t.Helper()
	out := slices.Clone(requests)
	fleet, err := engine.NewFleet(engine.FleetConfig{Engine: c, Replicas: 1, Router: engine.RouterRoundRobin}, func(a *engine.Answer) error {
		r := &out[a.Job.ID]
		r.TTFTNS, r.E2ENS = int64((a.Tokens[0] - a.At).Duration()), int64((a.Done - a.At).Duration())
		return a.Err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range requests {
		err := fleet.Send(engine.Arrival{At: engine.Picos(r.DueNS) * 1000, Job: engine.Job{ID: int64(i), Prompt: int(r.Prompt), Output: int(r.Output)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := fleet.Finish(); err != nil {
		t.Fatal(err)
	}
	return out
}

func config(seqs, budget int) engine.Config {
	c := engine.DefaultConfig()
	c.Costs, c.MaxSeqs, c.MaxBatchTokens, c.KVTokens = costs, seqs, budget, 0
	return c
}

// play answers requests by an engine.
func play(e *Engine, requests []Request) []Request {
	out := slices.Clone(requests)
	ttft, e2e := e.Answer(requests)
	for i := range out {
		out[i].TTFTNS, out[i].E2ENS = ttft[i], e2e[i]
	}
	return out
}

// A twin with the costs of an engine answers as package engine does, to a millionth. A few requests
// are off by more: those beside a run of steps in which reading KV grew above computing.
func TestPlayIsTheEngine(t *testing.T) {
	for _, c := range []struct {
		seqs, budget int
		perS         float64
	}{{256, 2048, 20}, {256, 2048, 55}, {24, 2048, 20}, {256, 512, 15}, {8, 8192, 5}} {
		requests := bursts(uint64(c.seqs), 6000, c.perS)
		want := answered(t, config(c.seqs, c.budget), requests)
		got := play(&Engine{Costs: costs, Seqs: c.seqs, Budget: c.budget}, requests)
		var ttft, e2e []float64
		for i := range want {
			ttft = append(ttft, math.Abs(math.Log(float64(got[i].TTFTNS)/float64(want[i].TTFTNS))))
			e2e = append(e2e, math.Abs(math.Log(float64(got[i].E2ENS)/float64(want[i].E2ENS))))
		}
		slices.Sort(ttft)
		slices.Sort(e2e)
		n := len(ttft)
		if ttft[n*99/100] > 1e-6 || e2e[n*99/100] > 1e-6 {
			t.Errorf("%d places, budget %d, %v/s: TTFT is off by %.3g at p99, E2E by %.3g", c.seqs, c.budget, c.perS, ttft[n*99/100], e2e[n*99/100])
		}
	}
}

// Each request is answered once, its first token before its last, whatever is asked.
func TestPlayAnswersAll(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		requests := make([]Request, r.IntN(40))
		at := int64(0)
		for i := range requests {
			at += r.Int64N(1e8) * int64(r.IntN(2))
			requests[i] = Request{DueNS: at, Prompt: r.Int32N(3000), Output: r.Int32N(5)}
		}
		e := Engine{Costs: costs, Seqs: r.IntN(4), Budget: 1 + r.IntN(600)}
		got := play(&e, requests)
		for i := range got {
			if got[i].TTFTNS <= 0 || got[i].E2ENS < got[i].TTFTNS {
				t.Fatalf("%+v: request %d of %d: %+v", e, i, len(got), got[i])
			}
		}
	}
}

// From how long requests took alone, a fit finds the places of an engine, and what it would do with
// other requests, more of them a second.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		seqs, budget, want int
		perS, other        float64
	}{{256, 2048, 256, 55, 58}, {24, 2048, 24, 20, 22}, {1000, 2048, 0, 30, 40}} {
		from := answered(t, config(c.seqs, c.budget), bursts(1, 9000, c.perS))
		e, limited, err := Fit([][]Request{from[:3000], answered(t, config(c.seqs, c.budget), bursts(2, 8000, c.perS))})
		if err != nil {
			t.Fatal(err)
		}
		if e.Seqs != c.want || e.Budget != c.budget {
			t.Errorf("%d places and a budget of %d, want %d and %d", e.Seqs, e.Budget, c.want, c.budget)
		}
		if c.want > 0 && limited != e || c.want == 0 && (limited.Seqs < 50 || limited.Seqs > c.seqs) {
			t.Errorf("%d places: limited to %d", c.seqs, limited.Seqs)
		}
		other := bursts(3, 20_000, c.other)
		want, got := ttfts(answered(t, config(c.seqs, c.budget), other)), ttfts(play(&e, other))
		for _, p := range []int{50, 95, 99} {
			miss := math.Log(float64(got[len(got)*p/100]) / float64(want[len(want)*p/100]))
			t.Logf("%d places, p%d: off by %+.2f", c.seqs, p, miss)
			if math.Abs(miss) > 0.05 {
				t.Errorf("%d places: p%d of TTFT of other requests is off by %+.2f: %v", c.seqs, p, miss, e)
			}
		}
	}
	if _, _, err := Fit([][]Request{bursts(1, 5000, 20)}); err == nil {
		t.Error("requests without an answer were fitted")
	}
	if _, _, err := Fit(nil); err == nil {
		t.Error("no runs were fitted")
	}
}

func ttfts(requests []Request) (out []int64) {
	for _, r := range requests {
		out = append(out, r.TTFTNS)
	}
	slices.Sort(out)
	return out
}

// BenchmarkPlay has package engine beside it, which answers the same requests.
func BenchmarkPlay(b *testing.B) {
	requests := bursts(1, 20_000, 50)
	b.Run("twin", func(b *testing.B) {
		for b.Loop() {
			play(&Engine{Costs: costs, Seqs: 256, Budget: 2048}, requests)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(requests)), "ns/request")
	})
	b.Run("engine", func(b *testing.B) {
		for b.Loop() {
			answered(b, config(256, 2048), requests)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(requests)), "ns/request")
	})
}
