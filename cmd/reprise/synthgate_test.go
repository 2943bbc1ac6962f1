package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
	"reprise/trace/longtest"
)

// singlesTrace writes a trace of prompts that share nothing. Beating, short and long ones alternate
// each second, which nothing keeps that moves requests among their neighbours.
func singlesTrace(t *testing.T, path string, n int, beating bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(n), 9))
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		var rows []trace.Request
		at, next := int64(0), uint64(1000)
		for i := range n {
			own := 30 + rng.IntN(1500)
			if at += int64(rng.ExpFloat64() * 4e8); beating {
				at, own = int64(i)*1e9, 100+own%50+i%2*9000
			}
			r := trace.Request{ArrivalNS: at, Status: trace.StatusOK, OutputTokens: trace.Ptr(int32(20 + rng.IntN(200))), InputTokens: int32(own)}
			for ; len(r.Blocks)*512 < own; next++ {
				r.Blocks = append(r.Blocks, next)
			}
			rows = append(rows, r)
		}
		_, err := w.Write(rows)
		return trace.Meta{Tier: "internal", BlockSize: 512, Convention: trace.PartialTail, Sessions: "inferred"}, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Synth measures what it made: where that is off its trace it says so in one line, and ends with
// exit code 3 with --strict; where it is not, it says nothing.
func TestSynthMeasuresItself(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	singlesTrace(t, "beating.parquet", 150, true)
	singlesTrace(t, "api.parquet", 4000, false)
	const off = "differs from its trace: "
	for _, c := range []struct {
		args string
		code int
		says string // empty: nothing is off
	}{
		{"synth beating.parquet", cli.Good, "note: the workload " + off},
		{"synth beating.parquet --strict", cli.Check, "reprise: the workload " + off},
		{"synth beating.parquet -n 50", cli.Good, "note: a workload as long as the trace " + off},
		{"synth fit beating.parquet", cli.Good, "note: a workload of it " + off},
		{"synth fit beating.parquet --strict", cli.Check, "reprise: a workload of it " + off},
		{"synth --mirror beating.parquet --strict", cli.Good, ""},
		{"synth api.parquet --k-swap 1 --strict", cli.Good, ""},
		{"synth fit api.parquet --k-swap 1 --strict", cli.Good, ""},
		{"synth chat -n 50 --strict", cli.Usage, "--strict needs a trace or a model"},
	} {
		_, errs, code := reprise(t, append(strings.Fields(c.args), "-o", "out.parquet", "--overwrite")...)
		if code != c.code || strings.Count(errs, off) > 1 {
			t.Errorf("%s: exit code %d\n%s", c.args, code, errs)
		}
		if !strings.Contains(errs, c.says) || c.says == "" && strings.Contains(errs, "note: ") {
			t.Errorf("%s: it says\n%s", c.args, errs)
		}
		if strings.Contains(c.says, off) && !strings.Contains(errs, "--mirror keeps every row") {
			t.Errorf("%s: it says nothing of --mirror\n%s", c.args, errs)
		}
		if _, err := os.Stat("out.parquet"); c.code != cli.Usage && err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
		_ = os.Remove("out.parquet")
	}

	out := must(t, "synth", "beating.parquet", "--json", "-o", "out.parquet")
	var said struct{ Notes []string }
	if err := json.Unmarshal([]byte(out), &said); err != nil || len(said.Notes) != 1 || !strings.Contains(said.Notes[0], off) {
		t.Errorf("%v: the notes are %q", err, said.Notes)
	}
	// What is said is what a comparison of the two files finds.
	named, _, _ := strings.Cut(said.Notes[0][strings.Index(said.Notes[0], "limits: ")+len("limits: "):], " (")
	found, _, code := reprise(t, "fidelity", "beating.parquet", "out.parquet")
	if name, value, _ := strings.Cut(named, " "); code != cli.Check || !strings.Contains(found, "\n"+name) || !strings.Contains(found, value) {
		t.Errorf("synth says %q, and fidelity\n%s", named, found)
	}
}

// The published conversation trace is kept within all limits.
func TestSynthKeepsMooncake(t *testing.T) {
	const source = "../../../shared/data/mooncake_conversation.jsonl"
	if _, err := os.Stat(source); err != nil || !longtest.On() {
		t.Skip("the published trace is not here, or REPRISE_TEST_LONG is not set")
	}
	dir := t.TempDir()
	must(t, "import", source, "-o", dir+"/t.parquet")
	must(t, "synth", dir+"/t.parquet", "--strict", "-o", dir+"/w.parquet")
}

// No token is lost between a log and its workload where ids are not of contents: the end of a prompt
// whose id comes back as a full block is a block of its own, and ids of places are refused.
func TestSynthLosesNoTokens(t *testing.T) {
	t.Chdir(t.TempDir())
	rng := rand.New(rand.NewPCG(26, 1))
	var grown, placed strings.Builder
	next, input := 1000, 0
	for i := range 400 {
		var ids []string
		for k := range 1 + rng.IntN(3) {
			ids = append(ids, fmt.Sprint(i%7*10+k))
		}
		for turn := range 1 + rng.IntN(4) {
			for range 1 + rng.IntN(3) {
				next++
				ids = append(ids, fmt.Sprint(next))
			}
			length := 512*len(ids) - rng.IntN(512)
			input += length
			fmt.Fprintf(&grown, `{"timestamp": %d, "input_length": %d, "output_length": 9, "hash_ids": [%s]}`+"\n", 5000*i+700*turn, length, strings.Join(ids, ", "))
			places := make([]string, len(ids))
			for k := range places {
				places[k] = fmt.Sprint(k)
			}
			fmt.Fprintf(&placed, `{"timestamp": %d, "input_length": %d, "output_length": 9, "hash_ids": [%s]}`+"\n", 5000*i+700*turn, length, strings.Join(places, ", "))
		}
	}
	if err := errors.Join(os.WriteFile("grown.jsonl", []byte(grown.String()), 0o600), os.WriteFile("placed.jsonl", []byte(placed.String()), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := reprise(t, "import", "grown.jsonl", "-o", "t.parquet"); code != cli.Good || !strings.Contains(errs, "each such end is taken as a block of its own: ") {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	var made struct {
		Tokens int `json:"input_tokens"`
	}
	out := must(t, "synth", "t.parquet", "--k-swap", "1", "--json", "-o", "w.parquet")
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Tokens != input {
		t.Errorf("%v: the workload has %d input tokens of %d", err, made.Tokens, input)
	}
	if _, errs, code := reprise(t, "import", "placed.jsonl", "-o", "p.parquet"); code != cli.Usage || !strings.Contains(errs,
		"placed.jsonl: its block ids number places") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}
