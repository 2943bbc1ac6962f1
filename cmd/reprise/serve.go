package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/replay/simserver"
)

func serveCommand() *cobra.Command {
	c := simserver.DefaultConfig()
	var listen, preset string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a simulated endpoint: OpenAI wire, prefix cache, timed tokens",
		Long: `Serve answers /v1/chat/completions and /v1/completions like a serving engine: it
tokenises prompts, caches prefixes in blocks of its own size, prefills them one
after another and sends tokens at absolute instants. The words mean nothing.

With --preset it is a model of an engine instead, as in reprise simulate, by the
clock: batches, chunked prefill, KV blocks that are in use or kept, preemption,
at the costs of the preset. --block-size, --cache-tokens (its whole KV memory),
--max-num-seqs and --max-waiting change it.

It also answers /v1/models, /tokenize, /health, /metrics (vLLM's names) and
/reset_prefix_cache.`,
		Example: `  reprise serve --listen 127.0.0.1:8000 --itl 20ms
  reprise serve --listen 127.0.0.1:8000 --preset l4-qwen2.5-0.5b`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if preset != "" {
				if err := withPreset(cmd, &c, preset); err != nil {
					return err
				}
			}
			s, err := simserver.New(c)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return err
			}
			notef(cmd, "serving %s at http://%s", c.Model, l.Addr())
			return serve(cmd.Context(), l, s.Handler())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&listen, "listen", "127.0.0.1:8000", "address and port; port 0 chooses one")
	fl.StringVar(&preset, "preset", "", "engine fitted to published measurements: "+strings.Join(presetNames(), ", ")+"; see reprise simulate --presets")
	fl.StringVar(&c.Model, "model", c.Model, "name of the model")
	fl.StringVar(&c.Tokenizer, "tokenizer", c.Tokenizer, "tokenizer of prompts: a name, or the path of a tokenizer.json")
	fl.IntVar(&c.BlockSize, "block-size", c.BlockSize, "tokens in a block of the prefix cache")
	fl.IntVar(&c.CacheTokens, "cache-tokens", c.CacheTokens, "capacity of the prefix cache in tokens; 0 is without bound")
	fl.IntVar(&c.MaxSeqs, "max-num-seqs", c.MaxSeqs, "requests that run at once")
	fl.IntVar(&c.MaxWaiting, "max-waiting", c.MaxWaiting, "requests that wait; more are refused with 429")
	fl.IntVar(&c.MaxModelLen, "max-model-len", c.MaxModelLen, "tokens of a prompt and its answer together")
	fl.DurationVar(&c.Base, "prefill-base", c.Base, "time of a prefill, whatever its length")
	fl.Float64Var(&c.PrefillRate, "prefill-rate", c.PrefillRate, "tokens prefilled per second, beyond the base")
	fl.DurationVar(&c.ITL, "itl", c.ITL, "time between two tokens")
	return cmd
}

// withPreset makes c the engine of a preset, changed by the flags that were given.
func withPreset(cmd *cobra.Command, c *simserver.Config, name string) error {
	p, err := simserver.OpenPreset(name)
	if err != nil {
		return usagef("--preset: %v", err)
	}
	given := cmd.Flags().Changed
	for _, other := range []string{"prefill-base", "prefill-rate", "itl"} {
		if given(other) {
			return usagef("--%s is of the timeline that --preset takes the place of", other)
		}
	}
	e := p.Engine
	if given("block-size") {
		e.BlockSize = c.BlockSize
	}
	if given("cache-tokens") {
		e.KVTokens = c.CacheTokens
	}
	if given("max-num-seqs") {
		e.MaxSeqs = c.MaxSeqs
	}
	if given("max-waiting") {
		e.MaxWaiting = c.MaxWaiting
	}
	if !given("model") {
		c.Model = p.Model
	}
	c.Engine = &e
	return nil
}

// serve answers on l until ctx ends, then lets no stream hold it up.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	return errors.Join(srv.Close(), ignoreClosed(<-done))
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
