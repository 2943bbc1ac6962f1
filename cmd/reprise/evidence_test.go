package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
	"reprise/replay/evidence"
)

// The plan of evidence against a simulated server: every step has a result, caching is
// found, the server against itself shows nothing, and the bundle names neither the server
// nor this host. Run again, it measures nothing twice.
func TestEvidence(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	model := engine.DefaultConfig()
	model.Costs.PrefillToken = 20_000_000 // 20 us: what a cache saves is seen
	c := engine.DefaultServerConfig()
	c.Engine = &model
	sim, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sim.Handler())
	defer server.Close()
	t.Setenv("OPENAI_API_KEY", "sk-of-this-test")
	t.Setenv("REPRISE_TRUST", "max-stall-ttft=off,max-stall-gap=off,max-lag=off,max-lag-p50=off,max-lag-drift=off,max-cpu=off")
	t.Setenv("PATH", t.TempDir()) // no peer
	measure := func() (said string, m evidence.Manifest, files map[string]string) {
		t.Helper()
		cmd := evidenceCommand(evidencePlan{rates: "20,40", level: "1s", warmup: "0s", rest: "0s", rounds: 6, seconds: 0.5, least: 10})
		var out, errs bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		cmd.SetArgs([]string{"--url", server.URL, "--by", "a test", "--hardware", "1xL4, 24GB", "--tokenizer", "o200k_base", "--json", "-o", "e"})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, &errs)
		}
		if err := json.Unmarshal(out.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		packed, err := os.ReadFile("e/evidence.tar.gz")
		if err != nil {
			t.Fatal(err)
		}
		zip, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		files = map[string]string{}
		for tape := tar.NewReader(zip); ; {
			h, err := tape.Next()
			if err == io.EOF {
				return errs.String(), m, files
			}
			text, err2 := io.ReadAll(tape)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			files[h.Name] = string(text)
		}
	}
	said, m, files := measure()
	for _, want := range []string{"[1/5] check    reprise, model sim", "[2/5] sweep    holds 40 requests/s; no load saturated it", "[3/5] aa", "No difference found in p50 TTFT", "[4/5] caching", "slower", "% were hits, ", "[5/5] peer     left out: no vllm here"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	host, _ := os.Hostname()
	address := strings.TrimPrefix(server.URL, "http://")
	for name, text := range files {
		for _, hidden := range []string{address, host, "sk-of-this-test"} {
			if hidden != "" && strings.Contains(text, hidden) {
				t.Errorf("%s holds %s", name, hidden)
			}
		}
	}
	for _, name := range []string{"manifest", "check", "sweep", "aa", "caching", "caching-report"} {
		if !json.Valid([]byte(files["evidence/"+name+".json"])) {
			t.Errorf("%s.json is no JSON: %.100s", name, files["evidence/"+name+".json"])
		}
	}
	if m.By != "a test" || len(m.Steps) != 5 || !strings.Contains(m.Steps[1].Commands[1], "reprise sweep e/shared-400.parquet --url http://SERVER ") || !strings.Contains(m.Steps[1].Commands[1], "'--hardware=1xL4, 24GB'") {
		t.Errorf("%+v", m)
	}
	before, err := os.Stat(filepath.Join("e", "caching", "round-06-b.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if _, again, _ := measure(); again.Seconds > m.Seconds/2 {
		t.Errorf("a second time takes %g s, the first %g s", again.Seconds, m.Seconds)
	}
	if after, err := os.Stat(filepath.Join("e", "caching", "round-06-b.parquet")); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("a round was measured again: %v", err)
	}
}

// What cannot be a server's URL is refused before anything runs.
func TestEvidenceRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, url := range []string{"http://", "http://me:secret@localhost:8000", "http://localhost:8000?key=secret"} {
		const want = "--url: want the base URL of a server without a password or a query, such as http://localhost:8000"
		if _, errs, code := reprise(t, "evidence", "--url", url); code != cli.Usage || !strings.Contains(strings.Join(strings.Fields(errs), " "), want) || strings.Contains(errs, "secret") {
			t.Errorf("%s: exit code %d: %s", url, code, errs)
		}
	}
}
