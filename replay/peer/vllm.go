package peer

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// VLLMOptions are what `vllm bench serve` is told beside the run itself, for
// the JSON of its --save-result. The zero value stands for its defaults.
type VLLMOptions struct {
	Backend string // "" goes by the API: openai-chat, openai-embeddings, else openai
	Label   string // "" is null
	Model   string // model_id; "" is the run's

	RequestRate    float64 // requests per second; 0 is "inf"
	Process        string  // stands in place of RequestRate where arrivals have no one rate; "" has
	Burstiness     float64 // shape of the gamma distribution of gaps; 0 is 1, +Inf is "inf"
	MaxConcurrency int     // 0 takes the run's limit or closed loop, and is null without either
	RampUp         *RampUp

	Metadata    []Pair     // inlined after the header, in their order
	Metrics     []string   // with statistics; none is ttft, tpot and itl
	Percentiles []float64  // of them, 0 to 100; none is 99
	Goodput     report.SLO // without ITL
	Detailed    bool       // the arrays with an element for each request
	Exact       int        // as in [Options]
}

// RampUp is a rate that grows over the requests of a run.
type RampUp struct {
	Strategy   string // linear or exponential
	Start, End float64
}

// A Pair is a key and its value.
type Pair struct{ Key, Value string }

// WriteVLLM writes the JSON document of `vllm bench serve --save-result`, key
// for key, on one line without an end, as vLLM does. Statistics are always
// filled, with 0 where there is no value.
//
// It reads the results as often as it needs: once for the statistics, once for
// each 4 million beginnings and ends of requests, since the peak of concurrency
// takes them in order, and once for each array with Detailed. Memory does not
// grow with the run. Generated text is not kept, so that generated_texts holds
// empty strings; errors are classes of errors. Requests that were cancelled on
// purpose, which vLLM has not, are left out.
func WriteVLLM(w io.Writer, run result.Run, reread report.Reread, o VLLMOptions) error {
	o, err := o.complete(run)
	if err != nil {
		return err
	}
	opts := report.Options{SLO: o.Goodput, Exact: o.Exact}
	if err := opts.Check(); err != nil {
		return err
	}
	pass := newPeerPass(&vllmPreset, run, opts)
	if err := pass.read(reread); err != nil {
		return err
	}
	out := &object{w: bufio.NewWriterSize(w, 1<<16)}
	out.header(&o, pass)
	out.results(pass)
	if o.Detailed {
		if err := out.arrays(pass, reread); err != nil {
			return err
		}
	}
	// As in vLLM, the statistics of queues need a limit of concurrency, and the
	// latency that includes them a finite rate too.
	for i, m := range vllmPreset.measures {
		if m.key == "" || !slices.Contains(o.Metrics, m.key) ||
			strings.Contains(m.key, "client_queue") && o.MaxConcurrency == 0 ||
			m.key == "e2el_including_client_queue" && o.RequestRate == 0 {
			continue
		}
		s := &pass.samples[i]
		q := s.Order()
		names := []string{"mean", "median", "std"}
		for _, percent := range o.Percentiles {
			names = append(names, "p"+strconv.FormatFloat(percent, 'f', -1, 64))
		}
		for _, name := range names {
			out.set(name+"_"+m.key+"_ms", *pass.stat(s, &q, name, 1e6))
		}
	}
	out.raw("}")
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// vllmMetrics are the names that --percentile-metrics takes.
func vllmMetrics() []string {
	var names []string
	for _, m := range vllmPreset.measures {
		if m.key != "" {
			names = append(names, m.key)
		}
	}
	return names
}

func (o VLLMOptions) complete(run result.Run) (VLLMOptions, error) {
	if len(o.Metrics) == 0 {
		o.Metrics = []string{"ttft", "tpot", "itl"}
	}
	for _, name := range o.Metrics {
		if !slices.Contains(vllmMetrics(), name) {
			return o, errors.New("peer: unknown percentile metric: want one or more of " +
				strings.Join(vllmMetrics(), ", "))
		}
	}
	if len(o.Percentiles) == 0 {
		o.Percentiles = []float64{99}
	}
	for _, p := range o.Percentiles {
		if !(p >= 0 && p <= 100) {
			return o, errors.New("peer: a percentile must be 0 to 100")
		}
	}
	if o.Goodput.ITL != nil {
		return o, errors.New("peer: goodput of vLLM takes only ttft, tpot and e2el")
	}
	if o.Backend == "" {
		o.Backend = "openai"
		if run.API != "" && run.API != result.APICompletions {
			o.Backend = "openai-" + run.API
		}
	}
	o.Model = cmp.Or(o.Model, run.Model)
	o.Burstiness = cmp.Or(o.Burstiness, 1)
	o.MaxConcurrency = cmp.Or(o.MaxConcurrency, max(run.Concurrency, run.InFlightLimit))
	// Keys that the document has of its own are refused: in vLLM the later of two
	// silently wins.
	seen := map[string]bool{}
	for _, key := range vllmKeys {
		seen[key] = true
	}
	for _, pair := range o.Metadata {
		own := slices.ContainsFunc(vllmMetrics(), func(m string) bool {
			return strings.HasSuffix(pair.Key, "_"+m+"_ms")
		})
		if pair.Key == "" || seen[pair.Key] || own {
			return o, errors.New("peer: a key of the metadata is empty, given twice or one of vLLM's own")
		}
		seen[pair.Key] = true
	}
	return o, nil
}

// vllmKeys are the names of the document but for those of statistics.
var vllmKeys = []string{
	"date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts",
	"request_rate", "burstiness", "max_concurrency", "ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps",
	"duration", "completed", "failed", "total_input_tokens", "total_output_tokens", "request_throughput",
	"request_goodput",
	"output_throughput", "total_token_throughput",
	"input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times",
	"generated_texts", "errors",
	"max_output_tokens_per_s", "max_concurrent_requests", "rtfx",
}

// An object writes the members of a JSON object in their order.
type object struct {
	w     *bufio.Writer
	begun bool
	err   error
}

func (o *object) key(name string) {
	if o.begun {
		o.raw(", ")
	} else {
		o.raw("{")
	}
	o.begun = true
	o.value(name)
	o.raw(": ")
}

func (o *object) raw(s string) {
	if _, err := o.w.WriteString(s); o.err == nil {
		o.err = err
	}
}

func (o *object) value(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = o.w.Write(b)
	}
	if o.err == nil {
		o.err = err
	}
}

func (o *object) set(name string, v any) {
	o.key(name)
	o.value(v)
}

// header writes what the benchmark was asked for.
func (o *object) header(opts *VLLMOptions, p *peerPass) {
	o.set("date", vllmDate(p.run.Started))
	o.set("endpoint_type", opts.Backend)
	o.set("backend", opts.Backend)
	o.set("label", orNull(opts.Label))
	o.set("model_id", opts.Model)
	o.set("tokenizer_id", orNull(p.run.Tokenizer))
	o.set("num_prompts", p.totals.rows)
	for _, pair := range opts.Metadata {
		o.set(pair.Key, pair.Value)
	}
	if opts.Process != "" {
		o.set("request_rate", opts.Process)
	} else if opts.RequestRate > 0 && !math.IsInf(opts.RequestRate, 0) {
		o.set("request_rate", opts.RequestRate)
	} else {
		o.set("request_rate", "inf")
	}
	if math.IsInf(opts.Burstiness, 0) {
		o.set("burstiness", "inf")
	} else {
		o.set("burstiness", opts.Burstiness)
	}
	if opts.MaxConcurrency > 0 {
		o.set("max_concurrency", opts.MaxConcurrency)
	} else {
		o.set("max_concurrency", nil)
	}
	if r := opts.RampUp; r != nil {
		o.set("ramp_up_strategy", r.Strategy)
		o.set("ramp_up_start_rps", r.Start)
		o.set("ramp_up_end_rps", r.End)
	}
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// vllmDate is the start of the run, in UTC; "" where it is not known.
func vllmDate(started string) string {
	at, err := time.Parse(time.RFC3339, started)
	if err != nil {
		return ""
	}
	return at.UTC().Format("20060102-150405")
}

// results writes the single figures.
func (o *object) results(p *peerPass) {
	t := &p.totals
	rate := func(n int64) float64 {
		if t.duration() == 0 {
			return 0
		}
		return float64(n) / float64(t.duration()) * 1e9
	}
	o.set("duration", inSeconds(t.duration()))
	o.set("completed", t.completed)
	o.set("failed", t.failed)
	o.set("total_input_tokens", t.in)
	o.set("total_output_tokens", t.out)
	o.set("request_throughput", rate(t.completed))
	if t.slo.Empty() {
		o.set("request_goodput", nil)
	} else {
		o.set("request_goodput", rate(t.good))
	}
	o.set("output_throughput", rate(t.out))
	o.set("total_token_throughput", rate(t.in+t.out))
	o.set("max_output_tokens_per_s", float64(t.peakTokens))
	o.set("max_concurrent_requests", t.peakRequests)
	o.set("rtfx", 0.0) // the inverse real-time factor of audio; there is no audio
}

func inSeconds(ns int64) float64 { return float64(ns) / 1e9 }

// ParseGoodput reads objectives as vLLM's --goodput has them: ttft, tpot or
// e2el, a colon and milliseconds, each once.
func ParseGoodput(parts []string) (report.SLO, error) {
	var s report.SLO
	for i, part := range parts {
		name, value, _ := strings.Cut(part, ":")
		number, err := strconv.ParseFloat(value, 64)
		if !slices.Contains([]string{"ttft", "tpot", "e2el"}, name) || err != nil || !(number > 0 && number < 1e12) {
			return report.SLO{}, fmt.Errorf(
				"objective %d of the goodput: want ttft, tpot or e2el, a colon and milliseconds, such as ttft:200", i+1)
		}
		if err := s.Set(name + ":" + strconv.FormatFloat(number, 'f', -1, 64) + "ms"); err != nil {
			return report.SLO{}, fmt.Errorf("objective %d of the goodput: %w", i+1, err)
		}
	}
	return s, nil
}

// VLLMFilename is the name that vLLM gives to a result, by what was asked for,
// the model and the start of the run.
func VLLMFilename(run result.Run, o VLLMOptions) (string, error) {
	o, err := o.complete(run)
	if err != nil {
		return "", err
	}
	label := o.Label
	label = cmp.Or(label, o.Backend)
	load := "" // a rate as Python prints it, where 0 is infinite
	switch {
	case o.RampUp != nil:
		load = fmt.Sprintf("ramp-up-%s-%gqps-%gqps", o.RampUp.Strategy, o.RampUp.Start, o.RampUp.End)
	case o.Process != "":
		load = strings.Map(func(r rune) rune {
			if strings.ContainsRune(`/\:`, r) {
				return '-'
			}
			return r
		}, o.Process)
	case o.RequestRate == 0 || math.IsInf(o.RequestRate, 0):
		load = "infqps"
	case o.RequestRate == math.Trunc(o.RequestRate):
		load = strconv.FormatFloat(o.RequestRate, 'f', 1, 64) + "qps"
	default:
		load = strconv.FormatFloat(o.RequestRate, 'f', -1, 64) + "qps"
	}
	if o.MaxConcurrency > 0 {
		load += fmt.Sprintf("-concurrency%d", o.MaxConcurrency)
	}
	model := o.Model[strings.LastIndexAny(o.Model, `/\`)+1:]
	return fmt.Sprintf("%s-%s-%s-%s.json", label, load, model, vllmDate(run.Started)), nil
}

// details are the arrays with an element for each request that vLLM would have
// sent, in the order of the results. A failed request has its prompt as asked
// for, no output, and zeroes.
var details = []struct {
	key string
	of  func(r *result.Result, v *view, ok bool) any
}{
	{"input_lens", func(r *result.Result, v *view, ok bool) any {
		if !ok {
			return r.WantInput
		}
		return v.in
	}},
	{"output_lens", func(_ *result.Result, v *view, ok bool) any { return v.out }},
	{"ttfts", func(_ *result.Result, v *view, ok bool) any { return inSeconds(v.ttft) }},
	{"itls", func(_ *result.Result, v *view, ok bool) any {
		gaps := make([]float64, len(v.gaps))
		for i, gap := range v.gaps {
			gaps[i] = inSeconds(gap)
		}
		return gaps
	}},
	{"latencies", func(_ *result.Result, v *view, ok bool) any { return inSeconds(v.latency) }},
	{"start_times", func(r *result.Result, _ *view, _ bool) any {
		if r.SentNS == nil {
			return 0.0
		}
		return inSeconds(*r.SentNS)
	}},
	{"queue_times", func(r *result.Result, _ *view, _ bool) any {
		if r.SentNS == nil {
			return 0.0
		}
		return inSeconds(*r.SentNS - r.DueNS)
	}},
	{"generated_texts", func(*result.Result, *view, bool) any { return "" }},
	{"errors", func(r *result.Result, _ *view, ok bool) any {
		if _, class := report.OutcomeOf(r); class != "" || ok {
			return class
		}
		return noEvent
	}},
}

// noEvent is the error of a stream that ended well without an event, which
// vLLM counts as failed.
const noEvent = "no_event"

// arrays writes the details, each by a pass over the results.
func (o *object) arrays(p *peerPass, reread report.Reread) error {
	for _, d := range details {
		o.key(d.key)
		separator := "["
		err := trace.Each(reread(), func(_ int64, r *result.Result) error {
			end, _ := report.OutcomeOf(r)
			if !p.measured(r) || end == report.NotSent || end == report.Cancelled {
				return nil
			}
			o.raw(separator)
			separator = ", "
			v, ok := p.look(r)
			if !ok {
				*v = view{gaps: v.gaps[:0]}
			}
			o.value(d.of(r, v, ok))
			return o.err
		})
		if err != nil {
			return err
		}
		if separator == "[" {
			o.raw("[")
		}
		o.raw("]")
	}
	return nil
}
