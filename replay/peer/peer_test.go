package peer

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
	"reprise/trace/sample"
	"reprise/trace/textpage"
)

const msNS = resulttest.MS

var answer, failure, messy = resulttest.Answer, resulttest.Failure, resulttest.Messy

func rereadOf(results []result.Result) report.Reread {
	return func() trace.Reader[result.Result] { return &trace.SliceReader[result.Result]{Rows: results} }
}

// presetRun is made by hand, so that every figure below can be checked with a
// pencil:
//
//	a  due 0, sent 0: a role at 10, chunks at 50, 70, 120 ms with 1, 3, 2 tokens; done 130
//	b  due 90, sent 100: one chunk with one token at 140; done 140
//	c  due 200, sent 200: failed at 201
//	d  due 300, sent 300: cancelled on purpose
func presetRun() []result.Result {
	a := answer(0, 0, 0, 50, 70, 120)
	a.FirstEventNS, a.DoneNS = trace.Ptr(10*msNS), trace.Ptr(130*msNS)
	a.EventTokens, a.Output, a.WantOutput = []int32{1, 3, 2}, trace.Ptr(int32(6)), trace.Ptr[int32](8)
	a.FirstContentNS = trace.Ptr(70 * msNS) // the first chunk was reasoning
	b := answer(1, 90, 10, 40)
	b.Input, b.FirstContentNS = trace.Ptr(int32(50)), nil // all of its answer was reasoning
	c := failure(2, 200, "reset")
	d := failure(3, 300, "cancelled")
	d.DoneNS = trace.Ptr(310 * msNS)
	return []result.Result{a, b, c, d}
}

// under flattens a peer's figures into "name/stat".
func under(t *testing.T, name string, opts report.Options, results []result.Result) map[string]any {
	t.Helper()
	p, err := Under(name, result.Run{}, rereadOf(results), opts)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for _, m := range p.Metrics {
		if m.Missing != "" {
			out[m.Name] = "missing"
		}
		if m.Count != nil {
			out[m.Name+"/n"] = float64(*m.Count)
		}
		for _, v := range m.Values {
			key := strings.TrimSuffix(m.Name+"/"+v.Stat, "/")
			if out[key] = any(nil); v.Value != nil {
				out[key] = *v.Value
			}
		}
	}
	return out
}

func TestPresetsByHand(t *testing.T) {
	slo := report.SLO{TTFT: trace.Ptr(45 * time.Millisecond), TPOT: trace.Ptr(30 * time.Millisecond)}
	for name, want := range map[string]map[string]any{
		"vllm": {
			"Successful requests": 2.0, "Failed requests": 1.0, "Benchmark duration": 0.31,
			"Total input tokens": 150.0, "Total generated tokens": 7.0,
			"Request throughput": 6.451613, "Output token throughput": 22.580645, "Total token throughput": 506.451613,
			// A role counts as the first token: 10 and 40 ms, TPOT 110/5 = 22.
			"TTFT/mean": 25.0, "TTFT/median": 25.0, "TTFT/std": 15.0, "TTFT/p99": 39.7, "TTFT/n": 2.0,
			"TPOT/mean": 22.0, "TPOT/n": 1.0, "ITL/n": 3.0, "ITL/mean": 36.666667, "ITL/median": 40.0,
			"E2EL/mean": 80.0, "E2EL/p99": 119.2, "Client Queue Time/mean": 5.0, "E2EL incl. Client Queue/mean": 85.0,
			// Both overlap from 100 to 120; the first second has the four chunks of a and the one of b.
			"Peak concurrent requests": 2.0, "Peak output token throughput": 5.0,
			"Request goodput": 6.451613,
		},
		"sglang": {
			"Total input tokens": 200.0, "Total generated tokens": 9.0, "Total generated tokens (retokenized)": "missing",
			"TTFT/mean": 45.0, "E2E Latency/mean": 85.0, "E2E Latency/p90": 121.0, "TPOT/mean": 11.428571, "ITL/max": 50.0, "ITL/n": 2.0,
			"Concurrency": 0.548387, "Accept length": "missing",
		},
		"aiperf": {
			"Time to First Token (TTFT)/avg": 45.0, "Time to Second Token (TTST)/avg": 20.0, "Time to Second Token (TTST)/n": 1.0,
			"Time to First Output Token (TTFO)/avg": 70.0, "Time to First Output Token (TTFO)/n": 1.0, "Request Latency/avg": 80.0, "Inter Token Latency (ITL)/avg": 14.0,
			"Inter Chunk Latency (ICL)/avg": 35.0, "Inter Chunk Latency (ICL)/n": 2.0,
			"Output Token Throughput Per User/avg": 71.428571, "E2E Output Token Throughput/max": 50.0, "E2E Output Token Throughput/min": 25.0,
			"Prefill Throughput Per User/min": 1250.0, "Prefill Throughput Per User/max": 2000.0,
			"Output Sequence Length (OSL)/avg": 3.5, "Input Sequence Length (ISL)/avg": 75.0,
			// From 0 to the last content at 140 ms.
			"Benchmark Duration": 0.14, "Output Token Throughput": 50.0, "Request Throughput": 14.285714, "Request Count": 2.0,
			"Error Request Count": 1.0,
			// a is too late to its first token; b has no ITL to compare.
			"Good Request Count": 0.0, "Good Request Fraction": 0.0, "Goodput": 0.0,
		},
		"guidellm": {
			"time_to_first_output_token_ms/mean": 35.0, "time_to_first_output_token_ms/n": 2.0,
			"request_latency/mean": 0.085, "time_to_first_token_ms/mean": 45.0, "time_to_first_token_ms/median": 40.0,
			// (120/6 six times and 40/1 once)/7; the median is 20.
			"time_per_output_token_ms/mean": 22.857143, "time_per_output_token_ms/median": 20.0, "time_per_output_token_ms/p99": 40.0,
			"time_per_output_token_ms/n": 7.0, "inter_token_latency_ms/mean": 14.0, "inter_token_latency_ms/n": 5.0,
			"output_token_count/mean": 3.5, "requests_per_second": "missing",
		},
		"genai-perf": {
			"Time To First Token/avg": 45.0, "Inter Token Latency/avg": 14.0, "Request Latency/max": 120.0, "Request Latency/p75": 100.0,
			"Output Token Throughput Per Request/avg": 37.5, "Request Throughput": 14.285714, "Request Goodput": "missing",
		},
		"inference-perf": {
			"benchmark_time_seconds": 0.31, "request_latency/mean": 0.085, "time_to_first_token/mean": 0.05, "time_to_first_token/n": 1.0,
			// 130/6 and 40/1 ms a token.
			"normalized_time_per_output_token/mean": 0.030833334, "time_per_output_token/mean": 0.014,
			// Gaps of a: 20, 0, 0, 50, 0. Of b there is none.
			"inter_token_latency/n": 5.0, "inter_token_latency/mean": 0.014, "inter_token_latency/median": 0.0,
			"output_tokens_per_sec": 22.580645, "goodput_percentage": 0.0, "schedule_delay/mean": 0.005, "failures.count": 1.0,
		},
	} {
		got := under(t, name, report.Options{SLO: slo}, presetRun())
		for key, want := range want {
			g, ok := got[key]
			gf, isNumber := g.(float64)
			wf, wantsNumber := want.(float64)
			if !ok || isNumber != wantsNumber || isNumber && math.Abs(gf-wf) > 1e-6 || !isNumber && g != want {
				t.Errorf("%s, %s: got %v, want %v", name, key, g, want)
			}
		}
	}
}

// Without a value vLLM, SGLang and GuideLLM say 0, and the others nothing.
func TestPresetsOfNothing(t *testing.T) {
	results := []result.Result{failure(0, 0, "reset")}
	for name, want := range map[string]any{"vllm/TTFT/p99": 0.0, "sglang/ITL/max": 0.0, "guidellm/request_latency/mean": 0.0,
		"aiperf/Request Latency/avg": nil, "inference-perf/request_latency/mean": nil, "genai-perf/Request Latency/avg": nil} {
		preset, key, _ := strings.Cut(name, "/")
		if got := under(t, preset, report.Options{}, results)[key]; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := under(t, "vllm", report.Options{}, results)["Request goodput"]; got != nil {
		t.Errorf("a goodput of %v without objectives", got)
	}
	if _, err := Under("jmeter", result.Run{}, rereadOf(nil), report.Options{}); err == nil {
		t.Error("unknown definitions are accepted")
	}
}

// Every metric says what it is, has one source, and statistics that exist.
func TestPresetTables(t *testing.T) {
	for _, p := range presets {
		pass := newPeerPass(p, result.Run{}, report.Options{Exact: 10})
		s := sample.Values{Limit: 10}
		s.Add(7)
		q := s.Order()
		for _, m := range p.measures {
			sources := 0
			for _, has := range []bool{m.each != nil, m.total != nil, m.missing != ""} {
				if has {
					sources++
				}
			}
			if sources != 1 || m.name == "" || m.unit == "" || m.definition == "" || m.formula == "" || (m.each != nil) != (len(m.stats) > 0) {
				t.Errorf("%s, %s: not whole", p.name, m.name)
			}
			for _, stat := range m.stats {
				if pass.stat(&s, &q, stat, 1) == nil {
					t.Errorf("%s, %s: no statistic is called %s", p.name, m.name, stat)
				}
			}
		}
	}
}

// The tables stay narrow, and everything in them is in the JSON and on the page.
func TestPeerWriters(t *testing.T) {
	results := messy(rand.New(rand.NewPCG(3, 4)), 1200)
	opts := report.Options{SLO: report.SLO{TTFT: trace.Ptr(100 * time.Millisecond), TPOT: trace.Ptr(10 * time.Millisecond)}}
	run := result.Run{}
	run.Model, run.Tokenizer, run.ServerBlock = "meta-llama/Llama-3.2-3B", "o200k_base", 16
	for _, name := range Presets() {
		s, err := report.Summarise(run, rereadOf(results)(), opts)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Under(name, run, rereadOf(results), opts)
		if err != nil {
			t.Fatal(err)
		}
		s.Peer = &p
		var text, data, html bytes.Buffer
		if err := report.Page(s).WriteText(&text, textpage.Options{Details: true}); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(text.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > textpage.MaxWidth {
				t.Errorf("a line of %d columns: %s", n, line)
			}
			if strings.ContainsFunc(line, unicode.IsControl) {
				t.Errorf("control characters in %q", line)
			}
		}
		if err := json.NewEncoder(&data).Encode(s); err != nil {
			t.Fatal(err)
		}
		if err := report.Page(s).Write(&html); err != nil {
			t.Fatal(err)
		}
		var back struct{ Peer report.Peer }
		if err := json.Unmarshal(data.Bytes(), &back); err != nil || len(back.Peer.Metrics) != len(p.Metrics) {
			t.Errorf("%s: the JSON has %d metrics: %v", name, len(back.Peer.Metrics), err)
		}
		for _, m := range p.Metrics {
			if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), strings.Fields(m.Name)[0]) {
				t.Errorf("%s: the text lacks %s", name, m.Name)
			}
		}
		if !strings.Contains(html.String(), "Under the definitions of "+name) {
			t.Errorf("%s: the page lacks it", name)
		}
	}
}

// GuideLLM's percentile is the least value whose share reaches p.
func TestStepwisePercentiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	pass := newPeerPass(&guidellmPreset, result.Run{}, report.Options{})
	for range 200 {
		s := sample.Values{Limit: 1000}
		n := 1 + rng.IntN(300)
		var values []int64
		for range n {
			v := rng.Int64N(50)
			values = append(values, v)
			s.Add(v)
		}
		slices.Sort(values)
		q := s.Order()
		for _, percent := range []float64{0, 10, 50, 95, 99, 99.9, 100} {
			want := values[n-1]
			for i, v := range values {
				if float64(i+1)*100 >= percent*float64(n)*(1-1e-12) {
					want = v
					break
				}
			}
			if got := pass.quantile(&q, percent); got != want {
				t.Fatalf("p%g of %d values: %d, want %d", percent, n, got, want)
			}
		}
	}
}
