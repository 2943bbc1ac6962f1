package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/replay/simserver"
)

// engineFlags say what a simulated engine is like.
type engineFlags struct {
	c         simserver.EngineConfig
	costs     string
	noChunks  bool
	noCaching bool
}

func (f *engineFlags) register(fl *pflag.FlagSet) {
	f.c = simserver.DefaultEngine()
	fl.StringVar(&f.costs, "costs", "", "what steps take: step, kv-token, prefill-token and decode-seq, and request before the first; such as step=5ms,kv-token=40ns")
	fl.IntVar(&f.c.BlockSize, "block-size", f.c.BlockSize, "tokens in a block of KV")
	fl.IntVar(&f.c.KVTokens, "kv-tokens", f.c.KVTokens, "tokens of KV memory of an engine; 0 is without bound")
	fl.IntVar(&f.c.MaxSeqs, "max-num-seqs", f.c.MaxSeqs, "requests that run at once")
	fl.IntVar(&f.c.MaxBatchTokens, "max-num-batched-tokens", f.c.MaxBatchTokens, "tokens computed in a step")
	fl.IntVar(&f.c.MaxWaiting, "max-waiting", f.c.MaxWaiting, "requests that wait; more are refused with 429")
	fl.BoolVar(&f.noChunks, "no-chunked-prefill", false, "compute each prompt in one step")
	fl.BoolVar(&f.noCaching, "no-prefix-caching", false, "compute every prompt whole")
	fl.StringVar(&f.c.Batching, "batching", f.c.Batching, "continuous, or static: no request is admitted before the whole batch has ended")
}

// config is the engine that the flags ask for.
func (f *engineFlags) config(cmd *cobra.Command) (simserver.EngineConfig, error) {
	c := f.c
	c.ChunkedPrefill, c.PrefixCaching = !f.noChunks, !f.noCaching
	if f.costs == "" {
		return c, usagef("say how fast the engine is: --costs step=5ms,kv-token=40ns,prefill-token=25us,decode-seq=20us")
	}
	var err error
	if c.Costs, err = simserver.ParseCosts(f.costs, c.Costs); err != nil {
		return c, usagef("--costs: %v", err)
	}
	return c, nil
}

// model is the name of what is simulated.
func (f *engineFlags) model() string { return "simulated" }
