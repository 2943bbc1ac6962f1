package scrape

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"reprise/trace/crash"
)

// A Target is a page of Prometheus text.
type Target struct {
	Name   string      // stands for it in samples, where its address must not; short, of letters, digits and -_.
	URL    string      // of the page; without a path, of its /metrics
	Socket string      // path of the Unix socket to ask, whatever host the URL names; empty is none
	Header http.Header // to send with each request; may be nil
}

// Options say what a [Scraper] measures.
type Options struct {
	Targets   []Target
	Every     time.Duration     // from one scrape to the next; 0 means 1 s
	Timeout   time.Duration     // of one; 0 means 5 s
	Prefixes  []string          // of the families to keep; nil means DefaultPrefixes
	MaxSeries int               // that are followed, of all targets together; 0 means 10,000
	Transport http.RoundTripper // of targets without a socket; nil means one of its own
}

// defaultSeries is how many series are followed unless [Options] say otherwise.
const defaultSeries = 10_000

// A Scraper asks its targets for their metrics. Its methods may be called by
// several goroutines.
type Scraper struct {
	opt     Options
	targets []*target
	table   *table
}

type target struct {
	name   string
	url    *url.URL
	header http.Header
	via    http.RoundTripper

	mu    sync.Mutex
	stats TargetStats
}

// TargetStats say how the scraping of a target went.
type TargetStats struct {
	Target   string           `json:"target"`
	Scrapes  int64            `json:"scrapes"`            // that gave a page
	Failed   int64            `json:"failed"`             // that did not
	Failures map[string]int64 `json:"failures,omitempty"` // by class, see [FailConnect]
	Skipped  int64            `json:"skipped"`            // instants at which the one before was still under way
	// longest from a request to its headers: twice the largest error of an instant
	Widest time.Duration `json:"widest_ns"`
	Empty  int64         `json:"empty,omitempty"`  // scrapes of a page without a metric that is kept
	Others []string      `json:"others,omitempty"` // some of the names that such a page has
}

// Unkept says what a target's page has instead, when none of its scrapes found a metric
// that is kept; "" when one did, or when none gave a page.
func (t *TargetStats) Unkept() string {
	switch {
	case t.Scrapes == 0 || t.Empty < t.Scrapes:
		return ""
	case len(t.Others) == 0:
		return "no metrics in Prometheus' text form"
	}
	return "no metric that is kept, but others such as " + strings.Join(t.Others, ", ")
}

// Stats are those of all targets.
type Stats struct {
	Targets []TargetStats `json:"targets"`
	Series  int           `json:"series"`          // followed
	Dropped int64         `json:"dropped_samples"` // of series beyond the limit
	Limit   int           `json:"max_series"`
}

// New checks the options and makes a Scraper. It connects to nothing.
func New(o Options) (*Scraper, error) {
	o.Every = cmp.Or(o.Every, time.Second)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	if o.Prefixes == nil {
		o.Prefixes = DefaultPrefixes()
	}
	o.MaxSeries = cmp.Or(o.MaxSeries, defaultSeries)
	if o.Transport == nil {
		o.Transport = newTransport()
	}
	switch {
	case len(o.Targets) == 0:
		return nil, errors.New("scrape: there is no target")
	case o.Every < 10*time.Millisecond || o.Timeout < 0 || o.MaxSeries < 0:
		return nil, errors.New("scrape: the interval is 10 ms at least, and neither the timeout nor the number of " +
			"series negative")
	}
	s := &Scraper{opt: o, table: newTable(o.MaxSeries)}
	names := map[string]bool{}
	for i, t := range o.Targets {
		u, err := parseURL(t.URL)
		if err != nil {
			return nil, fmt.Errorf("scrape: target %d: %w", i+1, err)
		}
		if u.Path == "" || u.Path == "/" {
			u.Path = "/metrics"
		}
		if !validName(t.Name) || names[t.Name] {
			return nil, fmt.Errorf("scrape: target %d: its name must be its own, at most 64 letters, digits, "+
				"-, _ and dots", i+1)
		}
		names[t.Name] = true
		h := http.Header{"Accept": {"text/plain;version=0.0.4"}, "User-Agent": {"reprise"}}
		for k, v := range t.Header {
			h[http.CanonicalHeaderKey(k)] = v
		}
		via := o.Transport
		if t.Socket != "" {
			socket, dialer := newTransport(), net.Dialer{Timeout: 5 * time.Second}
			socket.Proxy = nil
			socket.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "unix", t.Socket)
			}
			via = socket
		}
		s.targets = append(s.targets, &target{name: t.Name, url: u, header: h, via: via,
			stats: TargetStats{Target: t.Name}})
	}
	return s, nil
}

func validName(s string) bool {
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(c rune) bool {
		return c != '-' && c != '_' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}) < 0
}

// Every is the interval.
func (s *Scraper) Every() time.Duration { return s.opt.Every }

// Once scrapes all targets, at the same time, with the buckets of histograms: for
// the beginning and the end of a run, between which their difference counts. It
// returns when all have answered or failed.
func (s *Scraper) Once(ctx context.Context) []Sample {
	each := make([][]Sample, len(s.targets))
	var wait sync.WaitGroup
	for i, t := range s.targets {
		wait.Go(func() {
			defer crash.Caught()
			each[i] = s.scrape(ctx, t, true)
		})
	}
	wait.Wait()
	var out []Sample
	for _, samples := range each {
		out = append(out, samples...)
	}
	return out
}

// Run scrapes every interval, counted from start, until ctx ends; when start is some
// intervals ago, at once and then at those to come. Each target
// has its own goroutine; emit is called by one at a time, with the samples of one
// answer, in order of time for each target. An error of emit ends the scraping.
func (s *Scraper) Run(ctx context.Context, start time.Time, emit func([]Sample) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, t := range s.targets {
		wait.Go(func() {
			defer crash.Caught()
			s.follow(ctx, t, start, func(samples []Sample) {
				mu.Lock()
				defer mu.Unlock()
				if ctx.Err() == nil {
					if err := emit(samples); err != nil {
						stop(&emitError{err})
					}
				}
			})
		})
	}
	wait.Wait()
	var failed *emitError
	if errors.As(context.Cause(ctx), &failed) {
		return failed.err
	}
	return nil
}

type emitError struct{ err error }

func (e *emitError) Error() string { return e.err.Error() }

// follow scrapes a target at start and every interval after. Instants that have
// passed are skipped, so that a slow target is not asked in a burst.
func (s *Scraper) follow(ctx context.Context, t *target, start time.Time, emit func([]Sample)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for tick := max(int64(time.Since(start)/s.opt.Every), 0); ; {
		timer.Reset(time.Until(start.Add(time.Duration(tick) * s.opt.Every)))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if samples := s.scrape(ctx, t, false); len(samples) > 0 {
			emit(samples)
		}
		next := max(tick+1, int64((time.Since(start)+s.opt.Every-1)/s.opt.Every))
		t.mu.Lock()
		t.stats.Skipped += next - tick - 1
		t.mu.Unlock()
		tick = next
	}
}

// scrape asks a target once. A scrape that the end of the run cut off counts as
// nothing.
func (s *Scraper) scrape(ctx context.Context, t *target, buckets bool) []Sample {
	body, begun, headers, err := get(ctx, t.via, t.url, t.header, s.opt.Timeout)
	var points []point
	if err == nil {
		if points, err = decodeText(body, s.opt.Prefixes, buckets); err != nil {
			err = &failure{FailDecode}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil && ctx.Err() != nil:
		return nil
	case err != nil:
		t.stats.Failed++
		if t.stats.Failures == nil {
			t.stats.Failures = map[string]int64{}
		}
		t.stats.Failures[classOf(err)]++
		return nil
	}
	t.stats.Scrapes++
	if len(points) == 0 {
		t.stats.Empty++
		t.stats.Others = otherNames(body)
	}
	width := headers.Sub(begun)
	t.stats.Widest = max(t.stats.Widest, width)
	return s.table.samples(t.name, begun.Add(width/2), points)
}

// Stats returns the counts so far.
func (s *Scraper) Stats() Stats {
	s.table.mu.Lock()
	out := Stats{Series: s.table.ids, Dropped: s.table.dropped, Limit: s.opt.MaxSeries}
	s.table.mu.Unlock()
	for _, t := range s.targets {
		t.mu.Lock()
		one := t.stats
		one.Failures = nil
		for class, n := range t.stats.Failures {
			if one.Failures == nil {
				one.Failures = map[string]int64{}
			}
			one.Failures[class] = n
		}
		t.mu.Unlock()
		out.Targets = append(out.Targets, one)
	}
	return out
}

// Close drops the idle connections.
func (s *Scraper) Close() {
	for _, t := range s.targets {
		if via, ok := t.via.(interface{ CloseIdleConnections() }); ok {
			via.CloseIdleConnections()
		}
	}
}
