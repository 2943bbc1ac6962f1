package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
)

// Every command's help ends in an example, and every line of every example runs.
func TestHelpExamples(t *testing.T) {
	long(t)
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	url, streaming := simulate(t), simulateStream(t, 5*time.Millisecond)
	files := map[string]string{
		"mooncake_conversation.jsonl": sharingLog(100),
		"sharegpt.json":               `[{"id":"a","conversations":[{"from":"human","value":"hello"},{"from":"gpt","value":"good day"}]}]`,
		"gateway.jsonl":               userLog(20_000),
		"contract.yaml":               "clauses: [mean ttft <= 1h]\n",
		"workload.yaml":               "requests: 150\narrivals: poisson:2\nlengths: {input: \"uniform:50..500\", output: \"uniform:5..50\"}\n",
		"rules.yaml":                  "name: ours\nversion: ours-1\nrules:\n  cache: {one_of: [salted, as-is, cold]}\n",
	}
	for name, content := range files {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{
		"import mooncake_conversation.jsonl -o t.parquet",
		"synth --mirror t.parquet -o w.parquet",
		"replay w.parquet --url " + url + " -o r.parquet --max-lag 1h",
	} {
		must(t, strings.Fields(line)...)
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	commands := rootCommand(nil).Commands()
	for _, cmd := range commands {
		commands = append(commands, cmd.Commands()...)
	}
	for _, cmd := range commands {
		if cmd.RunE == nil {
			continue
		}
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.Name())
		}
		// Examples before this one may have made another trace under the name.
		must(t, "import", "mooncake_conversation.jsonl", "-o", "t.parquet")
		if cmd.Name() == "audit" {
			for _, month := range []string{"march", "april"} {
				must(t, "anonymize", "house.parquet", "--epsilon", "4", "--i-understand", "-o", month+".parquet")
			}
		}
		if cmd.Name() == "calibrate" { // a server with known costs, recorded by a sweep and otherwise
			must(t, "sweep", "chat", "--preset", "l4-qwen2.5-0.5b", "--rates", "2,20", "--level-duration", "5s",
				"--level-requests", "30", "--warmup", "0", "--no-confirm", "-o", "levels")
			for _, name := range []string{"r1", "r2", "later"} {
				must(t, "simulate", "w.parquet", "--preset", "l4-qwen2.5-0.5b", "--rate", "8", "-o", name+".parquet")
			}
		}
		if cmd.Name() == "validate" { // later runs of what was calibrated
			for _, name := range []string{"r1", "r2", "later"} {
				must(t, "simulate", "w.parquet", "--preset", "engine.yaml", "--rate", "8", "-o", name+".parquet", "--overwrite")
			}
		}
		if cmd.Name() == "merge" { // the results of two shards
			if err := os.Mkdir("shards", 0o700); err != nil {
				t.Fatal(err)
			}
			start := time.Now().Add(4 * time.Second).Format(time.RFC3339Nano)
			var both sync.WaitGroup
			for _, share := range []string{"0/2", "1/2"} {
				both.Go(func() {
					args := []string{"replay", "w.parquet", "--url", url, "--max-lag", "1h", "--shard", share, "--start-clock", start, "-o", "shards/" + share[:1] + ".parquet"}
					if _, errs, code := reprise(t, args...); code != cli.Good && code != cli.Untrusted {
						t.Errorf("%v: exit code %d\n%s", args, code, errs)
					}
				})
			}
			both.Wait()
			if err := os.Remove("r.parquet"); err != nil {
				t.Fatal(err)
			}
			for seed, day := range []string{"monday", "tuesday"} {
				must(t, "synth", "chat", "-n", "50", "--seed", strconv.Itoa(seed), "-o", day+".parquet")
			}
		}
		if cmd.Name() == "export" { // a trace to publish
			must(t, "synth", "chat", "-n", "50", "-o", "public.parquet")
		}
		if cmd.Name() == "predict" {
			config, err := os.ReadFile(filepath.Join(at, "../../replay/hardware/testdata/llama-3.1-70b.json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile("config.json", config, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if cmd.Name() == "fidelity" { // what synthesis makes of so few requests is not close
			must(t, "synth", "--mirror", "t.parquet", "-o", "w.parquet", "--overwrite")
		}
		for _, line := range strings.Split(cmd.Example, "\n") {
			line, _, _ = strings.Cut(line, " | ")
			server := url
			if strings.Contains(line, "--frontier") { // interactivity is the time between tokens
				server = streaming
			}
			line = strings.ReplaceAll(strings.TrimSpace(line), "http://localhost:8000", server)
			if cmd.Name() == "replay" && !strings.Contains(line, "--url") {
				line += " --max-requests 20 --url " + server
			}
			if cmd.Name() == "compare" && strings.Contains(line, "--url-a") {
				line = strings.NewReplacer("http://old:8000", server, "http://new:8000", server).Replace(line) +
					" --requests 20 --rounds 1 --rest 0s"
			}
			args, ok := strings.CutPrefix(line, "reprise ")
			if !ok {
				t.Errorf("%s: the example %q is not a command", cmd.Name(), line)
				continue
			}
			if cmd.Name() == "record" {
				runRecord(t, strings.NewReplacer(":8080", "127.0.0.1:0", "http://engine:8000", url, "http://a:8000", url, "http://b:8000", url).Replace(args))
				continue
			}
			if cmd.Name() == "fetch" { // from here, where the public file is at hand
				data := filepath.Join(at, "../../../shared/data/mooncake_conversation.jsonl")
				if _, err := os.Stat(data); err != nil {
					t.Logf("%s: the published file is not here", line)
					continue
				}
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, data) }))
				defer server.Close()
				args += " --from " + server.URL
			}
			if cmd.Name() == "serve" {
				runServe(t, strings.ReplaceAll(args, ":8000", ":0"))
				continue
			}
			words := shellWords(args)
			if strings.Contains(args, "--adaptive") { // it ends at a first level that is not trusted
				words = append(words, strings.Fields("--set from=20 --level-duration 1s --level-requests 0 --warmup 0s --trust max-cpu=0.000001")...)
			}
			example := func() {
				if _, errs, code := reprise(t, words...); code != cli.Good && code != cli.Untrusted {
					t.Errorf("%s: exit code %d\n%s", line, code, errs)
				}
			}
			if cmd.Name() == "demo" || cmd.Name() == "check" { // they wait, and no other example needs them
				beside.Go(example)
			} else {
				example()
			}
		}
	}
}

// userLog is a gateway log of so many users, each with a request.
func userLog(n int) string {
	var b strings.Builder
	for i := range n {
		output := 3
		if n > 100 { // enough for a release, whose noise would exceed so few tokens
			output += 16 << (i % 8)
		}
		fmt.Fprintf(&b, `{"ts":"2026-05-01T%02d:%02d:%02dZ","user":"u%d","usage":{"prompt_tokens":%d,"completion_tokens":%d}}`+"\n", 12+i/3600, i/60%60, i%60, i, 12+i%400, output)
	}
	return b.String()
}

// runServe starts the endpoint and ends it when it says that it serves.
func runServe(t *testing.T, args string) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	said := &watch{want: "serving", then: stop}
	if code := run(ctx, strings.Fields(args), strings.NewReader(""), io.Discard, said); code != cli.Good {
		t.Errorf("reprise %s: exit code %d\n%s", args, code, said.buf.String())
	}
}

// watch calls then when what was written contains want.
type watch struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	want string
	then func()
}

func (w *watch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	if strings.Contains(w.buf.String(), w.want) {
		w.then()
	}
	return len(p), nil
}
