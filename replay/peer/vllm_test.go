package peer

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// vllmTruth computes the figures of vLLM's JSON a second time, from slices of
// seconds, sharing no code with the package.
type vllmTruth struct {
	ttfts, tpots, itls, e2els, queue []float64
	starts, ends                     []float64
	in, out, good, failed, rows      float64
	first, last                      float64
	chunks                           []float64
}

func tellVLLM(results []result.Result, ttft, tpot, e2el float64) *vllmTruth {
	o := &vllmTruth{first: math.Inf(1)}
	for i := range results {
		r := &results[i]
		o.rows++
		if r.Error == "cancelled" || r.Error == "" && r.SentNS == nil {
			if r.SentNS != nil {
				o.span(r)
			}
			continue
		}
		if r.SentNS != nil {
			o.span(r)
		}
		if r.Error != "" || r.DoneNS == nil {
			o.failed++
			continue
		}
		o.success(r, ttft, tpot, e2el)
	}
	return o
}

func (o *vllmTruth) span(r *result.Result) {
	o.first = min(o.first, float64(*r.SentNS)/1e9)
	if r.DoneNS != nil {
		o.last = max(o.last, float64(*r.DoneNS)/1e9)
	}
}

func (o *vllmTruth) success(r *result.Result, maxTTFT, maxTPOT, maxE2EL float64) {
	start := float64(*r.SentNS) / 1e9
	times := []float64{float64(*r.FirstEventNS) / 1e9}
	if r.FirstTokenNS != nil {
		if *r.FirstTokenNS != *r.FirstEventNS {
			times = append(times, float64(*r.FirstTokenNS)/1e9)
		}
		for _, g := range r.GapsNS {
			times = append(times, times[len(times)-1]+float64(g)/1e9)
		}
	}
	end := times[len(times)-1]
	o.starts, o.ends = append(o.starts, start), append(o.ends, end)
	o.chunks = append(o.chunks, times...)
	o.ttfts, o.e2els = append(o.ttfts, times[0]-start), append(o.e2els, end-start)
	o.queue = append(o.queue, start-float64(r.DueNS)/1e9)
	for i := 1; i < len(times); i++ {
		o.itls = append(o.itls, times[i]-times[i-1])
	}
	out, tpot := 1.0, 0.0
	if r.Output != nil {
		out = float64(*r.Output)
	}
	if out > 1 {
		tpot = (end - times[0]) / (out - 1)
		o.tpots = append(o.tpots, tpot)
	}
	in := float64(r.WantInput)
	if r.Input != nil {
		in = float64(*r.Input)
	}
	o.in, o.out = o.in+in, o.out+out
	if times[0]-start <= maxTTFT && tpot <= maxTPOT && end-start <= maxE2EL {
		o.good++
	}
}

func (o *vllmTruth) peaks() (tokens, open float64) {
	seconds := map[int]float64{}
	first := slices.Min(o.starts)
	for _, at := range o.chunks {
		second := int(at - first + 1e-10)
		seconds[second]++
		tokens = max(tokens, seconds[second])
	}
	for _, at := range o.starts {
		n := 0.0
		for i := range o.starts {
			if o.starts[i] <= at && at < o.ends[i] {
				n++
			}
		}
		open = max(open, n)
	}
	return tokens, open
}

func writeVLLM(t *testing.T, run result.Run, results []result.Result, o VLLMOptions) map[string]any {
	t.Helper()
	var b bytes.Buffer
	if err := WriteVLLM(&b, run, rereadOf(results), o); err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsRune(b.Bytes(), '\n') {
		t.Error("the document has more than a line")
	}
	var doc map[string]any
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatalf("%v in %.300s", err, b.Bytes())
	}
	return doc
}

var everyMetric = []string{"ttft", "tpot", "itl", "e2el", "client_queue_time", "e2el_including_client_queue"}

func TestVLLMAgainstOracle(t *testing.T) {
	ms := func(n int) *time.Duration { return trace.Ptr(time.Duration(n) * time.Millisecond) }
	for seed := range uint64(10) {
		results := messy(rand.New(rand.NewPCG(seed, 70)), 30+int(seed)*150)
		doc := writeVLLM(t, result.Run{Sending: result.Sending{InFlightLimit: 5}}, results, VLLMOptions{
			RequestRate: 3, Metrics: everyMetric, Percentiles: []float64{1, 50, 99, 99.9},
			Goodput: report.SLO{TTFT: ms(40), TPOT: ms(12), E2E: ms(300)}, Detailed: true})
		o := tellVLLM(results, .040, .012, .300)
		seconds := o.last - o.first
		tokens, open := o.peaks()
		want := map[string]float64{
			"num_prompts": o.rows, "completed": float64(len(o.ttfts)), "failed": o.failed, "duration": seconds,
			"total_input_tokens": o.in, "total_output_tokens": o.out, "rtfx": 0,
			"request_throughput": float64(len(o.ttfts)) / seconds, "request_goodput": o.good / seconds,
			"output_throughput": o.out / seconds, "total_token_throughput": (o.in + o.out) / seconds,
			"max_output_tokens_per_s": tokens, "max_concurrent_requests": open, "max_concurrency": 5, "request_rate": 3, "burstiness": 1,
		}
		including := make([]float64, len(o.queue))
		for i := range o.queue {
			including[i] = o.queue[i] + o.e2els[i]
		}
		for i, values := range [][]float64{o.ttfts, o.tpots, o.itls, o.e2els, o.queue, including} {
			numpy(want, everyMetric[i], values)
		}
		for key, w := range want {
			got, ok := doc[key].(float64)
			if !ok || math.Abs(got-w) > 2e-6+1e-7*math.Abs(w) {
				t.Errorf("seed %d, %s: %v, want %v", seed, key, doc[key], w)
			}
		}
		if o.good == 0 || int(o.good) == len(o.ttfts) {
			t.Errorf("seed %d: %v of %d are good, which tests little", seed, o.good, len(o.ttfts))
		}
		holdDetails(t, doc, results)
	}
}

// numpy adds the statistics of seconds, in milliseconds.
func numpy(into map[string]float64, name string, values []float64) {
	sort.Float64s(values)
	mean, square := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		square += (v - mean) * (v - mean) / float64(len(values))
	}
	into["mean_"+name+"_ms"], into["std_"+name+"_ms"] = mean*1e3, math.Sqrt(square)*1e3
	for key, p := range map[string]float64{"median": .5, "p1": .01, "p50": .5, "p99": .99, "p99.9": .999} {
		pos := p * float64(len(values)-1)
		lo := math.Floor(pos)
		hi := math.Ceil(pos)
		into[key+"_"+name+"_ms"] = 1e3 * (values[int(lo)] + (pos-lo)*(values[int(hi)]-values[int(lo)]))
	}
}

// holdDetails holds that the arrays are parallel and add up to the statistics.
func holdDetails(t *testing.T, doc map[string]any, results []result.Result) {
	t.Helper()
	n := doc["completed"].(float64) + doc["failed"].(float64)
	list := func(key string) []any { return doc[key].([]any) }
	for _, d := range details {
		if float64(len(list(d.key))) != n {
			t.Errorf("%s has %d elements, want %v", d.key, len(list(d.key)), n)
		}
	}
	var errors, gaps, out, in, latency float64
	for i, e := range list("errors") {
		if e != "" {
			errors++
			continue
		}
		in += list("input_lens")[i].(float64)
		latency += list("latencies")[i].(float64)
		sum := list("ttfts")[i].(float64)
		for _, g := range list("itls")[i].([]any) {
			gaps++
			sum += g.(float64)
		}
		if math.Abs(sum-list("latencies")[i].(float64)) > 1e-9 {
			t.Errorf("request %d: its gaps add up to %v", i, sum)
		}
	}
	for _, n := range list("output_lens") {
		out += n.(float64)
	}
	if errors != doc["failed"] || out != doc["total_output_tokens"] || in != doc["total_input_tokens"] {
		t.Errorf("the arrays have %v errors, %v output and %v input tokens", errors, out, in)
	}
	if mean, want := latency/doc["completed"].(float64)*1e3, doc["mean_e2el_ms"].(float64); math.Abs(mean-want) > 2e-6+1e-9*want {
		t.Errorf("the mean of latencies is %v, and %v in the document", mean, want)
	}
	if list("generated_texts")[0] != "" {
		t.Error("there is a text")
	}
}

// The keys stand in vLLM's order, and only those that were asked for are there.
func TestVLLMKeys(t *testing.T) {
	run := result.Run{Load: result.Load{API: "chat", Model: "org/m", Tokenizer: "tok", Concurrency: 4}, Started: "2026-01-02T03:04:05.5Z"}
	keys := func(o VLLMOptions) string {
		var b bytes.Buffer
		if err := WriteVLLM(&b, run, rereadOf(presetRun()), o); err != nil {
			t.Fatal(err)
		}
		var names []string
		d := json.NewDecoder(&b)
		for depth, isKey := 0, false; ; {
			token, err := d.Token()
			if err != nil {
				break
			}
			if delim, ok := token.(json.Delim); ok {
				depth += map[json.Delim]int{'{': 1, '[': 1, '}': -1, ']': -1}[delim]
				isKey = depth == 1
				continue
			}
			if depth == 1 && isKey {
				names = append(names, token.(string))
			}
			isKey = depth == 1 && !isKey
		}
		return strings.Join(names, " ")
	}
	const head = "date endpoint_type backend label model_id tokenizer_id num_prompts"
	const body = " duration completed failed total_input_tokens total_output_tokens request_throughput request_goodput output_throughput total_token_throughput max_output_tokens_per_s max_concurrent_requests rtfx"
	three := func(m string) string {
		return " mean_" + m + "_ms median_" + m + "_ms std_" + m + "_ms p99_" + m + "_ms"
	}
	if got, want := keys(VLLMOptions{}), head+" request_rate burstiness max_concurrency"+body+three("ttft")+three("tpot")+three("itl"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got := keys(VLLMOptions{Metadata: []Pair{{"tp", "1"}, {"a", "b"}}, RampUp: &RampUp{"linear", 1, 5}, Metrics: []string{"e2el", "client_queue_time", "e2el_including_client_queue"}})
	want := head + " tp a request_rate burstiness max_concurrency ramp_up_strategy ramp_up_start_rps ramp_up_end_rps" + body + three("e2el") + three("client_queue_time")
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	doc := writeVLLM(t, run, presetRun(), VLLMOptions{Label: "x", Burstiness: math.Inf(1)})
	for key, want := range map[string]any{"date": "20260102-030405", "backend": "openai-chat", "label": "x", "model_id": "org/m", "tokenizer_id": "tok",
		"request_rate": "inf", "burstiness": "inf", "max_concurrency": 4.0, "request_goodput": nil, "num_prompts": 4.0} {
		if doc[key] != want {
			t.Errorf("%s: %v, want %v", key, doc[key], want)
		}
	}
	for what, o := range map[string]VLLMOptions{
		"metric": {Metrics: []string{"ttfb"}}, "percentile": {Percentiles: []float64{101}}, "own key": {Metadata: []Pair{{"duration", "1"}}},
		"own statistic": {Metadata: []Pair{{"p99_ttft_ms", "1"}}}, "key twice": {Metadata: []Pair{{"a", "1"}, {"a", "2"}}}, "itl": {Goodput: report.SLO{ITL: trace.Ptr(time.Second)}},
	} {
		if err := WriteVLLM(&bytes.Buffer{}, run, rereadOf(nil), o); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

// A run cut into parts has the peak of the whole, wherever the cuts fall.
func TestPeaksInParts(t *testing.T) {
	for seed := range uint64(6) {
		results := messy(rand.New(rand.NewPCG(seed, 9)), 400)
		if seed == 0 { // all at once, and a bin that cannot be parted
			for i := range results {
				if r := &results[i]; r.SentNS != nil && r.Error == "" && r.DoneNS != nil {
					*r = answer(r.RowID, 5, 0, 10, 20)
				}
			}
		}
		_, open := tellVLLM(results, 0, 0, 0).peaks()
		for _, limit := range []int{1, 7, 100, peakEvents} {
			pass := newPeerPass(&vllmPreset, result.Run{}, report.Options{Exact: 10})
			for i := range results {
				pass.add(&results[i])
			}
			passes := 0
			err := pass.findPeaks(func() trace.Reader[result.Result] { passes++; return rereadOf(results)() }, limit)
			if err != nil || float64(pass.totals.peakRequests) != open {
				t.Errorf("seed %d, limit %d: peak %d, want %v: %v", seed, limit, pass.totals.peakRequests, open, err)
			}
			if limit == 100 && seed > 0 && passes < 5 {
				t.Errorf("only %d passes", passes)
			}
		}
	}
}

// REPRISE_TEST_PYTHON names a Python with numpy, which computes the statistics
// from the detailed arrays a third time.
func TestVLLMAgainstNumpy(t *testing.T) {
	python := os.Getenv("REPRISE_TEST_PYTHON")
	if python == "" {
		t.Skip("REPRISE_TEST_PYTHON does not name a Python with numpy")
	}
	var b bytes.Buffer
	results := messy(rand.New(rand.NewPCG(1, 1)), 3000)
	err := WriteVLLM(&b, result.Run{}, rereadOf(results), VLLMOptions{Metrics: []string{"ttft", "tpot", "itl", "e2el"}, Percentiles: []float64{5, 90, 99.9}, Detailed: true})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(python, filepath.Join("testdata", "vllm_numpy.py"), name).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestVLLMFilename(t *testing.T) {
	run := result.Run{Load: result.Load{API: "chat", Model: "org/m-7b"}, Started: "2026-01-02T03:04:05Z"}
	for want, o := range map[string]VLLMOptions{
		"openai-chat-infqps-m-7b-20260102-030405.json":                   {},
		"x-3.0qps-concurrency8-m-7b-20260102-030405.json":                {Label: "x", RequestRate: 3, MaxConcurrency: 8},
		"vllm-2.5qps-m-7b-20260102-030405.json":                          {Backend: "vllm", RequestRate: 2.5},
		"openai-chat-ramp-up-linear-1qps-5qps-m-7b-20260102-030405.json": {RampUp: &RampUp{"linear", 1, 5}},
		"openai-chat-step-1-2,1m-m-7b-20260102-030405.json":              {Process: "step:1-2,1m"},
	} {
		if got, err := VLLMFilename(run, o); got != want || err != nil {
			t.Errorf("%s, want %s: %v", got, want, err)
		}
	}
}

func TestParseGoodput(t *testing.T) {
	s, err := ParseGoodput([]string{"ttft:200", "tpot:50.5", "e2el:1e4"})
	if err != nil || s.String() != "ttft:200ms,tpot:50.5ms,e2e:10s" {
		t.Errorf("%s: %v", s, err)
	}
	for _, bad := range []string{"ttft", "ttft:", "ttft:x", "ttft:0", "ttft:-1", "ttft:NaN", "ttft:inf", "itl:3", "e2e:3"} {
		if _, err := ParseGoodput([]string{bad}); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	if _, err := ParseGoodput([]string{"ttft:1", "ttft:2"}); err == nil {
		t.Error("one objective twice is accepted")
	}
}

// A request that begins in the instant of another's last token does not overlap
// it; statistics of a queue need a limit; a warm-up is in nothing.
func TestVLLMEdges(t *testing.T) {
	touching := []result.Result{answer(0, 0, 0, 50, 100), answer(1, 100, 0, 50, 100)}
	run := result.Run{}
	doc := writeVLLM(t, run, touching, VLLMOptions{Metrics: everyMetric, RequestRate: 1})
	if doc["max_concurrent_requests"] != 1.0 || doc["mean_client_queue_time_ms"] != nil || doc["mean_e2el_including_client_queue_ms"] != nil || doc["mean_e2el_ms"] != 100.0 {
		t.Errorf("%v", doc)
	}
	run.Window = &result.Window{From: &result.Place{DueNS: 100 * msNS}}
	doc = writeVLLM(t, run, touching, VLLMOptions{Detailed: true})
	if doc["num_prompts"] != 1.0 || doc["completed"] != 1.0 || doc["duration"] != 0.1 || len(doc["ttfts"].([]any)) != 1 || doc["max_output_tokens_per_s"] != 2.0 {
		t.Errorf("with a warm-up: %v", doc)
	}
}
