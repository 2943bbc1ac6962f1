package engine

import (
	"bytes"
	"fmt"
	"sort"
	"sync/atomic"
	"time"
)

// A histogram counts durations by upper bounds, in seconds, as Prometheus does.
type histogram struct {
	bounds []float64
	counts []atomic.Int64 // one more than bounds: those above
	sum    atomic.Int64   // nanoseconds
}

func newHistogram(bounds ...float64) *histogram {
	return &histogram{bounds: bounds, counts: make([]atomic.Int64, len(bounds)+1)}
}

func (h *histogram) observe(d time.Duration) {
	h.counts[sort.SearchFloat64s(h.bounds, d.Seconds())].Add(1)
	h.sum.Add(int64(d))
}

// write appends the histogram in Prometheus' text form.
func (h *histogram) write(b *bytes.Buffer, name, model string) {
	fmt.Fprintf(b, "# TYPE vllm:%s histogram\n", name)
	var n int64
	for i, bound := range h.bounds {
		n += h.counts[i].Load()
		fmt.Fprintf(b, "vllm:%s_bucket{model_name=%q,le=\"%g\"} %d\n", name, model, bound, n)
	}
	n += h.counts[len(h.bounds)].Load()
	fmt.Fprintf(b, "vllm:%s_bucket{model_name=%q,le=\"+Inf\"} %d\n", name, model, n)
	fmt.Fprintf(b, "vllm:%s_sum{model_name=%q} %g\n", name, model, time.Duration(h.sum.Load()).Seconds())
	fmt.Fprintf(b, "vllm:%s_count{model_name=%q} %d\n", name, model, n)
}

// latencyHistograms are what the server saw pass by the clock, of each request from its
// arrival: not what it had drawn or planned.
type latencyHistograms struct{ ttft, itl, e2e, queue *histogram }

// newDurations has the buckets of vLLM (vllm/v1/metrics/loggers.py).
func newDurations() latencyHistograms {
	request := []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	return latencyHistograms{
		ttft: newHistogram(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40,
			80, 160, 640, 2560),
		itl: newHistogram(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5,
			7.5, 10, 20, 40, 80),
		e2e: newHistogram(request...), queue: newHistogram(request...),
	}
}

func (d *latencyHistograms) write(b *bytes.Buffer, model string) {
	d.ttft.write(b, "time_to_first_token_seconds", model)
	d.itl.write(b, "inter_token_latency_seconds", model)
	d.e2e.write(b, "e2e_request_latency_seconds", model)
	d.queue.write(b, "request_queue_time_seconds", model)
}
