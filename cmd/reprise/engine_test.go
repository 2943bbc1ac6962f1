package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// engineWorkload sends every prompt twice: cold, and again when the first
// answer is long over, at a rate at which a small engine keeps up.
const engineWorkload = `name: engine
about: each prompt cold, and warm five seconds later
requests: 20
arrivals: constant:1
warm: constant:5s
lengths: {input: "constant:900", output: "constant:24"}
`

// TestEngine replays shared prefixes and forced lengths against a real engine.
// How to start one is in docs/engines.md. REPRISE_TEST_ENGINE_TOKENIZER names
// its tokenizer where that is not o200k_base: without, prompts have other
// lengths there than asked for, and the test says by how much.
func TestEngine(t *testing.T) {
	url := os.Getenv("REPRISE_TEST_ENGINE_URL")
	if url == "" {
		t.Skip("REPRISE_TEST_ENGINE_URL is not set")
	}
	tokenizer := os.Getenv("REPRISE_TEST_ENGINE_TOKENIZER")
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(file("w.yaml"), []byte(engineWorkload), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "synth", file("w.yaml"), "-o", file("w.parquet"))
	for _, api := range []string{"completions", "chat"} {
		t.Run(api, func(t *testing.T) {
			results := file(api + ".parquet")
			// Prompts of its own, so that nothing is warm from another run.
			must(t, "replay", file("w.parquet"), "--url", url, "--api", api, "--tokenizer", tokenizer, "--seed", strconv.FormatInt(time.Now().UnixNano(), 10), "-o", results, "--quiet")
			checkEngine(t, results, tokenizer != "")
		})
	}
}

// checkEngine holds what must be true of any engine.
func checkEngine(t *testing.T, results string, exact bool) {
	t.Helper()
	r, err := result.Open(results)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var cold, warm []int64 // TTFT
	var rows, promptOff, fewer, cached int64
	err = trace.Each(r.Reader(), func(_ int64, r *result.Result) error {
		rows++
		switch {
		case r.Error != "" || r.FirstTokenNS == nil || r.Input == nil:
			t.Errorf("row %d: error %q, first token %v, usage %v", r.RowID, r.Error, r.FirstTokenNS, r.Input)
			return nil
		case r.OutputFrom != result.FromUsage || *r.Output != r.WantOutput || r.Events > *r.Output:
			t.Errorf("row %d: %d output tokens by %s in %d events, want %d", r.RowID, *r.Output, r.OutputFrom, r.Events, r.WantOutput)
		}
		fewer += int64(*r.Output - r.Events)
		if off := int64(*r.Input - r.WantInput); off != 0 {
			promptOff += max(off, -off)
		}
		ttft := *r.FirstTokenNS - *r.SentNS
		if r.Category == trace.Cold {
			cold = append(cold, ttft)
			return nil
		}
		warm = append(warm, ttft)
		if r.Cached != nil {
			cached += int64(*r.Cached)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if rows != 20 || len(cold) != 10 || len(warm) != 10 {
		t.Fatalf("%d rows, %d cold, %d warm", rows, len(cold), len(warm))
	}
	slices.Sort(cold)
	slices.Sort(warm)
	t.Logf("prompts are off by %d of %d tokens; %d output tokens came without an event of their own; TTFT p50 %.1f ms cold, %.1f ms warm; %d tokens of warm prompts were cached",
		promptOff, rows*900, fewer, float64(cold[5])/1e6, float64(warm[5])/1e6, cached)
	if exact && promptOff != 0 {
		t.Errorf("prompts are off by %d tokens", promptOff)
	}
	if warm[5] >= cold[5] {
		t.Errorf("warm prompts were no faster: TTFT p50 %v ns, cold %v ns", warm[5], cold[5])
	}
}
