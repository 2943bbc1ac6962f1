package flags

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay"
	"reprise/replay/client"
	"reprise/replay/result"
	"reprise/replay/scrape"
)

// Servers says what a replay measures at its servers, and what it does to them
// beside sending requests.
type Servers struct {
	scrapes     []string
	page        string // of servers whose page of metrics is not given
	Answering   bool   // without --scrape, servers whose /metrics answers are scraped
	scrapeEvery time.Duration
	prefixes    []string
	prometheus  string
	queries     []string
	Cache       string
	Salt        string // salt, empty for one of the run's own
	ResetCall   string
	adminURLs   []string
	Note        string
}

// Register adds the flags.
func (f *Servers) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	caches, cachesRest := Sections(fl, CachesFlags)
	_, resultsRest := Sections(fl, ResultsFlags)
	caches.StringArrayVar(&f.scrapes, "scrape", nil,
		"scrape server metrics during the run: auto (/metrics of the endpoint, or TensorRT-LLM's "+
			"/prometheus/metrics), a `URL`, NAME=URL, unix:///path.sock[:/page], or none; repeatable")
	cachesRest.DurationVar(&f.scrapeEvery, "scrape-interval", time.Second, "")
	cachesRest.StringArrayVar(&f.prefixes, "scrape-metric", nil, "")
	cachesRest.StringVar(&f.prometheus, "prometheus", "", "")
	cachesRest.StringArrayVar(&f.queries, "prometheus-query", nil, "")
	caches.StringVar(&f.Cache, "cache", result.CacheSalted,
		"prefix caches before the run: salted (prompts that no earlier run sent), cold (emptied), warm (the workload "+
			"is played once, unmeasured) or as-is")
	cachesRest.StringVar(&f.Salt, "salt", "", "")
	cachesRest.StringVar(&f.ResetCall, "reset-cache", "", "")
	cachesRest.StringArrayVar(&f.adminURLs, "admin-url", nil, "")
	resultsRest.StringVar(&f.Note, "note", "", "`text` to keep in the results, such as commit=1a2b3c")
}

// maxSalt is the longest salt, in bytes: it is kept in every results file.
const maxSalt = 100

// Check refuses what cannot be meant.
func (f *Servers) Check() error {
	switch f.Cache {
	case "asis":
		f.Cache = result.CacheAsIs
	default:
		if !slices.Contains(result.Caches(), f.Cache) {
			return cli.Usagef("--cache: want one of %s", strings.Join(result.Caches(), ", "))
		}
	}
	switch {
	case f.Salt != "" && f.Cache != result.CacheSalted:
		return cli.Usagef("--set salt needs --cache salted")
	case len(f.Salt) > maxSalt:
		return cli.Usagef("--set salt: %d bytes at most", maxSalt)
	case f.ResetCall != "" && f.Cache != result.CacheCold:
		return cli.Usagef("--set reset-cache needs --cache cold")
	case f.ResetCall != "" && !strings.HasPrefix(f.ResetCall, "/"):
		return cli.Usagef("--set reset-cache: want a path such as /reset_prefix_cache")
	case len(f.queries) > 0 && f.prometheus == "":
		return cli.Usagef("--set prometheus-query needs a server: give --set prometheus=URL")
	case len(f.scrapes) > 1 && slices.Contains(f.scrapes, "none"):
		return cli.Usagef("--scrape none cannot be used with another --scrape")
	case len(f.Note) > MaxNote:
		return cli.Usagef("--note: %d bytes at most", MaxNote)
	}
	_, err := f.metering([]string{"http://127.0.0.1"}, nil)
	return err
}

// Bases are the bases for calls beside requests, and for --scrape auto.
func (f *Servers) Bases(endpoints []string) []string {
	if len(f.adminURLs) > 0 {
		return f.adminURLs
	}
	return endpoints
}

// metering makes what measures at the pages that --scrape names, and asks Prometheus.
func (f *Servers) metering(endpoints []string, header http.Header) (m replay.Metering, err error) {
	o := scrape.Options{Every: f.scrapeEvery}
	for _, p := range f.prefixes {
		if p = strings.TrimSuffix(p, "*"); p == "" {
			return m, cli.Usagef("--set scrape-metric: a prefix is empty, which would keep every metric of the page")
		}
		o.Prefixes = append(o.Prefixes, p)
	}
	servers := f.Bases(endpoints)
	own := map[string]bool{}
	for _, s := range append(append([]string{}, servers...), endpoints...) {
		own[Origin(s)] = true
	}
	for i, given := range f.scrapes {
		switch given {
		case "none":
			continue
		case "auto":
			for k, s := range servers {
				o.Targets = append(o.Targets, scraped("server-"+strconv.Itoa(k+1),
					client.PageBeside(s, cmp.Or(f.page, metricsPages[0])), own[Origin(s)], header))
			}
			continue
		}
		name, address, named := strings.Cut(given, "=")
		if !named || strings.ContainsAny(name, ":/") {
			name, address = "target-"+strconv.Itoa(i+1), given
		}
		o.Targets = append(o.Targets, scraped(name, address, own[Origin(address)], header))
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

// Metering makes what measures, of the endpoints whose bases are given. Without
// --scrape it may be the pages of the servers, when they answer with metrics to keep.
// header goes to pages at the address of a server or an endpoint, and to no other: it
// may hold the API key. Each page is asked once, and empty says of those that were asked
// for which have nothing to keep.
func (f *Servers) Metering(ctx context.Context, endpoints []string, header http.Header) (m replay.Metering,
	empty []string, err error) {
	asked, unasked := *f, f.Answering && len(f.scrapes) == 0 && f.prometheus == ""
	if unasked {
		asked.scrapes = []string{"auto"}
	}
	probe, err := asked.metering(endpoints, header)
	if err != nil || probe.Scraper == nil {
		return probe, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	samples := probe.Scraper.Once(ctx)
	probe.Scraper.Close()
	if len(samples) == 0 && slices.Contains(asked.scrapes, "auto") {
		other := asked
		other.page = metricsPages[1]
		second, err := other.metering(endpoints, header)
		if err != nil {
			return m, nil, err
		}
		more := second.Scraper.Once(ctx)
		second.Scraper.Close()
		if len(more) > 0 {
			asked, probe, samples = other, second, more
		}
	}
	if unasked && len(samples) == 0 {
		m, err = f.metering(endpoints, header)
		return m, nil, err
	}
	for _, t := range probe.Scraper.Stats().Targets {
		if says := t.Unkept(); says != "" && !unasked {
			empty = append(empty, fmt.Sprintf("the page of %s has %s", t.Target, says))
		} else if t.Scrapes == 0 && !unasked {
			empty = append(empty, fmt.Sprintf("the page of %s does not answer (%s)", t.Target,
				strings.Join(slices.Sorted(maps.Keys(t.Failures)), ", ")))
		}
	}
	m, err = asked.metering(endpoints, header) // a new one, which counts this run alone
	return m, empty, err
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
func (f *Servers) asked(prefixes []string) (*scrape.Prometheus, error) {
	o := scrape.PrometheusOptions{URL: f.prometheus, Step: f.scrapeEvery}
	for _, q := range f.queries {
		name, expr, ok := strings.Cut(q, "=")
		if !ok || !metricName.MatchString(name) || expr == "" {
			return nil, cli.Usagef("--set prometheus-query: want NAME=EXPR, such as " +
				"'vllm:num_requests_running=sum(vllm:num_requests_running{namespace=\"a\"})'")
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
		err = cli.Usagef("--set prometheus: %v", err)
	}
	return p, err
}

// Origin is the scheme and the host of a URL, or the socket that it names; of what is
// none it is empty.
func Origin(s string) string {
	if socket, _, err := client.SplitSocket(s); err == nil && socket != "" {
		return "unix://" + socket
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// metricsPages are where servers have their metrics. The second is that of trtllm-serve,
// whose /metrics are lines of JSON.
var metricsPages = [2]string{"/metrics", "/prometheus/metrics"}
