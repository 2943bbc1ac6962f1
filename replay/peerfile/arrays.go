package peerfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// arrays are what vLLM and SGLang keep of requests: an array for each quantity, with an
// element for each request. Times are in seconds.
type arrays struct {
	inputs, outputs, cached          []int32
	ttfts, latencies, starts, queued []float64
	itls                             [][]float64
	failed                           []bool
}

// A heading is what stands before the arrays.
type heading struct {
	Date           string          `json:"date"`
	Backend        string          `json:"backend"`
	Model          string          `json:"model_id"`
	Tokenizer      string          `json:"tokenizer_id"`
	Rate           json.RawMessage `json:"request_rate"` // a number, or inf
	MaxConcurrency int             `json:"max_concurrency"`
	Duration       float64         `json:"duration"`
}

// decodeArrays reads one document with arrays into a run.
func decodeArrays(d *json.Decoder, h *heading, detailed string) (run, error) {
	var a arrays
	into := map[string]any{
		"date": &h.Date, "backend": &h.Backend, "model_id": &h.Model, "tokenizer_id": &h.Tokenizer,
		"request_rate": &h.Rate, "max_concurrency": &h.MaxConcurrency, "duration": &h.Duration,
		"input_lens": &a.inputs, "output_lens": &a.outputs, "cached_tokens": &a.cached,
		"ttfts": &a.ttfts, "latencies": &a.latencies, "start_times": &a.starts, "queue_times": &a.queued,
	}
	err := members(d, func(key string) error {
		if v := into[key]; v != nil {
			return d.Decode(v)
		}
		switch key {
		case "itls":
			return elements(d, func(int) error {
				var gaps []float64
				err := d.Decode(&gaps)
				a.itls = append(a.itls, gaps)
				return err
			})
		case "errors":
			return elements(d, func(int) error {
				var says *string // may quote the prompt, so that only whether it says something is kept
				err := d.Decode(&says)
				a.failed = append(a.failed, says != nil && *says != "")
				return err
			})
		}
		return skip(d)
	})
	if err != nil {
		return run{}, err
	}
	if a.ttfts == nil {
		return run{}, errors.New("it has sums and no requests, so no figure can be computed again: run it with " +
			detailed)
	}
	return a.run(h)
}

// run makes rows of the arrays.
func (a *arrays) run(h *heading) (run, error) {
	n := len(a.ttfts)
	for name, length := range map[string]int{"input_lens": len(a.inputs), "output_lens": len(a.outputs),
		"itls": len(a.itls), "errors": len(a.failed)} {
		if length != n {
			return run{}, fmt.Errorf("%s has %d elements, and ttfts %d", name, length, n)
		}
	}
	r := run{rows: make([]result.Result, n)}
	r.Model, r.Tokenizer = h.Model, h.Tokenizer
	r.read.Instants, r.read.Due = len(a.starts) == n && n > 0, len(a.starts) == n && len(a.queued) == n && n > 0
	var rate float64
	open := json.Unmarshal(h.Rate, &rate) == nil && rate > 0 // else it is inf, or the trace's
	if !open && h.MaxConcurrency > 0 {
		r.Timing, r.Concurrency = result.ClosedLoop, h.MaxConcurrency
	} else {
		r.InFlightLimit = h.MaxConcurrency
	}
	var err error
	if !r.read.Instants {
		if r.read.DurationNS, err = nanoseconds(h.Duration, perSecond); err != nil {
			return run{}, err
		}
	}
	begin := 0.0
	if r.read.Instants {
		begin = a.starts[0] // of a clock that may be older than a run can be long
	}
	for i := range r.rows {
		if err := a.fill(&r.rows[i], i, begin, r.read.Due, strings.Contains(h.Backend, "embedding")); err != nil {
			return run{}, fmt.Errorf("request %d: %w", i+1, err)
		}
	}
	return r, nil
}

// fill takes the request of an index into its row. Times count from begin; with due, when it was queued is known.
func (a *arrays) fill(row *result.Result, i int, begin float64, due, embeddings bool) error {
	row.WantInput = a.inputs[i]
	if a.outputs[i] > 0 { // a request that failed has a 0 there, whatever it asked for
		row.WantOutput = trace.Ptr(a.outputs[i])
	}

	var sent, ttft, last, latency int64
	var err error
	for _, t := range []struct {
		into *int64
		of   []float64
		base float64
	}{{&sent, a.starts, begin}, {&ttft, a.ttfts, 0}, {&latency, a.latencies, 0}} {
		if i < len(t.of) && err == nil {
			*t.into, err = nanoseconds(t.of[i]-t.base, perSecond)
		}
	}
	row.DueNS, row.SentNS = sent, &sent
	if due && err == nil {
		var queued int64
		queued, err = nanoseconds(a.queued[i], perSecond)
		row.DueNS -= queued
	}
	last = ttft
	for _, gap := range a.itls[i] {
		var ns int64
		if err == nil {
			ns, err = nanoseconds(gap, perSecond)
		}
		row.GapsNS = append(row.GapsNS, ns)
		last += ns
	}
	if err != nil {
		return err
	}

	if a.failed[i] {
		row.Error, row.GapsNS = "other", nil
		return nil
	}
	row.Input = trace.Ptr(a.inputs[i])
	if i < len(a.cached) {
		row.Cached = trace.Ptr(a.cached[i])
	}
	row.DoneNS = at(sent, max(latency, last))
	if embeddings {
		row.API = result.APIEmbeddings
		return nil
	}
	row.Output = trace.Ptr(a.outputs[i])
	if ttft > 0 {
		row.FirstEventNS, row.FirstTokenNS, row.LastTokenNS = at(sent, ttft), at(sent, ttft), at(sent, last)
		row.Events = int32(len(row.GapsNS)) + 1
	} else {
		row.GapsNS = nil
	}
	return nil
}

// What files with arrays lack.
const (
	lacksClient = "whether the client was stalled or ran out of CPU"
	lacksDue    = "when requests were due: latencies from the schedule count from sent, and the send lag " +
		"is not known"
	lacksClasses = "why requests failed, but for a text that is not read"
	lacksStarts  = "when requests were sent: the duration is the tool's own, and there is nothing over time"
)

// lack lists what the arrays leave unsaid, and the rest.
func (r *run) lack(rest ...string) {
	if !r.read.Instants {
		r.read.Lacks = append(r.read.Lacks, lacksStarts)
	}
	if !r.read.Due {
		r.read.Lacks = append(r.read.Lacks, lacksDue)
	}
	r.read.Lacks = append(append(r.read.Lacks, rest...), lacksClient)
}

// decodeVLLM reads the JSON of vllm bench serve --save-result --save-detailed, that of its
// client in Rust, and our own of --format vllm. --append-result puts several into a file.
func decodeVLLM(d *json.Decoder) ([]run, error) {
	return decodeDocuments(d, "--save-detailed", func(r *run, h *heading) {
		r.read.Tool = "vLLM bench serve"
		r.API = result.APICompletions
		switch {
		case strings.HasSuffix(h.Backend, "-chat") && !strings.Contains(h.Backend, "embeddings"):
			r.API = result.APIChat
		case strings.HasSuffix(h.Backend, "-responses"):
			r.API = result.APIResponses
		case strings.Contains(h.Backend, "embedding"):
			r.API = result.APIEmbeddings
		}
		for _, layout := range []string{"20060102-150405", time.RFC3339} {
			if t, err := time.Parse(layout, h.Date); err == nil {
				r.Started = t.UTC().Format(time.RFC3339)
			}
		}
		for i := range r.rows {
			if r.rows[i].Output != nil {
				r.rows[i].OutputFrom = result.FromUsage
			}
		}
		r.lack("which events brought content: the first event and a last one without content count as token events",
			lacksClasses)
	})
}

// decodeSGLang reads the JSON lines of SGLang's bench_serving --output-details, which has a
// line for each run. It follows SGLang's source; no file of a live server was at hand.
func decodeSGLang(d *json.Decoder) ([]run, error) {
	return decodeDocuments(d, "--output-details", func(r *run, h *heading) {
		r.read.Tool = "SGLang bench_serving"
		r.API = result.APICompletions
		if strings.HasSuffix(h.Backend, "-chat") {
			r.API = result.APIChat
		}
		r.lack("how many tokens came: lengths are as asked for, unless the server counted", lacksClasses)
	})
}

// decodeDocuments reads documents one after the other.
func decodeDocuments(d *json.Decoder, detailed string, complete func(*run, *heading)) (runs []run, err error) {
	for d.More() {
		var h heading
		r, err := decodeArrays(d, &h, detailed)
		if err != nil {
			return nil, err
		}
		complete(&r, &h)
		runs = append(runs, r)
	}
	return runs, nil
}
