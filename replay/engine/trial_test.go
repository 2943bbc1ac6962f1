package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestTrialsInWords(t *testing.T) {
	chat := lengthRange{Min: 50, Max: 4000, Mean: 500, Sigma: 0.8}
	for want, l := range map[string]trial{
		"closed loop of 3, 4/5–6 tokens":                                         closedLoop{Concurrency: 3, Prompt: exactly(4), Output: lengthRange{Min: 5, Max: 6}},
		"open loop, 7 requests, 2.5 req/s, Poisson, ~500/1 tokens":               openLoop{Requests: 7, Rate: 2.5, Prompt: chat, Output: exactly(1)},
		"open loop, 7 requests, 4 req/s, even, 2 and every fourth 9/1 tokens":    openLoop{Requests: 7, Rate: 4, Even: true, Prompt: exactly(2), Fourth: exactly(9), Output: exactly(1)},
		"open loop, 7 requests, all at once, 2/1 tokens":                         openLoop{Requests: 7, Prompt: exactly(2), Output: exactly(1)},
		"open loop, 7 requests, all at once, 2 and every fourth 1–2000/1 tokens": openLoop{Requests: 7, Even: true, Prompt: exactly(2), Fourth: lengthRange{Min: 1, Max: 2000}, Output: exactly(1)},
	} {
		if got := l.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Results of trials, worked out by hand: a token of a prompt takes 1 ms, one of an answer 2.
func TestTrialResults(t *testing.T) {
	c := DefaultConfig()
	c.Costs = Costs{PrefillToken: 1e9, DecodeSeq: 2e9}
	small := c
	small.KVTokens = 16
	const tooLong = "the request is longer than the KV memory"
	const lengths = "simulated trial: lengths have at least 1 token, no more than Max, and a mean if they have a sigma"
	for name, row := range map[string]struct {
		config Config
		load   trial
		want   trialResult
		err    string
	}{
		// Of 4 tokens in 10 + 3 × 2 ms each.
		"one at a time": {c, closedLoop{Concurrency: 1, Requests: 3, Prompt: exactly(10), Output: exactly(4)},
			trialResult{OutputPerS: 12 / 0.048, TTFTP50: 10, TTFTP99: 10, ITLP50: 2, E2EP50: 16}, ""},
		// Both prompts in one step; then the third alone.
		"fewer than at once": {c, closedLoop{Concurrency: 9, Requests: 2, Prompt: exactly(10), Output: exactly(1)},
			trialResult{OutputPerS: 2 / 0.02, TTFTP50: 20, TTFTP99: 20, E2EP50: 20}, ""},
		"no requests": {c, closedLoop{Concurrency: 9, Prompt: exactly(10), Output: exactly(1)}, trialResult{}, ""},
		// The fourth prompt takes 100 ms, the others 10; the last ends at 4.01 s. The 99th of
		// 10, 10, 10, 10, 100 lies 0.96 of the way from the fourth to the fifth.
		"every fourth": {c, openLoop{Requests: 5, Rate: 1, Even: true, Prompt: exactly(10), Fourth: exactly(100), Output: exactly(1)},
			trialResult{OutputPerS: 5 / 4.01, TTFTP50: 10, TTFTP99: 96.4, E2EP50: 10}, ""},
		// All at once: 30 ms of prompts, then 3 × 2 ms for the second tokens.
		"at once": {c, openLoop{Requests: 3, Prompt: exactly(10), Output: exactly(2)},
			trialResult{OutputPerS: 6 / 0.036, TTFTP50: 30, TTFTP99: 30, ITLP50: 6, E2EP50: 36}, ""},
		// Over 1 ps at least, so that the rate is a number.
		"no time at all":          {DefaultConfig(), closedLoop{Concurrency: 1, Requests: 2, Prompt: exactly(1), Output: exactly(3)}, trialResult{OutputPerS: 6e12}, ""},
		"none in the open":        {c, openLoop{Prompt: exactly(10), Output: exactly(1)}, trialResult{}, ""},
		"a first that is refused": {small, closedLoop{Concurrency: 1, Requests: 1, Prompt: exactly(17), Output: exactly(1)}, trialResult{}, tooLong},
		"a later that is refused": {small, closedLoop{Concurrency: 1, Requests: 50, Prompt: lengthRange{Min: 1, Max: 17}, Output: exactly(1), Seed: 3}, trialResult{}, tooLong},
		"refused in the open":     {small, openLoop{Requests: 1, Prompt: exactly(17), Output: exactly(1)}, trialResult{}, tooLong},
		"no prompt":               {c, closedLoop{Output: exactly(1)}, trialResult{}, lengths},
		"no answer":               {c, openLoop{Prompt: exactly(1)}, trialResult{}, lengths},
		"a fourth of none":        {c, openLoop{Prompt: exactly(1), Output: exactly(1), Fourth: lengthRange{Max: 1}}, trialResult{}, lengths},
		"least above most":        {c, closedLoop{Prompt: lengthRange{Min: 3, Max: 2}, Output: exactly(1)}, trialResult{}, lengths},
		"a sigma without a mean":  {c, closedLoop{Prompt: lengthRange{Min: 1, Max: 2, Sigma: 1}, Output: exactly(1)}, trialResult{}, lengths},
		"no engine":               {Config{}, closedLoop{Prompt: exactly(1), Output: exactly(1)}, trialResult{}, "simulated engine: a block has 1 to 524,288 tokens"},
	} {
		got, err := row.load.Run(row.config)
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9*max(1, b) }
		if !near(got.OutputPerS, row.want.OutputPerS) || !near(got.TTFTP50, row.want.TTFTP50) || !near(got.TTFTP99, row.want.TTFTP99) || !near(got.ITLP50, row.want.ITLP50) || !near(got.E2EP50, row.want.E2EP50) {
			t.Errorf("%s: got %+v, want %+v", name, got, row.want)
		}
		if err == nil && row.err != "" || err != nil && err.Error() != row.err {
			t.Errorf("%s: got %v, want %s", name, err, row.err)
		}
	}
}

// Poisson arrivals have the rate that was asked for, and gaps that are exponential: 1 in e
// is longer than the mean.
func TestPoissonArrivals(t *testing.T) {
	c := DefaultConfig()
	c.Costs = Costs{PrefillToken: 1}
	const n = 4000
	l := openLoop{Requests: n, Rate: 100, Prompt: exactly(1), Output: exactly(1), Seed: 5}
	got, err := l.Run(c)
	if err != nil || math.Abs(got.OutputPerS-100) > 100*4/math.Sqrt(n) || got.TTFTP99 > 1e-3 {
		t.Errorf("%+v, %v", got, err)
	}
	// With service of 10 ms each at a rate of 10 a second, the mean wait is that of an
	// M/D/1 queue, 0.1/(2 × 0.9) × 10 ms = 0.56 ms; at even gaps nobody waits.
	c.MaxSeqs, c.Costs = 1, Costs{PrefillToken: 10e9}
	l.Rate = 10
	poisson, err := l.Run(c)
	if err != nil || poisson.TTFTP50 != 10 || poisson.TTFTP99 < 15 || poisson.TTFTP99 > 22 {
		t.Errorf("Poisson: %+v, %v", poisson, err)
	}
	l.Even = true
	if even, err := l.Run(c); err != nil || even.TTFTP99 > 10.0001 || math.Abs(even.OutputPerS-10) > 0.01 {
		t.Errorf("even: %+v, %v", even, err)
	}
}

// Lengths cover their range evenly, or are lognormal about their mean and clipped.
func TestLengthRanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[int]int{}
	for range 4000 {
		seen[lengthRange{Min: 3, Max: 6}.draw(rng)]++
	}
	for n := 3; n <= 6; n++ {
		if seen[n] < 850 || seen[n] > 1150 {
			t.Errorf("%d was drawn %d times of 4,000", n, seen[n])
		}
	}
	if len(seen) != 4 {
		t.Errorf("drawn were %v", seen)
	}
	l := lengthRange{Min: 1, Max: 1 << 30, Mean: 1000, Sigma: 0.8}
	sum, below := 0, 0
	median := 1000 * math.Exp(-0.8*0.8/2)
	const n = 40_000
	for range n {
		v := l.draw(rng)
		sum += v
		if float64(v) < median {
			below++
		}
	}
	if mean := float64(sum) / n; math.Abs(mean-1000) > 20 || math.Abs(float64(below)/n-0.5) > 0.01 {
		t.Errorf("a mean of %.1f; %d of %d below the median", mean, below, n)
	}
	l.Min, l.Max = 900, 1100
	ends := map[int]int{}
	for range 1000 {
		v := l.draw(rng)
		if v < 900 || v > 1100 {
			t.Fatalf("%d is not clipped", v)
		}
		if v == 900 || v == 1100 {
			ends[v]++
		}
	}
	if ends[900] < 400 || ends[1100] < 150 {
		t.Errorf("at the ends: %s", fmt.Sprint(ends))
	}
}
