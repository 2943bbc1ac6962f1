package decision

import "reprise/replay/engine"

// BaseFleet is four engines of roughly a model of 70 billion parameters on eight H100 each,
// by their data sheet at half of its FLOPS and two thirds of its bandwidth, with a router
// that follows prefixes.
func BaseFleet() engine.FleetConfig {
	c := engine.DefaultConfig()
	c.BlockSize, c.KVTokens, c.MaxBatchTokens = 512, 1_500_000, 2048
	c.Costs = engine.Costs{Step: 8 * millisecond, KVToken: 18 * nanosecond, PrefillToken: 35 * microsecond, DecodeSeq: 50 * microsecond, Request: 20 * millisecond}
	return engine.FleetConfig{Engine: c, Replicas: 4, Router: engine.RouterPrefix, LoadWeight: 1, Seed: 1}
}

// baseAbout says what [BaseFleet] is.
const baseAbout = "4 engines behind a prefix router, 1.5 M tokens of KV and 35 µs a prompt token each"

const (
	nanosecond  engine.Picos = 1000
	microsecond              = 1000 * nanosecond
	millisecond              = 1000 * microsecond
)

// A Change is what a decision is about.
type Change struct {
	Name string
	Set  func(f *engine.FleetConfig)
}

// Changes are 20 changes of [BaseFleet]: of the prefix cache, the memory of KV, the router,
// the replicas, the block size and the batch. They were chosen among some 50 by their effect
// on a trace of conversations: most are between 4 and 60 %.
func Changes() []Change {
	return []Change{
		{"no prefix cache", func(f *engine.FleetConfig) { f.Engine.PrefixCaching = false }},
		{"no prefix cache, 5 replicas", func(f *engine.FleetConfig) { f.Engine.PrefixCaching, f.Replicas = false, 5 }},
		{"no prefix cache, prefill 20 % faster", func(f *engine.FleetConfig) { f.Engine.PrefixCaching = false; Prefill(f, 0.8) }},
		{"KV of 0.75 M tokens", kv(750_000)},
		{"KV of 1 M tokens", kv(1_000_000)},
		{"KV of 2 M tokens", kv(2_000_000)},
		{"KV of 4 M tokens", kv(4_000_000)},
		{"KV of 1 M tokens, prefill 5 % faster", func(f *engine.FleetConfig) { f.Engine.KVTokens = 1_000_000; Prefill(f, 0.95) }},
		{"router session", router(engine.RouterSession)},
		{"router least-loaded", router(engine.RouterLeastLoaded)},
		{"router least-loaded, 5 replicas", func(f *engine.FleetConfig) { f.Router, f.Replicas = engine.RouterLeastLoaded, 5 }},
		{"2 replicas, twice as fast, KV of 3 M tokens", func(f *engine.FleetConfig) { scaled(f, 2, 2) }},
		{"8 replicas, half as fast, KV of 0.75 M tokens", func(f *engine.FleetConfig) { scaled(f, 8, 0.5) }},
		{"5 replicas, prefill 35 % slower", func(f *engine.FleetConfig) { f.Replicas = 5; Prefill(f, 1.35) }},
		{"3 replicas, prefill 20 % faster", func(f *engine.FleetConfig) { f.Replicas = 3; Prefill(f, 0.8) }},
		{"blocks of 1,024 tokens", func(f *engine.FleetConfig) { f.Engine.BlockSize = 1024 }},
		{"blocks of 4,096 tokens, KV of 2 M tokens", func(f *engine.FleetConfig) { f.Engine.BlockSize, f.Engine.KVTokens = 4096, 2_000_000 }},
		{"steps of 8,192 tokens", func(f *engine.FleetConfig) { f.Engine.MaxBatchTokens = 8192 }},
		{"whole prompts in a step", func(f *engine.FleetConfig) { f.Engine.ChunkedPrefill = false }},
		{"at most 40 sequences", func(f *engine.FleetConfig) { f.Engine.MaxSeqs = 40 }},
	}
}

func kv(tokens int) func(*engine.FleetConfig) {
	return func(f *engine.FleetConfig) { f.Engine.KVTokens = tokens }
}

func router(name string) func(*engine.FleetConfig) {
	return func(f *engine.FleetConfig) { f.Router = name }
}

// Prefill multiplies the time that prompts take.
func Prefill(f *engine.FleetConfig, by float64) {
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
