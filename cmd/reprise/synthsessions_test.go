package main

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
)

// chatsTrace writes a trace of so many users with one chat each, of one to three turns.
func chatsTrace(t *testing.T, path string, users int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		var rows []trace.Request
		id := uint64(1)
		for u := range int64(users) {
			at, input, blocks := rng.Int64N(int64(50*time.Minute)), int32(900+rng.IntN(800)), []uint64{0}
			for range max(1, u%4) { // turns of sessions fall, as the model takes for given
				for len(blocks) < (int(input)+255)/256 {
					blocks = append(blocks, id)
					id++
				}
				rows = append(rows, trace.Request{ArrivalNS: at, User: &u, Status: trace.StatusOK, InputTokens: input, OutputTokens: 200, Blocks: slices.Clone(blocks)})
				blocks = blocks[:input/256]
				at, input = at+int64(time.Minute), input+200+int32(rng.IntN(100))
			}
		}
		slices.SortStableFunc(rows, func(a, b trace.Request) int { return int(a.ArrivalNS - b.ArrivalNS) })
		_, err := w.Write(rows)
		return trace.Meta{Tier: "internal", BlockSize: 256, Convention: trace.PartialTail, Capture: trace.RelativeCapture(0, time.Hour)}, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A model of sessions costs what the ledger says; what is drawn from it is of tier partner,
// and no row of the trace; the audit finds nothing against it.
func TestSessionsForPartner(t *testing.T) {
	t.Chdir(t.TempDir())
	chatsTrace(t, "t.parquet", 8000)
	fit := []string{"synth", "fit", "t.parquet", "--tier", "partner", "--max-input", "4096", "--max-output", "1024", "-o", "m.parquet"}
	_, errs, code := reprise(t, fit...)
	if code != cli.Good || !strings.Contains(errs, "protects one user") || !strings.Contains(errs, "1 prefix that sessions share") || !strings.Contains(errs, "ε=8") {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	ledger, err := os.ReadFile("t.ledger.jsonl")
	if err != nil || strings.Count(string(ledger), `"tier":"partner"`) != 2 || strings.Count(string(ledger), `"epsilon":8`) != 2 {
		t.Fatalf("the ledger is %s, %v", ledger, err)
	}
	must(t, "synth", "m.parquet", "-o", "w.parquet", "-n", "3000")
	if out := must(t, "anonymize", "--card", "w.parquet", "--details"); !strings.Contains(out, "sessions drawn from noisy counts") || !strings.Contains(out, "It protects one user") {
		t.Errorf("the card says\n%s", out)
	}
	for _, path := range []string{"m.parquet", "w.parquet"} {
		if out, errs, code := reprise(t, "audit", path); code != cli.Good {
			t.Errorf("audit %s: exit code %d\n%s%s", path, code, out, errs)
		}
	}
	if _, errs, code := reprise(t, fit...); code != cli.Usage || !strings.Contains(errs, "ε would be 16") {
		t.Errorf("again: exit code %d\n%s", code, errs)
	}
	if _, errs, code := reprise(t, "synth", "m.parquet", "--users", "2", "-o", "x.parquet"); code != cli.Usage || !strings.Contains(errs, "takes -n") {
		t.Errorf("--users: exit code %d\n%s", code, errs)
	}
	chatsTrace(t, "small.parquet", 40)
	if _, errs, code := reprise(t, "synth", "fit", "small.parquet", "--tier", "partner", "--epsilon", "1", "-o", "s.parquet"); code != cli.Check || !strings.Contains(errs, "too small for ε=1") {
		t.Errorf("40 users: exit code %d\n%s", code, errs)
	}
	if ledger, _ := os.ReadFile("small.ledger.jsonl"); !strings.Contains(string(ledger), "refused") {
		t.Errorf("the ledger of what was refused: %s", ledger)
	}
}
