package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
	"reprise/trace/longtest"
)

// simulate starts an endpoint that answers as fast as it can.
func simulate(t testing.TB) string { return simulateStream(t, 0) }

// simulateStream starts an endpoint that has so long between two tokens.
func simulateStream(t testing.TB, itl time.Duration) string {
	t.Helper()
	c := engine.DefaultServerConfig()
	c.Engine.Costs = engine.Costs{Step: engine.Picos(itl) * 1000}
	s, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	return srv.URL
}

// sharingLog is a Mooncake log whose prompts share prefixes at random: a tree
// of blocks, full or partial at their ends, some prompts sent twice.
func sharingLog(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	type prompt struct {
		length int
		ids    []int
	}
	var sent []prompt
	var b strings.Builder
	next := 0
	for i := range n {
		p := prompt{length: 20 + r.IntN(3000)}
		if len(sent) > 0 && r.IntN(3) > 0 {
			old := sent[r.IntN(len(sent))]
			if r.IntN(10) == 0 {
				p = old // a duplicate, its partial block included
			} else {
				full := r.IntN(old.length/512 + 1)
				p.ids = append(p.ids, old.ids[:full]...)
				p.length += full * 512
			}
		}
		for len(p.ids) < (p.length+511)/512 {
			p.ids = append(p.ids, next)
			next++
		}
		sent = append(sent, p)
		ids := strings.ReplaceAll(fmt.Sprint(p.ids), " ", ", ")
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": %s}`+"\n", i*20, p.length, 1+r.IntN(20), ids)
	}
	return b.String()
}

// summary is the part of the report's JSON that the tests look at.
type summary struct {
	Requests struct{ Rows, Succeeded int64 }
	Tokens   struct {
		PromptError difference `json:"prompt_error"`
		OutputMiss  difference `json:"output_miss"`
	}
	Cache struct {
		Measured float64 `json:"measured_ratio"`
		Expected float64 `json:"expected_ratio"`
	}
}

type difference struct {
	Compared int64 `json:"compared_rows"`
	SumAbs   int64 `json:"sum_abs_tokens"`
}

// A mirrored workload loses no request, its prompts have exactly the tokens
// asked for by the endpoint's own count, and the endpoint's cache, in blocks of
// another size, hits as often as the workload says it must.
func TestReplayIsExact(t *testing.T) {
	long(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(file("log.jsonl"), []byte(sharingLog(200)), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", file("log.jsonl"), "-o", file("t.parquet"))
	must(t, "synth", "--mirror", file("t.parquet"), "-o", file("w.parquet"), "--seed", "3")
	ways := [][]string{{"--api", "completions"}}
	if longtest.On() {
		ways = append(ways, []string{"--api", "chat"}, []string{"--api", "completions", "--token-ids"}, []string{"--api", "completions", "--connections", "pooled"})
	}
	for _, how := range ways {
		checkExact(t, file("w.parquet"), file("r.parquet"), how...)
	}
}

// checkExact replays a workload of 200 requests and returns the expected hit
// ratio.
func checkExact(t *testing.T, workload, results string, how ...string) (expected float64) {
	t.Helper()
	args := append([]string{"replay", workload, "--url", simulate(t), "--speed", "4", "-o", results,
		"--json", "--max-lag", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1", "--quiet"}, how...)
	out, errs, code := reprise(t, args...)
	if code != cli.Good && code != cli.Untrusted { // a busy machine is late, and that is not at stake here
		t.Fatalf("%v: exit code %d: %s", how, code, errs)
	}
	s := decodeSummary(t, out)
	if s.Requests.Rows != 200 || s.Requests.Succeeded != 200 {
		t.Errorf("%v: %d of %d requests succeeded", how, s.Requests.Succeeded, s.Requests.Rows)
	}
	if e := s.Tokens.PromptError; e.Compared != 200 || e.SumAbs != 0 {
		t.Errorf("%v: prompts are off by %d tokens over %d requests", how, e.SumAbs, e.Compared)
	}
	if e := s.Tokens.OutputMiss; e.Compared != 200 || e.SumAbs != 0 {
		t.Errorf("%v: outputs are off by %d tokens over %d requests", how, e.SumAbs, e.Compared)
	}
	// A chat's template stands around the prompt: what follows it shifts the
	// block boundaries, which may cost one block of the server in each hit.
	tolerance := 0.0005
	if how[1] == "chat" {
		tolerance = 0.01
	}
	if d := s.Cache.Measured - s.Cache.Expected; d > tolerance || d < -tolerance || s.Cache.Expected < 0.2 {
		t.Errorf("%v: hit ratio %.4f, expected %.4f", how, s.Cache.Measured, s.Cache.Expected)
	}
	return s.Cache.Expected
}

func decodeSummary(t *testing.T, out string) summary {
	t.Helper()
	var s summary
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	return s
}
