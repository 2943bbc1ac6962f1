package engine

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// A trial plays requests of its own making to a new engine, in virtual time.
type trial interface {
	Run(Config) (trialResult, error)
	String() string
}

// trialResult is what a [trial] measured, over all of its requests.
type trialResult struct {
	OutputPerS                float64 // output tokens per second, from the start to the last token
	TTFTP50, TTFTP95, TTFTP99 float64 // ms
	ITLP50, ITLP95, ITLP99    float64 // ms, of gaps pooled over requests; 0 without any
	E2EP50, E2EP95, E2EP99    float64 // ms
}

// figures are the result's figures under the names that people read.
func (r *trialResult) figures() []figure {
	return []figure{{"output tokens/s", r.OutputPerS}, {"TTFT p50, ms", r.TTFTP50}, {"TTFT p95, ms", r.TTFTP95},
		{"TTFT p99, ms", r.TTFTP99},
		{"ITL p50, ms", r.ITLP50}, {"ITL p95, ms", r.ITLP95}, {"ITL p99, ms", r.ITLP99},
		{"E2E p50, ms", r.E2EP50}, {"E2E p95, ms", r.E2EP95}, {"E2E p99, ms", r.E2EP99}}
}

type figure struct {
	name  string
	value float64
}

// closedLoop is a load of a fixed number of requests at once: each that ends is
// followed by the next, with nothing in common. The same fields give the same
// requests.
type closedLoop struct {
	Concurrency, Requests int
	Prompt, Output        lengthRange
	Seed                  uint64
}

func (l closedLoop) String() string {
	return fmt.Sprintf("closed loop of %d, %s/%s tokens", l.Concurrency, l.Prompt, l.Output)
}

// Run implements [trial].
func (l closedLoop) Run(c Config) (trialResult, error) {
	e, err := newTrial(c, l.Prompt, l.Output)
	if err != nil {
		return trialResult{}, err
	}
	m, rng := newMeter(), rand.New(rand.NewPCG(l.Seed, 0))
	sent := 0
	send := func(at Picos) error {
		j := &Job{ID: int64(sent), Prompt: l.Prompt.draw(rng), Output: l.Output.draw(rng)}
		sent++
		m.began[j] = at
		return e.Add(j, at)
	}
	for range min(l.Concurrency, l.Requests) {
		if err := send(0); err != nil {
			return trialResult{}, err
		}
	}
	for now, over := Picos(0), 0; now < Never; {
		now, _ = e.Step(now, Never, m)
		for ; over < len(m.over) && sent < l.Requests; over++ {
			if err := send(m.over[over]); err != nil {
				return trialResult{}, err
			}
		}
	}
	return m.result(), nil
}

// openLoop is a load whose requests arrive without waiting for those before, with
// nothing in common. The same fields give the same requests.
type openLoop struct {
	Requests       int
	Rate           float64 // per second; 0 is all at once
	Even           bool    // at equal gaps; else Poisson arrivals
	Prompt, Output lengthRange
	Fourth         lengthRange // of the prompt of every fourth request; zero is Prompt
	Seed           uint64
}

// lengthRange are uniform from Min to Max tokens, or with a Sigma lognormal of this
// mean, clipped to them.
type lengthRange struct {
	Min, Max    int
	Mean, Sigma float64
}

// exactly is always so many tokens.
func exactly(tokens int) lengthRange { return lengthRange{Min: tokens, Max: tokens} }

func (l lengthRange) String() string {
	switch {
	case l.Sigma > 0:
		return fmt.Sprintf("~%g", l.Mean)
	case l.Min == l.Max:
		return strconv.Itoa(l.Min)
	}
	return fmt.Sprintf("%d–%d", l.Min, l.Max)
}

func (l lengthRange) draw(rng *rand.Rand) int {
	if l.Sigma > 0 {
		mu := math.Log(l.Mean) - float64(l.Sigma*l.Sigma)/2
		return int(min(max(math.Exp(mu+float64(l.Sigma*rng.NormFloat64())), float64(l.Min)), float64(l.Max)))
	}
	return l.Min + rng.IntN(l.Max-l.Min+1)
}

func (l openLoop) String() string {
	arrivals := fmt.Sprintf("%g req/s, Poisson", l.Rate)
	switch {
	case l.Rate == 0:
		arrivals = "all at once"
	case l.Even:
		arrivals = fmt.Sprintf("%g req/s, even", l.Rate)
	}
	prompt := l.Prompt.String()
	if l.Fourth != (lengthRange{}) {
		prompt += " and every fourth " + l.Fourth.String()
	}
	return fmt.Sprintf("open loop, %d requests, %s, %s/%s tokens", l.Requests, arrivals, prompt, l.Output)
}

// Run implements [trial].
func (l openLoop) Run(c Config) (trialResult, error) {
	fourth := cmp.Or(l.Fourth, l.Prompt)
	e, err := newTrial(c, l.Prompt, fourth, l.Output)
	if err != nil {
		return trialResult{}, err
	}
	m, rng := newMeter(), rand.New(rand.NewPCG(l.Seed, 0))
	at := 0.0 // seconds
	for i := range l.Requests {
		prompt := l.Prompt
		if i%4 == 3 {
			prompt = fourth
		}
		j := &Job{ID: int64(i), Prompt: prompt.draw(rng), Output: l.Output.draw(rng)}
		now := Picos(at * 1e12)
		e.Run(now, m)
		m.began[j] = now
		if err := e.Add(j, now); err != nil {
			return trialResult{}, err
		}
		switch {
		case l.Rate == 0:
		case l.Even:
			at += 1 / l.Rate
		default:
			at += rng.ExpFloat64() / l.Rate
		}
	}
	e.Run(Never, m)
	return m.result(), nil
}

// newTrial makes an engine for requests of these lengths.
func newTrial(c Config, lengths ...lengthRange) (*engineCore, error) {
	for _, n := range lengths {
		if n.Min < 1 || n.Max < n.Min || n.Sigma > 0 && !(n.Mean > 0) {
			return nil, errors.New("simulated trial: lengths have at least 1 token, no more than Max, and a mean if " +
				"they have a sigma")
		}
	}
	return newEngineCore(c)
}

// A meter keeps the latencies of jobs.
type meter struct {
	began, last     map[*Job]Picos
	ttft, gaps, e2e []Picos
	over            []Picos
	tokens          int64
}

func newMeter() *meter { return &meter{began: map[*Job]Picos{}, last: map[*Job]Picos{}} }

// Tokens implements [tokenSink].
func (m *meter) Tokens(j *Job, at []Picos) {
	last, ok := m.last[j]
	for _, t := range at {
		if ok {
			m.gaps = append(m.gaps, t-last)
		} else {
			m.ttft = append(m.ttft, t-m.began[j])
		}
		last, ok = t, true
	}
	m.last[j] = last
	m.tokens += int64(len(at))
}

// Finished implements [tokenSink].
func (m *meter) Finished(j *Job, at Picos) {
	m.over = append(m.over, at)
	m.e2e = append(m.e2e, at-m.began[j])
}

func (m *meter) result() trialResult {
	for _, list := range [][]Picos{m.ttft, m.gaps, m.e2e} {
		slices.Sort(list)
	}
	ms := func(list []Picos, p float64) float64 {
		if len(list) == 0 {
			return 0
		}
		return quantile(list, p) / 1e9
	}
	end := Picos(1)
	if n := len(m.over); n > 0 {
		end = max(m.over[n-1], end)
	}
	return trialResult{OutputPerS: float64(m.tokens) / (float64(end) / 1e12),
		TTFTP50: ms(m.ttft, 0.5), TTFTP95: ms(m.ttft, 0.95), TTFTP99: ms(m.ttft, 0.99),
		ITLP50: ms(m.gaps, 0.5), ITLP95: ms(m.gaps, 0.95), ITLP99: ms(m.gaps, 0.99),
		E2EP50: ms(m.e2e, 0.5), E2EP95: ms(m.e2e, 0.95), E2EP99: ms(m.e2e, 0.99)}
}
