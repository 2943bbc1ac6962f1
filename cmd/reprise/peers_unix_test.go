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
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/replay/engine"
	"reprise/replay/peerfile"
	"reprise/replay/result"
	"reprise/trace"
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
	// vLLM's wheel has its client as a binary of another name.
	if err := os.WriteFile(filepath.Join(dir, "vllm"), []byte("#!/bin/sh\nexec \""+folder+"/vllm-rs\" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := dir + ":" + filepath.Join(folder, "aiperf", "bin") + ":" + filepath.Join(folder, "guidellm", "bin") + ":" + filepath.Join(folder, "inference-perf", "bin") + ":" + os.Getenv("PATH")

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
			tool := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(wrote.Use, "URL", srv.URL))
			tool.Env = append(os.Environ(), "PATH="+path, "HF_HOME="+filepath.Join(folder, "hf"), "HF_HUB_OFFLINE=1", "NO_COLOR=1", "PYTHONWARNINGS=ignore")
			tool.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // to be ended with its workers
			tool.Cancel = func() error { return syscall.Kill(-tool.Process.Pid, syscall.SIGKILL) }
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
