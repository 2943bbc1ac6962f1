package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
	"reprise/trace"
)

// scenarioFile writes rules that sessions of a few seconds can keep.
func scenarioFile(t *testing.T, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	text := "name: short\nversion: short-1\nrules:\n  sessions: {given: true}\n  recycle: {is: apart}\n  waits: {is: ends}\n  gap-cap: {unset: true}\nlimits:\n  too_long: 1%\n  errors: 10%\n" + more
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func stampOf(t *testing.T, out string) *result.Scenario {
	t.Helper()
	f, err := result.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Run.Scenario
}

// The rules of a file are filled in, and the stamp is in the results, the text, the JSON and
// the page. What the measurement on a busy machine adds is no part of the test.
func TestScenario(t *testing.T) {
	long(t)
	w, _ := agentWorkload(t, 12)
	meta, err := trace.Open(w)
	if err != nil {
		t.Fatal(err)
	}
	digest := meta.Meta.Digest
	meta.Close()
	server, dir := newSessionServer(t), t.TempDir()
	out, html := filepath.Join(dir, "r.parquet"), filepath.Join(dir, "r.html")
	args := []string{"replay", w, "--url", server.url, "-o", out, "--sessions", "3", "--scenario", scenarioFile(t, "workloads: ["+digest+"]\nsubmission: [a stamp]\n"), "--html", html}
	text, errs, code := reprise(t, args...)
	if code != cli.Good && code != cli.Untrusted {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	s := stampOf(t, out)
	if s == nil || s.Valid == nil || *s.Valid != (code == cli.Good) || s.Answers != 108 || s.TooLong != 0 || s.BuiltIn || strings.Join(s.Filled, " ") != "recycle=apart waits=ends" {
		t.Fatalf("%+v", s)
	}
	for _, b := range s.Broken {
		if b.Rule != "trustworthy" {
			t.Errorf("broken: %v", b)
		}
	}
	says := "Scenario short-1, submission valid: "
	if code == cli.Untrusted {
		says = "Scenario short-1, submission not valid: "
	}
	if !strings.Contains(text, says) || !strings.Contains(errs, "scenario short-1: sets recycle=apart waits=ends") || !strings.Contains(errs, "a submission needs: a stamp") {
		t.Errorf("%s\n%s", text, errs)
	}
	json, _, _ := reprise(t, "report", out, "--json")
	page, err := os.ReadFile(html)
	if err != nil || !strings.Contains(json, `"submission_valid": `+fmt.Sprint(code == cli.Good)) || !strings.Contains(string(page), "Scenario short-1, submission") {
		t.Errorf("the stamp is not in the JSON or on the page: %v", err)
	}
}

// What breaks a rule is refused, and with --force it runs and the results say so.
func TestScenarioBroken(t *testing.T) {
	long(t)
	w, _ := agentWorkload(t, 4)
	server, out := newSessionServer(t), filepath.Join(t.TempDir(), "r.parquet")
	rules := scenarioFile(t, "workloads: [sha256:aaaa]\n")
	args := []string{"replay", w, "--url", server.url, "-o", out, "--quiet", "--sessions", "2", "--scenario", rules, "--set", "gap-cap=1s", "--set", "recycle=same"}
	if _, errs, code := reprise(t, args...); code != cli.Usage || !strings.Contains(errs, "scenario short-1: --set recycle is same, and the scenario wants apart; --set gap-cap is 1s, and the scenario wants it unset. --force") {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if _, errs, code := reprise(t, "replay", w, "--url", server.url, "-o", out, "--sessions", "2", "--scenario", rules); code != cli.Usage || !strings.Contains(errs, "the workload is sha256:") {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if _, errs, code := reprise(t, "replay", w, "--url", server.url, "-o", out, "--scenario", "agentx", "--duration", "1m", "--extra-body", `{"max_tokens":1}`); code != cli.Usage ||
		!strings.Contains(errs, "--sessions is not given") || !strings.Contains(errs, "--duration is 1m0s, and the scenario wants at least 15m") || !strings.Contains(errs, "the field max_tokens is set by --extra-body") {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if _, errs, code := reprise(t, append(args, "--force")...); code != cli.Good && code != cli.Untrusted {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	s := stampOf(t, out)
	var broken []string
	for _, b := range s.Broken {
		if b.Rule != "trustworthy" {
			broken = append(broken, b.Rule)
		}
	}
	if *s.Valid || strings.Join(broken, " ") != "recycle gap-cap workload" {
		t.Errorf("%+v", s)
	}
}

// Answers that the context has no room for are counted by what they say, and more than the
// limit of them make the stamp invalid.
func TestScenarioTooLong(t *testing.T) {
	long(t)
	w, _ := agentWorkload(t, 12)
	server := newSessionServer(t)
	says := []string{`{"error":{"message":"This model's maximum context length is 10 tokens"}}`, `{"detail":"Prompt is too long"}`, `{"error":{"code":"context_length_exceeded"}}`, `{"error":"above the maximum context"}`}
	var n atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(rowOfRequest(r.Header), "8") { // of the last turns
			i := int(n.Add(1)) - 1
			rw.WriteHeader([]int{400, 422, 500}[i%3])
			rw.Write([]byte(says[i%len(says)]))
			return
		}
		r2, err := http.NewRequestWithContext(r.Context(), r.Method, server.url+r.URL.Path, r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		r2.Header = r.Header
		answer, err := http.DefaultTransport.RoundTrip(r2)
		if err != nil {
			return
		}
		defer answer.Body.Close()
		rw.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		rw.WriteHeader(answer.StatusCode)
		buf := make([]byte, 4096)
		for {
			k, err := answer.Body.Read(buf)
			rw.Write(buf[:k])
			rw.(http.Flusher).Flush()
			if err != nil {
				return
			}
		}
	}))
	defer front.Close()
	out := filepath.Join(t.TempDir(), "r.parquet")
	if _, errs, code := reprise(t, "replay", w, "--url", front.URL, "-o", out, "--quiet", "--sessions", "3", "--scenario", scenarioFile(t, "")); code != cli.Good && code != cli.Untrusted {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	s := stampOf(t, out)
	if s.TooLong != int64(n.Load()) || s.TooLong < 5 || *s.Valid || s.Broken[0].Rule != "too_long" {
		t.Errorf("%d were refused: %+v", n.Load(), s)
	}
}
