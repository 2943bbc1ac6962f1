package main

import (
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
)

// crowdTrace writes a trace of n requests, one of each user.
func crowdTrace(t *testing.T, path string, n int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		rows := make([]trace.Request, n)
		for i := range rows {
			rows[i] = trace.Request{ArrivalNS: int64(i) * 1e8, User: trace.Ptr(int64(i)), Status: trace.StatusOK,
				InputTokens: int32(min(4000, math.Exp(6+0.7*rng.NormFloat64()))), OutputTokens: trace.Ptr(int32(1 + 900*rng.Float64()))}
		}
		_, err := w.Write(rows)
		return trace.Meta{Tier: "internal", Capture: trace.RelativeCapture(0, time.Hour)}, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A public model costs what the ledger says, and cannot be had for more than is
// allowed; what is generated from it is public.
func TestPublicModel(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	crowdTrace(t, "t.parquet", 30000)
	fit := []string{"synth", "fit", "t.parquet", "--tier", "public", "--epsilon", "8", "--max-input", "4096", "--max-output", "1024", "-o", "m.parquet"}
	_, errs, code := reprise(t, fit...)
	if code != cli.Good || !strings.Contains(errs, "warning: an ε of 8") || !strings.Contains(errs, "protects one "+
		"user") || !strings.Contains(errs, "tier public: may be published") {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	ledger, err := os.ReadFile("t.ledger.jsonl")
	if err != nil || strings.Count(string(ledger), `"epsilon":8`) != 2 || // as it began, and ended
		strings.Contains(string(ledger), "refused") {
		t.Fatalf("the ledger is %s, %v", ledger, err)
	}
	must(t, "synth", "m.parquet", "-o", "w.parquet", "-n", "500")
	if out := must(t, "profile", "w.parquet", "--details"); !strings.Contains(out, "Tier           public") {
		t.Errorf("the workload is not public:\n%s", out)
	}
	if _, errs, code := reprise(t, fit...); code != cli.Usage || !strings.Contains(errs, "ε would be 16 in all: "+
		"earlier releases or attempts (1) spent 8 of it") {
		t.Errorf("again: exit code %d\n%s", code, errs)
	}
	if _, errs, code := reprise(t, append(fit, "--ledger", "other.jsonl")...); code != cli.Usage || !strings.Contains(errs,
		"by other.jsonl and t.ledger.jsonl") {
		t.Errorf("in another ledger, beside the one of the trace: exit code %d\n%s", code, errs)
	}
	must(t, append(fit, "--i-understand")...)
	if _, errs, code := reprise(t, append(fit, "--epsilon", "11")...); code != cli.Usage || !strings.Contains(errs, "--i-understand") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

// What is refused is said with the reason, leaves no model, and counts, unless it could be told before any noise.
func TestPublicModelRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	crowdTrace(t, "few.parquet", 300)
	for _, tier := range []string{"public", "partner"} {
		_, errs, code := reprise(t, "synth", "fit", "few.parquet", "--tier", tier, "-o", "m.parquet")
		_, err := os.Stat("few.ledger.jsonl")
		if code != cli.Check || !strings.Contains(errs, "no ε is spent") || err == nil {
			t.Errorf("%s: exit code %d, ledger %v\n%s", tier, code, err, errs)
		}
	}
	crowdTrace(t, "t.parquet", 2000)
	_, errs, code := reprise(t, "synth", "fit", "t.parquet", "--tier", "public", "-o", "m.parquet")
	if code != cli.Check || !strings.Contains(errs, "t.parquet: the trace is too small for ε=1") || !strings.Contains(errs, "the ledger counts the attempt") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if _, err := os.Stat("m.parquet"); err == nil {
		t.Error("there is a model")
	}
	if ledger, err := os.ReadFile("t.ledger.jsonl"); err != nil || !strings.Contains(string(ledger), `"release":"refused"`) {
		t.Errorf("the ledger is %s, %v", ledger, err)
	}
	must(t, "profile", "t.parquet", "--histograms", "h.parquet")
	for want, args := range map[string][]string{
		"is for --tier partner and public":           {"t.parquet", "--epsilon", "2"},
		"--tier: want partner or public":             {"t.parquet", "--tier", "house"},
		"--k-swap cannot be used with --tier public": {"t.parquet", "--tier", "public", "--k-swap", "3"},
		"--unit is user, session or request":         {"t.parquet", "--tier", "public", "--unit", "tenant"},
		"must be above 0":                            {"t.parquet", "--tier", "public", "--epsilon", "0"},
		"neither users nor sessions":                 {"t.parquet", "--tier", "public", "--unit", "session"},
		"holds the histograms of a profile":          {"h.parquet", "--tier", "public"},
		"name the ledger":                            {"-", "--tier", "public"},
		"no requests to swap":                        {"h.parquet", "--k-swap", "3"},
		"ledger.jsonl:1: not a ledger entry":         {"t.parquet", "--tier", "public", "--ledger", "ledger.jsonl"},
	} {
		if err := os.WriteFile("ledger.jsonl", []byte("hello\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		in := "" // of stdin
		if args[0] == "-" {
			b, err := os.ReadFile("t.parquet")
			if err != nil {
				t.Fatal(err)
			}
			in = string(b)
		}
		var out, errs strings.Builder
		code := run(t.Context(), append(append([]string{"synth", "fit"}, args...), "-o", "m.parquet"), strings.NewReader(in), &out, &errs)
		if code == cli.Good || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: exit code %d, want %q\n%s", args, code, want, errs.String())
		}
	}
	must(t, "synth", "fit", "h.parquet", "-o", "m.parquet")
	must(t, "synth", "m.parquet", "-o", "w.parquet")
}

// Two processes that fit one trace draw other noise: what each model generates with one seed
// differs, and one model always generates the same.
func TestNoiseOfProcesses(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	crowdTrace(t, "t.parquet", 30000)
	digest := func(model string) string {
		t.Helper()
		must(t, "synth", model, "--seed", "1", "-n", "500", "-o", "w.parquet")
		w, err := trace.Open("w.parquet")
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		return w.Meta.Digest
	}
	for _, model := range []string{"a.parquet", "b.parquet"} {
		cmd := child(t, "synth", "fit", "t.parquet", "--tier", "public", "--epsilon", "8", "--i-understand", "--max-input", "4096", "--max-output", "1024", "-o", model)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if a, again, b := digest("a.parquet"), digest("a.parquet"), digest("b.parquet"); a != again || a == b {
		t.Errorf("one model gives %s and %s, another process's %s", a, again, b)
	}
}
