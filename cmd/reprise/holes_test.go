package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
	"reprise/trace/longtest"
)

// Results with holes are read by every command that reads results, in every format: what cannot be told is not told, and nothing ends as a fault of the program.
func TestResultsWithHoles(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"c.yaml": "clauses: [p99 ttft <= 1s, mean tpot <= 1s, error_rate <= 1%, p95 session_time <= 1s, hit_ratio >= 10%]\n"})
	seeds := uint64(4)
	if longtest.On() {
		seeds = 12
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 2))
		var files []string
		for _, side := range []string{"a", "b"} {
			rows := make([]result.Result, []int{1, 2, 7, 40}[rng.IntN(4)])
			users, lacks := rng.IntN(4), []float64{.1, .5, 1}[rng.IntN(3)]
			for i := range rows {
				rows[i] = resulttest.Holed(rng, int64(i), users, lacks)
			}
			path := fmt.Sprintf("%s%d.parquet", side, seed)
			run := result.Run{Schema: result.Schema, Version: "test", Load: result.Load{Timing: result.OpenLoop}, Client: result.Client{Cores: 1}, Sending: result.Sending{Requests: int64(len(rows))}}
			if err := result.Write(path, run, &trace.SliceReader[result.Result]{Rows: rows}); err != nil {
				t.Fatal(err)
			}
			files = append(files, path)
		}
		a, b := files[0], files[1]
		for _, command := range []string{
			"report " + a, "report " + a + " --details --html a.html", "report " + a + " " + b + " --html b.html", "report " + a + " " + b + " --json",
			"report " + a + " --format json", "report " + a + " --format markdown", "report " + a + " --format csv", "report " + a + " --format junit",
			"report " + a + " --format prometheus", "report " + a + " --format vllm", "report " + a + " " + b + " --format decision --slo ttft:5ms", "report " + a + " --contract c.yaml",
			"compare " + a + " " + b, "compare " + a + " " + b + " --html c.html --details", "export " + a + " " + b + " --to table", "merge " + a + " --incomplete -o m.parquet",
			"calibrate " + a + " -o engine.yaml", "report " + a + " --explain p99_ttft",
		} {
			args := strings.Fields(command)
			if slices.Contains(args, "-o") || slices.Contains(args, "--html") {
				args = append(args, "--overwrite")
			}
			out, errs, code := reprise(t, args...)
			if strings.Contains(errs, "fault of this program") || code == cli.Usage {
				t.Errorf("seed %d: %s: exit code %d\n%s", seed, command, code, errs)
			}
			if strings.Contains(out, "NaN") || strings.Contains(out, "+Inf") && !strings.Contains(command, "prometheus") {
				t.Errorf("seed %d: %s says\n%s", seed, command, out)
			}
		}
	}
}
