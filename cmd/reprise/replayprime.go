package main

import (
	"time"

	"github.com/spf13/cobra"

	"reprise/replay"
	"reprise/trace"
	"reprise/trace/profile"
)

// liveAtStart finds what is in a prefix cache when the window begins. It is nil where
// nothing is to be primed.
func (f *modeFlags) liveAtStart(cmd *cobra.Command, p *workloadPart) ([]trace.Request, error) {
	if f.prime == primeNone || p.rows.First() == 0 {
		return nil, nil
	}
	src, err := p.before()
	if err != nil {
		return nil, err
	}
	cache := profile.NewLive(p.blockSize, f.primeTokens)
	err = trace.Each(src, func(_ int64, r *trace.Request) error {
		cache.Touch(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	prompts := cache.Prompts()
	sum := replay.Primed{CapacityTokens: f.primeTokens, LiveTokens: cache.Tokens(), Prompts: int64(len(prompts))}
	for i := range prompts {
		sum.Tokens += int64(prompts[i].InputTokens)
	}
	p.about.Prime = &sum
	notef(cmd, "prime: a cache of %d tokens (--prime-tokens) holds %d of them at %v, in %d prefixes of %d tokens in all", f.primeTokens, cache.Tokens(), f.start, len(prompts), sum.Tokens)
	return prompts, nil
}

// fillCache sends what is live to the endpoint before the run, and makes what was
// answered known.
func (f *modeFlags) fillCache(cmd *cobra.Command, p *workloadPart, prompts []trace.Request, endpoint replay.Endpoint, makes func() (rowPrompter, error), known *profile.KnownPass) error {
	if len(prompts) == 0 {
		return nil
	}
	prompter, err := makes() // of its own, since the run's counts what it makes
	if err != nil {
		return err
	}
	bar := newProgress(cmd)
	bar.start("prime", "requests", int64(len(prompts)))
	defer bar.end()
	primer := replay.Primer{Prompter: prompter, Endpoint: endpoint, Concurrency: f.primeConcurrency, Progress: bar.set}
	sent, answered, err := primer.Prime(cmd.Context(), prompts)
	sent.CapacityTokens, sent.LiveTokens = p.about.Prime.CapacityTokens, p.about.Prime.LiveTokens
	p.about.Prime = &sent
	if err != nil {
		return err
	}
	for i := range prompts {
		if answered[i] {
			known.Touch(&prompts[i])
		}
	}
	notef(cmd, "prime: %d prompts with %d tokens sent in %v, %d failed", sent.Prompts, sent.Tokens, time.Duration(sent.TookNS).Round(time.Millisecond), sent.Failed)
	return nil
}
