package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/engine"
	"reprise/replay/openai"
)

const (
	faultChat = `{"model":"sim","messages":[{"role":"user","content":"hello there"}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":4,"ignore_eos":true}`
	faultText = `{"model":"sim","prompt":"one two three","stream":true,"stream_options":{"include_usage":true},"max_tokens":4,"ignore_eos":true}`
)

// faultAsk has a server's handler answer a request that chooses its quirks.
func faultAsk(t testing.TB, h http.Handler, ctx context.Context, path, body, quirks string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(ctx, "POST", path, strings.NewReader(body))
	if quirks != "" {
		r.Header.Set(engine.FaultHeader, quirks)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func faultServer(t testing.TB, c engine.ServerConfig) http.Handler {
	t.Helper()
	s, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	return s.Handler()
}

// What each quirk puts on the wire, where a client that copes with it shows
// nothing of it.
func TestQuirksOnTheWire(t *testing.T) {
	c := fast()
	c.FaultHeader = true
	h := faultServer(t, c)
	for _, row := range []struct {
		quirk string
		path  string
		has   string // each n× as often
		n     int
	}{
		{"", openai.ChatPath, `"delta":{"role":"assistant","content":""}`, 1},
		{"", openai.ChatPath, `"delta":{"content":"`, 4},
		{"", openai.ChatPath, `"usage":{"prompt_tokens":`, 1},
		{"", openai.ChatPath, "data: [DONE]\n\n", 1},
		{"role-first", openai.ChatPath, `"role":"assistant"`, 1},
		{"role-every-delta", openai.ChatPath, `"delta":{"role":"assistant","content":`, 5},
		{"role-every-delta,role-first", openai.ChatPath, `"role":"assistant"`, 1},
		{"null-content", openai.ChatPath, `"delta":{"role":"assistant","content":null}`, 1},
		{"empty-deltas", openai.ChatPath, `"delta":{"content":""}`, 4},
		{"empty-deltas", openai.CompletionsPath, `"text":""`, 5},
		{"progress-events", openai.CompletionsPath, `"text":"","finish_reason":null}],"prompt_progress":{"total":3,`, 1},
		{"timings", openai.ChatPath, `"timings":{"cache_n":`, 1},
		{"multi-token-events=3", openai.CompletionsPath, `"text":" `, 2},
		{"tokens-without-event", openai.CompletionsPath, `"text":" `, 3},
		{"tokens-without-event", openai.CompletionsPath, `"text":"","finish_reason":null`, 1},
		{"tokens-without-event", openai.CompletionsPath, `"completion_tokens":4`, 1},
		{"reasoning-only", openai.ChatPath, `"delta":{"reasoning_content":"`, 4},
		{"reasoning-only=3", openai.ChatPath, `"delta":{"reasoning_content":"`, 3},
		{"reasoning-only,reasoning-field-name", openai.ChatPath, `"delta":{"reasoning":"`, 4},
		{"tool-calls", openai.ChatPath, `"function":{"name":"look_up","arguments":"{\"words\":\"`, 1},
		{"tool-calls", openai.ChatPath, `"function":{"name":null,"arguments":"`, 3},
		{"tool-calls", openai.ChatPath, `\"}"}}]},"finish_reason":"tool_calls"}`, 1},
		{"choices=3", openai.ChatPath, `{"index":2,"delta":{"content":"`, 4},
		{"choices=3", openai.ChatPath, `"finish_reason":"length"}],"usage":{"prompt_tokens":`, 3},
		{"same-id", openai.ChatPath, `"id":"chatcmpl-379"`, 7},
		{"per-choice-ids,choices", openai.CompletionsPath, `-1","object"`, 5},
		{"chat-ids", openai.CompletionsPath, `"id":"chatcmpl-`, 6},
		{"usage-null", openai.ChatPath, `"usage":null`, 6},
		{"usage-zeros", openai.ChatPath, `"usage":{"prompt_tokens":0,"completion_tokens":0,`, 6},
		{"usage-zeros=completions", openai.ChatPath, `"usage":{`, 1},
		{"usage-zeros=completions", openai.CompletionsPath, `"usage":{`, 6},
		{"usage-every-chunk", openai.ChatPath, `"usage":{`, 7},
		{"usage-every-chunk", openai.CompletionsPath, `"completion_tokens":3`, 1},
		{"usage-on-finish", openai.ChatPath, `"finish_reason":"length"}],"usage":{`, 1},
		{"usage-on-finish", openai.ChatPath, `"choices":[]`, 0},
		{"usage-missing", openai.ChatPath, `usage`, 0},
		{"no-cached-tokens", openai.ChatPath, `cached_tokens`, 0},
		{"crlf", openai.CompletionsPath, "}\r\n\r\ndata: ", 6},
		{"cr", openai.CompletionsPath, "}\r\rdata: ", 6},
		{"no-space", openai.CompletionsPath, "data:{", 6},
		{"multi-line-data", openai.CompletionsPath, ",\ndata: \"choices\":", 6},
		{"comments", openai.CompletionsPath, ":\n\n: ping\n\ndata: : keepalive\n\ndata: \n\n", 5},
		{"error-mid-stream", openai.CompletionsPath,
			`data: {"error":{"message":"the engine failed","type":"InternalServerError","param":null,"code":500}}` +
				"\n\ndata: [DONE]\n\n", 1},
		{"error-mid-stream=close,error-code=string", openai.CompletionsPath, `"code":"error_500"`, 1},
		{"error-mid-stream=close", openai.CompletionsPath, "[DONE]", 0},
		{"finish-reason=remote_decode", openai.CompletionsPath, `"finish_reason":"remote_decode"`, 1},
		{"no-finish-reason", openai.CompletionsPath, `"finish_reason":"`, 0},
		{"no-done", openai.CompletionsPath, "[DONE]", 0},
		{"done-twice", openai.CompletionsPath, "data: [DONE]\n\ndata: [DONE]\n\n", 1},
		{"more-output=2", openai.CompletionsPath, `"completion_tokens":6`, 1},
		{"prompt-cut=2", openai.CompletionsPath, `"prompt_tokens":2`, 1},
	} {
		body := faultChat
		if row.path == openai.CompletionsPath {
			body = faultText
		}
		w := faultAsk(t, h, t.Context(), row.path, body, row.quirk)
		if n := strings.Count(w.Body.String(), row.has); n != row.n {
			t.Errorf("%s: %d times %s, want %d, in\n%s", row.quirk, n, row.has, row.n, w.Body)
		}
	}
}

// Running usage comes when it is asked for.
func TestContinuousUsage(t *testing.T) {
	h := faultServer(t, fast())
	w := faultAsk(t, h, t.Context(), openai.CompletionsPath,
		strings.Replace(faultText, `"include_usage":true`, `"include_usage":true,"continuous_usage_stats":true`, 1), "")
	for n := 1; n <= 4; n++ {
		if want := fmt.Sprintf(`"completion_tokens":%d,`, n); !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestErrorAnswers(t *testing.T) {
	c := fast()
	c.FaultHeader, c.MaxModelLen = true, 20
	h := faultServer(t, c)
	for _, row := range []struct {
		quirk, body string
		status      int
		retry, says string // what the body must say; "-" is no body
	}{
		{"error=400", faultText, 400, "", `"type":"BadRequestError","param":null,"code":400`},
		{"error=403", faultText, 403, "", "-"},
		{"error=404", faultText, 404, "", "NotFoundError"},
		{"error=429", faultText, 429, "", "RateLimitError"},
		{"error=429,retry-after=3", faultText, 429, "3", "RateLimitError"},
		{"error=503,retry-after=0", faultText, 503, "0", "InternalServerError"},
		{"error=500,retry-after=3", faultText, 500, "", "InternalServerError"},
		{"error=529,error-code=string", faultText, 529, "", `"code":"error_529"`},
		{"error=500,error-code=null", faultText, 500, "", `"code":null`},
		{"error=500,error-code=empty", faultText, 500, "", "-"},
		{"model-404", faultText, 200, "", "[DONE]"},
		{"model-404", `{"model":"other","prompt":"x"}`, 404, "", "NotFoundError"},
		{"bad-json-500", `{`, 500, "", "InternalServerError"},
		{"", `{"prompt":"` + strings.Repeat("word ", 40) + `","max_tokens":4}`, 400, "", "context length"},
		{"", `{"prompt":"x","max_tokens":19}`, 200, "", `"total_tokens":20`},
		{"prompt-cut", `{"prompt":"` + strings.Repeat("word ", 40) + `","max_tokens":4}`, 200, "", `"prompt_tokens":16`},
		{"local-host-only", faultText, 403, "", "-"}, // httptest's host is example.com
		{"refuse=1s", faultText, 501, "", "own port"},
		{"stall", faultText, 400, "", "quirk stall: its value is a duration"},
	} {
		w := faultAsk(t, h, t.Context(), openai.CompletionsPath, row.body, row.quirk)
		if w.Code != row.status || w.Header().Get("Retry-After") != row.retry {
			t.Errorf("%s: status %d, Retry-After %q", row.quirk, w.Code, w.Header().Get("Retry-After"))
		}
		if b := w.Body.String(); (row.says == "-") != (b == "") || row.says != "-" && !strings.Contains(b, row.says) {
			t.Errorf("%s: the body is %s", row.quirk, b)
		}
	}
}

// A full queue asks to come again, when the server is told to say so.
func TestQueueFullRetryAfter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := fast()
		c.Engine.MaxSeqs, c.Engine.MaxWaiting, c.Engine.Costs.Step, c.Quirks = 1, 0, 1e12, "retry-after=2"
		h := faultServer(t, c)
		go faultAsk(t, h, t.Context(), openai.CompletionsPath, faultText, "")
		synctest.Wait()
		if w := faultAsk(t, h, t.Context(), openai.CompletionsPath, faultText, ""); w.Code != 429 ||
			w.Header().Get("Retry-After") != "2" {
			t.Errorf("status %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
		}
	})
}

// The header is nothing to a server that was not told to honour it.
func TestFaultHeaderIsOff(t *testing.T) {
	if w := faultAsk(t, faultServer(t, fast()), t.Context(), openai.CompletionsPath, faultText,
		"error=500"); w.Code != 200 {
		t.Errorf("status %d", w.Code)
	}
}

// faultFates are the statuses of the first n requests.
func faultFates(t testing.TB, faults string, seed uint64, n int) string {
	c := fast()
	c.Faults, c.FaultSeed = faults, seed
	h := faultServer(t, c)
	var b strings.Builder
	for range n {
		w := faultAsk(t, h, t.Context(), openai.CompletionsPath, `{"prompt":"x","max_tokens":1}`, "")
		b.WriteByte("0123456789"[w.Code/100])
	}
	return b.String()
}

// The n-th request has the same fate in every run, and shares are kept.
func TestFaultsAreDrawnAlike(t *testing.T) {
	const n = 2000
	one := faultFates(t, "error=503:10%,error=429:20%", 7, n)
	if again := faultFates(t, "error=503:10%,error=429:20%", 7, n); again != one {
		t.Error("another run has other fates")
	}
	if other := faultFates(t, "error=503:10%,error=429:20%", 8, n); other == one {
		t.Error("another seed has the same fates")
	}
	// Of two that exclude each other the later holds: 20 %, and 10 % of the rest.
	for _, c := range []struct {
		digit string
		share float64
	}{{"4", 0.2}, {"5", 0.08}} {
		got := float64(strings.Count(one, c.digit))
		if sd := math.Sqrt(n * c.share * (1 - c.share)); math.Abs(got-n*c.share) > 4*sd {
			t.Errorf("%g of %d are of %sxx, want %g", got, n, c.digit, n*c.share)
		}
	}
	if all := faultFates(t, "error=503:100%", 1, 50); strings.Trim(all, "5") != "" {
		t.Errorf("of all: %s", all)
	}
	if none := faultFates(t, "error=503:0%", 1, 50); strings.Trim(none, "2") != "" {
		t.Errorf("of none: %s", none)
	}
}

// The promise of keep-alive is broken after the answer, which is whole.
func TestCloseKeepAlive(t *testing.T) {
	c := fast()
	c.Quirks = "close-keep-alive"
	srv := start(t, c)
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(faultText),
		faultText)
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	var body strings.Builder
	if _, err := bufio.NewReader(resp.Body).WriteTo(&body); err != nil ||
		!strings.HasSuffix(body.String(), "data: [DONE]\n\n") {
		t.Errorf("the body ends with %v", err)
	}
	if resp.Close || resp.Header.Get("Keep-Alive") != "timeout=5, max=100" {
		t.Errorf("headers %v", resp.Header)
	}
	if _, err := in.ReadByte(); err == nil {
		t.Error("the connection is open")
	}
}

// The port is closed for a time, and open again after it.
func TestGate(t *testing.T) {
	c := fast()
	c.FaultHeader = true
	s, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(s.Handler())
	srv.Listener = s.Gate(srv.Listener)
	srv.Start()
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(quirk string) error {
		r, _ := http.NewRequest("POST", srv.URL+openai.CompletionsPath, strings.NewReader(faultText))
		r.Header.Set(engine.FaultHeader, quirk)
		resp, err := client.Do(r)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	if err := ask(""); err != nil {
		t.Fatal(err)
	}
	if err := ask("refuse=300ms"); err == nil {
		t.Error("the request was answered")
	}
	if conn, err := net.Dial("tcp", srv.Listener.Addr().String()); err == nil {
		conn.Close()
		t.Error("the port is open")
	}
	for end := time.Now().Add(20 * time.Second); ask("") != nil; {
		if time.Now().After(end) {
			t.Fatal("the port did not open again")
		}
	}
}

// A client that goes frees its place with the next step; who waits is next.
func TestAbortWithinAStep(t *testing.T) {
	model := fast()
	model.Engine.MaxSeqs, model.Engine.Costs.Step = 1, 10e9
	bubble(t, func(t *testing.T) {
		h := faultServer(t, model)
		ctx, cancel := context.WithTimeout(t.Context(), 1003*time.Millisecond)
		defer cancel()
		long := strings.Replace(faultText, `"max_tokens":4`, `"max_tokens":100000`, 1)
		begin := time.Now()
		go faultAsk(t, h, ctx, openai.CompletionsPath, long, "")
		synctest.Wait()
		faultAsk(t, h, t.Context(), openai.CompletionsPath,
			strings.Replace(faultText, `"max_tokens":4`, `"max_tokens":1`, 1), "")
		// The step under way, and the one of this request.
		if took := time.Since(begin); took < 1003*time.Millisecond || took > 1023*time.Millisecond {
			t.Errorf("the next request was answered after %v", took)
		}
	})
}

// Settings hold for the requests that follow, and only a server that is told to shows them.
func TestAdmin(t *testing.T) {
	c := fast()
	c.Admin = true
	h := faultServer(t, c)
	call := func(method, body string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/admin/config", strings.NewReader(body)))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	if status, answer := call("POST", `{"faults":"error=503:100%","max_waiting":3}`); status != 200 ||
		!strings.Contains(answer, `"max_waiting":3`) || !strings.Contains(answer, "error=503") {
		t.Errorf("%d %s", status, answer)
	}
	if w := faultAsk(t, h, t.Context(), openai.CompletionsPath, faultText, ""); w.Code != 503 {
		t.Errorf("status %d after the change", w.Code)
	}
	if status, _ := call("POST", `{"faults":"","costs":"step=1000s"}`); status != 200 {
		t.Errorf("status %d", status)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if w := faultAsk(t, h, ctx, openai.CompletionsPath, faultText, ""); strings.Contains(w.Body.String(), "[DONE]") {
		t.Error("the time between tokens did not change")
	}

	c.Admin = false
	w := httptest.NewRecorder()
	faultServer(t, c).ServeHTTP(w, httptest.NewRequest("GET", "/admin/config", nil))
	if w.Code != 404 {
		t.Errorf("status %d where it is off", w.Code)
	}
}
