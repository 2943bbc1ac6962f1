package engine

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"reprise/replay/hardware"
)

// moe is a small mixture, to try what only a mixture has.
func moe(t *testing.T) hardware.Setup {
	t.Helper()
	g, err := hardware.FindGPU("h100")
	if err != nil {
		t.Fatal(err)
	}
	return hardware.Setup{GPU: g, TP: 1, DType: "fp8", KVDType: "auto", Efficiency: 1, Utilization: 0.9, Model: hardware.Model{Name: "small mixture",
		Layers: 4, Hidden: 1024, Heads: 8, Attention: hardware.Attention{KVHeads: 2, HeadDim: 128}, Vocab: 32000,
		MoELayers: 4, Experts: hardware.Experts{Routed: 32, PerToken: 2, Intermediate: 4096}}}
}

// No roofline is faster than its floor: neither a token of any batch, nor a prompt of any
// length, nor anything that a preset or a mixture plays.
func TestRooflineIsNeverFasterThanItsFloor(t *testing.T) {
	p, err := OpenPreset("roofline-8xh100-llama-70b")
	if err != nil {
		t.Fatal(err)
	}
	half := *p.Setup
	half.Efficiency, half.DType = 0.5, "fp8"
	setups := []hardware.Setup{*p.Setup, half, moe(t)}
	for i := range setups {
		s := &setups[i]
		c, _, err := newRoofline(*s, p.Engine)
		if err != nil {
			t.Fatal(err)
		}
		for _, batch := range []int{1, 2, 8, 64, 256} {
			for _, prompt := range []int{1, 16, 500, 4000} {
				if batch*prompt > 150_000 { // half of the tokens come before the batch is whole
					continue
				}
				got, err := closedLoop{Concurrency: batch, Requests: batch, Prompt: exactly(prompt), Output: exactly(50)}.Run(c)
				if err != nil {
					t.Fatal(err)
				}
				floor := FloorOf(s, batch)
				floor.Batch, floor.Prompt, floor.Context = float64(batch), float64(prompt), float64(prompt)
				least, err := floor.Predict()
				if err != nil {
					t.Fatal(err)
				}
				floor.Batch, floor.BytesPerParam = 1, FloorOf(s, 1).BytesPerParam
				one, err := floor.Predict()
				if err != nil {
					t.Fatal(err)
				}
				if got.ITLP50 < least.TPOTMS || got.TTFTP50 < *one.TTFTMS {
					t.Errorf("%s, batch %d of %d tokens: ITL %.4g ms, floor %.4g; TTFT %.4g ms, floor %.4g", s, batch, prompt, got.ITLP50, least.TPOTMS, got.TTFTP50, *one.TTFTMS)
				}
			}
		}
	}
	// And it is a floor that is reached: one sequence of the 70B takes 5.2 ms a token.
	one, err := closedLoop{Concurrency: 1, Requests: 1, Prompt: exactly(1), Output: exactly(50)}.Run(p.Engine)
	if err != nil || math.Abs(one.ITLP50-5.2) > 0.1 {
		t.Errorf("%.3f ms a token, %v", one.ITLP50, err)
	}
	if !strings.Contains(p.Warning, "a bound from the data sheet") || !strings.Contains(p.Warning, "nearest measured engine") {
		t.Errorf("it is not marked as a bound: %q", p.Warning)
	}
}

// A step of a mixture reads the experts that its tokens are routed to: counted here by
// drawing them.
func TestExpertsThatAStepReads(t *testing.T) {
	s := moe(t)
	c, _, err := newRoofline(s, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	if c.Experts != 32 || c.ExpertsPerToken != 2 || c.Costs.Expert == 0 {
		t.Fatalf("%+v", c)
	}
	e, err := newEngineCore(c)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, tokens := range []int{1, 2, 5, 20, 100} {
		const rounds = 4000
		read := 0
		for range rounds {
			var seen [32]bool
			for range tokens {
				first := rng.IntN(32)
				second := rng.IntN(31)
				if second >= first {
					second++
				}
				seen[first], seen[second] = true, true
			}
			for _, is := range seen {
				if is {
					read++
				}
			}
		}
		want := float64(read) / rounds
		got := float64(e.costsOf(int64(tokens)).Step-c.Costs.Step) / float64(c.Costs.Expert)
		if math.Abs(got/want-1) > 0.02 {
			t.Errorf("%d tokens read %.2f experts of a layer, by counting %.2f", tokens, got, want)
		}
	}
	if last := e.costsOf(1 << 40).Step; last > c.Costs.Step+32*c.Costs.Expert {
		t.Errorf("more than all experts: %d", last)
	}
}

// A prompt that is computed in parts attends to as many pairs as one computed at once.
func TestAttentionOfAPromptInParts(t *testing.T) {
	c := DefaultConfig()
	c.PrefixCaching = false
	c.Costs = Costs{Attention: 1 << 40} // 2^20 picoseconds a pair
	for _, budget := range []int{64, 100, 1000, 2048} {
		c.MaxBatchTokens = budget
		got, err := closedLoop{Concurrency: 1, Requests: 1, Prompt: exactly(1000), Output: exactly(1)}.Run(c)
		if err != nil {
			t.Fatal(err)
		}
		both, err := closedLoop{Concurrency: 2, Requests: 2, Prompt: exactly(1000), Output: exactly(1)}.Run(c)
		if err != nil || budget > 2000 && both.TTFTP50 != 2*got.TTFTP50 {
			t.Errorf("two in one step take %.4g ms, one %.4g, %v", both.TTFTP50, got.TTFTP50, err)
		}
		pairs := 0
		for token := range 1000 {
			pairs += token + 1
		}
		if want := Picos(pairs) << 20; Picos(math.Round(got.TTFTP50*1e9)) != want {
			t.Errorf("with %d tokens a step it takes %.0f ps, want %d", budget, got.TTFTP50*1e9, want)
		}
	}
}

// What a setup is not able to do is said before anything is simulated.
func TestRooflineThatDoesNotFit(t *testing.T) {
	p, err := OpenPreset("roofline-8xh100-llama-70b")
	if err != nil {
		t.Fatal(err)
	}
	one := *p.Setup
	one.TP = 1
	_, _, err = newRoofline(one, DefaultConfig())
	if err == nil || !strings.Contains(err.Error(), "weights take 141.1 GB") || !strings.Contains(err.Error(), "what fits: 2 GPUs, or fp8 weights") {
		t.Errorf("one GPU: %v", err)
	}
	one.TP = 3
	if _, _, err = newRoofline(one, DefaultConfig()); err == nil || !strings.Contains(err.Error(), "3 GPUs cannot share 64 attention heads") {
		t.Errorf("three: %v", err)
	}
}
