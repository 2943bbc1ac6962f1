package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"reprise/anonymize/audit"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/trace"
)

// auditOf is what audit finds of a file by itself.
func auditOf(t *testing.T, path string, flags ...string) audit.Result {
	t.Helper()
	out, errs, code := reprise(t, append([]string{"audit", path, "--json"}, flags...)...)
	var r audit.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, errs)
	}
	if want := map[bool]int{false: cli.Good, true: cli.Check}[r.Failed()]; code != want {
		t.Errorf("%s: exit code %d, want %d", path, code, want)
	}
	return r
}

// Nothing that the commands write of their own accord fails a check, whatever kind
// of file it is: so every word in their metadata is known to the audit.
func TestAuditOfEveryKind(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	crowdTrace(t, "crowd.parquet", 30000)
	rewritten(t, "crowd.parquet", "house.parquet")
	must(t, "synth", "fit", "house.parquet", "--tier", "public", "--epsilon", "8", "--max-input", "4096", "--max-output", "1024", "-o", "public.parquet")
	must(t, "synth", "public.parquet", "-o", "publicwork.parquet", "-n", "200")
	must(t, "anonymize", "house.parquet", "--max-input", "4096", "--max-output", "1024", "--i-understand", "-o", "partner.parquet")
	must(t, "slice", "partner.parquet", "--end", "5m", "-o", "slice.parquet")
	must(t, "profile", "slice.parquet", "--histograms", "h.parquet", "--tables", "tables.parquet", "--html", "p.html", "--json", "-o", "p.json")
	must(t, "synth", "fit", "h.parquet", "-o", "cells.parquet")
	must(t, "synth", "fit", "slice.parquet", "-o", "model.parquet")
	must(t, "synth", "cells.parquet", "-n", "50", "-o", "cellswork.parquet")
	must(t, "synth", "model.parquet", "-n", "300", "--users", "2", "-o", "work.parquet")
	must(t, "synth", "--mirror", "slice.parquet", "-o", "mirror.parquet")
	must(t, "synth", "agents", "-n", "100", "-o", "agents.parquet")
	must(t, "synth", "cold_warm", "-o", "spec.parquet")
	must(t, "simulate", "cellswork.parquet", "--preset", "l4-qwen2.5-0.5b", "-o", "r.parquet")
	reprise(t, "fidelity", "slice.parquet", "work.parquet", "--json", "-o", "f.json", "--html", "f.html")
	must(t, "report", "r.parquet", "--html", "r.html")
	must(t, "export", "slice.parquet", "--to", "inference-perf", "-o", "other.csv")
	// Rows of noisy counts lie no nearer to the source than chance, and a model and its rows are one release.
	for _, f := range auditOf(t, "publicwork.parquet", "public.parquet", "--internal", "house.parquet", "--only",
		"times,composition").Findings {
		if f.Status != audit.Pass {
			t.Errorf("of the public trace: %s: %s: %s %v", f.Check, f.Status, f.Why, f.Figures)
		}
	}
	for path, kind := range map[string]string{"house.parquet": "trace", "public.parquet": "release", "publicwork.parquet": "trace", "partner.parquet": "trace", "slice.parquet": "trace",
		"h.parquet": "histograms", "tables.parquet": "tables", "p.html": "page", "p.json": "json", "cells.parquet": "model", "model.parquet": "model", "work.parquet": "trace",
		"cellswork.parquet": "trace", "mirror.parquet": "trace", "agents.parquet": "trace", "spec.parquet": "trace", "r.parquet": "results", "f.json": "json", "f.html": "page", "r.html": "page", "other.csv": "other"} {
		r := auditOf(t, path, "--only", "card,times,ids,container,free-text,numbers,linkage,composition")
		if r.Kind != kind || r.FileSHA256 == "" || kind == "trace" && r.Digest == "" || r.Tier == "" && kind != "other" {
			t.Errorf("%s is a %s of tier %q, digest %q", path, r.Kind, r.Tier, r.Digest)
		}
		for _, f := range r.Findings {
			if f.Status == audit.Fail || f.Status == audit.Inconclusive && kind != "other" {
				t.Errorf("%s: %s: %s: %s %v", path, f.Check, f.Status, f.Why, f.Figures)
			}
		}
	}
}

// rewritten makes of a bare trace one with a card, as an import writes it.
func rewritten(t *testing.T, from, to string) {
	t.Helper()
	in, err := trace.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	rows, err := in.Reader()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	err = trace.Each(rows, func(_ int64, r *trace.Request) error {
		return enc.Encode(map[string]any{"t": 1767323045 + float64(r.ArrivalNS)/1e9, "u": *r.User, "i": r.InputTokens, "o": *r.OutputTokens})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("crowd.jsonl", []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", "crowd.jsonl", "--map", "time=t", "--map", "user=u", "--map", "input_tokens=i", "--map", "output_tokens=o",
		"--capture-begin", "2026-01-02T03:00:00Z", "--capture-end", "2026-01-02T05:00:00Z", "-o", to)
}

// The command says what it is called wrongly with, and ends with 3 when a check
// failed.
func TestAuditCommand(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("log.jsonl", []byte(strings.Repeat(`{"timestamp": 1, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}`+"\n", 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", "log.jsonl", "-o", "t.parquet")
	for want, args := range map[string][]string{
		"cannot be used together: both": {"t.parquet", "--source", "log.jsonl", "--internal", "t.parquet"},
		"how --source is imported":      {"t.parquet", "--block-size", "16"},
		"both write to stdout":          {"t.parquet", "--json", "-o", "-"},
		"unknown check":                 {"t.parquet", "--only", "nonsense"},
		"stdin cannot be read twice":    {"t.parquet", "--source", "-"},
		"would be overwritten":          {"t.parquet", "-o", "t.parquet"},
		"is shorter than 10 bytes":      {"t.parquet", "--canaries", "short.txt"},
		"not internal":                  {"t.parquet", "--internal", "bare.parquet"},
	} {
		if err := os.WriteFile("short.txt", []byte("short\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		crowdTier(t, "bare.parquet")
		_, errs, code := reprise(t, append([]string{"audit"}, args...)...)
		if code != cli.Usage || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d: %s, want %q", args, code, errs, want)
		}
	}
	out := must(t, "audit", "t.parquet", "--source", "log.jsonl", "-o", "a.json")
	if !strings.Contains(out, "✓ passed   card, ids") {
		t.Errorf("the findings are not printed:\n%s", out)
	}
	var r audit.Result
	b, err := os.ReadFile("a.json")
	if err != nil || json.Unmarshal(b, &r) != nil || r.Schema != "audit/1" {
		t.Errorf("the file has %s, %v", b, err)
	}
	if strings.Contains(string(b), "log.jsonl") {
		t.Error("the result names a path")
	}
	_, errs, code := reprise(t, "audit", "bare.parquet", "--only", "card,ids")
	if code != cli.Check || !strings.Contains(errs, "do not share the output") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// crowdTier writes a trace of tier partner without a card.
func crowdTier(t *testing.T, path string) {
	t.Helper()
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) { return trace.Meta{Tier: "partner"}, nil })
	if err != nil {
		t.Fatal(err)
	}
}

// Audit takes every flag of import that says how a log is read: what import could read, it
// can read again. Shards it does not make: it imports the log as one process does.
func TestAuditReadsWhatImportRead(t *testing.T) {
	long(t)
	release := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(flags.Release).Register(release, "", "")
	new(flags.Templates).Register(release)
	others := strings.Fields("output overwrite json details quiet inspect help shard key-file")
	importCommand().Flags().VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(importsOfAudit, flag.Name) && !slices.Contains(others, flag.Name) && release.Lookup(flag.Name) == nil {
			t.Errorf("audit lacks --%s of import", flag.Name)
		}
	})
	t.Chdir(t.TempDir())
	if err := os.WriteFile("log.csv", []byte("wann:n:ms\n03/04/2026 09.05:1.200:7\n03/04/2026 09.07:900:8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	how := []string{"--delimiter", ":", "--decimal", "comma", "--time-format", "%d/%m/%Y %H.%M", "--map", "time=wann,input_tokens=n,e2e_ms=ms"}
	must(t, append([]string{"import", "log.csv", "-o", "t.parquet"}, how...)...)
	must(t, append(how, "audit", "t.parquet", "--source", "log.csv", "--html", "a.html")...)
	if page := contents(t, "a.html"); !strings.Contains(page, "2,100") {
		t.Error("the log was not read as it was imported: the page lacks its input tokens")
	}
}
