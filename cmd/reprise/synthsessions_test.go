package main

import (
	"fmt"
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
				rows = append(rows, trace.Request{ArrivalNS: at, User: &u, Status: trace.StatusOK, InputTokens: input, OutputTokens: trace.Ptr[int32](200), Blocks: slices.Clone(blocks)})
				blocks = blocks[:input/256]
				at, input = at+int64(time.Minute), input+200+int32(rng.IntN(100))
			}
		}
		slices.SortStableFunc(rows, func(a, b trace.Request) int { return int(a.ArrivalNS - b.ArrivalNS) })
		_, err := w.Write(rows)
		return trace.Meta{Tier: "internal", BlockSize: 256, Convention: trace.PartialTail, Capture: trace.RelativeCapture(0, time.Hour), Captures: fmt.Sprintf("%032x", users)}, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A model of sessions costs what the ledger says; what is drawn from it is of tier partner,
// and no row of the trace; the audit finds nothing against it.
func TestSessionsForPartner(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	chatsTrace(t, "t.parquet", 8000)
	fit := []string{"synth", "fit", "t.parquet", "--tier", "partner", "--max-input", "4096", "--max-output", "1024", "-o", "m.parquet"}
	_, errs, code := reprise(t, fit...)
	if code != cli.Good || !strings.Contains(errs, "protects one user") || !strings.Contains(errs, "prefixes that sessions share: 1") || !strings.Contains(errs, "ε=8") {
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
	if _, errs, code := reprise(t, fit...); code != cli.Usage || !strings.Contains(errs, "ε would be 16") {
		t.Errorf("again: exit code %d\n%s", code, errs)
	}
	if _, errs, code := reprise(t, "synth", "m.parquet", "--users", "2", "-o", "x.parquet"); code != cli.Usage || !strings.Contains(errs, "takes -n") {
		t.Errorf("--users: exit code %d\n%s", code, errs)
	}
	// Nothing measures a release against its trace: not what is drawn, and not the model.
	for _, args := range [][]string{{"synth", "m.parquet", "--strict", "-o", "x.parquet"}, append(fit, "--strict")} {
		if _, errs, code := reprise(t, args...); code != cli.Usage || !strings.Contains(errs, "--strict") {
			t.Errorf("%q: exit code %d\n%s", args, code, errs)
		}
	}
	chatsTrace(t, "small.parquet", 1200)
	if _, errs, code := reprise(t, "synth", "fit", "small.parquet", "--tier", "partner", "--epsilon", "1", "-o", "s.parquet"); code != cli.Check || !strings.Contains(errs, "too small for ε=1") {
		t.Errorf("1,200 users: exit code %d\n%s", code, errs)
	}
	if ledger, _ := os.ReadFile("small.ledger.jsonl"); !strings.Contains(string(ledger), "refused") {
		t.Errorf("the ledger of what was refused: %s", ledger)
	}
}

// A release for a partner is drawn from one model, whose cost is in the ledger and which is
// not kept; a second one is refused, and what an earlier version released is told of.
func TestAnonymizeForPartner(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	chatsTrace(t, "t.parquet", 8000)
	const former = `{"source":"sha256:0","captures":["00000000000000000000000000001f40"],"tier":"partner","release":"sha256:1","time":"2026-01-01T00:00:00Z","epsilon":0,"delta":0,"mechanism":"k-anonymity","grid":"--k-class 11"}` + "\n"
	writeFiles(t, map[string]string{"t.ledger.jsonl": former})
	args := []string{"anonymize", "t.parquet", "--max-input", "4096", "--max-output", "1024", "-o", "p.parquet"}
	_, errs, code := reprise(t, args...)
	for _, want := range []string{"p.parquet: tier partner, ", "the source has 14,000", "the privacy card is p.privacy.json", "; hit ratio by block ", "protects one user", "released to a partner without noise", "1 of the same capture"} {
		if code != cli.Good || !strings.Contains(errs, want) {
			t.Errorf("exit code %d, want %q\n%s", code, want, errs)
		}
	}
	meta, rows := publicRows(t, "p.parquet")
	if meta.Tier != "partner" || meta.Captures != "00000000000000000000000000001f40" || meta.Unit != "user" || len(rows) < 13000 || rows[9].User != nil || contents(t, "p.privacy.json") != meta.Card {
		t.Errorf("%d rows of %+v", len(rows), meta)
	}
	ledger := contents(t, "t.ledger.jsonl")
	if strings.Count(ledger, `"epsilon":8`) != 2 || !strings.HasPrefix(ledger, former) {
		t.Errorf("the ledger is %s", ledger)
	}
	if files, err := os.ReadDir("."); err != nil || len(files) != 4 {
		t.Errorf("there are %v, %v", files, err)
	}
	if out, _, code := reprise(t, "audit", "p.parquet", "--internal", "t.parquet", "--only", "card,times,ids,container,free-text,linkage", "--details"); code != cli.Good || !strings.Contains(squeeze(out), "has an F1 of ") {
		t.Errorf("the audit: exit code %d\n%s", code, out)
	}
	if _, errs, code := reprise(t, args...); code != cli.Usage || !strings.Contains(errs, "ε would be 16") || contents(t, "t.ledger.jsonl") != ledger {
		t.Errorf("again: exit code %d\n%s", code, errs)
	}
	out := must(t, append(args, "--i-understand", "--json")...)
	if meta, again := publicRows(t, "p.parquet"); out != meta.Card || len(again) == len(rows) && again[5].InputTokens == rows[5].InputTokens && again[6].InputTokens == rows[6].InputTokens {
		t.Errorf("the same noise, or another card: %s", out)
	}
}
