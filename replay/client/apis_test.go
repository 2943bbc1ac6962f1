package client

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

const (
	apisDelta = "event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta","delta":"a"}` + "\n\n"
	apisEnd   = "event: response.incomplete\n" + `data: {"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":4},"output_tokens":3,"total_tokens":10}}}` + "\n\n"
	apisList  = `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,0.25]}],"model":"m","usage":{"prompt_tokens":9,"total_tokens":9}}`
)

// apisServer speaks all four, and keeps what it was asked.
func apisServer(t *testing.T, asked func(path, body string)) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked(r.URL.Path, string(body))
		switch r.URL.Path {
		case openai.ResponsesPath:
			hangs(apisDelta, apisDelta, apisEnd)(w, r) // whose end is not waited for
		case openai.EmbeddingsPath:
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, apisList)
		default:
			stream(role, tok, stop, usage, done)(w, r)
		}
	})
}

func TestAPIs(t *testing.T) {
	row := trace.Request{InputTokens: 2, OutputTokens: trace.Ptr[int32](3), Temperature: trace.Ptr(float32(0.5))}
	for _, c := range []struct {
		opt          Options
		kind         string
		path, body   string
		events       int32
		input        int32
		output       int32
		finish, name string
	}{
		{Options{API: result.APIResponses, ForceOutput: true}, "", "/v1/responses",
			`{"model":"m","input":" w0 w1","store":false,"stream":true,"max_output_tokens":3,"ignore_eos":true,"temperature":0.5}`, 2, 7, 3, "length", result.APIResponses},
		{Options{API: result.APIEmbeddings}, "", "/v1/embeddings", `{"model":"m","input":" w0 w1"}`, 0, 9, 0, "", result.APIEmbeddings},
		{Options{API: result.APIEmbeddings, TokenIDs: true}, "", "/v1/embeddings", `{"model":"m","input":[10,11]}`, 0, 9, 0, "", result.APIEmbeddings},
		{Options{API: result.APIAuto, TokenIDs: true}, "embedding", "/v1/embeddings", `{"model":"m","input":[10,11]}`, 0, 9, 0, "", result.APIEmbeddings},
		{Options{API: result.APIAuto, TokenIDs: true}, "completion", "/v1/completions", "", 1, 11, 3, "length", result.APICompletions},
		{Options{API: result.APIAuto, TokenIDs: true}, "chat", "/v1/chat/completions", "", 1, 11, 3, "length", result.APIChat},
		{Options{API: result.APIAuto}, "responses", "/v1/responses", "", 2, 7, 3, "length", result.APIResponses},
		{Options{API: result.APIAuto}, "", "/v1/chat/completions", "", 1, 11, 3, "length", result.APIChat},
	} {
		var path, body string
		c.opt.URL = apisServer(t, func(p, b string) { path, body = p, b })
		row.Kind = c.kind
		r := fire(t, endpoint(t, c.opt), row, 0)
		if r.Error != "" || path != c.path || c.body != "" && body != c.body {
			t.Errorf("%s %s: %q, %s\n got %s\nwant %s", c.opt.API, c.kind, r.Error, path, body, c.body)
			continue
		}
		if r.API != c.name || r.Events != c.events || *r.Input != c.input || r.Output == nil || *r.Output != c.output || r.FinishReason != c.finish {
			t.Errorf("%s %s: %+v", c.opt.API, c.kind, r)
		}
		if (r.FirstTokenNS == nil) != (c.name == result.APIEmbeddings) || r.DoneNS == nil {
			t.Errorf("%s: instants %+v", c.opt.API, r)
		}
	}
}

// The overhead is measured for each API by itself.
func TestAPIOverheads(t *testing.T) {
	h := endpoint(t, Options{API: result.APIAuto, URL: apisServer(t, func(string, string) {})})
	for api, want := range map[string]int{result.APIChat: 10, result.APICompletions: 10, result.APIResponses: 6, result.APIEmbeddings: 8} {
		if n, err := h.CalibrateAPI(t.Context(), api, "x", 1); n != want || err != nil {
			t.Errorf("%s: %d, %v", api, n, err)
		}
	}
	var run result.Run
	if h.Describe(&run); run.Overheads[result.APIResponses] != 6 || len(run.Overheads) != 4 {
		t.Errorf("%v", run.Overheads)
	}
}

// Models by adapter or label, priorities by class, and settings for all.
func TestBodies(t *testing.T) {
	extra, err := openai.ParseExtra([]byte(`{"temperature":0,"top_k":5,"cache_salt":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]json.RawMessage
	opt := Options{URL: apisServer(t, func(_, b string) {
		body = nil
		if err := json.Unmarshal([]byte(b), &body); err != nil {
			t.Error(err)
		}
	}), Extra: extra, Models: map[string]string{"a0": "lora", "m1": "big"}, Priorities: map[string]int{"gold": -1}}
	h := endpoint(t, opt)
	for _, c := range []struct {
		adapter, model, class string
		want                  string
	}{{"a0", "m1", "", `"lora" `}, {"a1", "m1", "gold", `"big" -1`}, {"", "m2", "iron", `"m" `}, {"", "", "", `"m" `}} {
		row := reachOne
		row.Adapter, row.Model, row.Temperature = c.adapter, c.model, trace.Ptr(float32(0.7))
		if c.class != "" {
			row.Class = &c.class
		}
		fire(t, h, row, 0)
		if got := string(body["model"]) + " " + string(body["priority"]); got != c.want || string(body["temperature"]) != "0" || string(body["cache_salt"]) != `"x"` {
			t.Errorf("%+v: %s, body %s", c, got, body)
		}
	}
	var run result.Run
	h.Describe(&run)
	var sampling []string
	for name, v := range run.Sampling {
		sampling = append(sampling, name+string(v))
	}
	slices.Sort(sampling)
	if got := strings.Join(sampling, " "); got != "temperature0 top_k5" {
		t.Errorf("sampling %s", got)
	}
}
