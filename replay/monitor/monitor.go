// Package monitor serves the figures of a running client to Prometheus.
//
//  1. [New] makes the metrics. [Monitor.Begin] begins a run, and its Observe and Progress
//     are given to the runner: Observe takes each result when its request is over, and
//     Progress the counts of each second, which the view on a terminal has too.
//  2. [Monitor.Listen] serves them at /metrics, in Prometheus' text format and in
//     OpenMetrics.
//
// Nothing of it runs where requests are sent. The goroutine that collects results adds
// to the histograms, which takes no lock, and a scrape reads them beside it. Memory does
// not grow with the run: the only label with values from outside is the class of an error,
// from a closed list.
//
// # Files
//
//   - monitor.go: the metrics, and what feeds them
//   - serve.go: the listener, and errors of ports in words
//
// Exported names may change in any release.
package monitor

import (
	"runtime"
	"runtime/metrics"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"reprise/replay"
	"reprise/replay/host"
	"reprise/replay/result"
)

// A Monitor is the metrics of a process. Several runs, one after the other, may feed it:
// counters go on, gauges are those of the last run.
type Monitor struct {
	registry *prometheus.Registry

	sent, due, succeeded, cancelled, leftOut prometheus.Counter
	failed                                   *prometheus.CounterVec
	lag, ttft, itl, e2e                      prometheus.Histogram
	prompt, cached, output                   prometheus.Counter
	stalled                                  prometheus.Counter

	planned, inFlight, over, position atomic.Int64 // the last in nanoseconds
}

// Bounds of the histograms, in seconds. Those of latencies hold the limits that people
// set, and reach from an embedding to a long answer.
var (
	lagBounds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}
	ttftBound = []float64{.005, .01, .02, .035, .05, .075, .1, .15, .2, .3, .5, .75, 1, 1.5, 2, 3, 5, 7.5,
		10, 20, 40, 80, 160}
	itlBounds = []float64{.001, .0025, .005, .0075, .01, .015, .02, .025, .03, .04, .05, .075, .1, .15, .2,
		.3, .5, 1, 2.5, 5}
	e2eBounds = []float64{.05, .1, .2, .3, .5, .75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 45, 60, 120, 300, 600, 1800}
)

// New makes the metrics, all at zero. version is that of the client.
func New(version string) *Monitor {
	m := &Monitor{registry: prometheus.NewRegistry()}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, bounds []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds})
		m.registry.MustRegister(h)
		return h
	}
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	m.due = counter("reprise_requests_due_total", "Requests that were due by the schedule.")
	m.sent = counter("reprise_requests_sent_total", "Requests that were sent.")
	m.succeeded = counter("reprise_requests_succeeded_total", "Requests that were answered whole.")
	m.cancelled = counter("reprise_requests_cancelled_total", "Requests that were cut off on purpose, as in the trace.")
	m.leftOut = counter("reprise_requests_left_out_total",
		"Rows of the workload that are not sent: failed in the source, after a turn that failed, or due after the end.")
	m.failed = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "reprise_requests_failed_total",
		Help: "Requests that failed, by class of error."}, []string{"class"})
	m.registry.MustRegister(m.failed)
	m.lag = histogram("reprise_send_lag_seconds", "From when a request was due to when it was sent.", lagBounds)
	m.ttft = histogram("reprise_time_to_first_token_seconds",
		"From when a request was sent to its first token, of successful requests.", ttftBound)
	m.itl = histogram("reprise_inter_token_latency_seconds",
		"Gaps between token events, of successful requests.", itlBounds)
	m.e2e = histogram("reprise_e2e_request_latency_seconds",
		"From when a request was sent to its end, of successful requests.", e2eBounds)
	m.prompt = counter("reprise_prompt_tokens_total",
		"Prompt tokens of successful requests, as the server counted them.")
	m.cached = counter("reprise_cached_tokens_total", "Prompt tokens that the server took from its prefix cache.")
	m.output = counter("reprise_output_tokens_total", "Output tokens of successful requests.")
	m.stalled = counter("reprise_client_stalled_seconds_total", "Time in which the client was stalled.")
	gauge("reprise_requests_planned", "Requests of the run, as far as known; 0 where it has no end.",
		func() float64 { return float64(m.planned.Load()) })
	gauge("reprise_requests_in_flight", "Requests that were sent and are not over.",
		func() float64 { return float64(m.inFlight.Load()) })
	gauge("reprise_schedule_position_seconds", "Time since the start of the run, by which requests are due.",
		func() float64 { return float64(m.position.Load()) / 1e9 })
	gauge("reprise_schedule_progress_ratio",
		"Requests of the run that are over, as a share of the planned requests; 0 where it has no end.",
		func() float64 {
			planned := m.planned.Load()
			if planned == 0 {
				return 0
			}
			return float64(m.over.Load()) / float64(planned)
		})
	gauge("reprise_client_cores", "Processors that the client may use.",
		func() float64 { return float64(runtime.GOMAXPROCS(0)) })
	m.registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "reprise_client_cpu_seconds_total",
			Help: "Processor time of the client."}, func() float64 {
			return host.CPUTime().Seconds()
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "reprise_client_gc_cycles_total",
			Help: "Garbage collections of the client."}, func() float64 {
			return runtimeCount("/gc/cycles/total:gc-cycles")
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "reprise_client_memory_bytes",
			Help: "Memory that the client's runtime holds."}, func() float64 {
			return runtimeCount("/memory/classes/total:bytes")
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "reprise_build_info",
			Help: "1, with the version of the client.", ConstLabels: prometheus.Labels{"version": version,
				"go": runtime.Version()}}, func() float64 {
			return 1
		}))
	return m
}

// runtimeCount is a figure of the Go runtime, read without stopping it.
func runtimeCount(name string) float64 {
	s := []metrics.Sample{{Name: name}}
	if metrics.Read(s); s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return float64(s[0].Value.Uint64())
}

// A Run feeds a Monitor. Its methods are called by one goroutine, that which collects
// the results.
type Run struct {
	m    *Monitor
	last replay.Progress
	rows int64
}

// Begin begins a run of so many requests; 0 is not known.
func (m *Monitor) Begin(requests int64) *Run {
	m.planned.Store(requests)
	for _, last := range []*atomic.Int64{&m.inFlight, &m.over, &m.position} {
		last.Store(0)
	}
	return &Run{m: m, rows: requests}
}

// Observe takes a request that is over.
func (r *Run) Observe(x *result.Result) {
	m := r.m
	if x.SentNS != nil {
		m.lag.Observe(float64(*x.SentNS-x.DueNS) / 1e9)
	}
	switch {
	case x.Failed():
		m.failed.WithLabelValues(x.Error).Inc()
		return
	case x.Error != "":
		m.cancelled.Inc()
		return
	}
	m.succeeded.Inc()
	if x.SentNS == nil {
		return
	}
	if x.FirstTokenNS != nil {
		m.ttft.Observe(float64(*x.FirstTokenNS-*x.SentNS) / 1e9)
	}
	if x.DoneNS != nil {
		m.e2e.Observe(float64(*x.DoneNS-*x.SentNS) / 1e9)
	}
	for _, gap := range x.Gaps {
		m.itl.Observe(float64(gap) / 1e9)
	}
	for _, tokens := range []struct {
		n  *int32
		to prometheus.Counter
	}{{x.Input, m.prompt}, {x.Cached, m.cached}, {x.Output, m.output}} {
		if tokens.n != nil && *tokens.n > 0 {
			tokens.to.Add(float64(*tokens.n))
		}
	}
}

// Progress takes the counts of the run so far.
func (r *Run) Progress(p replay.Progress) {
	m := r.m
	for _, c := range []struct {
		to      prometheus.Counter
		is, was int64
	}{{m.sent, p.Sent, r.last.Sent}, {m.due, p.Due, r.last.Due}, {m.leftOut, p.LeftOut, r.last.LeftOut}} {
		c.to.Add(float64(max(c.is-c.was, 0)))
	}
	m.stalled.Add(max(p.Stalled-r.last.Stalled, 0).Seconds())
	m.inFlight.Store(int64(p.InFlight))
	m.over.Store(p.Done)
	m.position.Store(int64(p.Elapsed))
	m.planned.Store(max(r.rows-p.LeftOut, 0))
	due := max(p.Due, r.last.Due)
	r.last = p
	r.last.Due = due // a request that is due and not yet sent counts once
}
