package peerfile

import (
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/replay/peer"
	"reprise/replay/report"
)

// Files that the tools wrote, below the folder that the variable names, are read under the
// definitions of their tools, and held against what the tools themselves say in them or in
// the summary beside them. `make test-peers` makes such files.
func TestRealFiles(t *testing.T) {
	folder := os.Getenv("REPRISE_TEST_PEER_RESULTS")
	if folder == "" {
		t.Skip("REPRISE_TEST_PEER_RESULTS names no folder with results of other tools")
	}
	read := 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !Recognised(path) {
			return err
		}
		read++
		t.Run(path, func(t *testing.T) { holdAgainst(t, path) })
		return nil
	})
	if err != nil || read == 0 {
		t.Fatalf("%d files read: %v", read, err)
	}
}

// A printed figure of a tool: where its file has it, and what it is called under its
// definitions.
type printed struct {
	path   string // in the JSON, by dots
	metric string
	stat   string  // "" is a total
	within float64 // a share
}

var printedBy = map[string]struct {
	preset, summary string // summary "" is the file itself
	figures         []printed
}{
	"vLLM": {"vllm", "", []printed{
		{"completed", "Successful requests", "", 0}, {"total_output_tokens", "Total generated tokens", "", 0},
		{"mean_ttft_ms", "TTFT", "mean", 1e-5}, {"p99_ttft_ms", "TTFT", "p99", 1e-5}, {"mean_tpot_ms", "TPOT", "mean", 1e-5}, {"p99_tpot_ms", "TPOT", "p99", 1e-5},
		{"mean_itl_ms", "ITL", "mean", 1e-5}, {"p99_itl_ms", "ITL", "p99", 1e-5}, {"mean_e2el_ms", "E2EL", "mean", 1e-5},
		// Its duration begins before the first request is sent.
		{"output_throughput", "Output token throughput", "", 0.01}, {"request_throughput", "Request throughput", "", 0.01},
	}},
	"AIPerf": {"aiperf", "profile_export_aiperf.json", []printed{
		{"request_count.avg", "Request Count", "", 0},
		{"time_to_first_token.avg", "Time to First Token (TTFT)", "avg", 1e-5}, {"time_to_first_token.p99", "Time to First Token (TTFT)", "p99", 1e-5},
		{"inter_token_latency.avg", "Inter Token Latency (ITL)", "avg", 1e-5}, {"inter_chunk_latency.avg", "Inter Chunk Latency (ICL)", "avg", 1e-5}, {"inter_chunk_latency.p99", "Inter Chunk Latency (ICL)", "p99", 1e-5},
		{"request_latency.avg", "Request Latency", "avg", 1e-5}, {"request_latency.p99", "Request Latency", "p99", 1e-5},
		{"output_token_throughput.avg", "Output Token Throughput", "", 0.01}, {"request_throughput.avg", "Request Throughput", "", 0.01},
	}},
	"GuideLLM": {"guidellm", "", []printed{
		{"benchmarks.0.metrics.time_to_first_token_ms.successful.mean", "time_to_first_token_ms", "mean", 1e-4},
		{"benchmarks.0.metrics.inter_token_latency_ms.successful.mean", "inter_token_latency_ms", "mean", 1e-4},
		{"benchmarks.0.metrics.time_per_output_token_ms.successful.mean", "time_per_output_token_ms", "mean", 1e-4},
		{"benchmarks.0.metrics.request_latency.successful.mean", "request_latency", "mean", 1e-4},
	}},
	"inference-perf": {"inference-perf", "summary_lifecycle_metrics.json", []printed{
		{"successes.count", "successes.count", "", 0},
		{"successes.latency.time_to_first_token.mean", "time_to_first_token", "mean", 1e-5}, {"successes.latency.time_to_first_token.p99", "time_to_first_token", "p99", 1e-5},
		{"successes.latency.time_per_output_token.mean", "time_per_output_token", "mean", 1e-5},
		{"successes.latency.inter_token_latency.mean", "inter_token_latency", "mean", 1e-5}, {"successes.latency.inter_token_latency.p99", "inter_token_latency", "p99", 1e-5},
		{"successes.latency.request_latency.mean", "request_latency", "mean", 1e-5},
		{"successes.throughput.output_tokens_per_sec", "output_tokens_per_sec", "", 0.01},
	}},
}

func holdAgainst(t *testing.T, path string) {
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := report.Summarise(f.Run, f.Reader(), report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tool, _, _ := strings.Cut(f.Run.Read.Tool, " ")
	by := printedBy[tool]
	if by.summary != "" {
		path = filepath.Join(filepath.Dir(path), by.summary)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	figures, err := peer.Under(by.preset, f.Run, f.Reader, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range by.figures {
		// Unless it is told otherwise, inference-perf counts output by its tokenizer, and we by
		// the server's usage where the file has it.
		if counted, ok := numberAt(doc, []string{"successes", "output_len", "mean"}); ok && strings.Contains(p.metric, "output_token") {
			if s.Tokens.OutputSources["usage"] > 0 && counted*float64(s.Requests.Succeeded) != float64(s.Tokens.Output) {
				t.Logf("%s: the tool counted %v tokens in an output, the server %v", p.path, counted, float64(s.Tokens.Output)/float64(s.Requests.Succeeded))
				continue
			}
		}
		says, ok := numberAt(doc, strings.Split(p.path, "."))
		if !ok {
			t.Logf("%s is not in the file", p.path)
			continue
		}
		ours, found := math.NaN(), false
		for _, m := range figures.Metrics {
			for _, v := range m.Values {
				if m.Name == p.metric && v.Stat == p.stat && v.Value != nil {
					ours, found = *v.Value, true
				}
			}
		}
		if difference := math.Abs(ours - says); !found || difference > p.within*math.Abs(says)+1e-9 {
			t.Errorf("%s: the tool says %v, under its definitions %s %s is %v (%+.3f %%)", p.path, says, p.metric, p.stat, ours, 100*(ours/says-1))
		}
	}
}

// numberAt finds a number in a document.
func numberAt(doc any, path []string) (float64, bool) {
	for _, key := range path {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[key]
		case []any:
			doc = v[0]
		}
	}
	number, ok := doc.(float64)
	return number, ok
}
