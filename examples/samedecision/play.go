package main

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"strconv"
	"time"

	"reprise/replay"
	"reprise/replay/bench"
	"reprise/replay/engine"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
)

// baseFleet is four engines of roughly a model of 70 billion parameters on eight H100 each,
// by their data sheet at half of its FLOPS and two thirds of its bandwidth, with a router
// that follows prefixes.
func baseFleet() engine.FleetConfig {
	c := engine.DefaultConfig()
	c.BlockSize, c.KVTokens, c.MaxBatchTokens = 512, 1_500_000, 2048
	c.Costs = engine.Costs{Step: 8 * millisecond, KVToken: 18 * nanosecond, PrefillToken: 35 * microsecond, DecodeSeq: 50 * microsecond, Request: 20 * millisecond}
	return engine.FleetConfig{Engine: c, Replicas: 4, Router: engine.RouterPrefix, LoadWeight: 1, Seed: 1}
}

const (
	nanosecond  engine.Picos = 1000
	microsecond              = 1000 * nanosecond
	millisecond              = 1000 * microsecond
)

// An engineChange is what a decision is about.
type engineChange struct {
	name string
	set  func(f *engine.FleetConfig)
}

var engineChanges = []engineChange{
	{"no prefix cache", func(f *engine.FleetConfig) { f.Engine.PrefixCaching = false }},
	{"no prefix cache, 5 replicas", func(f *engine.FleetConfig) { f.Engine.PrefixCaching, f.Replicas = false, 5 }},
	{"no prefix cache, prefill 20 % faster", func(f *engine.FleetConfig) { f.Engine.PrefixCaching = false; prefill(f, 0.8) }},
	{"KV of 0.75 M tokens", kv(750_000)},
	{"KV of 1 M tokens", kv(1_000_000)},
	{"KV of 2 M tokens", kv(2_000_000)},
	{"KV of 4 M tokens", kv(4_000_000)},
	{"KV of 4 M tokens, prefill 5 % slower", func(f *engine.FleetConfig) { f.Engine.KVTokens = 4_000_000; prefill(f, 1.05) }},
	{"KV of 1 M tokens, prefill 5 % faster", func(f *engine.FleetConfig) { f.Engine.KVTokens = 1_000_000; prefill(f, 0.95) }},
	{"router session", router(engine.RouterSession)},
	{"router least-loaded", router(engine.RouterLeastLoaded)},
	{"router least-loaded, 5 replicas", func(f *engine.FleetConfig) { f.Router, f.Replicas = engine.RouterLeastLoaded, 5 }},
	{"load weight 100", func(f *engine.FleetConfig) { f.LoadWeight = 100 }},
	{"2 replicas, twice as fast, KV of 3 M tokens", func(f *engine.FleetConfig) { scaled(f, 2, 2) }},
	{"8 replicas, half as fast, KV of 0.75 M tokens", func(f *engine.FleetConfig) { scaled(f, 8, 0.5) }},
	{"5 replicas, prefill 20 % slower", func(f *engine.FleetConfig) { f.Replicas = 5; prefill(f, 1.2) }},
	{"5 replicas, prefill 35 % slower", func(f *engine.FleetConfig) { f.Replicas = 5; prefill(f, 1.35) }},
	{"3 replicas, prefill 20 % faster", func(f *engine.FleetConfig) { f.Replicas = 3; prefill(f, 0.8) }},
	{"blocks of 1,024 tokens", block(1024)},
	{"blocks of 4,096 tokens, KV of 2 M tokens", func(f *engine.FleetConfig) { f.Engine.BlockSize, f.Engine.KVTokens = 4096, 2_000_000 }},
	{"steps of 8,192 tokens", steps(8192)},
	{"whole prompts in a step", func(f *engine.FleetConfig) { f.Engine.ChunkedPrefill = false }},
	{"at most 40 sequences", seqs(40)},
}

func kv(tokens int) func(*engine.FleetConfig) {
	return func(f *engine.FleetConfig) { f.Engine.KVTokens = tokens }
}

func router(name string) func(*engine.FleetConfig) {
	return func(f *engine.FleetConfig) { f.Router = name }
}

func block(tokens int) func(*engine.FleetConfig) {
	return func(f *engine.FleetConfig) { f.Engine.BlockSize = tokens }
}

func steps(tokens int) func(*engine.FleetConfig) {
	return func(f *engine.FleetConfig) { f.Engine.MaxBatchTokens = tokens }
}

func seqs(n int) func(*engine.FleetConfig) {
	return func(f *engine.FleetConfig) { f.Engine.MaxSeqs = n }
}

// prefill multiplies the time that prompts take.
func prefill(f *engine.FleetConfig, by float64) {
	f.Engine.Costs.PrefillToken = engine.Picos(by * float64(f.Engine.Costs.PrefillToken))
}

// scaled splits the same hardware into so many engines, each of them so much as fast and
// as large.
func scaled(f *engine.FleetConfig, replicas int, by float64) {
	c := &f.Engine.Costs
	for _, cost := range []*engine.Picos{&c.Step, &c.KVToken, &c.PrefillToken, &c.DecodeSeq} {
		*cost = engine.Picos(float64(*cost) / by)
	}
	f.Replicas, f.Engine.KVTokens = replicas, int(by*float64(f.Engine.KVTokens))
}

// An effect is what a change does: ln(changed ÷ base) of each round.
type effect []float64

func (e effect) mean() (m float64) {
	for _, x := range e {
		m += x / float64(len(e))
	}
	return m
}

func (e effect) percent() float64 { return 100 * math.Expm1(e.mean()) }

// decides tells whether an effect is large enough and the same in all rounds.
func (e effect) decides() bool {
	for _, x := range e {
		if x > 0 != (e[0] > 0) {
			return false
		}
	}
	return math.Abs(e.percent()) >= 2
}

// effects plays every change in rounds, each beside the base with the same arrivals.
func (c *comparison) effects(ctx context.Context, w *workload) ([]effect, error) {
	out := make([]effect, len(engineChanges))
	for round := range c.rounds {
		base, err := c.p95(ctx, w, baseFleet(), round+1)
		if err != nil {
			return nil, err
		}
		for i, change := range engineChanges {
			f := baseFleet()
			change.set(&f)
			changed, err := c.p95(ctx, w, f, round+1)
			if err != nil {
				return nil, err
			}
			out[i] = append(out[i], math.Log(changed/base))
		}
	}
	return out, nil
}

// p95 is the p95 of TTFT of a workload at the comparison's rate, in ms.
func (c *comparison) p95(ctx context.Context, w *workload, f engine.FleetConfig, seed uint64) (float64, error) {
	var k kept
	run, err := play(ctx, w, f, seed, replay.Options{}, "poisson:"+strconv.FormatFloat(c.rate, 'g', -1, 64), &k)
	if err != nil {
		return 0, err
	}
	s, err := report.Summarise(run, &trace.SliceReader[result.Result]{Rows: k.rows}, report.Options{})
	if err != nil {
		return 0, err
	}
	return *s.Latency.FromDue.TTFT.P95, nil
}

// play plays a workload at a rate.
func play(ctx context.Context, w *workload, f engine.FleetConfig, seed uint64, o replay.Options, rate string, dst *kept) (result.Run, error) {
	process, err := arrival.ParseProcess(rate)
	if err != nil {
		return result.Run{}, err
	}
	o.Arrivals = process.New(arrival.Stream(seed, "replay arrivals"))
	o.About = result.Run{Schema: result.Schema, Source: result.Source{BlockSize: w.meta.BlockSize, ServerBlock: f.Engine.BlockSize},
		Simulation: result.Simulation{Simulated: "engine"}}
	_, run, err := bench.Simulation{Fleet: f, Rows: &again{w: w, once: !o.Endless}, BlockSize: w.meta.BlockSize, Options: o, Results: dst}.Run(ctx)
	return run, err
}

// kept takes results as they come, without the gaps between tokens, which nothing here
// is about.
type kept struct{ rows []result.Result }

func (k *kept) Write(rows []result.Result) (int, error) {
	for _, r := range rows {
		r.GapsNS, r.Events = nil, min(r.Events, 1)
		k.rows = append(k.rows, r)
	}
	return len(rows), nil
}

// sweep is the highest rate within the contract.
func (c *comparison) sweep(ctx context.Context, w *workload, seed uint64) (float64, error) {
	dir, err := os.MkdirTemp("", "samedecision-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	s := bench.Sweep{Target: target{w}, About: "engine", Process: "poisson", Seed: seed, Dir: dir,
		Duration: time.Minute, Requests: int64(len(w.rows)), Confirm: true, StopTTFT: time.Minute,
		Ladder: bench.Ladder{Resolution: 0.01}, Report: report.Options{Contract: c.terms}}
	for share := 0.8; share < 3; share += 0.1 {
		s.Ladder.Loads = append(s.Ladder.Loads, math.Round(100*share*c.rate)/100)
	}
	r, err := s.Run(ctx)
	if err != nil {
		return 0, err
	}
	if r.Highest.Load == nil {
		return 0, errors.New("no level holds the contract: lower -rate")
	}
	return *r.Highest.Load, nil
}

// A target makes the trials of a sweep.
type target struct{ w *workload }

// Run implements [bench.Target].
func (t target) Run(ctx context.Context, trial bench.Trial) error {
	seed, err := strconv.ParseUint(trial.Seed, 10, 64)
	if err != nil {
		return err
	}
	o := replay.Options{Duration: trial.Duration, Endless: true}
	if o.Warmup, err = replay.ParseSpan(trial.Warmup); err != nil {
		return err
	}
	var k kept
	run, err := play(ctx, t.w, baseFleet(), seed, o, trial.Load.Rate, &k)
	if err != nil {
		return err
	}
	return result.Write(trial.Results, run, &trace.SliceReader[result.Result]{Rows: k.rows})
}

// again reads the rows again and again, each time with prompts of their own.
type again struct {
	w     *workload
	once  bool
	next  int
	round uint64
}

// Read implements [trace.Reader].
func (a *again) Read(rows []trace.Request) (int, error) {
	for i := range rows {
		if a.next == len(a.w.rows) {
			if a.once {
				return i, io.EOF
			}
			a.next, a.round = 0, a.round+1
		}
		rows[i] = a.w.rows[a.next]
		a.next++
		if a.round > 0 {
			blocks := make([]uint64, len(rows[i].Blocks))
			for j, id := range rows[i].Blocks {
				blocks[j] = id + a.round<<32
			}
			rows[i].Blocks = blocks
		}
	}
	return len(rows), nil
}
