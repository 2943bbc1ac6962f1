package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/compare"
	"reprise/replay/openai"
	"reprise/replay/report"
	"reprise/replay/result"
)

// engineWorkload makes a workload of requests that share prefixes of so many blocks of 512
// tokens, or of none to two, with prompts that no run had before.
func engineWorkload(t *testing.T, requests int, gap time.Duration, output, blocksShared int) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	var rows []engineRow
	for i := range requests {
		var blocks []int
		group, shared := i%3, rng.IntN(3)
		if blocksShared > 0 {
			group, shared = 0, blocksShared
		} else if i < 3 {
			shared = 2
		}
		for j := range shared {
			blocks = append(blocks, 10*(group+1)+j)
		}
		for range 1 + rng.IntN(2) {
			blocks = append(blocks, 1000+10*i+len(blocks))
		}
		rows = append(rows, engineRow{int64(i) * gap.Milliseconds(), 512*(len(blocks)-1) + 20 + rng.IntN(490), output + rng.IntN(16), blocks})
	}
	return engineFile(t, rows, 1)
}

// engineSessions makes a workload of five conversations of four turns, each of which holds
// the one before, and its reply.
func engineSessions(t *testing.T) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	var rows []engineRow
	for i := range 5 {
		for turn, input := 0, 0; turn < 4; turn++ {
			input += 150 + rng.IntN(600)
			var blocks []int
			for j := range input / 512 {
				blocks = append(blocks, 100*(i+1)+j)
			}
			row := engineRow{int64(4*i+turn) * 300, input, 40 + rng.IntN(80), append(blocks, 1000+10*i+turn)}
			rows = append(rows, row)
			input += row.Output
		}
	}
	return engineFile(t, rows, 4)
}

// An engineRow is a request of the Mooncake format.
type engineRow struct {
	At     int64 `json:"timestamp"`
	Input  int   `json:"input_length"`
	Output int   `json:"output_length"`
	Blocks []int `json:"hash_ids"`
}

// engineFile makes a workload of rows, of which so many in turn are turns of one session.
func engineFile(t *testing.T, rows []engineRow, turns int) string {
	t.Helper()
	var text strings.Builder
	lines := json.NewEncoder(&text)
	for _, row := range rows {
		if err := lines.Encode(row); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string) string { return filepath.Join(t.TempDir(), name) }
	log, house, w := file("w.jsonl"), file("t.parquet"), file("w.parquet")
	if err := os.WriteFile(log, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", log, "-o", house)
	if turns > 1 {
		talk := file("talk.parquet")
		sessions(t, house, talk, turns)
		house = talk
	}
	must(t, "synth", "--mirror", house, "--seed", strconv.FormatUint(rand.Uint64(), 10), "-o", w)
	return w
}

// engineTokenizer names the tokenizer of the engines.
func engineTokenizer(t *testing.T) string {
	t.Helper()
	path := os.Getenv("REPRISE_TEST_ENGINE_TOKENIZER")
	if path == "" {
		t.Fatal("set REPRISE_TEST_ENGINE_TOKENIZER to the engines' tokenizer.json")
	}
	return path
}

// TestEngines replays against the running engines that REPRISE_TEST_ENGINES names, as
// NAME=URL with spaces between, over each API that they have, with no flag but --url and
// --tokenizer: lengths are exact, and what was expected of the prefix cache was found.
// docs/engines.md has how to start some. The name mocker is Dynamo's, see there.
func TestEngines(t *testing.T) {
	engines := strings.Fields(os.Getenv("REPRISE_TEST_ENGINES"))
	if len(engines) == 0 {
		t.Skip("REPRISE_TEST_ENGINES is not set")
	}
	tokenizer := engineTokenizer(t)
	for _, engine := range engines {
		name, url, ok := strings.Cut(engine, "=")
		if !ok {
			t.Fatalf("REPRISE_TEST_ENGINES: want NAME=URL, such as vllm=http://localhost:8000, and not %q", engine)
		}
		for _, how := range []string{result.APICompletions, result.APIChat, result.APIResponses, result.APIMessages,
			result.APICompletions + " --thread", result.APIChat + " --thread", result.APIMessages + " --thread"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				api, threads, _ := strings.Cut(how, " ")
				if name == "mocker" && threads != "" {
					t.Skip("the cache of Dynamo's mocker holds random numbers in place of the tokens that it streams")
				}
				w, results := "", filepath.Join(t.TempDir(), "r.parquet")
				if threads == "" {
					w = engineWorkload(t, 30, 400*time.Millisecond, 8, 0)
				} else {
					w = engineSessions(t)
				}
				args := append([]string{"replay", w, "--url", url, "--tokenizer", tokenizer, "-o", results, "--quiet"}, strings.Fields(threads)...)
				if api != result.APICompletions {
					args = append(args, "--api", api)
				}
				_, errs, code := reprise(t, args...)
				if (api == result.APIResponses || api == result.APIMessages) && strings.Contains(errs, "HTTP 404") {
					t.Skip("the engine has no such API")
				}
				if code != cli.Good && code != cli.Untrusted { // the client may lag on a busy machine
					t.Fatalf("exit code %d\n%s", code, errs)
				}
				checkEngine(t, results, errs)
			})
		}
	}
}

// checkEngine holds what must be true of the results of any engine.
func checkEngine(t *testing.T, results, said string) {
	t.Helper()
	run, rows := targetResults(t, results)
	prompt, output := 0, 0
	for _, r := range rows {
		switch {
		case r.Error != "" || r.FirstTokenNS == nil || r.Input == nil || r.Output == nil:
			t.Errorf("row %d: error %q, first token %v, usage %v and %v", r.RowID, r.Error, r.FirstTokenNS, r.Input, r.Output)
		case *r.Input != r.WantInput || *r.Output != *r.WantOutput || r.OutputFrom != result.FromUsage:
			t.Errorf("row %d: %d prompt tokens for %d, %d output tokens by %s for %d", r.RowID, *r.Input, r.WantInput, *r.Output, r.OutputFrom, *r.WantOutput)
		default:
			prompt, output = prompt+int(*r.Input), output+int(*r.Output)
		}
	}
	var s report.Summary
	doc, _, _ := reprise(t, "report", results, "--json")
	if err := json.Unmarshal([]byte(doc), &s); err != nil {
		t.Fatal(err)
	}
	c := s.Cache
	if c.Measured == nil || c.Expected == nil {
		t.Fatalf("the hit ratio: measured %v, expected %v; have the engine report cached tokens (see docs/engines.md)\n%s", c.Measured, c.Expected, said)
	}
	if th := run.Thread; th != nil {
		t.Logf("%+v", *th)
	}
	template := run.Templates[run.API]
	t.Logf("| %s | %d of %d | %d, %d | %d + %d, %s | %d | %.2f %% | %.2f %% |", run.API, s.Requests.Succeeded, len(rows), prompt, output,
		template.Before, template.After, template.Found, *c.Block, 100**c.Measured, 100**c.Expected)
	if off := *c.Measured - *c.Expected; (off < -0.005 || off > 0.005) &&
		!slices.ContainsFunc(s.Diagnoses, func(d report.Diagnosis) bool { return d.Code == "slot_cache" }) {
		t.Errorf("%.2f %% of the prompt tokens were hits, %.2f %% expected: %+v", 100**c.Measured, 100**c.Expected, s.Diagnoses)
	}
}

// An engineScript starts and stops engines of one kind: SCRIPT start DIR PORT [flags] returns
// when the engine answers, SCRIPT stop DIR PORT ends it. DIR/run/PORT*.pid hold its process
// groups.
type engineScript struct{ path, dir string }

func theEngineScript(t *testing.T) engineScript {
	t.Helper()
	path, dir, ok := strings.Cut(os.Getenv("REPRISE_TEST_ENGINE_SCRIPT"), " ")
	if !ok {
		t.Skip("REPRISE_TEST_ENGINE_SCRIPT is not set")
	}
	return engineScript{path, dir}
}

// start starts an engine at a free port. It ends with the test, or is killed before.
func (s engineScript) start(t *testing.T, flags ...string) (url string, kill func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	if out, err := exec.Command(s.path, append([]string{"start", s.dir, port}, flags...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s start: %v\n%s", s.path, err, out)
	}
	t.Cleanup(func() { _ = exec.Command(s.path, "stop", s.dir, port).Run() })
	kill = func() { // asked to end, some engines finish what they have taken
		files, _ := filepath.Glob(filepath.Join(s.dir, "run", port+"*.pid"))
		for _, file := range files {
			group, err := os.ReadFile(file)
			if err == nil {
				err = exec.Command("kill", "-KILL", "--", "-"+strings.TrimSpace(string(group))).Run()
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	return "http://127.0.0.1:" + port, kill
}

// Compare finds the difference between an engine with its prefix cache and one without, and
// none between one with it and itself. Engines are started by REPRISE_TEST_ENGINE_SCRIPT.
func TestEngineCaching(t *testing.T) {
	script := theEngineScript(t)
	tokenizer, w := engineTokenizer(t), engineWorkload(t, 8, 400*time.Millisecond, 4, 9)
	on, _ := script.start(t)
	flags := strings.Fields(os.Getenv("REPRISE_TEST_ENGINE_OFF"))
	if len(flags) == 0 {
		flags = []string{"--no-enable-prefix-caching"}
	}
	off, _ := script.start(t, flags...)
	for _, c := range []struct{ name, b, want string }{{"on against off", off, compare.Worse}, {"A/A", on, "not_found"}} {
		doc, errs, code := reprise(t, "compare", w, "--url-a", on, "--url-b", c.b, "--rounds", "12", "--rest", "100ms", "--primary", "p50_ttft",
			"--tokenizer", tokenizer, "-o", filepath.Join(t.TempDir(), "rounds"), "--json", "--quiet")
		if code != cli.Good && code != cli.Untrusted {
			t.Fatalf("%s: exit code %d\n%s", c.name, code, errs)
		}
		var found compare.Comparison
		if err := json.Unmarshal([]byte(doc), &found); err != nil || len(found.Versus) != 1 {
			t.Fatalf("%s: %v\n%s", c.name, err, doc)
		}
		v := found.Versus[0]
		if t.Logf("| %s | %s |", c.name, v.Text); v.Decision != c.want {
			t.Errorf("%s: %s, want %s", c.name, v.Decision, c.want)
		}
	}
}

// An engine that is killed while requests are in flight and to come ends those that it had
// taken as broken off, refuses the others, and the run is not trusted.
func TestEngineKilled(t *testing.T) {
	script := theEngineScript(t)
	tokenizer, w := engineTokenizer(t), engineWorkload(t, 40, 250*time.Millisecond, 400, 0)
	url, kill := script.start(t)
	results := filepath.Join(t.TempDir(), "r.parquet")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		time.Sleep(6 * time.Second)
		kill()
	}()
	text, errs, code := reprise(t, "replay", w, "--url", url, "--tokenizer", tokenizer, "-o", results, "--quiet", "--timeout", "30s")
	<-ended
	if code != cli.Untrusted {
		t.Errorf("exit code %d, want %d\n%s\n%s", code, cli.Untrusted, errs, text)
	}
	_, rows := targetResults(t, results)
	classes := map[string]int{}
	for _, r := range rows {
		classes[r.Error]++
	}
	t.Logf("| killed | %v |", classes)
	broken := 0
	for class, n := range classes {
		switch class {
		case openai.KindReset, openai.KindIncomplete, openai.KindStream, openai.KindUnavailable, openai.KindServer:
			broken += n
		case "", openai.KindConnect:
		default:
			t.Errorf("%d requests ended as %q", n, class)
		}
	}
	if classes[""] == 0 || classes[openai.KindConnect] == 0 || broken == 0 || len(rows) != 40 {
		t.Errorf("%d results: %s", len(rows), fmt.Sprint(classes))
	}
}

// Bench starts an engine of others anew for each value of a flag, here of how many requests
// it computes at once. That it did what the flag says shows in TTFT: where one is computed,
// seven of eight wait; where eight are, each is slower.
func TestEngineServeCommand(t *testing.T) {
	engine := os.Getenv("REPRISE_TEST_ENGINE_SERVE")
	if engine == "" {
		t.Skip("REPRISE_TEST_ENGINE_SERVE is not set")
	}
	tokenizer := engineTokenizer(t)
	t.Chdir(t.TempDir())
	suite := "rows:\n  - {name: eight, workload: baseline, requests: 16, input: \"constant:200\", output: \"constant:100\", load: \"concurrency:8\"}\n"
	if err := os.WriteFile("s.yaml", []byte(suite), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := reprise(t, "bench", "s.yaml", "--serve-cmd", engine, "--vary", "n=1,8", "--tokenizer", tokenizer, "--set", "ready-timeout=10m", "-o", "out", "--quiet", "--details")
	if code != cli.Good && code != cli.Untrusted {
		t.Fatalf("exit code %d\n%s\n%s", code, errs, out)
	}
	var ttft [2]float64
	for i, n := range []string{"1", "8"} {
		doc, _, _ := reprise(t, "report", filepath.Join("out", "n-"+n, "eight", "results.parquet"), "--json")
		var s report.Summary
		if err := json.Unmarshal([]byte(doc), &s); err != nil {
			t.Fatal(err)
		}
		if s.Requests.Succeeded != 16 || s.Latency.FromSent.TTFT.Mean == nil {
			t.Fatalf("n=%s: %+v", n, s.Requests)
		}
		ttft[i] = *s.Latency.FromSent.TTFT.Mean
		t.Logf("| n=%s | %d | mean TTFT %.0f ms |", n, s.Requests.Succeeded, ttft[i])
	}
	if max(ttft[0], ttft[1]) < 1.5*min(ttft[0], ttft[1]) {
		t.Errorf("mean TTFT was %.0f ms with one at once, %.0f ms with eight", ttft[0], ttft[1])
	}
}
