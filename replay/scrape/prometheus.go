package scrape

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Query is an expression for a Prometheus server. Its name becomes the metric
// of its values, and should be the name under which an engine would give them,
// such as vllm:num_requests_running; when it is empty, the metrics keep their own.
type Query struct{ Name, Expr string }

// DefaultQueries ask for all series of the families with a prefix, except the
// buckets of histograms. On a server that watches other deployments too, a
// query of one's own with a selector is the better one.
func DefaultQueries(prefixes []string) []Query {
	var out []Query
	for _, p := range prefixes {
		expr := "{__name__=~" + strconv.Quote(regexp.QuoteMeta(p)+".+") + `,__name__!~".+_(bucket|created)"}`
		out = append(out, Query{Expr: expr})
	}
	return out
}

// PrometheusOptions say what a [Prometheus] is asked.
type PrometheusOptions struct {
	Name      string // of the target in samples; empty means prometheus
	URL       string // base of the server, such as http://localhost:9090
	Queries   []Query
	Step      time.Duration // between two values; 0 means 1 s
	Timeout   time.Duration // of one answer; 0 means 30 s
	MaxSeries int           // 0 means defaultSeries
	Header    http.Header
	Transport http.RoundTripper // nil means one of its own
}

// A Prometheus reads samples from a Prometheus server, or another with its HTTP API,
// that has been watching the engines.
type Prometheus struct {
	opt   PrometheusOptions
	base  *url.URL
	table *table
	stats PrometheusStats
}

// PrometheusStats count the queries of a [Prometheus] and their failures.
type PrometheusStats struct {
	Target   string           `json:"target"`
	Step     time.Duration    `json:"step_ns"`
	Answers  int64            `json:"answers"` // each of a query over a part of the run
	Failed   int64            `json:"failed"`
	Failures map[string]int64 `json:"failures,omitempty"`
	Series   int              `json:"series"`
	Dropped  int64            `json:"dropped_samples"`
	Clock    *Clock           `json:"clock"` // null: it could not be told, and was taken to be the local one
}

// A Clock says how far a server's clock is ahead of the local one.
type Clock struct {
	Offset time.Duration `json:"offset_ns"`
	Within time.Duration `json:"within_ns"` // largest error: half of the time that the asking took
}

// NewPrometheus checks the options. It connects to nothing.
func NewPrometheus(o PrometheusOptions) (*Prometheus, error) {
	o.Name = cmp.Or(o.Name, "prometheus")
	o.Step = cmp.Or(o.Step, time.Second)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.MaxSeries = cmp.Or(o.MaxSeries, defaultSeries)
	if o.Transport == nil {
		o.Transport = newTransport()
	}
	u, err := parseURL(o.URL)
	switch {
	case err != nil:
		return nil, errors.New("scrape: the Prometheus server: want a URL like http://localhost:9090, " +
			"without a password")
	case len(o.Queries) == 0 || !validName(o.Name):
		return nil, errors.New("scrape: the Prometheus server needs a query and a name of letters and digits")
	case o.Step < time.Millisecond || o.Timeout < 0 || o.MaxSeries < 0:
		return nil, errors.New("scrape: the step is a millisecond at least, and no timeout or limit negative")
	}
	for _, q := range o.Queries {
		if q.Expr == "" {
			return nil, errors.New("scrape: a query is empty")
		}
	}
	p := &Prometheus{opt: o, base: u, table: newTable(o.MaxSeries)}
	p.stats = PrometheusStats{Target: o.Name, Step: o.Step}
	return p, nil
}

// pieceSteps is how many steps one answer covers: 250 values of 1,500 series are
// about 10 MB of JSON.
const pieceSteps = 250

// Collect asks for every query from the one instant to the other, both of the
// local clock, and hands on the values in pieces, each series in order of time.
// What fails is counted and left out. An error is one of emit, or the end of ctx.
//
// The value of a step is the newest that the server had scraped by then: as old
// as its own scrape interval at most.
func (p *Prometheus) Collect(ctx context.Context, from, to time.Time, emit func([]Sample) error) error {
	if body, begun, headers, err := p.ask(ctx, "/api/v1/query", url.Values{"query": {"time()"}}); err == nil {
		if at, err := decodeTime(body); err == nil {
			half := headers.Sub(begun) / 2 // the server read its clock between the two
			server := time.UnixMicro(int64(math.Round(at * 1e6)))
			p.stats.Clock = &Clock{Offset: server.Sub(begun.Add(half).Round(0)), Within: half}
		}
	}
	var offset time.Duration
	if c := p.stats.Clock; c != nil {
		offset = c.Offset
	}
	from, to = from.Round(0).Add(offset), to.Round(0).Add(offset) // in the server's clock
	for _, q := range p.opt.Queries {
		for at := from; !at.After(to); at = at.Add(pieceSteps * p.opt.Step) {
			end := at.Add((pieceSteps - 1) * p.opt.Step)
			if end.After(to) {
				end = to
			}
			samples, err := p.queryRange(ctx, q, at, end, offset)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				p.stats.Failed++
				if p.stats.Failures == nil {
					p.stats.Failures = map[string]int64{}
				}
				p.stats.Failures[classOf(err)]++
				break // the rest of this query would fail as well, or leave holes
			}
			p.stats.Answers++
			if err := emit(samples); err != nil {
				return err
			}
		}
	}
	return nil
}

// Stats returns the counts. They are complete when Collect has returned.
func (p *Prometheus) Stats() PrometheusStats {
	out := p.stats
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	out.Series, out.Dropped = p.table.ids, p.table.dropped
	return out
}

// queryRange asks one query over a part of the run.
func (p *Prometheus) queryRange(ctx context.Context, q Query, from, to time.Time,
	offset time.Duration) ([]Sample, error) {
	body, _, _, err := p.ask(ctx, "/api/v1/query_range", url.Values{
		"query": {q.Expr}, "start": {unix(from)}, "end": {unix(to)},
		"step": {strconv.FormatFloat(p.opt.Step.Seconds(), 'f', -1, 64)},
	})
	if err != nil {
		return nil, err
	}
	lines, err := decodeMatrix(body)
	if err != nil {
		return nil, err
	}
	var out []Sample
	for _, l := range lines {
		metric := q.Name
		metric = cmp.Or(metric, l.name)
		for _, v := range l.values {
			at := time.UnixMicro(int64(math.Round(v.at * 1e6))).Add(-offset)
			out = append(out, p.table.samples(p.opt.Name, at, []point{{metric, kindOf(metric), l.labels, v.value}})...)
		}
	}
	return out, nil
}

func (p *Prometheus) ask(ctx context.Context, path string, query url.Values) ([]byte, time.Time, time.Time, error) {
	u := *p.base
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/")+path, ""
	more := u.Query()
	maps.Copy(more, query)
	u.RawQuery = more.Encode()
	h := http.Header{"Accept": {"application/json"}, "User-Agent": {"reprise"}}
	for k, v := range p.opt.Header {
		h[http.CanonicalHeaderKey(k)] = v
	}
	return get(ctx, p.opt.Transport, &u, h, p.opt.Timeout)
}

// unix writes an instant as the API takes it, in seconds.
func unix(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMilli())/1e3, 'f', 3, 64)
}

// A line is a series of a query's answer.
type line struct {
	name   string
	labels []label
	values []instant
}

type instant struct{ at, value float64 }

// maxAt is the latest instant that is believed, in seconds: the year 2286.
const maxAt = 1e10

// decodeMatrix decodes the answer to query_range. It quotes nothing of it.
func decodeMatrix(body []byte) ([]line, error) {
	var doc struct {
		Status string `json:"status"`
		Data   struct {
			Type   string `json:"resultType"`
			Result []struct {
				Metric map[string]string    `json:"metric"`
				Values [][2]json.RawMessage `json:"values"`
			} `json:"result"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &doc) != nil || doc.Status != "success" || doc.Data.Type != "matrix" {
		return nil, &failure{FailDecode}
	}
	var out []line
	for _, r := range doc.Data.Result {
		l := line{name: clean(r.Metric["__name__"], maxLabel)}
		for k, v := range r.Metric {
			if k != "__name__" {
				l.labels = append(l.labels, label{k, v})
			}
		}
		for _, v := range r.Values {
			one, err := decodeInstant(v)
			if err != nil {
				return nil, err
			}
			l.values = append(l.values, one)
		}
		out = append(out, l)
	}
	return out, nil
}

// decodeInstant decodes [seconds, "value"].
func decodeInstant(v [2]json.RawMessage) (instant, error) {
	at, err := strconv.ParseFloat(string(bytes.TrimSpace(v[0])), 64)
	if err != nil || !(at >= 0 && at < maxAt) {
		return instant{}, &failure{FailDecode}
	}
	var text string
	if json.Unmarshal(v[1], &text) != nil {
		return instant{}, &failure{FailDecode}
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return instant{}, &failure{FailDecode}
	}
	return instant{at, value}, nil
}

// decodeTime decodes the answer to the query time(), a scalar.
func decodeTime(body []byte) (float64, error) {
	var doc struct {
		Status string `json:"status"`
		Data   struct {
			Type   string             `json:"resultType"`
			Result [2]json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &doc) != nil || doc.Status != "success" || doc.Data.Type != "scalar" {
		return 0, &failure{FailDecode}
	}
	one, err := decodeInstant(doc.Data.Result)
	if err != nil || !(one.value >= 0 && one.value < maxAt) {
		return 0, &failure{FailDecode}
	}
	return one.value, nil
}
