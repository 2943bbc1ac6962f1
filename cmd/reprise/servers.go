package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
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
	"reprise/replay/scrape"
	"reprise/trace"
)

// serverFlags say what a replay measures at its servers, and what it does to them
// beside sending requests.
type serverFlags struct {
	scrapes     []string
	answering   bool // without --scrape, servers whose /metrics answers are scraped
	scrapeEvery time.Duration
	prefixes    []string
	prometheus  string
	queries     []string
	cache       string
	resetCall   string
	adminURLs   []string
	profile     bool
	note        string
}

func (f *serverFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.scrapes, "scrape", nil, "`URL` of a Prometheus text page to measure at during the run (or unix:///path.sock[:/page]), or NAME=URL, or auto for the endpoint's /metrics, or none; may be repeated")
	fl.DurationVar(&f.scrapeEvery, "scrape-interval", time.Second, "from one scrape to the next, and the step of --prometheus")
	fl.StringArrayVar(&f.prefixes, "scrape-metric", nil, "`prefix` of the metrics to keep, in place of vllm:, sglang:, llamacpp: and DCGM_FI_; may be repeated")
	fl.StringVar(&f.prometheus, "prometheus", "", "base `URL` of a Prometheus server to ask after the run")
	fl.StringArrayVar(&f.queries, "prometheus-query", nil, "`NAME=EXPR` to ask it, in place of all series with the prefixes; may be repeated")
	fl.StringVar(&f.cache, "cache", result.CacheAsIs, "what the servers' prefix caches hold before the run: as-is, cold (nothing of earlier runs) or warm (all of the workload, which is played once before)")
	fl.StringVar(&f.resetCall, "reset-cache", "", "`path` that empties a server's cache by POST, for --cache cold; empty tries those of vLLM and SGLang")
	fl.StringArrayVar(&f.adminURLs, "admin-url", nil, "base `URL` of a server for calls beside requests, where --url is a balancer; may be repeated")
	fl.BoolVar(&f.profile, "profile-server", false, "start and stop the servers' profilers around what is measured")
	fl.StringVar(&f.note, "note", "", "`text` to keep in the results")
}

// check refuses what cannot be meant.
func (f *serverFlags) check() error {
	switch f.cache {
	case result.CacheAsIs, result.CacheCold, result.CacheWarm:
	case "asis":
		f.cache = result.CacheAsIs
	default:
		return cli.Usagef("--cache: want %s, %s or %s", result.CacheAsIs, result.CacheCold, result.CacheWarm)
	}
	switch {
	case f.resetCall != "" && f.cache != result.CacheCold:
		return cli.Usagef("--reset-cache says how --cache cold empties the caches, and is nothing without it")
	case f.resetCall != "" && !strings.HasPrefix(f.resetCall, "/"):
		return cli.Usagef("--reset-cache: want a path such as /reset_prefix_cache")
	case len(f.queries) > 0 && f.prometheus == "":
		return cli.Usagef("--prometheus-query needs the server to ask: --prometheus URL")
	case len(f.scrapes) > 1 && slices.Contains(f.scrapes, "none"):
		return cli.Usagef("--scrape none is without any other --scrape")
	case len(f.note) > flags.MaxNote:
		return cli.Usagef("--note: %d bytes at most", flags.MaxNote)
	}
	_, err := f.metering([]string{"http://127.0.0.1"}, nil)
	return err
}

// servers are the bases for calls beside requests, and for --scrape auto.
func (f *serverFlags) servers(endpoints []string) []string {
	if len(f.adminURLs) > 0 {
		return f.adminURLs
	}
	return endpoints
}

// metering makes what measures, of the endpoints whose bases are given. header
// goes to pages at the address of a server or an endpoint, and to no other: it
// may hold the API key.
func (f *serverFlags) metering(endpoints []string, header http.Header) (m replay.Metering, err error) {
	o := scrape.Options{Every: f.scrapeEvery}
	for _, p := range f.prefixes {
		if p = strings.TrimSuffix(p, "*"); p == "" {
			return m, cli.Usagef("--scrape-metric: a prefix is empty, which would keep every metric of the page")
		}
		o.Prefixes = append(o.Prefixes, p)
	}
	servers := f.servers(endpoints)
	own := map[string]bool{}
	for _, s := range append(append([]string{}, servers...), endpoints...) {
		own[origin(s)] = true
	}
	for i, given := range f.scrapes {
		switch given {
		case "none":
			continue
		case "auto":
			for k, s := range servers {
				o.Targets = append(o.Targets, scraped("server-"+strconv.Itoa(k+1), metricsOf(s), own[origin(s)], header))
			}
			continue
		}
		name, address, named := strings.Cut(given, "=")
		if !named || strings.ContainsAny(name, ":/") {
			name, address = "target-"+strconv.Itoa(i+1), given
		}
		o.Targets = append(o.Targets, scraped(name, address, own[origin(address)], header))
	}
	if len(o.Targets) > 0 {
		if m.Scraper, err = scrape.New(o); err != nil {
			return m, cli.Usagef("--scrape: %v", err)
		}
	}
	if f.prometheus != "" {
		m.Prometheus, err = f.asked(o.Prefixes)
	}
	return m, err
}

// probeTime is how long a page of metrics that nobody asked for may take to answer.
const probeTime = 2 * time.Second

// meteringOf makes what measures. Without --scrape it may be the pages of the servers,
// when they answer with metrics to keep.
func (f *replayFlags) meteringOf(ctx context.Context, header http.Header) (replay.Metering, error) {
	asked := f.serverFlags
	if !f.answering || len(f.scrapes) > 0 || f.prometheus != "" {
		return asked.metering(f.URLs, header)
	}
	asked.scrapes = []string{"auto"}
	probe, err := asked.metering(f.URLs, header)
	if err != nil {
		return probe, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	samples := probe.Scraper.Once(ctx)
	probe.Scraper.Close()
	if len(samples) == 0 {
		return f.metering(f.URLs, header)
	}
	return asked.metering(f.URLs, header) // a new one, whose counts are of the run alone
}

// scraped is what to scrape at an address. The header goes along only to an own one.
func scraped(name, address string, own bool, header http.Header) scrape.Target {
	t := scrape.Target{Name: name, URL: address}
	if socket, path, err := client.SplitSocket(address); err == nil && socket != "" {
		t.URL, t.Socket = "http://localhost"+path, socket
	}
	if own {
		t.Header = header
	}
	return t
}

var metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)

// asked makes what asks a Prometheus server.
func (f *serverFlags) asked(prefixes []string) (*scrape.Prometheus, error) {
	o := scrape.PrometheusOptions{URL: f.prometheus, Step: f.scrapeEvery}
	for _, q := range f.queries {
		name, expr, ok := strings.Cut(q, "=")
		if !ok || !metricName.MatchString(name) || expr == "" {
			return nil, cli.Usagef("--prometheus-query: want NAME=EXPR, such as 'vllm:num_requests_running=sum(vllm:num_requests_running{namespace=\"a\"})'")
		}
		o.Queries = append(o.Queries, scrape.Query{Name: name, Expr: expr})
	}
	if len(o.Queries) == 0 {
		if prefixes == nil {
			prefixes = scrape.DefaultPrefixes()
		}
		o.Queries = scrape.DefaultQueries(prefixes)
	}
	p, err := scrape.NewPrometheus(o)
	if err != nil {
		err = cli.Usagef("--prometheus: %v", err)
	}
	return p, err
}

// origin is the scheme and the host of a URL, or the socket that it names; of what is
// none it is empty.
func origin(s string) string {
	if socket, _, err := client.SplitSocket(s); err == nil && socket != "" {
		return "unix://" + socket
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// metricsOf is the page beside an API.
func metricsOf(base string) string {
	if socket, path, err := client.SplitSocket(base); err == nil && socket != "" {
		return "unix://" + socket + ":" + strings.TrimSuffix(strings.TrimRight(path, "/"), "/v1") + "/metrics"
	}
	u, err := url.Parse(base)
	if err != nil {
		return base // refused, without being quoted, by who takes it
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1") + "/metrics"
	return u.String()
}

// cold empties the caches, or, when a server has no call for that, gives the
// prompts a seed that no run had, so that nothing in a cache matches them. Which
// of the two it was, it notes and says.
func (f *serverFlags) cold(cmd *cobra.Command, admin *client.Admin, m *flags.PromptMaker, prompts *flags.Prompts) (*result.CacheDiscipline, error) {
	about := &result.CacheDiscipline{Asked: f.cache, Done: result.CacheReset, Servers: admin.Servers()}
	var err error
	about.Call, err = admin.ResetCache(cmd.Context(), f.resetCall)
	switch {
	case err == nil:
		cli.Notef(cmd, "cache: emptied by POST %s at %s", about.Call, counted(admin.Servers(), "server"))
		return about, nil
	case !errors.Is(err, client.ErrNoCall):
		return nil, fmt.Errorf("--cache cold: %w", err)
	case f.resetCall != "":
		return nil, fmt.Errorf("--reset-cache: %w", err)
	}
	about = &result.CacheDiscipline{Asked: f.cache, Done: result.CacheNewSeed, ArrivalSeed: strconv.FormatUint(m.Seed, 10)}
	seed, other := prompts.Reseeded()
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

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// A replayServers is the endpoint of a replay with the servers behind it, made
// ready for what the flags ask for.
type replayServers struct {
	flags       *replayFlags
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
func (f *replayFlags) openServers(cmd *cobra.Command, w *trace.Trace, endpoint *client.HTTP, m *flags.PromptMaker) (*replayServers, error) {
	s := &replayServers{flags: f, endpoint: endpoint, maker: m, arrivalSeed: m.Seed}
	o, err := f.Options()
	if err != nil {
		return nil, err
	}
	s.cache = &result.CacheDiscipline{Asked: f.cache, Done: result.CacheNothing}
	if f.resume {
		if s.cache, err = f.resumedCache(m); err != nil {
			return nil, err
		}
	}
	if s.admin, err = client.NewAdmin(client.AdminOptions{URLs: f.servers(f.URLs), APIKey: o.APIKey, Header: o.Header, TLS: o.TLS, Proxy: o.Proxy}); err != nil {
		return nil, cli.Exit(cli.Usage, err)
	}
	if o.APIKey != "" {
		o.Header.Set("Authorization", "Bearer "+o.APIKey)
	}
	if s.metering, err = f.meteringOf(cmd.Context(), o.Header); err != nil {
		return nil, err
	}
	if s.overheads, err = f.calibrate(cmd, w, endpoint, m); err != nil {
		return nil, err
	}
	if f.cache == result.CacheCold && !f.resume {
		s.cache, err = f.cold(cmd, s.admin, m, &f.prompts)
	}
	return s, err
}

// prompter makes prompts for them.
func (s *replayServers) prompter() (flags.RowPrompter, error) { return s.maker.ForAPIs(s.overheads) }

// describe notes where the run is measured, what the servers say of themselves, and
// what is done to them.
func (s *replayServers) describe(ctx context.Context, about *result.Run) (err error) {
	about.Cache = s.cache
	about.Environment = s.admin.CaptureEnvironment(ctx, about.Model)
	about.ServerVersion, about.MaxModelLen = client.About(about.Environment.Servers, about.Model)
	about.Environment.Deployment, err = s.flags.Serving()
	return err
}

// attach makes a run measure and profile.
func (s *replayServers) attach(o *replay.Options) {
	o.Metering = s.metering
	if s.flags.profile {
		o.Profile = s.admin
	}
}

// warmUp plays the workload once, for warm caches, and keeps nothing of it but how
// it went.
func (s *replayServers) warmUp(cmd *cobra.Command, p *workloadPart, lineage *replay.Lineage) error {
	if s.flags.cache != result.CacheWarm || s.flags.resume {
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
	if r.Options, err = s.flags.Schedule(lineage, s.arrivalSeed); err != nil {
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

// checkConnections refuses uses of connections that only our own HTTP/1.1 client
// has: HTTP/2 has one connection for all, or one for each request.
func (f *replayFlags) checkConnections() error {
	if f.HTTP2 && f.Connections != client.PerRequest && f.Connections != client.Pooled {
		return cli.Usagef("--http2 has --connections %s and %s alone", client.PerRequest, client.Pooled)
	}
	return nil
}

// checkExtras refuses what would read the file of --row-extra more than once.
func (f *replayFlags) checkExtras() error {
	switch {
	case f.RowExtra == "":
	case f.loop != "", f.cache == result.CacheWarm:
		return cli.Usagef("--row-extra is read once: it cannot be had with --loop or --cache warm")
	}
	return nil
}
