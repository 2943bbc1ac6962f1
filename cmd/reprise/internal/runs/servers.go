package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
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
	"reprise/trace/doc"
	"reprise/trace/profile"
	"reprise/trace/sample"
)

// calibrate finds the endpoint's model and what the servers state of themselves, and
// measures their templates, of each API that rows go to.
func (s *replayServers) calibrate(cmd *cobra.Command,
	w *trace.Trace) (templates map[string]result.Template, err error) {
	f, endpoint, m := s.flags, s.endpoint, s.maker
	apis, err := f.Target.APIs(w)
	if err != nil {
		return nil, err
	}
	if f.raw != nil {
		apis = verbatimAPIs(apis)
	}
	var model string
	uncounted := map[string]bool{}
	err = untilFree(cmd, func() error {
		return whenReady(cmd.Context(), f.Ready, func() (err error) {
			templates = map[string]result.Template{}
			if model, err = endpoint.Probe(cmd.Context()); err != nil {
				return err
			}
			if s.block == 0 { // once, though what follows may be tried again
				s.survey = s.admin.Survey(cmd.Context(), model)
				s.block, s.blockFrom = blockSize(cmd, f.serverBlock, s.survey)
			}
			if f.raw != nil {
				return s.reachVerbatim(cmd.Context(), apis, m.Words.Text[0])
			}
			m.TakeModels(cmd, client.NamesOf(s.survey, model)...)
			for _, api := range apis {
				_, err = endpoint.CalibrateAPI(cmd.Context(), api, m.Words.Text[0], m.Words.Bare[0])
				if uncounted[api] = errors.Is(err, client.ErrUncounted); err != nil && !uncounted[api] {
					return err
				}
				if !uncounted[api] {
					s.learnWords(cmd, api)
				}
				templates[api] = endpoint.TemplateParts(cmd.Context(), api, m.Words.Text, s.block)
			}
			return cmd.Context().Err()
		})
	})
	if err != nil {
		return nil, err
	}
	defer func() { tellAdapted(cmd, endpoint) }()
	if other := client.Unlisted(s.survey, model); other != "" {
		cli.WarnOncef(cmd, "endpoint: the server does not list the model %s, only %s, and answers all the same: check "+
			"--model", model, other)
	}
	if f.raw != nil {
		for _, api := range apis {
			templates[api] = result.Template{} // no prompt is made to a length
		}
		cli.Oncef(cmd, "endpoint: %s, model %s, prompts as in the source, sent to %s",
			strings.Join(endpoint.Endpoints(), ", "), model, strings.Join(apis, " and "))
		return templates, nil
	}
	for _, api := range apis {
		if uncounted[api] {
			template := "without what a template adds to them (--set template-tokens=N says how much)"
			if n := templates[api].Before + templates[api].After; n > 0 {
				template = fmt.Sprintf("%d tokens shorter for the template, as --set template-tokens says", n)
			}
			cli.WarnOncef(cmd, "endpoint: %s, %s, model %s; it sends no usage, so token counts are estimates: output "+
				"by the tokenizer, prompts as they are made, %s",
				strings.Join(endpoint.Endpoints(), ", "), api, model, template)
			continue
		}
		t := templates[api]
		overhead := doc.Many(int64(t.Before+t.After), "token")
		if t.After > 0 && t.Found == result.TemplateAssumed {
			overhead += ", all of them taken to stand after the prompt (the server's counts do not tell; " +
				"--set template-tokens=BEFORE+AFTER does)"
		} else if t.After > 0 {
			overhead += fmt.Sprintf(", %d before the prompt and %d after it (%s)", t.Before, t.After, t.Found)
		}
		cli.Oncef(cmd, "endpoint: %s, %s, model %s, chat-template overhead: %s",
			strings.Join(endpoint.Endpoints(), ", "), api, model, overhead)
	}
	if s.alike || s.words > 0 {
		return templates, nil // the server has said how it counts
	}
	return templates, f.compareTokenizers(cmd, endpoint, m, apis, uncounted)
}

// verbatimAPIs are the APIs that the source's own prompts go to, of those that their rows name: texts to completions
// and messages to chat.
func verbatimAPIs(apis []string) (sent []string) {
	for _, api := range apis {
		if api != result.APICompletions {
			api = result.APIChat
		}
		if !slices.Contains(sent, api) {
			sent = append(sent, api)
		}
	}
	return sent
}

// reachVerbatim asks for one token in each API that the source's own prompts go to. It is an error where none of
// them answers: then no request of the run would succeed, as with a key that is refused or a model that is unknown.
func (s *replayServers) reachVerbatim(ctx context.Context, apis []string, word string) (failed error) {
	reached := false
	for _, api := range apis {
		err := s.endpoint.Reach(ctx, api, word)
		reached = reached || err == nil
		failed = cmp.Or(failed, err)
	}
	if reached {
		return ctx.Err()
	}
	return failed
}

// tellAdapted says how requests differ from what was asked for, since the servers refuse it.
func tellAdapted(cmd *cobra.Command, endpoint *client.HTTP) {
	for _, says := range endpoint.Adapted() {
		cli.Oncef(cmd, "endpoint: %s", says)
	}
}

// noticed is how long a step takes that is said before it begins.
const noticed = 2 * time.Second

// sampleTokens is how long a text is that a server counts to show its tokenizer.
const sampleTokens = 64

// learnWords makes prompts of words that the server counts as one token each, where nobody named its tokenizer and it
// counts otherwise than the usual one. It asks once, and where that does not help prompts stay as they were.
func (s *replayServers) learnWords(cmd *cobra.Command, api string) {
	m, endpoint := s.maker, s.endpoint
	if s.asked || !m.Guessed || s.flags.Target.TokenIDs {
		return
	}
	s.asked = true
	count := func() string {
		text, err := m.Sample(sampleTokens)
		if err != nil {
			return ""
		}
		n, err := endpoint.Count(cmd.Context(), api, text)
		if err != nil {
			return ""
		}
		return m.OffBy(n, sampleTokens)
	}
	began := time.Now()
	if s.alike = count() == ""; s.alike {
		return
	}
	before, usual, slow := *m, m.Tok.Name(), time.Since(began) > noticed/40
	server := s.flags.Target.Model + " " + endpoint.Endpoints()[0]
	found, err := m.OfServer(server, func(words []string, least, want int) ([]int, error) {
		if slow { // some 40 counts follow each other
			cli.Oncef(cmd, "tokenizer: none is named, and the server has another than %s: looking for words that it "+
				"counts as one token each, in up to 300 short requests", usual)
		}
		return endpoint.OneToken(cmd.Context(), api, words, least, want)
	})
	switch {
	case err != nil || !found:
	case count() != "":
		if *m = before; m.Forget(server) {
			s.asked = false
			s.learnWords(cmd, api)
		}
	default:
		s.words = len(m.Words.Text)
		cli.Oncef(cmd, "tokenizer: none is named, and the server has another than %s. So prompts are made of %d "+
			"words that it counts as one token each, and lengths are right; --tokenizer PATH starts faster and sends "+
			"more of the vocabulary", usual, s.words)
	}
}

// compareTokenizers has the server count one text of the kind that will be sent, and says
// where it counts otherwise than the tokenizer. A text that it refuses shows nothing.
func (f *Replay) compareTokenizers(cmd *cobra.Command, endpoint *client.HTTP, m *flags.PromptMaker, apis []string,
	uncounted map[string]bool) error {
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
		cli.WarnOncef(cmd, "endpoint: for the same text the server counts %s (%d in place of %d), so prompts have "+
			"other lengths than the workload says: name its tokenizer with --tokenizer, by name or as the path of its "+
			"tokenizer.json", off, n, sampleTokens)
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

// salt makes the prompts those of a salt, so that no earlier run has warmed them: the given
// one, or one that no run had. A seed that the user gave keeps its prompts, and verbatim
// prompts are never changed.
func (s *replayServers) salt(cmd *cobra.Command) error {
	f, m := s.flags, s.maker
	salt := f.Servers.Salt
	switch {
	case f.raw != nil && salt != "":
		return cli.Usagef("--set salt cannot be used with --verbatim, which sends prompts as they were recorded")
	case f.raw != nil:
		return nil
	case salt != "":
	case f.Prompts.Seed != "" && !f.Prompts.OwnSeed:
		return nil
	case f.Prompts.ColdSeed != "":
		salt = f.Prompts.ColdSeed
	case !f.Load.Share.Whole() && f.Shard.StartAt.IsZero():
		cli.Warnf(cmd, "cache: the prompts have no salt, since each shard would draw its own: give all of them the "+
			"same --set salt")
		return nil
	case !f.Load.Share.Whole():
		salt = f.Shard.StartAt.Format(time.RFC3339)
	default:
		seed, err := flags.NewSeed()
		if err != nil {
			return err
		}
		salt = strconv.FormatUint(seed>>24, 36)
	}

	s.cache.Done, s.cache.Salt, s.cache.ArrivalSeed = result.CacheSalt, salt, strconv.FormatUint(m.Seed, 10)
	hash := fnv.New64a()
	hash.Write([]byte(salt))
	m.Seed = sample.Key(m.Seed, hash.Sum64())
	if f.Servers.Salt == "" && !f.Prompts.OwnSeed {
		cli.Notef(cmd, "cache: prompts no earlier run has sent; --set salt=%s sends them again", salt)
	}
	return nil
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
		return nil, fmt.Errorf("--set reset-cache: %w", err)
	case f.raw != nil:
		return nil, fmt.Errorf("--cache cold: %w. Start vLLM with VLLM_SERVER_DEV_MODE=1, name the call with "+
			"--set reset-cache, or start the server anew and leave --cache out", err)
	case !f.Load.Share.Whole():
		return nil, fmt.Errorf("--cache cold: %w, and shards cannot draw a new seed, since they "+
			"must have the same: name the call with --set reset-cache, or give all of them a new --seed and leave "+
			"--cache out", err)
	}
	about = &result.CacheDiscipline{Asked: f.Servers.Cache, Done: result.CacheNewSeed,
		ArrivalSeed: strconv.FormatUint(m.Seed, 10)}
	seed, other := f.Prompts.Reseeded()
	switch {
	case errors.Is(other, flags.ErrSeedGiven):
		return nil, fmt.Errorf("--cache cold: %w, and %w. Start vLLM with VLLM_SERVER_DEV_MODE=1, "+
			"name the call with --set reset-cache, or leave --seed out", err, other)
	case other != nil:
		return nil, other
	}
	m.Seed = seed
	cli.Notef(cmd, "cache: a server has no call that empties it, so the prompts have a new seed, %d, and match "+
		"nothing that it holds", m.Seed)
	return about, nil
}

// blockSize is the block size of the servers' prefix caches, and where it is from: what
// the flag gave, what the servers state, or else the default. It says what they state.
func blockSize(cmd *cobra.Command, given int, servers []result.ServerModels) (size int, from string) {
	stated, slots := map[int]string{}, 0
	for _, s := range servers {
		if s.BlockSize > 0 {
			stated[s.BlockSize] = s.BlockFrom
		}
		slots += s.Slots
	}
	sizes := slices.Sorted(maps.Keys(stated))
	switch {
	case given > 0 && len(sizes) == 1 && sizes[0] != given:
		cli.WarnOncef(cmd, "endpoint: --server-block-size %d is not what the server states, %d (%s); the expected hit "+
			"ratio is for %d", given, sizes[0], stated[sizes[0]], given)
		return given, result.BlockGiven
	case given > 0:
		return given, result.BlockGiven
	case len(sizes) > 1:
		cli.WarnOncef(cmd, "endpoint: the servers state prefix caches of different block sizes (%d to %d tokens); the "+
			"expected hit ratio is for %d, and --server-block-size names another", sizes[0],
			sizes[len(sizes)-1], sizes[0])
		return sizes[0], stated[sizes[0]]
	case len(sizes) == 0:
		return profile.DefaultServerBlock, ""
	case slots > 0:
		cli.Oncef(cmd, "endpoint: llama.cpp keeps the latest prompt of each of its %d slots, so there may be fewer "+
			"cache hits than expected, which is for a cache that keeps all prompts", slots)
	default:
		cli.Oncef(cmd, "endpoint: prefix cache blocks of %d tokens (%s)", sizes[0], stated[sizes[0]])
	}
	return sizes[0], stated[sizes[0]]
}

// A replayServers is the endpoint of a replay with the servers behind it, made
// ready for what the flags ask for.
type replayServers struct {
	flags       *Replay
	endpoint    *client.HTTP
	maker       *flags.PromptMaker
	admin       *client.Admin
	metering    replay.Metering
	templates   map[string]result.Template // by API
	arrivalSeed uint64                     // stays, where the prompts get another seed
	survey      []result.ServerModels      // what they state of themselves
	block       int                        // of their prefix caches, in tokens
	blockFrom   string                     // as [result.Source].ServerBlockFrom
	asked       bool                       // for words of one token
	alike       bool                       // the server counts a text as the usual tokenizer
	words       int                        // of one token, that prompts are made of; 0 where the tokenizer is known
	cache       *result.CacheDiscipline
}

// openServers makes what calls the servers beside requests and what measures at
// them, with the headers and the key of requests; finds the model and its
// template; and, for cold caches, empties them last of all.
func (f *Replay) openServers(cmd *cobra.Command, w *trace.Trace, endpoint *client.HTTP,
	m *flags.PromptMaker) (*replayServers, error) {
	s := &replayServers{flags: f, endpoint: endpoint, maker: m, arrivalSeed: m.Seed}
	o, err := f.Target.Options()
	if err != nil {
		return nil, err
	}
	s.cache = &result.CacheDiscipline{Asked: f.Servers.Cache, Done: result.CacheNothing}
	bases := f.Servers.Bases(f.Target.URLs)
	if from, _ := f.Target.KeyFrom(); from == flags.DefaultKeyEnv {
		cli.Oncef(cmd, "endpoint: the API key is from %s", from)
		if !slices.Equal(bases, f.Target.URLs) {
			o.APIKey = "" // nobody said that it is for other addresses
		}
	}
	if s.admin, err = client.NewAdmin(client.AdminOptions{URLs: bases, APIKey: o.APIKey, Header: o.Header, TLS: o.TLS,
		Proxy: o.Proxy}); err != nil {
		return nil, cli.Exit(cli.Usage, err)
	}
	// A key that nobody named is not for metrics, which may be read elsewhere and unencrypted.
	if from, _ := f.Target.KeyFrom(); o.APIKey != "" && from != flags.DefaultKeyEnv {
		o.Header.Set("Authorization", "Bearer "+o.APIKey)
	}
	var empty []string
	first := f.Load.Share.Index == 0 // the other shards leave the servers' caches and metrics to it
	if first {
		s.metering, empty, err = f.Servers.Metering(cmd.Context(), f.Target.URLs, o.Header)
	}
	if err != nil {
		return nil, err
	}
	for _, says := range empty {
		cli.Notef(cmd, "metrics: %s. --scrape names another page, --set scrape-metric a prefix to keep", says)
	}
	s.templates, err = s.calibrate(cmd, w)
	if e, ok := errors.AsType[*client.SetupError](err); ok && e.Other != "" && !f.Target.APIGiven() &&
		!f.Target.TokenIDs && (f.raw == nil || e.Other == result.APIChat) { // a text can be a message, and not the reverse
		cli.WarnOncef(cmd, "endpoint: it has no %s API, so requests go to %s (--api %s)", e.API, e.Other, e.Other)
		f.Target.API = e.Other
		endpoint.UseAPI(e.Other)
		s.templates, err = s.calibrate(cmd, w)
	}
	if err != nil {
		return nil, advised(err, &f.Target)
	}
	switch {
	case f.Servers.Cache == result.CacheSalted:
		err = s.salt(cmd)
	case f.Servers.Cache == result.CacheCold && first:
		s.cache, err = s.cold(cmd)
	}
	return s, err
}

// prompter makes prompts for them.
func (s *replayServers) prompter() (flags.RowPrompter, error) {
	return s.maker.ForAPIs(s.templates)
}

// templateOf is the template around the prompt of a row.
func (s *replayServers) templateOf(row *trace.Request) (before, after int32) {
	api := s.flags.Target.API
	if api == result.APIAuto {
		api = client.KindAPI(row.Kind)
	}
	t := s.templates[api]
	return int32(t.Before), int32(t.After)
}

// warmUp plays the workload once, for warm caches, and keeps nothing of it but how
// it went. Of a load by session known is told what was sent: trees that are played once more have
// prompts of their own, which it leaves cold.
func (s *replayServers) warmUp(cmd *cobra.Command, p *workloadPart, lineage *replay.Lineage,
	known func(*trace.Request) int32) error {
	if s.flags.Servers.Cache != result.CacheWarm {
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
	if r.Sessions != nil { // each once
		r.Sessions.MaxPlays, r.Sessions.Start, r.Sessions.Window = 1, nil, nil
		r.Known = func(_ int64, row *trace.Request) int32 { return known(row) }
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
	cli.Notef(cmd, "cache: warmed by %d requests; %d of them failed", run.Requests, failed)
	return nil
}

// discard takes results and keeps none.
type discard struct{}

func (discard) Write(rows []result.Result) (int, error) { return len(rows), nil }
