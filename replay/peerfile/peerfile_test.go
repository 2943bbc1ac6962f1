package peerfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"reprise/replay/peer"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// Small files in the form of each tool, with two requests that succeeded and what else the
// tool tells apart. The first was sent at 1 s, had its first token after 100 ms and two
// more after 20 and 40 ms.
const (
	vllmFile = `{"date": "20261122-101500", "endpoint_type": "openai-chat", "backend": "openai-chat", "model_id": "m", "tokenizer_id": "t",
"num_prompts": 3, "request_rate": 2.0, "max_concurrency": null, "duration": 2.5, "completed": 2, "failed": 1,
"input_lens": [10, 12, 14], "output_lens": [3, 1, 0], "ttfts": [0.1, 0.3, 0.0], "itls": [[0.02, 0.04], [], []],
"start_times": [1.0, 1.5, 2.0], "generated_texts": ["secret words", "", ""], "errors": ["", "", "Traceback: secret words"]}`

	sglangFile = `{"tag": null, "backend": "sglang", "dataset_name": "random", "request_rate": Infinity0, "max_concurrency": 4, "duration": 2.5,
"completed": 2, "input_lens": [10, 12], "output_lens": [3, 1], "ttfts": [0.1, 0.3], "itls": [[0.02, 0.04], []],
"generated_texts": ["secret words", ""], "errors": ["", ""], "cached_tokens": [8, 0]}
`
	aiperfFile = `{"metadata":{"conversation_id":"w","request_start_ns":1700000000000000000,"benchmark_phase":"warmup"},"metrics":{}}
{"metadata":{"conversation_id":"a","credit_issued_ns":1700000000998000000,"request_start_ns":1700000001000000000,"request_ack_ns":1700000001090000000,"request_end_ns":1700000001161000000,"benchmark_phase":"profiling","was_cancelled":false},"metrics":{"time_to_first_token":{"value":100.0,"unit":"ms"},"time_to_first_output_token":{"value":120.0,"unit":"ms"},"request_latency":{"value":160.0,"unit":"ms"},"inter_chunk_latency":{"value":[20.0,40.0],"unit":"ms"},"input_sequence_length":{"value":9,"unit":"tokens"},"output_sequence_length":{"value":4,"unit":"tokens"},"usage_prompt_tokens":{"value":10,"unit":"tokens"},"usage_completion_tokens":{"value":3,"unit":"tokens"},"usage_prompt_cache_read_tokens":{"value":8,"unit":"tokens"}}}
{"metadata":{"conversation_id":"a","credit_issued_ns":1700000001500000000,"request_start_ns":1700000001500000000,"request_end_ns":1700000001800000000,"benchmark_phase":"profiling","was_cancelled":false},"metrics":{"request_latency":{"value":300.0,"unit":"ms"},"input_sequence_length":{"value":12,"unit":"tokens"},"output_sequence_length":{"value":1,"unit":"tokens"}}}
{"metadata":{"conversation_id":"b","request_start_ns":1700000002000000000,"request_end_ns":1700000002100000000,"benchmark_phase":"profiling","was_cancelled":false},"metrics":{},"error":{"code":429,"type":"X","message":"secret words"}}
{"metadata":{"conversation_id":"c","request_start_ns":1700000002000000000,"benchmark_phase":"profiling","was_cancelled":true},"metrics":{},"error":{"code":499,"type":"X","message":"secret words"}}
`
	guidellmRequests = `"requests": {"successful": [{"request_args": "secret words", "output": "secret words", "info": {"conversation_id": "a", "timings": {"targeted_start": 1700000000.9, "request_start": 1700000001.0, "first_request_iteration": 1700000001.1, "first_token_iteration": 1700000001.1, "first_output_token_iteration": null, "last_token_iteration": 1700000001.16, "request_end": 1700000001.161}}, "prompt_tokens": 10, "cached_tokens": 8, "output_tokens": 3}],
"errored": [{"info": {"conversation_id": "b", "timings": {"targeted_start": 1700000002.0, "request_start": 1700000002.0, "request_end": 1700000002.5}}, "prompt_tokens": 14, "output_tokens": null}],
"incomplete": [{"info": {"timings": {"targeted_start": 1700000003.0}}}, {"info": {"timings": {"request_start": 1700000002.25}}}], "total": null}`
	guidellmFile = `{"metadata": {"version": 2, "guidellm_version": "0.8.1"}, "config": {"data": ["secret words"]}, "benchmarks": [{"type_": "generative_benchmark",
"config": {"strategy": {"type_": "concurrent", "streams": 2}, "backend": {"model": "m", "request_format": "/v1/completions"}, "prefer_response_metrics": true},
"scheduler_state": {"processing_requests": 1}, ` + guidellmRequests + `}]}`

	inferencePerfFile = `[{"start_time": 33399.0, "end_time": 33399.161, "info": {"input_tokens": 9, "response_metrics": {"output_tokens": 4, "server_usage": {"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 8}},
"response_chunks": ["secret words"], "output_token_times": [33399.1, 33399.12, 33399.12, 33399.16]}}, "error": null},
{"start_time": 33399.5, "end_time": 33399.8, "info": {"input_tokens": 12, "response_metrics": {"output_tokens": 1, "server_usage": null, "output_token_times": []}}, "error": null},
{"start_time": 33400.0, "end_time": 33400.1, "info": {"input_tokens": 14, "response_metrics": null}, "error": {"error_type": "X", "error_msg": "secret words"}}]`
)

// Two requests of LLMServingSim's bench: one of three tokens, and one without an answer.
const servingSimFile = `{"request_id": "secret words", "input_toks": 10, "output_toks": 3, "arrival_time": 1787267980.25, "queued_ts": 27536.0, "scheduled_ts": 27536.01, "first_token_ts": 27536.1, "last_token_ts": 27536.16}
{"request_id": "bench-1", "input_toks": 12, "output_toks": 1, "arrival_time": 1787267980.75, "queued_ts": 27536.5, "scheduled_ts": 0, "first_token_ts": 0, "last_token_ts": 0}
`

func open(t *testing.T, name, text string) *result.File {
	t.Helper()
	f, err := Open(written(t, name, text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func rowsOf(t *testing.T, f *result.File) (rows []result.Result) {
	t.Helper()
	err := trace.Each(f.Reader(), func(_ int64, r *result.Result) error {
		if err := report.CheckResult(r); err != nil {
			return err
		}
		row := *r
		row.GapsNS = slices.Clone(r.GapsNS)
		row.EventTokens = slices.Clone(r.EventTokens)
		rows = append(rows, row)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

const ms = 1_000_000

func p64(v int64) *int64 { return trace.Ptr(v * ms) }

func TestRowsOfEachTool(t *testing.T) {
	int32s := func(v int32) *int32 { return &v }
	sessions := []int64{0, 1, 2}
	sglang := strings.Replace(sglangFile, "Infinity0", `"inf"`, 1)
	for _, c := range []struct {
		name, text string
		want       []result.Result
	}{
		{"vllm.json", vllmFile, []result.Result{
			{SentNS: p64(0), FirstEventNS: p64(100), FirstTokenNS: p64(100), LastTokenNS: p64(160), DoneNS: p64(160), WantInput: 10, WantOutput: trace.Ptr[int32](3), Input: int32s(10), Output: int32s(3), OutputFrom: "usage", Events: 3, GapsNS: []int64{20 * ms, 40 * ms}},
			{DueNS: 500 * ms, SentNS: p64(500), FirstEventNS: p64(800), FirstTokenNS: p64(800), LastTokenNS: p64(800), DoneNS: p64(800), WantInput: 12, WantOutput: trace.Ptr[int32](1), Input: int32s(12), Output: int32s(1), OutputFrom: "usage", Events: 1},
			{DueNS: 1000 * ms, SentNS: p64(1000), WantInput: 14, Error: "other"},
		}},
		{"sglang.jsonl", sglang, []result.Result{
			{SentNS: p64(0), FirstEventNS: p64(100), FirstTokenNS: p64(100), LastTokenNS: p64(160), DoneNS: p64(160), WantInput: 10, WantOutput: trace.Ptr[int32](3), Input: int32s(10), Cached: int32s(8), Output: int32s(3), Events: 3, GapsNS: []int64{20 * ms, 40 * ms}},
			{SentNS: p64(0), FirstEventNS: p64(300), FirstTokenNS: p64(300), LastTokenNS: p64(300), DoneNS: p64(300), WantInput: 12, WantOutput: trace.Ptr[int32](1), Input: int32s(12), Cached: int32s(0), Output: int32s(1), Events: 1},
		}},
		{"profile_export.jsonl", aiperfFile, []result.Result{
			{Session: &sessions[0], SentNS: p64(2), HeadersNS: p64(92), FirstEventNS: p64(102), FirstTokenNS: p64(102), FirstContentNS: p64(122), LastTokenNS: p64(162), DoneNS: p64(163), WantInput: 9, WantOutput: trace.Ptr[int32](3), Input: int32s(10), Cached: int32s(8), Output: int32s(3), OutputFrom: "usage", Events: 3, GapsNS: []int64{20 * ms, 40 * ms}},
			{Session: &sessions[0], DueNS: 502 * ms, SentNS: p64(502), DoneNS: p64(802), WantInput: 12, WantOutput: trace.Ptr[int32](1), Output: int32s(1), OutputFrom: "tokenizer"},
			{Session: &sessions[1], DueNS: 1002 * ms, SentNS: p64(1002), HTTPStatus: int32s(429), Error: "rate_limited"},
			{Session: &sessions[2], DueNS: 1002 * ms, SentNS: p64(1002), Error: "cancelled"},
		}},
		{"guidellm.json", guidellmFile, []result.Result{
			{Session: &sessions[0], SentNS: p64(100), FirstEventNS: p64(200), FirstTokenNS: p64(200), LastTokenNS: p64(260), DoneNS: p64(261), WantInput: 10, WantOutput: trace.Ptr[int32](3), Input: int32s(10), Cached: int32s(8), Output: int32s(3), OutputFrom: "usage"},
			{Session: &sessions[1], DueNS: 1100 * ms, SentNS: p64(1100), WantInput: 14, Input: int32s(14), Error: "other"},
			{Session: &sessions[2], DueNS: 1350 * ms, SentNS: p64(1350), Error: "cancelled"},
		}},
		{"per_request_lifecycle_metrics.json", inferencePerfFile, []result.Result{
			{SentNS: p64(0), FirstEventNS: p64(100), FirstTokenNS: p64(100), LastTokenNS: p64(160), DoneNS: p64(161), WantInput: 9, WantOutput: trace.Ptr[int32](4), Input: int32s(10), Cached: int32s(8), Output: int32s(4), OutputFrom: "usage", Events: 3, GapsNS: []int64{20 * ms, 40 * ms}, EventTokens: []int32{1, 2, 1}},
			{DueNS: 500 * ms, SentNS: p64(500), DoneNS: p64(800), WantInput: 12, WantOutput: trace.Ptr[int32](1), Output: int32s(1), OutputFrom: "tokenizer"},
			{DueNS: 1000 * ms, SentNS: p64(1000), WantInput: 14, Error: "other"},
		}},
		{"requests.jsonl", servingSimFile, []result.Result{
			{SentNS: p64(0), FirstEventNS: p64(100), FirstTokenNS: p64(100), LastTokenNS: p64(160), DoneNS: p64(160), WantInput: 10, WantOutput: trace.Ptr[int32](3), Input: int32s(10), Output: int32s(3), OutputFrom: "usage", FinishReason: "length"},
			{DueNS: 500 * ms, SentNS: p64(500), WantInput: 12, WantOutput: trace.Ptr[int32](1), Error: "other"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t, c.name, c.text)
			got := rowsOf(t, f)
			if len(got) != len(c.want) {
				t.Fatalf("%d rows, want %d", len(got), len(c.want))
			}
			for i := range got {
				c.want[i].RowID, c.want[i].Attempts = int64(i), 1
				// Unix seconds as floats are exact to a quarter of a microsecond.
				for _, at := range []*int64{&got[i].DueNS, got[i].SentNS, got[i].FirstEventNS, got[i].FirstTokenNS, got[i].LastTokenNS, got[i].DoneNS} {
					if at != nil {
						*at = (*at + ms/1000) / (ms / 500) * (ms / 500)
					}
				}
				for j := range got[i].GapsNS {
					got[i].GapsNS[j] = (got[i].GapsNS[j] + 1000) / 2000 * 2000
				}
				if !reflect.DeepEqual(got[i], c.want[i]) {
					t.Errorf("row %d:\n got %s\nwant %s", i, shown(got[i]), shown(c.want[i]))
				}
			}
			if all := fmt.Sprintf("%+v %+v", f.Run, *f.Run.Read); strings.Contains(all, "secret") {
				t.Errorf("text of the file in %s", all)
			}
		})
	}
}

func shown(r result.Result) string {
	var out []string
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() && v.Type().Field(i).Name != "Row" {
			out = append(out, fmt.Sprint(v.Type().Field(i).Name, "=", reflect.Indirect(f)))
		}
	}
	return strings.Join(out, " ")
}

func TestRunsOfEachTool(t *testing.T) {
	sglang := strings.Replace(sglangFile, "Infinity0", `"inf"`, 1)
	for _, c := range []struct {
		name, text, want string
	}{
		{"vllm.json", vllmFile, "vLLM bench serve chat m t 2026-11-22T10:15:00Z open-loop 0 of 0, 1 in flight, instants true due false 0 ns, 3 requests"},
		{"sglang.jsonl", sglang, "SGLang bench_serving completions    closed-loop 4 of 0, 0 in flight, instants false due false 2500000000 ns, 2 requests"},
		{"profile_export.jsonl", aiperfFile, "AIPerf    2023-11-14T22:13:20.998Z open-loop 0 of 0, 1 in flight, instants true due true 0 ns, 4 requests"},
		{"guidellm.json", guidellmFile, "GuideLLM 0.8.1 completions m  2023-11-14 22:13:20 UTC closed-loop 2 of 0, 1 in flight, instants true due true 0 ns, 4 requests"},
		{"per_request_lifecycle_metrics.json", inferencePerfFile, "inference-perf     open-loop 0 of 0, 1 in flight, instants true due false 0 ns, 3 requests"},
		{"requests.jsonl", servingSimFile, "LLMServingSim     open-loop 0 of 0, 1 in flight, instants true due false 0 ns, 2 requests"},
	} {
		r := open(t, c.name, c.text).Run
		started := r.Started
		if c.name == "guidellm.json" { // whose instants are floats
			started = report.ToSecond(started)
		}
		got := fmt.Sprint(strings.Join([]string{r.Read.Tool, r.API, r.Model, r.Tokenizer, started, r.Timing}, " "), " ", r.Concurrency, " of ", r.InFlightLimit, ", ", r.MaxInFlight,
			" in flight, instants ", r.Read.Instants, " due ", r.Read.Due, " ", r.Read.DurationNS, " ns, ", r.Requests, " requests")
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		if r.Watched() || r.Timed() != r.Read.Due || len(r.Read.Lacks) == 0 {
			t.Errorf("%s: watched %v, timed %v, lacks %q", c.name, r.Watched(), r.Timed(), r.Read.Lacks)
		}
	}
}

// Without instants, rates are over the duration that the tool gives, and nothing is over time.
func TestSummaryWithoutInstants(t *testing.T) {
	f := open(t, "sglang.jsonl", strings.Replace(sglangFile, "Infinity0", `"inf"`, 1))
	s, err := report.Summarise(f.Run, f.Reader(), report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if *s.DurationS != 2.5 || *s.Throughput.RequestsPerS != 0.8 || s.Latency.SendLag.Count != 0 || len(s.Series.InFlight.X) != 0 || !s.Verdict.Trustworthy {
		t.Errorf("duration %v, %v requests/s, %d lags, %d points in flight, verdict %v", *s.DurationS, *s.Throughput.RequestsPerS, s.Latency.SendLag.Count, len(s.Series.InFlight.X), s.Verdict.Reasons)
	}
}

// Python writes numbers that are not finite as no JSON: they are not known, wherever they stand.
func TestNumbersThatAreNotFinite(t *testing.T) {
	text := strings.Replace(vllmFile, `"ttfts": [0.1, 0.3`, `"mean_ttft_ms": NaN, "p99_itl_ms": -Infinity, "ttfts": [0.1, NaN`, 1)
	f := open(t, "r.json", text)
	rows := rowsOf(t, f)
	if rows[0].FirstTokenNS == nil || rows[1].FirstTokenNS != nil || rows[1].Error != "" {
		t.Errorf("%+v", rows)
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	two := strings.Replace(sglangFile, "Infinity0", "1.5", 1)
	two += two
	for _, c := range []struct {
		name, text, at, want string
	}{
		{"r.json", `{"date": "", "model_id": "m", "request_rate": "inf", "completed": 2, "duration": 1}`, "",
			"results of vLLM: it has sums and no requests, so no figure can be computed again: run it with --save-detailed"},
		{"r.json", strings.Replace(vllmFile, `"output_lens": [3, 1, 0]`, `"output_lens": [3, 1]`, 1), "", "results of vLLM: output_lens has 2 elements, and ttfts 3"},
		{"r.json", strings.Replace(vllmFile, `"ttfts": [0.1`, `"ttfts": [1e9`, 1), "", "results of vLLM: request 1: a time of 1e+09 s is longer than a run can be"},
		{"r.json", strings.Replace(vllmFile, `"itls": [[0.02`, `"itls": [["secret"`, 1), "", "results of vLLM: a value has another type than in the files of this tool"},
		{"r.json", vllmFile[:len(vllmFile)-20], "", "results of vLLM: it is cut off: copy or make it again"},
		{"r.json", strings.Replace(vllmFile, `[0.1, 0.3`, `[0.1, nan`, 1), "", "results of vLLM: it is not JSON at byte 296"},
		{"r.jsonl", two, "", "it has 2 runs: name one, such as PATH#1"},
		{"r.jsonl", two, "#3", "it has only 2 runs"},
		{"r.json", `{"metadata": {}, "benchmarks": []}`, "", "it has no run"},
		{"r.json", `{"schema_version": "1", "aiperf_version": "0.13"}`, "", "it is AIPerf's summary: name profile_export.jsonl beside it, which has the requests"},
		{"r.json", `{"load_summary": {}, "successes": {}}`, "", "it is inference-perf's summary: name per_request_lifecycle_metrics.json beside it, which report.request_lifecycle.per_request: true writes"},
		{"r.json", `[{"error_code": null, "inter_token_latency_s": 0.01, "ttft_s": 0.2, "number_output_tokens": 7}]`, "", fmt.Sprintf(unread, "LLMPerf")},
		{"r.json", `{"version": "1", "mean_input_tokens": 550, "stddev_input_tokens": 150}`, "", fmt.Sprintf(unread, "LLMPerf")},
		{"r.json", `{"experiments": [], "version": "", "service_kind": "openai", "endpoint": ""}`, "", fmt.Sprintf(unread, "GenAI-Perf")},
		{"r.json", `{"request_throughput": {}, "request_latency": {}, "input_config": {}}`, "", fmt.Sprintf(unread, "GenAI-Perf")},
		{"r.json", `{"Time taken for tests (s)": 1, "Total requests": 1, "Succeed requests": 1}`, "", fmt.Sprintf(unread, "EvalScope")},
		{"r.json", `{"elapsed_time": 1, "num_requests": 1}`, "", fmt.Sprintf(unread, "vllm bench throughput")},
		{"r.json", `{"avg_latency": 1, "latencies": [1], "percentiles": {}}`, "", fmt.Sprintf(unread, "vllm bench latency")},
		{"r.json", `{"engine": {}, "request_info": {}, "performance": {}}`, "", fmt.Sprintf(unread, "trtllm-bench")},
		{"r.jsonl", aiperfFile[:strings.IndexByte(aiperfFile, '\n')], "", "it has no requests of AIPerf"},
	} {
		path := written(t, c.name, c.text)
		_, err := Open(path + c.at)
		var e *Error
		if !errors.As(err, &e) || err.Error() != path+c.at+": "+strings.ReplaceAll(c.want, "PATH", path) {
			t.Errorf("%.40s%s:\n got %v\nwant %s", c.text, c.at, err, c.want)
		}
	}
	path := written(t, "r.jsonl", two)
	if f, err := Open(path + "#2"); err != nil || f.Rows() != 2 {
		t.Errorf("the second run: %v", err)
	}
	for _, text := range []string{"", "[", "{}", `{"a": 1}`, `["x"]`, "PAR1", "text", `{"metadata": [`} {
		path := written(t, "other.json", text)
		var e *Error
		if _, err := Open(path); err == nil || errors.As(err, &e) || Recognised(path) {
			t.Errorf("%q: %v, recognised %v", text, err, Recognised(path))
		}
	}
	for _, text := range []string{vllmFile, aiperfFile, guidellmFile, inferencePerfFile, servingSimFile} {
		if !Recognised(written(t, "r.json", text)) || Recognised(written(t, "r.txt", text)) {
			t.Errorf("not recognised by content and name: %.60s", text)
		}
	}
}

// What we write in vLLM's form comes back with the same instants and counts.
func TestOwnVLLMFile(t *testing.T) {
	f := open(t, "guidellm.json", strings.Replace(inferencePerfFile, "33399.12, 33399.12", "33399.11, 33399.12", 1))
	want := rowsOf(t, f)
	var doc bytes.Buffer
	err := peer.WriteVLLM(&doc, f.Run, f.Reader, peer.VLLMOptions{Detailed: true})
	if err != nil {
		t.Fatal(err)
	}
	back := open(t, "vllm.json", doc.String())
	if !back.Run.Timed() {
		t.Error("our own files say when requests were due, by queue_times")
	}
	got := rowsOf(t, back)
	for i := range want[:1] {
		if !reflect.DeepEqual(got[i].SentNS, want[i].SentNS) || got[i].DueNS != want[i].DueNS || !reflect.DeepEqual(got[i].FirstTokenNS, want[i].FirstTokenNS) ||
			!reflect.DeepEqual(got[i].LastTokenNS, want[i].LastTokenNS) || !reflect.DeepEqual(got[i].GapsNS, want[i].GapsNS) || *got[i].Output != *want[i].Output || *got[i].Input != *want[i].Input {
			t.Errorf("row %d:\n got %s\nwant %s", i, shown(got[i]), shown(want[i]))
		}
	}
	if got[2].Error == "" {
		t.Error("the failed request came back without an error")
	}
}

func FuzzVLLM(f *testing.F)          { fuzz(f, vllmFile) }
func FuzzSGLang(f *testing.F)        { fuzz(f, strings.Replace(sglangFile, "Infinity0", `"inf"`, 1)) }
func FuzzAIPerf(f *testing.F)        { fuzz(f, aiperfFile) }
func FuzzGuideLLM(f *testing.F)      { fuzz(f, guidellmFile) }
func FuzzInferencePerf(f *testing.F) { fuzz(f, inferencePerfFile) }

func FuzzLLMServingSim(f *testing.F) { fuzz(f, servingSimFile) }

// fuzz holds that a decoder does not panic, and that a run that it takes can be summarised or
// is refused for a row that contradicts itself.
func fuzz(f *testing.F, seed string) {
	f.Add([]byte(seed))
	f.Fuzz(func(t *testing.T, doc []byte) {
		runs, err := decode(bytes.NewReader(doc))
		if err != nil {
			return
		}
		for i := range runs {
			r := &runs[i]
			if len(r.rows) == 0 {
				continue
			}
			if err := r.finish(); err != nil {
				t.Fatal(err)
			}
			held := result.Held("fuzz", r.Run, r.rows)
			if held.Rows() != int64(len(r.rows)) {
				t.Fatal("rows were lost")
			}
			if s, err := report.Summarise(held.Run, held.Reader(), report.Options{}); err == nil {
				if err := json.NewEncoder(io.Discard).Encode(s); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
