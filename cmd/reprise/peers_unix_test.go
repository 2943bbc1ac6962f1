//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/replay/engine"
	"reprise/replay/peerfile"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/token"
)

// What is exported is replayed by the tool that it is for, with the command that export
// prints, against a server of ours; the results that the tool leaves behind are read, and
// held against the trace. `make test-peers` installs the tools into the folder that the
// variable names.
func TestExportsByPeers(t *testing.T) {
	folder := os.Getenv("REPRISE_TEST_PEERS")
	if folder == "" {
		t.Skip("REPRISE_TEST_PEERS names no folder with the tools: make test-peers")
	}
	const model = "truth/tok" // as the folder's offline cache names it
	c := engine.DefaultServerConfig()
	c.Model, c.Tokenizer = model, filepath.Join(folder, "tok", "tokenizer.json")
	c.Engine.Costs = engine.Costs{Request: 20e9, Step: 2e9}
	s, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)

	dir := t.TempDir()
	// Requests a quarter of a second apart: with a prefix of earlier ones, with blocks of their
	// own alone, so that import finds no sessions, to whose turns AIPerf 0.13 adds those before
	// them, and without blocks.
	var blocks, single, plain strings.Builder
	plain.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	start := time.Date(2023, 11, 16, 18, 0, 0, 0, time.UTC)
	for i := range 12 {
		input, output := 530+31*i, 5+i
		fmt.Fprintf(&blocks, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [%d, %d]}`+"\n", 250*i, input, output, i%5, 100+i)
		fmt.Fprintf(&single, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [%d, %d]}`+"\n", 250*i, input, output, 200+i, 100+i)
		fmt.Fprintf(&plain, "%s,%d,%d\n", start.Add(time.Duration(i)*250*time.Millisecond).Format("2006-01-02 15:04:05.0000000"), input, output)
	}
	traces := map[string]string{}
	for name, log := range map[string]string{"blocks.jsonl": blocks.String(), "single.jsonl": single.String(), "plain.csv": plain.String()} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		traces[name] = path + ".parquet"
		must(t, "import", path, "-o", traces[name])
	}
	for _, c := range []struct {
		format, trace string
		// within is how far a prompt may be from its length: tools that make words of tokens and
		// send text, and the template of chat, are off by some.
		within  float64
		untimed bool
	}{
		{"vllm-timed-trace", "blocks.jsonl", 0, false},
		{"vllm-custom", "blocks.jsonl", 0, true},
		{"aiperf", "single.jsonl", 0.08, false},
		{"aiperf", "plain.csv", 0.08, false},
		{"bailian", "single.jsonl", 0.08, false},
		{"guidellm", "blocks.jsonl", 0.05, false},
		{"guidellm", "plain.csv", 0.05, false},
		{"inference-perf", "plain.csv", 0.05, false},
	} {
		t.Run(c.format+" of "+c.trace, func(t *testing.T) {
			work := t.TempDir()
			t.Chdir(work)
			args := []string{"export", traces[c.trace], "--to", c.format, "-o", "file.jsonl", "--model", model, "--json"}
			if c.format == "vllm-custom" {
				args = append(args, "--tokenizer", filepath.Join(folder, "tok", "tokenizer.json"))
			}
			var wrote struct {
				Use string `json:"use"`
			}
			if err := json.Unmarshal([]byte(must(t, args...)), &wrote); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			tool := peerCommand(t, ctx, folder, strings.ReplaceAll(wrote.Use, "URL", srv.URL))
			// GuideLLM 0.8.1 may lose a request, and then does not end after its results are
			// written.
			ended := make(chan struct{})
			go func() {
				for {
					select {
					case <-ended:
						return
					case <-time.After(time.Second):
					}
					if info, err := os.Stat("guidellm.json"); err == nil && time.Since(info.ModTime()) > 20*time.Second {
						cancel()
						return
					}
				}
			}()
			out, err := tool.CombinedOutput()
			close(ended)
			if _, none := os.Stat("guidellm.json"); err != nil && none != nil {
				t.Fatalf("%s\n%v\n%s", tool.Args[2], err, out[max(0, len(out)-2000):])
			} else if err != nil {
				t.Logf("it did not end by itself: %v", err)
			}
			heldAgainstTrace(t, work, traces[c.trace], c.within, c.untimed)
		})
	}
}

// peerCommand is a command line of a peer's, which is ended with its workers.
func peerCommand(t *testing.T, ctx context.Context, folder, line string) *exec.Cmd {
	t.Helper()
	// vLLM's wheel has its client as a binary of another name.
	dir := t.TempDir()
	script := "#!/bin/sh\nexec \"" + folder + "/vllm-rs\" \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "vllm"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	path := dir
	for _, peer := range []string{"aiperf", "guidellm", "inference-perf"} {
		path += ":" + filepath.Join(folder, peer, "bin")
	}
	tool := exec.CommandContext(ctx, "sh", "-c", line)
	tool.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"), "HF_HOME="+filepath.Join(folder, "hf"),
		"HF_HUB_OFFLINE=1", "NO_COLOR=1", "PYTHONWARNINGS=ignore")
	tool.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	tool.Cancel = func() error { return syscall.Kill(-tool.Process.Pid, syscall.SIGKILL) }
	return tool
}

// The command lines that docs/from-other-tools.md sets beside each other, of fewer requests, send as many, to the same
// path, and ask for the same, at such gaps or so many at a time. The template, 27 tokens, is among ours.
func TestLinesByPeers(t *testing.T) {
	folder := os.Getenv("REPRISE_TEST_PEERS")
	if folder == "" {
		t.Skip("REPRISE_TEST_PEERS names no folder with the tools: make test-peers")
	}
	doc, err := os.ReadFile("../../docs/from-other-tools.md")
	if err != nil {
		t.Fatal(err)
	}
	c := engine.DefaultServerConfig()
	c.Model, c.Tokenizer = "truth/tok", filepath.Join(folder, "tok", "tokenizer.json")
	c.Engine.Costs = engine.Costs{Request: 20e9, Step: 2e9}
	tok, err := token.OpenAny(c.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	fewer := strings.NewReplacer("duration: 300", "duration: 10", "1200", "40", "200", "40", "--url U", "")
	for _, peer := range []struct{ line, more string }{
		{"aiperf profile ", "--model truth/tok --ui none --url URL"},
		{"vllm bench serve --dataset-name random ", "--base-url URL --model truth/tok --tokenizer FOLDER/tok"},
		{"vllm bench serve --dataset-name sharegpt ", "--base-url URL --model truth/tok --tokenizer FOLDER/tok " +
			"--backend openai-chat --endpoint /v1/chat/completions"},
		{"guidellm run ", "--disable-console --backend kind=openai_http,target=URL,model=truth/tok " +
			"--tokenizer kind=huggingface_auto,model=truth/tok --constraint kind=max_requests,count=40"},
		{"inference-perf: `", `
api: {streaming: true}
data: {type: random, input_distribution: {type: fixed, mean: 550}, output_distribution: {type: fixed, mean: 150}}
server: {type: vllm, model_name: truth/tok, base_url: "URL"}
tokenizer: {pretrained_model_name_or_path: FOLDER/tok}
`},
	} {
		t.Run(strings.Fields(peer.line)[0], func(t *testing.T) {
			beside := regexp.MustCompile("(?m)^\\| `?" + peer.line + "(.*)` \\| `reprise replay (.*)` \\|$")
			row := beside.FindSubmatch(doc)
			if row == nil {
				t.Fatal("the page has no such line")
			}
			args, here := fewer.Replace(string(row[1])), fewer.Replace(string(row[2]))
			if !strings.Contains(here, "--requests") {
				here += " --requests 40"
			}
			t.Chdir(t.TempDir())
			chats, err := os.ReadFile(conversations(t, 40)) // without system prompts, which vLLM takes for the human's
			if err != nil {
				t.Fatal(err)
			}
			chats = regexp.MustCompile(`\{"from":"system"[^}]*\},`).ReplaceAll(chats, nil)
			writeFiles(t, map[string]string{"F": string(chats)})
			url, sent := wireOf(t, c)
			line := peer.line + args + " " + strings.NewReplacer("URL", url, "FOLDER", folder).Replace(peer.more)
			if args, yes := strings.CutPrefix(line, "inference-perf: `"); yes {
				writeFiles(t, map[string]string{"load.yml": args})
				line = "inference-perf --config_file load.yml"
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			go func() { // what comes after its last request is of no interest, and GuideLLM may not end
				for ctx.Err() == nil {
					time.Sleep(time.Second)
					if all := sent(); len(all) > 0 && time.Since(all[len(all)-1].at) > 20*time.Second {
						cancel()
					}
				}
			}()
			said, err := peerCommand(t, ctx, folder, line).CombinedOutput()
			theirs := sent()
			if len(theirs) == 0 {
				t.Fatalf("%s\n%v\n%s", line, err, said)
			}
			ours := wiredTo(t, here+" --tokenizer "+c.Tokenizer, url, sent)
			a, b := lookOf(tok, theirs), lookOf(tok, ours)
			t.Logf("theirs: %+v, ours: %+v", a, b)
			if a.requests != b.requests || a.path != b.path || a.forced != b.forced || a.streams != b.streams ||
				math.Abs(a.prompt/b.prompt-1) > 0.06 || math.Abs(a.output/b.output-1) > 0.01 {
				t.Error("theirs is not ours")
			}
			if closed := strings.Contains(here, "--concurrency"); closed && a.inFlight != b.inFlight ||
				!closed && min(a.spread, b.spread) < 0.5 {
				t.Error("theirs come in another way than ours")
			}
		})
	}
}

// A look is what one can say of the requests of a load.
type look struct {
	requests, inFlight, forced, streams int
	path                                string
	prompt, output                      float64 // means, in tokens
	rate                                float64
	spread                              float64 // of the gaps, in parts of their mean: 0 if constant, 1 of Poisson
}

func lookOf(tok token.Tokenizer, bodies []wireBody) look {
	l := look{requests: len(bodies), path: bodies[0].path}
	var squares float64
	n := float64(len(bodies))
	for i, b := range bodies {
		l.inFlight = max(l.inFlight, b.inFlight)
		if b.IgnoreEOS {
			l.forced++
		}
		if b.Stream {
			l.streams++
		}
		if b.path != l.path {
			l.path = "several"
		}
		l.prompt += float64(len(tok.Append(nil, b.text()))) / n
		l.output += float64(max(b.MaxTokens, b.MaxCompletion)) / n
		if i > 0 {
			squares += math.Pow(b.at.Sub(bodies[i-1].at).Seconds(), 2)
		}
	}
	l.rate = (n - 1) / bodies[len(bodies)-1].at.Sub(bodies[0].at).Seconds()
	l.spread = math.Sqrt(max(0, squares/(n-1)*l.rate*l.rate-1))
	return l
}

// heldAgainstTrace reads the one results file below a folder. Requests are told by how many
// tokens they ask for, which no two have in common.
func heldAgainstTrace(t *testing.T, folder, of string, within float64, untimed bool) {
	var results string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && peerfile.Recognised(path) {
			results = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := peerfile.Open(results)
	if err != nil {
		t.Fatal(err)
	}
	var got []result.Result
	err = trace.Each(f.Reader(), func(_ int64, r *result.Result) error {
		if r.Error != "" || r.SentNS == nil || r.Output == nil {
			return errors.New("a request failed: " + r.Error)
		}
		got = append(got, *r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	src, err := trace.Open(of)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	rows, err := src.Reader()
	if err != nil {
		t.Fatal(err)
	}
	var want []trace.Request
	if err := trace.Each(rows, func(_ int64, r *trace.Request) error { want = append(want, *r); return nil }); err != nil {
		t.Fatal(err)
	}
	if missing := len(want) - len(got); missing > 0 && !strings.HasPrefix(f.Run.Read.Tool, "GuideLLM") || missing > 1 || missing < 0 {
		t.Fatalf("there are results of %d requests, of %d", len(got), len(want))
	}
	worst, late := 0.0, []time.Duration{}
	for i := range got {
		r := &got[i]
		at := slices.IndexFunc(want, func(row trace.Request) bool { return *row.OutputTokens == *r.Output })
		if at < 0 {
			t.Errorf("an answer has %d tokens, which no row asks for", *r.Output)
			continue
		}
		row := want[at]
		want[at].OutputTokens = trace.Ptr[int32](-1) // once
		input := r.WantInput
		if r.Input != nil {
			input = *r.Input
		}
		worst = max(worst, math.Abs(float64(input)/float64(row.InputTokens)-1))
		late = append(late, time.Duration(*r.SentNS-row.ArrivalNS))
	}
	// When the tool started its clock is not known: in the middle, requests count as on time.
	slices.Sort(late)
	if len(late) == 0 {
		t.Fatal("no answer is of a row")
	}
	start := late[len(late)/2]
	for i := range late {
		late[i] = (late[i] - start).Abs()
	}
	slices.Sort(late)
	t.Logf("%s: %d requests, prompts off by up to %.2f %%, times by %v in the middle and %v at most", f.Run.Read.Tool, len(got), 100*worst, late[len(late)/2].Round(100*time.Microsecond), late[len(late)-1].Round(100*time.Microsecond))
	if worst > within {
		t.Errorf("a prompt is %.2f %% off its length", 100*worst)
	}
	// A busy machine sends late; a wrong unit would be off by seconds.
	if !untimed && late[len(late)/2] > 250*time.Millisecond {
		t.Errorf("in the middle, requests came %v from their times", late[len(late)/2])
	}
}
