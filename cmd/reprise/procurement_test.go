package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
)

// A procurement from pack to verify: the revealed seed makes the workload of the pack by synth, an
// honest submission matches, and one with another figure does not.
func TestProcurement(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{
		"w.yaml": "requests: 150\narrivals: poisson:2\nlengths: {input: \"uniform:50..500\", output: \"uniform:5..50\"}\n",
		"c.yaml": "name: chat\nclauses: [p95 ttft <= 5s, error_rate <= 1%]\n",
	} {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want int, args ...string) string {
		t.Helper()
		out, errs, code := reprise(t, args...)
		if code != want {
			t.Fatalf("reprise %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, errs)
		}
		return out + errs
	}
	run(0, "pack", in("w.yaml"), "--contract", in("c.yaml"), "--require", "", "-o", in("p.yaml"))
	if info, err := os.Stat(in("p.seed.yaml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	seedText, _ := os.ReadFile(in("p.seed.yaml"))
	packText, _ := os.ReadFile(in("p.yaml"))
	seed := regexp.MustCompile(`(?m)^seed: (\d+)$`).FindSubmatch(seedText)
	if seed == nil || strings.Contains(string(packText), string(seed[1])) {
		t.Fatalf("the pack has the seed, or the file of the seed has not:\n%s", packText)
	}
	run(0, "synth", in("w.yaml"), "--seed", string(seed[1]), "-o", in("w.parquet"), "--quiet")
	run(0, "simulate", in("w.parquet"), "--preset", "l4-qwen2.5-0.5b", "-o", in("r.parquet"), "--quiet")
	if got := run(0, "verify", in("p.yaml"), in("r.parquet"), "--seed-file", in("p.seed.yaml"), "-o", in("s.json")); !strings.Contains(got, "Everything matches the pack") {
		t.Error(got)
	}
	run(0, "verify", in("p.yaml"), in("r.parquet"), "--seed-file", in("p.seed.yaml"), "--submission", in("s.json"))

	// A better figure.
	text, _ := os.ReadFile(in("s.json"))
	var s map[string]any
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	s["summary"].(map[string]any)["throughput"].(map[string]any)["output_tokens_per_s"] = 9999
	text, _ = json.Marshal(s)
	if err := os.WriteFile(in("better.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	got := run(cli.Check, "verify", in("p.yaml"), in("r.parquet"), "--seed-file", in("p.seed.yaml"), "--submission", in("better.json"))
	if !strings.Contains(got, "throughput.output_tokens_per_s is 9999 in the submission") || !strings.Contains(got, "at 1 place") {
		t.Error(got)
	}

	// Another workload, of the same specification.
	run(0, "synth", in("w.yaml"), "--seed", "1", "-o", in("w1.parquet"), "--quiet")
	run(0, "simulate", in("w1.parquet"), "--preset", "l4-qwen2.5-0.5b", "-o", in("r1.parquet"), "--quiet")
	if got := run(cli.Check, "verify", in("p.yaml"), in("r1.parquet"), "--seed-file", in("p.seed.yaml")); !strings.Contains(got, "the run was made with the workload") || !strings.Contains(got, "row 0: ") {
		t.Error(got)
	}

	// Part of it.
	run(0, "simulate", in("w.parquet"), "--preset", "l4-qwen2.5-0.5b", "--duration", "20s", "-o", in("r2.parquet"), "--quiet")
	if got := run(cli.Check, "verify", in("p.yaml"), in("r2.parquet"), "--seed-file", in("p.seed.yaml")); !strings.Contains(got, "rows of the workload are not in the results") {
		t.Error(got)
	}

	// Mistakes.
	if err := os.Mkdir(in("q"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, want string }{
		{"verify p.yaml r.parquet", "--seed-file"},
		{"verify p.yaml r.parquet --seed-file c.yaml", "unknown key"},
		{"verify c.yaml r.parquet --seed-file p.seed.yaml", "unknown key"},
		{"verify p.yaml r.parquet --seed-file p.seed.yaml --submission c.yaml", "is not a submission"},
		{"pack w.yaml --contract c.yaml -o q/p.yaml", "is not in the folder of the pack"},
		{"pack w.yaml --contract c.yaml -o p.yaml --overwrite", "it is the seed of another pack"},
		{"pack w.yaml -o q.yaml", "a pack binds a contract"},
		{"pack nothing --contract c.yaml -o q.yaml", "neither a file nor a built-in workload"},
		{"pack w.yaml --contract c.yaml --require colour -o q.yaml", "--require: want some of gpu"},
		{"pack w.parquet --contract c.yaml -o q.yaml", "is no specification of a workload"},
	} {
		var args []string
		for _, word := range strings.Fields(c.line) {
			if strings.HasSuffix(word, ".yaml") || strings.HasSuffix(word, ".parquet") {
				word = in(word)
			}
			args = append(args, word)
		}
		if got := run(cli.Usage, args...); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.line, got)
		}
	}
}
