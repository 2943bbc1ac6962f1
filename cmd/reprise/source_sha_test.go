package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
)

// A workload of one whole file in Weka's form is known by the digest of that file, and
// what is a part of it, or of several files, is not.
func TestSourceDigest(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	const conversation = `{"id":"%s","block_size":4,"requests":[{"t":0,"type":"s","model":"m","in":9,"out":2,"hash_ids":[1,2],"api_time":0.01},{"t":0.02,"type":"s","model":"m","in":13,"out":2,"hash_ids":[1,2,3],"api_time":0.01}]}`
	lines := fmt.Sprintf(conversation+"\n"+conversation+"\n"+conversation+"\n", "a", "b", "c")
	log := path("traces.jsonl")
	if err := os.WriteFile(log, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path("bad.jsonl"), []byte(lines+`{"id":"d","block_size":4,"requests":[{"type":"s"}]}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	sha := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(lines)))
	source := func(name string) string {
		t.Helper()
		f, err := trace.Open(path(name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return f.Meta.Source
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"import", log, "-o", path("w.parquet"), "--arrivals", "constant:1"}, sha},
		{[]string{"import", path("bad.jsonl"), "-o", path("bad.parquet"), "--arrivals", "constant:1", "--max-bad", "50%"}, ""},
		{[]string{"import", log, log, "-o", path("two.parquet"), "--arrivals", "constant:1"}, ""},
		{[]string{"slice", path("w.parquet"), "-o", path("part.parquet"), "--end", "1s"}, ""},
		{[]string{"synth", "--mirror", path("w.parquet"), "-o", path("mirror.parquet")}, ""},
	} {
		if _, errs, code := reprise(t, c.args...); code != cli.Good {
			t.Fatalf("%v: exit code %d: %s", c.args, code, errs)
		}
		out := filepath.Base(c.args[len(c.args)-1])
		for i, a := range c.args {
			if a == "-o" {
				out = filepath.Base(c.args[i+1])
			}
		}
		if got := source(out); got != c.want {
			t.Errorf("%v: %q, want %q", c.args[0], got, c.want)
		}
	}
	server := newSessionServer(t)
	args := func(w, sources string) []string {
		return []string{"replay", path(w), "--url", server.url, "-o", path("r.parquet"), "--quiet", "--sessions", "2", "--scenario", scenarioFile(t, "sources: ["+sources+"]\n")}
	}
	if _, errs, code := reprise(t, args("w.parquet", sha)...); code != cli.Good && code != cli.Untrusted {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	s := stampOf(t, path("r.parquet"))
	if s.Source != sha || *s.Valid != (len(s.Broken) == 0) || len(s.Broken) > 0 && s.Broken[0].Rule != "trustworthy" {
		t.Errorf("%+v", s)
	}
	for w, others := range map[string]string{"part.parquet": sha, "w.parquet": "sha256:aaaa"} {
		if _, errs, code := reprise(t, args(w, others)...); code != cli.Usage || !strings.Contains(errs, "the workload is sha256:") || !strings.Contains(errs, "the import of one of the 1 files that are permitted, whole") {
			t.Errorf("%s: exit code %d: %s", w, code, errs)
		}
	}
}
