package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay"
	"reprise/replay/client"
	"reprise/replay/result"
	"reprise/trace"
)

// calibrate finds the endpoint's model and measures its templates, of each API that
// rows go to.
func (f *Replay) calibrate(cmd *cobra.Command, w *trace.Trace, endpoint *client.HTTP, m *flags.PromptMaker) (overheads map[string]int, err error) {
	apis, err := f.Target.APIs(w)
	if err != nil {
		return nil, err
	}
	words := m.Tok.Words()
	var model string
	uncounted := map[string]bool{}
	err = untilFree(cmd, func() error {
		return whenReady(cmd.Context(), f.Ready, func() (err error) {
			overheads = map[string]int{}
			if model, err = endpoint.Probe(cmd.Context()); err != nil {
				return err
			}
			for _, api := range apis {
				if f.raw != nil {
					overheads[api] = 0 // no prompt is made to a length
					continue
				}
				overheads[api], err = endpoint.CalibrateAPI(cmd.Context(), api, words.Text[0], words.Bare[0])
				if uncounted[api] = errors.Is(err, client.ErrUncounted); err != nil && !uncounted[api] {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if f.raw != nil {
		cli.Notef(cmd, "endpoint: %s, model %s, prompts as in the source", strings.Join(endpoint.Endpoints(), ", "), model)
		return overheads, nil
	}
	for _, api := range apis {
		if uncounted[api] {
			template := "without what a template adds to them (--template-tokens N says how much)"
			if n := overheads[api]; n > 0 {
				template = fmt.Sprintf("%d tokens shorter for the template, as --template-tokens says", n)
			}
			cli.Notef(cmd, "endpoint: %s, %s, model %s; it sends no usage, so token counts are estimates: output by the tokenizer, prompts as they are made, %s",
				strings.Join(endpoint.Endpoints(), ", "), api, model, template)
			continue
		}
		cli.Notef(cmd, "endpoint: %s, %s, model %s, chat-template overhead: %d tokens", strings.Join(endpoint.Endpoints(), ", "), api, model, overheads[api])
	}
	return overheads, f.compareTokenizers(cmd, endpoint, m, apis, uncounted)
}

// sampleTokens is how long a text is that a server counts to show its tokenizer.
const sampleTokens = 64

// compareTokenizers has the server count one text of the kind that will be sent, and says
// where it counts otherwise than the tokenizer. A text that it refuses shows nothing.
func (f *Replay) compareTokenizers(cmd *cobra.Command, endpoint *client.HTTP, m *flags.PromptMaker, apis []string, uncounted map[string]bool) error {
	counts := slices.IndexFunc(apis, func(api string) bool { return !uncounted[api] })
	if counts < 0 || f.Target.TokenIDs {
		return nil
	}
	text, err := m.Sample(sampleTokens)
	if err != nil {
		return err
	}
	n, err := endpoint.Count(cmd.Context(), apis[counts], text)
	if err != nil {
		return cmd.Context().Err()
	}
	if off := m.OffBy(n, sampleTokens); off != "" {
		cli.Notef(cmd, "endpoint: for the same text the server counts %s (%d in place of %d), so prompts have other lengths than the workload says: name its tokenizer with --tokenizer, by name or as the path of its tokenizer.json", off, n, sampleTokens)
	}
	return nil
}

// readyEvery is how often an endpoint that is not ready is asked again.
const readyEvery = time.Second

// whenReady calls ask until it succeeds or the wait is over; then its last error
// counts. A wait of 0 calls it once.
func whenReady(ctx context.Context, wait time.Duration, ask func() error) error {
	limit := time.NewTimer(wait)
	defer limit.Stop()
	for {
		err := ask()
		if err == nil || wait == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return fmt.Errorf("not ready after %v: %w", wait, err)
		case <-time.After(readyEvery):
		}
	}
}

// cold empties the caches, or, when a server has no call for that, gives the
// prompts a seed that no run had, so that nothing in a cache matches them. Which
// of the two it was, it notes and says.
func (s *replayServers) cold(cmd *cobra.Command) (*result.CacheDiscipline, error) {
	f, admin, m := s.flags, s.admin, s.maker
	about := &result.CacheDiscipline{Asked: f.Servers.Cache, Done: result.CacheReset, Servers: admin.Servers()}
	var err error
	about.Call, err = admin.ResetCache(cmd.Context(), f.Servers.ResetCall)
	switch {
	case err == nil:
		servers := "1 server"
		if n := admin.Servers(); n != 1 {
			servers = fmt.Sprintf("%d servers", n)
		}
		cli.Notef(cmd, "cache: emptied by POST %s at %s", about.Call, servers)
		return about, nil
	case !errors.Is(err, client.ErrNoCall):
		return nil, fmt.Errorf("--cache cold: %w", err)
	case f.Servers.ResetCall != "":
		return nil, fmt.Errorf("--reset-cache: %w", err)
	}
	about = &result.CacheDiscipline{Asked: f.Servers.Cache, Done: result.CacheNewSeed, ArrivalSeed: strconv.FormatUint(m.Seed, 10)}
	seed, other := f.Prompts.Reseeded()
	switch {
	case errors.Is(other, flags.ErrSeedGiven):
		return nil, fmt.Errorf("--cache cold: %w to empty its cache, and %w. Start vLLM with VLLM_SERVER_DEV_MODE=1, name the call with --reset-cache, or leave --seed out", err, other)
	case other != nil:
		return nil, other
	}
	m.Seed = seed
	cli.Notef(cmd, "cache: a server has no call that empties it, so the prompts have a new seed, %d, and match nothing that it holds", m.Seed)
	return about, nil
}

// A replayServers is the endpoint of a replay with the servers behind it, made
// ready for what the flags ask for.
type replayServers struct {
	flags       *Replay
	endpoint    *client.HTTP
	maker       *flags.PromptMaker
	admin       *client.Admin
	metering    replay.Metering
	overheads   map[string]int // tokens of template around a prompt, by API
	arrivalSeed uint64         // stays, where the prompts get another seed
	cache       *result.CacheDiscipline
}

// openServers makes what calls the servers beside requests and what measures at
// them, with the headers and the key of requests; finds the model and its
// template; and, for cold caches, empties them last of all.
func (f *Replay) openServers(cmd *cobra.Command, w *trace.Trace, endpoint *client.HTTP, m *flags.PromptMaker) (*replayServers, error) {
	s := &replayServers{flags: f, endpoint: endpoint, maker: m, arrivalSeed: m.Seed}
	o, err := f.Target.Options()
	if err != nil {
		return nil, err
	}
	s.cache = &result.CacheDiscipline{Asked: f.Servers.Cache, Done: result.CacheNothing}
	if f.resume {
		if s.cache, err = f.resumedCache(m); err != nil {
			return nil, err
		}
	}
	bases := f.Servers.Bases(f.Target.URLs)
	if from, _ := f.Target.KeyFrom(); from == flags.DefaultKeyEnv {
		cli.Notef(cmd, "endpoint: the API key is that of %s", from)
		if !slices.Equal(bases, f.Target.URLs) {
			o.APIKey = "" // nobody said that it is for other addresses
		}
	}
	if s.admin, err = client.NewAdmin(client.AdminOptions{URLs: bases, APIKey: o.APIKey, Header: o.Header, TLS: o.TLS, Proxy: o.Proxy}); err != nil {
		return nil, cli.Exit(cli.Usage, err)
	}
	// A key that nobody named is not for metrics, which may be read elsewhere and unencrypted.
	if from, _ := f.Target.KeyFrom(); o.APIKey != "" && from != flags.DefaultKeyEnv {
		o.Header.Set("Authorization", "Bearer "+o.APIKey)
	}
	if s.metering, err = f.Servers.Metering(cmd.Context(), f.Target.URLs, o.Header); err != nil {
		return nil, err
	}
	s.overheads, err = f.calibrate(cmd, w, endpoint, m)
	if e, ok := errors.AsType[*client.SetupError](err); ok && e.Other != "" && !f.Target.APIGiven() && !f.Target.TokenIDs {
		cli.Notef(cmd, "endpoint: it has no %s API, so requests go to %s (--api %s)", e.API, e.Other, e.Other)
		f.Target.API = e.Other
		endpoint.UseAPI(e.Other)
		s.overheads, err = f.calibrate(cmd, w, endpoint, m)
	}
	if err != nil {
		return nil, advised(err, &f.Target)
	}
	if f.Servers.Cache == result.CacheCold && !f.resume {
		s.cache, err = s.cold(cmd)
	}
	return s, err
}

// prompter makes prompts for them.
func (s *replayServers) prompter() (flags.RowPrompter, error) { return s.maker.ForAPIs(s.overheads) }

// warmUp plays the workload once, for warm caches, and keeps nothing of it but how
// it went.
func (s *replayServers) warmUp(cmd *cobra.Command, p *workloadPart, lineage *replay.Lineage) error {
	if s.flags.Servers.Cache != result.CacheWarm || s.flags.resume {
		return nil
	}
	rows, err := p.once()
	if err != nil {
		return err
	}
	prompter, err := s.prompter()
	if err != nil {
		return err
	}
	r := replay.Runner{Prompter: prompter, Endpoint: s.endpoint}
	if r.Options, err = s.flags.Load.Schedule(lineage, s.arrivalSeed); err != nil {
		return err
	}
	bar := cli.NewProgress(cmd)
	bar.Start("warm-up pass", "requests", p.rows.Len())
	defer bar.End()
	var failed int64
	r.Progress = func(p replay.Progress) { failed = p.Failed; bar.Set(p.Done) }
	run, err := r.Run(cmd.Context(), rows, discard{})
	if err == nil {
		err = cmd.Context().Err()
	}
	if err != nil {
		return fmt.Errorf("the warm-up pass: %w", err)
	}
	c := s.cache
	c.Done, c.WarmRequests, c.WarmFailed, c.WarmEnded = result.CacheWarmPass, run.Requests, failed, run.EndedEarly
	cli.Notef(cmd, "cache: warmed by %d requests, of which %d failed", run.Requests, failed)
	return nil
}

// discard takes results and keeps none.
type discard struct{}

func (discard) Write(rows []result.Result) (int, error) { return len(rows), nil }
