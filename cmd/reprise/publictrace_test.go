package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/synth"
	"reprise/synth/release"
	"reprise/trace"
)

// publicCrowd writes a trace of some 200,000 requests of 60,000 users, who begin
// with one of three templates of four blocks and go on with their own.
func publicCrowd(t *testing.T, path string) {
	t.Helper()
	const size, requests, users = 64, 200_000, 60_000
	rng := rand.New(rand.NewPCG(4, 2))
	rows := make([]trace.Request, requests)
	next := uint64(12)
	for i := range rows {
		r := &rows[i]
		*r = trace.Request{ArrivalNS: int64(i) * 1e8, User: trace.Ptr(rng.Int64N(users)), Model: "model-0", Kind: "chat", Status: trace.StatusOK,
			InputTokens:  int32(min(8000, 300+math.Exp(6+0.8*rng.NormFloat64()))),
			OutputTokens: trace.Ptr(int32(min(2000, 1+math.Exp(5+0.6*rng.NormFloat64())))), MaxTokens: trace.Ptr(int32(2000)), TTFTNS: trace.Ptr(int64(1e8))}
		for template, b := uint64(rng.IntN(3)), uint64(0); b < 4; b++ {
			r.Blocks = append(r.Blocks, template*4+b)
		}
		for len(r.Blocks) < (int(r.InputTokens)+size-1)/size {
			r.Blocks = append(r.Blocks, next)
			next++
		}
	}
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		_, err := w.Write(rows)
		return trace.Meta{Tier: anonymize.Internal, BlockSize: size, Convention: trace.PartialTail, Capture: trace.RelativeCapture(0, 334*time.Minute)}, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// publicRows reads a trace.
func publicRows(t *testing.T, path string) (trace.Meta, []trace.Request) {
	t.Helper()
	f, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src, err := f.Reader()
	if err != nil {
		t.Fatal(err)
	}
	var rows []trace.Request
	if err := trace.Each(src, func(_ int64, r *trace.Request) error { rows = append(rows, *r); return nil }); err != nil {
		t.Fatal(err)
	}
	return f.Meta, rows
}

// A public trace of 200,000 requests keeps totals and 99th percentiles about as its
// card predicts, no row of the source, and what it says agrees in all files.
func TestPublicTrace(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	publicCrowd(t, "t.parquet")
	_, errs, code := reprise(t, "anonymize", "t.parquet", "--tier", "public", "--max-input", "8192", "--max-output", "2048", "-o", "p.parquet")
	if code != cli.Good || !strings.Contains(errs, "the model p.model.parquet") || !strings.Contains(errs, "protects one user") {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	_, source := publicRows(t, "t.parquet")
	meta, rows := publicRows(t, "p.parquet")
	card, err := anonymize.ParseCard(meta.Card, meta.CardHash)
	if err != nil || card.Sessions == nil || meta.Tier != anonymize.Public || card.Tier != anonymize.Public {
		t.Fatalf("the card is %+v, %v", card, err)
	}
	want := card.Sessions.Predicted
	input := func(r *trace.Request) int32 { return r.InputTokens }
	output := func(r *trace.Request) int32 { return *r.OutputTokens }
	for name, x := range map[string][2]float64{
		"requests":     {float64(len(rows))/float64(len(source)) - 1, want.Requests},
		"total input":  {total(rows, input)/total(source, input) - 1, want.Input},
		"total output": {total(rows, output)/total(source, output) - 1, want.Output},
	} {
		t.Logf("%s is off by %+.2f %%, predicted at most %.2f %%", name, 100*x[0], 100*x[1])
		// What the model itself cannot say is not in the prediction: some percent more.
		if math.Abs(x[0]) > 2*x[1]+0.05 || x[1] > 0.10 {
			t.Errorf("%s is off by %+.2f %%, predicted at most %.2f %%", name, 100*x[0], 100*x[1])
		}
	}
	hit := 0
	for i := range rows {
		if rows[i].User != nil || rows[i].Model != "" || rows[i].MaxTokens != nil || rows[i].TTFTNS != nil {
			t.Fatalf("row %d has a column that the tier drops: %+v", i, rows[i])
		}
		if rows[i].Category != trace.Cold {
			hit++
		}
	}
	if hit < len(rows)/2 {
		t.Errorf("%d of %d rows share a template, want most", hit, len(rows))
	}
	publicFilesAgree(t, meta, card)
}

// publicFilesAgree holds the three files and the ledger against each other.
func publicFilesAgree(t *testing.T, meta trace.Meta, card anonymize.Card) {
	t.Helper()
	beside, err := os.ReadFile("p.privacy.json")
	sum := sha256.Sum256(beside)
	if err != nil || string(beside) != meta.Card || hex.EncodeToString(sum[:]) != meta.CardHash {
		t.Errorf("the card beside the trace is another one: %v", err)
	}
	in, err := os.Open("p.model.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	info, _ := in.Stat()
	m, err := release.Read(in, info.Size())
	if err != nil || m.Meta().Card != meta.Card || m.Meta().Tier != synth.TierPublic {
		t.Fatalf("the model has another card: %v", err)
	}
	var entry struct {
		Release string
		Epsilon float64
	}
	ledger, err := os.ReadFile("t.ledger.jsonl")
	if lines := bytes.Split(bytes.TrimSpace(ledger), []byte("\n")); err == nil && len(lines) == 2 { // as it began, and ended
		err = json.Unmarshal(lines[1], &entry)
	}
	if err != nil || entry.Release != m.Meta().Digest || entry.Epsilon != 1 || card.Sessions.Ledger.Epsilon != 1 || card.Sessions.Ledger.Releases != 1 {
		t.Errorf("the ledger is %s, %v", ledger, err)
	}
	for _, file := range []string{"p.parquet", "p.model.parquet", "p.privacy.json"} {
		if out := must(t, "anonymize", "--card", file, "--details"); !strings.Contains(out, "ε = 1, δ = 1e-06") || !strings.Contains(out, "input_fine") {
			t.Errorf("the card of %s:\n%s", file, out)
		}
		if out := must(t, "anonymize", "--card", file, "--json"); out != meta.Card {
			t.Errorf("the card of %s as JSON is another one", file)
		}
	}
	must(t, "synth", "p.model.parquet", "-n", "100", "-o", "w.parquet")
	if m, _ := publicRows(t, "w.parquet"); m.Card != meta.Card || m.Tier != anonymize.Public {
		t.Errorf("a workload of the model is of tier %q", m.Tier)
	}
	for _, secret := range []string{"200000", "t.parquet", "60000", "sha256:"} {
		if strings.Contains(meta.Card, secret) {
			t.Errorf("the card says %s", secret)
		}
	}
}

func total(rows []trace.Request, of func(*trace.Request) int32) (sum float64) {
	for i := range rows {
		sum += float64(of(&rows[i]))
	}
	return sum
}
