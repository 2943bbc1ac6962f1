package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
)

// verbatimBodies are requests of a log, out of order: each is sent as it is.
var verbatimBodies = []struct{ at, path, input string }{
	{"04.30", "/v1/chat/completions", `"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"why \"<b>\" & \u00e9\n\u0000?"}]`},
	{"04.10", "/v1/chat/completions", `"messages":[{"role":"user","content":"what time is it in the harbour town"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"clock","arguments":"{\"at\": \"here\"}"}}]},` +
		`{"role":"tool","content":"noon","tool_call_id":"c1"}],"tools":[{"type":"function","function":{"name":"clock","parameters":{"type":"object"}}}]`},
	{"04.40", "/v1/completions", `"prompt":"Once upon a time,  "`},
	{"04.20", "/v1/chat/completions", `"messages":[{"role":"user","content":"what time is it in the harbour town"}]`},
}

func verbatimLog(t *testing.T) string {
	t.Helper()
	var log strings.Builder
	for _, b := range verbatimBodies {
		kind, reply := "chat", `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"a secret reply"}}]}`
		if b.path == "/v1/completions" {
			kind, reply = "completion", `{"choices":[{"index":0,"finish_reason":"stop","text":"a secret reply"}]}`
		}
		fmt.Fprintf(&log, `{"timestamp":"2026-01-02T03:04:%sZ","model":"m","kind":%q,%s,"response":%s}`+"\n", b.at, kind, b.input, reply)
	}
	path := filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A verbatimServer keeps the inputs that it is sent, in their order.
type verbatimServer struct {
	*httptest.Server
	strict bool // refuses stream_options

	mu   sync.Mutex
	seen []string // path and input
}

func newVerbatimServer(t *testing.T) *verbatimServer {
	s := &verbatimServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			io.WriteString(rw, `{"data":[{"id":"m"}]}`)
			return
		}
		if r.Method != http.MethodPost {
			http.NotFound(rw, r)
			return
		}
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("the body is no JSON: %v", err)
		}
		if _, ok := body["stream_options"]; ok && s.strict {
			http.Error(rw, `{"error":{"message":"unknown field stream_options"}}`, http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.seen = append(s.seen, r.URL.Path+verbatimInput(body))
		s.mu.Unlock()
		rw.Header().Set("Content-Type", "text/event-stream")
		if r.URL.Path == "/v1/completions" {
			io.WriteString(rw, `data: {"choices":[{"index":0,"text":"x","finish_reason":"length"}]}`+"\n\n")
		} else {
			io.WriteString(rw, `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"length"}]}`+"\n\n")
		}
		io.WriteString(rw, `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s
}

// verbatimInput is the input of a body in one spelling.
func verbatimInput(body map[string]any) string {
	input := map[string]any{}
	for _, name := range []string{"messages", "prompt", "tools"} {
		if v, ok := body[name]; ok {
			input[name] = v
		}
	}
	b, _ := json.Marshal(input)
	return string(b)
}

// The text that import keeps is sent as it was, each request when it was; nothing
// else reads it, and no other file has it.
func TestVerbatimReplay(t *testing.T) {
	long(t)
	log, dir := verbatimLog(t), t.TempDir()
	house, raw := filepath.Join(dir, "t.parquet"), filepath.Join(dir, "t.raw.parquet")
	must(t, "import", log, "--format", "openai-log", "--map", "kind=kind", "--tier", "raw", "-o", house)
	for _, path := range []string{house, raw} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
	var want []string
	for _, i := range []int{1, 3, 0, 2} {
		var body map[string]any
		if err := json.Unmarshal([]byte("{"+verbatimBodies[i].input+"}"), &body); err != nil {
			t.Fatal(err)
		}
		want = append(want, verbatimBodies[i].path+verbatimInput(body))
	}
	server := newVerbatimServer(t)
	results := filepath.Join(dir, "r.parquet")
	replays := func(want []string, args ...string) {
		t.Helper()
		server.seen = nil
		must(t, append([]string{"replay", house, "--verbatim", raw, "--url", server.URL, "-o", results, "--open-loop", "--quiet"}, args...)...)
		// Before, each API is asked for a token, to see whether it takes stream_options.
		if !slices.Equal(server.seen[min(2, len(server.seen)):], want) {
			t.Errorf("%v:\n%s\nwant\n%s", args, strings.Join(server.seen, "\n"), strings.Join(want, "\n"))
		}
	}
	replays(want)
	server.strict = true
	replays(want)
	server.strict = false
	replays(want, "--connections", "pooled")
	replays(want[1:3], "--start", "50ms", "--end", "250ms", "--set", "prime=none")
	replays(append(want[:2:2], want[:2]...), "--max-requests", "2", "--loop", "2", "--set", "loop-same")
	r, err := result.Open(results)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Run.Prompts != result.PromptsVerbatim || !strings.HasPrefix(r.Run.Verbatim, "sha256:") {
		t.Errorf("%q, %q", r.Run.Prompts, r.Run.Verbatim)
	}

	secret := textRuns([]string{"what time is it in the harbour town", "Once upon a time,  ", `{"at": "here"}`, "a secret reply"})
	for _, path := range []string{house, results} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := leaks(append(b, decoded(t, b)...), secret); n > 0 {
			t.Errorf("%s: %d runs of text", path, n)
		}
	}
	if b, _ := os.ReadFile(raw); leaks(decoded(t, b), secret) == 0 {
		t.Error("the scan is blind")
	}
}

// Text goes to nobody but its owner, and with no trace but its own.
func TestVerbatimRefusals(t *testing.T) {
	long(t)
	log, dir := verbatimLog(t), t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	must(t, "import", log, "--tier", "raw", "-o", file("t.parquet"))
	must(t, "import", log, "--tier", "raw", "-o", file("again.parquet"))
	must(t, "import", log, "-o", file("plain.parquet"))
	must(t, "slice", file("t.parquet"), "--end", "250ms", "-o", file("slice.parquet"))
	must(t, "synth", "--mirror", file("t.parquet"), "-o", file("mirror.parquet"))
	b, err := os.ReadFile(file("t.raw.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"open.raw.parquet": 0o640, "cut.raw.parquet": 0o600} {
		if name[0] == 'c' {
			b = b[:len(b)-9]
		}
		if err := os.WriteFile(file(name), b, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(why string, args ...string) {
		t.Helper()
		_, errs, code := reprise(t, args...)
		if code == cli.Good || !strings.Contains(errs, why) || strings.Contains(errs, "harbour") {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
	verbatim := func(w, raw string, more ...string) []string {
		return append([]string{"replay", file(w), "--verbatim", file(raw), "--url", "http://127.0.0.1:1", "-o", file("r.parquet")}, more...)
	}
	refused("the digests differ", verbatim("t.parquet", "again.raw.parquet")...)
	refused("the digests differ", verbatim("again.parquet", "t.raw.parquet", "--dry-run")...)
	refused("no raw file", verbatim("plain.parquet", "t.raw.parquet")...)
	refused("no raw file", verbatim("slice.parquet", "t.raw.parquet")...)
	refused("no raw file", verbatim("mirror.parquet", "t.raw.parquet")...)
	refused("chmod 600", verbatim("t.parquet", "open.raw.parquet")...)
	refused("", verbatim("t.parquet", "cut.raw.parquet")...)
	refused("not a raw file", verbatim("t.parquet", "plain.parquet")...)
	refused("--set loop-same", verbatim("t.parquet", "t.raw.parquet", "--loop", "2")...)
	refused("--token-ids", verbatim("t.parquet", "t.raw.parquet", "--token-ids")...)
	for _, args := range [][]string{{"profile"}, {"anonymize", "-o", file("x.parquet")}, {"import", "-o", file("x.parquet")}, {"synth", "-o", file("x.parquet")},
		{"slice", "-o", file("x.parquet")}, {"export", "--to", "mooncake"}, {"report"}, {"audit"}} {
		refused("only replay --verbatim opens", append(args, file("t.raw.parquet"))...)
	}
	refused("no pipe", "import", log, "--tier", "raw", "-o", "-")
	refused("no pipe", "import", log, "--tier", "raw", "-o", os.DevNull)
	refused("would be overwritten", "import", file("t.raw.parquet"), "--tier", "raw", "-o", file("t.parquet"))
}

// A failed import leaves neither file.
func TestVerbatimIsWholeOrNothing(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log.jsonl")
	if err := os.WriteFile(log, []byte(confineLog+"not a record\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, code := reprise(t, "import", log, "--tier", "raw", "-o", filepath.Join(dir, "t.parquet")); code != cli.Failure {
		t.Errorf("exit code %d", code)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
