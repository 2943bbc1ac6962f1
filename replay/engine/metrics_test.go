package engine_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/engine"
	"reprise/replay/openai"
)

// The bounds of vLLM's histograms, in seconds, as its metrics show them.
const (
	ttftBounds    = "0.001 0.005 0.01 0.02 0.04 0.06 0.08 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10 20 40 80 160 640 2560"
	itlBounds     = "0.01 0.025 0.05 0.075 0.1 0.15 0.2 0.3 0.4 0.5 0.75 1 2.5 5 7.5 10 20 40 80"
	requestBounds = "0.3 0.5 0.8 1 1.5 2 2.5 5 10 15 20 30 40 50 60 120 240 480 960 1920 7680"
)

// histogramText is a histogram of durations in Prometheus' text form.
func histogramText(name, bounds string, seen ...time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# TYPE vllm:%s histogram\n", name)
	var sum time.Duration
	for _, d := range seen {
		sum += d
	}
	for _, bound := range append(strings.Fields(bounds), "+Inf") {
		n, most := 0, 1e18
		if bound != "+Inf" {
			most, _ = strconv.ParseFloat(bound, 64)
		}
		for _, d := range seen {
			if d.Seconds() <= most {
				n++
			}
		}
		fmt.Fprintf(&b, "vllm:%s_bucket{model_name=\"sim\",le=\"%s\"} %d\n", name, bound, n)
	}
	fmt.Fprintf(&b, "vllm:%s_sum{model_name=\"sim\"} %g\nvllm:%s_count{model_name=\"sim\"} %d\n", name,
		sum.Seconds(), name, len(seen))
	return b.String()
}

// All of /metrics, while one request runs, one waits and one has been answered.
func TestMetricsToTheByte(t *testing.T) {
	const ms = time.Millisecond
	c := slow() // a step of 10 ms for each token of an answer, and 10 ms before the first
	c.Engine.MaxSeqs, c.Engine.BlockSize, c.Engine.KVTokens = 1, 2, 400
	bubble(t, func(t *testing.T) {
		h := faultServer(t, c)
		ask := func(prompt string, tokens int) {
			body := fmt.Sprintf(`{"prompt":"%s","max_tokens":%d,"ignore_eos":true}`, prompt, tokens)
			playWire(t, h, newWire(), t.Context(), openai.CompletionsPath, body, "")
		}
		ask("one two three", 3)      // 40 ms: 20, and 2 × 10
		go ask("one two three", 100) // finds 2 of 3 tokens
		synctest.Wait()
		go ask("one two", 1) // waits
		time.Sleep(25 * ms)  // one token is out
		synctest.Wait()
		want := ""
		put := func(kind, name string, value int) {
			want += fmt.Sprintf("# TYPE vllm:%s %s\nvllm:%s{model_name=\"sim\"} %d\n", name, kind, name, value)
		}
		want += "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{model_name=\"sim\",block_size=\"2\",enable_prefix_caching=\"True\",num_gpu_blocks=\"200\"} 1\n"
		put("gauge", "num_requests_running", 1)
		put("gauge", "num_requests_waiting", 1)
		put("counter", "prompt_tokens_total", 8) // the engine has the queue: the third is with it
		put("counter", "generation_tokens_total", 4)
		put("counter", "prefix_cache_queries_total", 6)
		put("counter", "prefix_cache_hits_total", 2)
		put("counter", "num_preemptions_total", 0)
		// The second token is under way: 4 tokens in 2 of 200 blocks.
		want += "# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{model_name=\"sim\"} 0.01\n"
		want += "# TYPE vllm:request_success_total counter\n"
		for _, end := range []string{`stop"} 0`, `length"} 1`, `abort"} 0`} {
			want += `vllm:request_success_total{model_name="sim",finished_reason="` + end + "\n"
		}
		want += histogramText("time_to_first_token_seconds", ttftBounds, 20*ms, 20*ms)
		want += histogramText("inter_token_latency_seconds", itlBounds, 10*ms, 10*ms)
		want += histogramText("e2e_request_latency_seconds", requestBounds, 40*ms)
		want += histogramText("request_queue_time_seconds", requestBounds, 0, 0)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if got := w.Body.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if got := w.Header().Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
			t.Errorf("content type %q", got)
		}
		time.Sleep(time.Minute)
		// The 10 ms before the scheduler sees a request are not its queue.
		want = histogramText("request_queue_time_seconds", requestBounds, 0, 0, 1000*ms)
		if got := metricsOf(h); !strings.HasSuffix(got, want) {
			t.Errorf("after the wait: got\n%s\nwant\n%s", got, want)
		}
	})
}

// An embedding counts as a request of so long a time, without tokens of an answer.
func TestEmbeddingInMetrics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := faultServer(t, slow())
		playWire(t, h, newWire(), t.Context(), openai.EmbeddingsPath, `{"input":[1,2,3]}`, "")
		text, want := metricsOf(h), histogramText("e2e_request_latency_seconds", requestBounds, 20*time.Millisecond)
		if !strings.Contains(text, want) || !strings.Contains(text,
			histogramText("time_to_first_token_seconds", ttftBounds)) || counts(h) != "3 0 0 1 0" {
			t.Errorf("%s: got\n%s\nwant\n%s", counts(h), text, want)
		}
	})
}

// What else a server tells: its model, the tokens of a text, that it is well.
func TestOtherEndpointsToTheByte(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := fast()
		c.Model, c.MaxModelLen = "mine", 4000
		h := faultServer(t, c)
		for _, row := range []struct{ method, path, body, want string }{
			{"GET", "/v1/models", "", `{"data":[{"id":"mine","object":"model","created":946684800,"owned_by":"reprise","max_model_len":4000}],"object":"list"}`},
			{"POST", "/tokenize", `{"prompt":"hello world"}`, `{"count":2,"max_model_len":4000,"tokens":[24912,2375]}`},
			{"POST", "/tokenize", `{}`, `{"count":0,"max_model_len":4000,"tokens":[]}`},
			{"GET", "/health", "", ""},
			{"POST", "/reset_prefix_cache", "", ""},
		} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(row.method, row.path, strings.NewReader(row.body)))
			if w.Code != 200 || w.Body.String() != row.want || row.want != "" &&
				w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%s: %d %s; want %s", row.path, w.Code, w.Body, row.want)
			}
		}
	})
}

// adminCall has a server take settings, and returns its answer.
func adminCall(t *testing.T, c engine.ServerConfig, bodies ...string) (int, string) {
	t.Helper()
	c.Admin = true
	h := faultServer(t, c)
	w := httptest.NewRecorder()
	for _, body := range bodies {
		w = httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/admin/config", strings.NewReader(body)))
	}
	if !json.Valid(w.Body.Bytes()) || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%v: %s, %s", bodies, w.Header().Get("Content-Type"), w.Body)
	}
	return w.Code, w.Body.String()
}

// /admin/config shows all settings after a change, takes the last values that are right,
// and says which one is wrong.
func TestAdminToTheByte(t *testing.T) {
	config := slow()
	config.Imitate, config.Quirks, config.Faults, config.FaultSeed, config.Engine.MaxWaiting = "vllm", "crlf",
		"cut:1%", 7, 9
	const costs = `{"costs":"step=10ms,kv-token=0ps,prefill-token=0ps,decode-seq=0ps,request=10ms","max_waiting":9,`
	const same = `"imitate":"vllm","quirks":"crlf","faults":"cut:1%","fault_seed":7}`
	for _, row := range []struct {
		body   string
		status int
		want   string
	}{
		{`{}`, 200, costs + same},
		{`{"costs":"step=0s,kv-token=1ps","max_waiting":0}`, 200,
			`{"costs":"step=0ps,kv-token=1ps,prefill-token=0ps,decode-seq=0ps,request=10ms","max_waiting":0,` + same},
		{`{"imitate":"","quirks":"cr","faults":"","fault_seed":8}`, 200,
			costs + `"imitate":"","quirks":"cr","faults":"","fault_seed":8}`},
		{`{"costs":"step=-1ns"}`, 400, `{"error":"costs: step: not a time such as 40ns, 2.5us or 5ms, of at most 1,000 s"}`},
		{`{"costs":"expert=1s"}`, 400,
			`{"error":"simulated engine: it has a cost of experts and none of them: that cost comes from --model-config"}`},
		{`{"max_waiting":-1}`, 400, `{"error":"max_waiting: it must not be negative"}`},
		{`{"costs":7}`, 400, `{"error":"costs: not a value of its type"}`},
		{`{"none":7}`, 400, `{"error":"none: no such setting"}`},
		{`null`, 400, `{"error":"the body is not a JSON object"}`},
		{`[]`, 400, `{"error":"the body is not a JSON object"}`},
		{`{"imitate":"none"}`, 400, `{"error":"simulated engine: unknown server to imitate: want one of vllm, llm-d, llama-server, ollama"}`},
		{`{"faults":"` + strings.Repeat(" ", 1<<20) + `"}`, 400, `{"error":"http: request body too large"}`},
	} {
		if status, got := adminCall(t, config, row.body); status != row.status || got != row.want {
			t.Errorf("%.80s: %d %s; want %d %s", row.body, status, got, row.status, row.want)
		}
		if row.status == 400 { // nothing of it is taken, and the next change is as if it had not been
			_, before := adminCall(t, config, `{}`)
			if _, after := adminCall(t, config, row.body, `{}`); after != before {
				t.Errorf("%.80s changed the settings to %s", row.body, after)
			}
		}
	}
}

// Times that /admin/config changed hold for the requests that follow, and so does the queue.
func TestAdminChangesTakeEffect(t *testing.T) {
	c := slow()
	c.Admin, c.Engine.MaxSeqs = true, 1
	bubble(t, func(t *testing.T) {
		h := faultServer(t, c)
		settings := `{"costs":"request=1s,prefill-token=30s,step=60s","max_waiting":0}`
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/admin/config", strings.NewReader(settings)))
		first := newWire()
		go playWire(t, h, first, t.Context(), openai.CompletionsPath,
			`{"prompt":"one two three","max_tokens":2,"ignore_eos":true}`, "")
		synctest.Wait()
		second := newWire()
		playWire(t, h, second, t.Context(), openai.CompletionsPath, `{"prompt":"x"}`, "")
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(second.lines) != 2 || second.lines[0] != "0 status 429" || len(first.lines) != 1 ||
			!strings.HasPrefix(first.lines[0], "151000 {") {
			t.Errorf("the first got %v; the second, beyond the queue, %v", first.lines, second.lines)
		}
	})
}
