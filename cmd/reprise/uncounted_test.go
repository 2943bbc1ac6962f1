package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/report"
	"reprise/replay/result"
)

// An uncounted server speaks as much of the API as streaming takes, and never sends
// usage. It shares nothing with the simulated server.
type uncounted struct {
	strict  bool // refuses stream_options, as servers do that do not know them
	mu      sync.Mutex
	options int // requests with stream_options
	refused int
}

func (u *uncounted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/models" {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"m"}]}`)
		return
	}
	event := map[string]string{
		"/v1/chat/completions": `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":%q},"finish_reason":%s}]}`,
		"/v1/completions":      `{"object":"text_completion","choices":[{"index":0,"text":%q,"finish_reason":%s}]}`,
	}[r.URL.Path]
	if event == "" {
		http.NotFound(w, r)
		return
	}
	var asked struct {
		MaxTokens     int `json:"max_tokens"`
		StreamOptions any `json:"stream_options"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, `{"error":{"message":"not JSON"}}`, http.StatusBadRequest)
		return
	}
	u.mu.Lock()
	if asked.StreamOptions != nil {
		u.options++
	}
	refuse := u.strict && asked.StreamOptions != nil
	if refuse {
		u.refused++
	}
	u.mu.Unlock()
	if refuse {
		http.Error(w, `{"error":{"message":"Extra inputs are not permitted: stream_options"}}`, http.StatusBadRequest)
		return
	}
	// Two tokens in an event, so that events are no count of them.
	w.Header().Set("Content-Type", "text/event-stream")
	for left := asked.MaxTokens; left > 0; left -= 2 {
		text, finish := strings.Repeat(" the", min(left, 2)), "null"
		if left <= 2 {
			finish = `"length"`
		}
		fmt.Fprintf(w, "data: "+event+"\n\n", text, finish)
		w.(http.Flusher).Flush()
		time.Sleep(2 * time.Millisecond) // as a server decodes: events that come at once have no TPOT
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// A server that sends no usage is a success: lengths are estimates and say so in the
// results and in every form of the report.
func TestServerWithoutUsage(t *testing.T) {
	long(t)
	w, dir := targetWorkload(t, 12), t.TempDir()
	contract := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(contract, []byte("name: c\nclauses:\n  - output_tokens_per_s >= 1\n  - mean tpot <= 10s\n  - mean ttft <= 10s\n"+
		"  - clause: prompt_tokens_per_s >= 1\n    where: input_tokens >= 0\n  - clause: goodput >= 10%\n    slo: tpot:10s\n  - clause: goodput >= 10%\n    slo: ttft:10s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, strict := range []bool{false, true} {
		for _, api := range []string{"completions", "chat"} {
			name := fmt.Sprintf("%s, strict %v", api, strict)
			u := &uncounted{strict: strict}
			s := httptest.NewServer(u)
			defer s.Close()
			out, html := filepath.Join(dir, "r.parquet"), filepath.Join(dir, "r.html")
			text, errs, code := reprise(t, "replay", w, "--url", s.URL, "--api", api, "--rate", "constant:100", "--force-output=false", "--connections", "pooled", "--tokenizer", "o200k_base",
				"--max-lag", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1", "--max-lag-p50", "1h", "--max-lag-drift", "1h", "--max-cpu", "-1", "--contract", contract, "--html", html, "-o", out, "--quiet", "--details")
			if code != cli.Good {
				t.Fatalf("%s: code %d\n%s\n%s", name, code, errs, text)
			}
			if !strings.Contains(errs, "it sends no usage, so token counts are estimates") || !strings.Contains(errs, "12 without usage") {
				t.Errorf("%s: the run does not say that counts are estimates\n%s", name, errs)
			}
			said := strings.Join(strings.Fields(text), " ")
			page := string(read(t, html))
			for _, want := range []string{"in all, estimated", "lengths not forced, estimated", "(estimate)",
				"which is an estimate", "a tokenizer's counts are estimates"} {
				if !strings.Contains(said, want) {
					t.Errorf("%s: no %q in the text\n%s", name, want, text)
				}
			}
			for _, want := range []string{"in all, estimated", "(estimate)"} {
				if !strings.Contains(page, want) {
					t.Errorf("%s: no %q on the page", name, want)
				}
			}

			run, rows := targetResults(t, out)
			if strings.Join(run.Uncounted, " ") != api || len(run.NoStreamOptions) > 0 != strict || run.Overhead != 0 {
				t.Errorf("%s: run says %q, %q, %d", name, run.Uncounted, run.NoStreamOptions, run.Overhead)
			}
			for _, r := range rows {
				if r.Error != "" || r.Input != nil || r.OutputFrom != result.FromTokenizer || r.Output == nil || *r.Output != max(*r.WantOutput, 1) || r.Events >= max(*r.WantOutput, 2) {
					t.Errorf("%s: row %d: error %q, input %v, output %v of %d by %q, %d events", name, r.RowID, r.Error, r.Input, r.Output, *r.WantOutput, r.OutputFrom, r.Events)
				}
			}
			if strict && (u.options != 1 || u.refused != 1) || !strict && u.options != 13 {
				t.Errorf("%s: %d requests had stream_options, %d were refused", name, u.options, u.refused)
			}

			doc, _, _ := reprise(t, "report", out, "--json", "--contract", contract, "--max-lag", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1", "--max-lag-p50", "1h", "--max-lag-drift", "1h", "--max-cpu", "-1")
			var summary report.Summary
			if err := json.Unmarshal([]byte(doc), &summary); err != nil {
				t.Fatal(err)
			}
			tokens, clauses := summary.Tokens, summary.Contract.Clauses
			if tokens.PromptFromUsage != 0 || tokens.OutputSources[result.FromTokenizer] != 12 || tokens.Output == 0 || summary.Throughput.OutputTokensPerS == nil {
				t.Errorf("%s: %+v", name, tokens)
			}
			for i, want := range []int64{12, 12, 0, 12, 12, 0} {
				if c := clauses[i]; c.Estimated != want || c.Outcome != report.Holds {
					t.Errorf("%s: clause %s: %+v, want %d estimates", name, c.Clause, c, want)
				}
			}
			compared, _, _ := reprise(t, "compare", out, out, "--json")
			if !strings.Contains(compared, "token_counts_estimated") {
				t.Errorf("%s: a comparison does not say that counts are estimates", name)
			}
		}
	}
}
