package main

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/client"
	"reprise/replay/engine"
	"reprise/replay/result"
	"reprise/trace"
)

// targetWorkload has rows of every kind, with sessions, classes and adapters.
func targetWorkload(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "w.parquet")
	kinds := []string{"chat", "completion", "embedding", "responses"}
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		for i := range n {
			row := trace.Request{ArrivalNS: int64(i) * 1e6, Session: trace.Ptr(int64(i % 7)), Kind: kinds[i%4], Status: trace.StatusOK,
				InputTokens: int32(40 + i), OutputTokens: trace.Ptr[int32](3), Class: trace.Ptr([]string{"gold", "iron"}[i%2]), Adapter: []string{"adapter-0", ""}[i%2],
				Blocks: []uint64{0, uint64(2*i + 1), uint64(2*i + 2), uint64(2*i + 1000), uint64(2*i + 2000), uint64(2*i + 3000), uint64(2*i + 4000)}[:(40+i+15)/16]}
			if row.Kind == "embedding" {
				row.OutputTokens = trace.Ptr[int32](0)
			}
			if _, err := w.Write([]trace.Request{row}); err != nil {
				return trace.Meta{}, err
			}
		}
		return trace.Meta{BlockSize: 16}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A targetServer is a simulated endpoint that keeps what it is asked.
type targetServer struct {
	*httptest.Server
	mu     sync.Mutex
	heads  []http.Header
	bodies []map[string]json.RawMessage
	paths  map[string]int
}

func targetStart(t *testing.T, pod string, start func(*httptest.Server)) *targetServer {
	t.Helper()
	c := engine.DefaultServerConfig()
	c.Engine.Costs = engine.Costs{}
	sim, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	s := &targetServer{paths: map[string]int{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var fields map[string]json.RawMessage
		if r.Method == http.MethodPost && r.Header.Get("X-Request-Id") != "" {
			if err := json.Unmarshal(body, &fields); err != nil {
				t.Error(err)
			}
			s.mu.Lock()
			s.heads, s.bodies = append(s.heads, r.Header), append(s.bodies, fields)
			s.paths[r.URL.Path]++
			s.mu.Unlock()
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		w.Header().Set("X-Pod", pod)
		sim.Handler().ServeHTTP(w, r)
	}))
	start(s.Server)
	t.Cleanup(s.Close)
	return s
}

// targetResults reads what a replay wrote.
func targetResults(t *testing.T, path string) (result.Run, []result.Result) {
	t.Helper()
	f, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out trace.SliceWriter[result.Result]
	if _, err := trace.Copy(&out, f.Reader()); err != nil {
		t.Fatal(err)
	}
	return f.Run, out.Rows
}

// Rows of all kinds go each to their API, on two servers, with prompts that are exact
// behind every template.
func TestReplayTargets(t *testing.T) {
	a, b := targetStart(t, "pod-a", (*httptest.Server).Start), targetStart(t, "pod-b", (*httptest.Server).Start)
	w := targetWorkload(t, 40)
	dir := t.TempDir()
	out, extra, secret := filepath.Join(dir, "r.parquet"), filepath.Join(dir, "e.jsonl"), filepath.Join(dir, "secret")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(extra, `{"row":3,"header":{"X-Row":"three"},"body":{"cache_salt":"s3"}}`+"\n")
	write(secret, "from a file\n")
	t.Setenv("REPRISE_TEST_SECRET", "from the environment")
	text := must(t, "replay", w, "--url", a.URL, "--url", b.URL+"/v1?key=SECRET", "--set", "balance=session", "--api", "auto", "-o", out, "--quiet", "--details", "--max-lag", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1",
		"--header", "X-A=1", "--set", "header-env=X-B=REPRISE_TEST_SECRET", "--set", "header-file=X-C="+secret, "--set", "affinity-header=X-Session-Id", "--set", "record-header=x-pod",
		"--temperature", "0", "--top-p", "0.5", "--set", "sampling-seed=9", "--extra-body", `{"top_k":4,"temperature":1}`, "--set", "class-priority=gold=3",
		"--set", "model-map=adapter-0=lora", "--set", "row-extra="+extra, "--set", "check-deterministic=5", "--retry", "2,10ms")
	for _, want := range []string{"By endpoint", "pod-a", "pod-b", "0 differ"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	run, rows := targetResults(t, out)
	doc, err := json.Marshal(run)
	if err != nil || strings.Contains(string(doc), "SECRET") || strings.Contains(string(doc), "from a file") || strings.Contains(text, "SECRET") {
		t.Errorf("the results hold a secret: %s, %v", doc, err)
	}
	if run.API != result.APIAuto || run.Balance != client.BySession || len(run.Endpoints) != 2 || run.Retries != 2 || run.Determinism == nil || run.Determinism.Compared != 5 ||
		string(run.Sampling["temperature"]) != "0" || string(run.Sampling["top_k"]) != "4" || run.Overheads[result.APIChat] == 0 || run.Overheads[result.APICompletions] != 0 {
		t.Errorf("run %s", doc)
	}
	for _, r := range rows {
		want := []string{result.APIChat, result.APICompletions, result.APIEmbeddings, result.APIResponses}[r.RowID%4]
		if r.Error != "" || r.API != want || *r.Input != r.WantInput || r.Endpoint == nil || run.Served[0].Values[r.Served[0]] != []string{"pod-a", "pod-b"}[*r.Endpoint] {
			t.Errorf("row %d: %+v", r.RowID, r)
		}
	}
	if n := a.paths["/v1/embeddings"] + b.paths["/v1/embeddings"]; n != 10 {
		t.Errorf("%d requests for embeddings", n)
	}
	heads, bodies := slices.Concat(a.heads, b.heads), slices.Concat(a.bodies, b.bodies)
	for i, h := range heads {
		if h.Get("X-A") != "1" || h.Get("X-B") != "from the environment" || h.Get("X-C") != "from a file" || h.Get("X-Session-Id") == "" || h.Get("Traceparent") == "" {
			t.Errorf("header %v", h)
		}
		row, body := rowOfRequest(h), bodies[i]
		even := strings.Contains("02468", row[len(row)-1:])
		if (string(body["priority"]) == "3") != even || (string(body["model"]) == `"lora"`) != even || string(body["top_k"]) != "4" || string(body["temperature"]) != "0" {
			t.Errorf("row %s: %s", row, body)
		}
		if (h.Get("X-Row") == "three") != (row == "3") || (string(body["cache_salt"]) == `"s3"`) != (row == "3") {
			t.Errorf("row %s has the extras of another: %v, %s", row, h, body["cache_salt"])
		}
	}
}

// TLS by the flags, HTTP/2 and a single API.
func TestReplayTLSFlags(t *testing.T) {
	long(t)
	s := targetStart(t, "p", func(s *httptest.Server) {
		s.EnableHTTP2, s.Config.ErrorLog = true, log.New(io.Discard, "", 0)
		s.StartTLS()
	})
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	w := targetWorkload(t, 8)
	for i, how := range [][]string{
		{"--set", "tls-ca=" + ca, "--set", "http2", "--api", "responses"},
		{"--set", "tls-ca=" + ca, "--set", "tls-server-name=example.com", "--api", "embeddings", "--token-ids"},
		{"--set", "tls-insecure", "--api", "chat", "--set", "no-trace-headers", "--set", "first-token-timeout=1m", "--set", "idle-timeout=1m", "--set", "connect-timeout=5s", "--set", "proxy=none"},
	} {
		out := filepath.Join(dir, string(rune('a'+i))+".parquet")
		text := must(t, append([]string{"replay", w, "--url", s.URL, "-o", out, "--quiet", "--details", "--max-lag", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1"}, how...)...)
		run, rows := targetResults(t, out)
		if insecure := i == 2; run.TLSUnverified != insecure || strings.Contains(text, "certificate was not checked") != insecure || run.HTTP2 != (i == 0) || (run.TraceID == "") != insecure {
			t.Errorf("%v: %+v\n%s", how, run, text)
		}
		for _, r := range rows {
			if r.Error != "" || *r.Input != r.WantInput {
				t.Errorf("%v: row %d: %+v", how, r.RowID, r)
			}
		}
	}
	_, errs, code := reprise(t, "replay", w, "--url", s.URL, "-o", filepath.Join(dir, "x.parquet"), "--quiet")
	if code != cli.Failure || !strings.Contains(errs, "certificate") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// What is wrong with the flags is said before anything is sent, and quotes no value.
func TestReplayTargetFlagsAreChecked(t *testing.T) {
	w := targetWorkload(t, 2)
	dir := t.TempDir()
	extra := filepath.Join(dir, "e.jsonl")
	if err := os.WriteFile(extra, []byte("{\"row\":5}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--api", "images"}, "embeddings"}, {[]string{"--set", "balance=x"}, "balanced by"}, {[]string{"--retry", "-1"}, "--retry"},
		{[]string{"--retry", "1,SECRET"}, "--retry"}, {[]string{"--set", "tls-cert=x"}, "go together"}, {[]string{"--set", "tls-ca=" + extra}, "no certificate"},
		{[]string{"--set", "tls-insecure", "--set", "tls-ca=x"}, "cannot be used together"}, {[]string{"--set", "header-env=X=REPRISE_TEST_UNSET"}, "not set"},
		{[]string{"--header", "a b=SECRET"}, "HTTP does not allow"}, {[]string{"--set", "header-env=X"}, "want two names"},
		{[]string{"--set", "proxy=http://u:SECRET@x"}, "proxy"}, {[]string{"--set", "class-priority=gold=SECRET"}, "whole number"},
		{[]string{"--set", "model-map=a"}, "want two names"}, {[]string{"--set", "row-extra=" + extra}, "e.jsonl:1:1: the workload has 2 rows"},
		{[]string{"--set", "check-deterministic=2", "--api", "embeddings"}, "answers are text"}, {[]string{"--url", "unix://x"}, "Unix socket"},
		{[]string{"--set", "record-header=a", "--set", "record-header=b", "--set", "record-header=c", "--set", "record-header=d", "--set", "record-header=e"}, "at most 4"},
		{[]string{"--api", "responses", "--token-ids"}, "token ids"}, {[]string{"--set", "idle-timeout=-1s"}, "is not a duration"}, {[]string{"--set", "affinity-header=a:b"}, "header"},
	} {
		_, errs, code := reprise(t, append([]string{"replay", w, "-o", filepath.Join(dir, "r.parquet"), "--quiet"}, c.args...)...)
		if code == cli.Good || !strings.Contains(errs, c.want) || strings.Contains(errs, "SECRET") {
			t.Errorf("%v: exit code %d: %s", c.args, code, errs)
		}
	}
}
