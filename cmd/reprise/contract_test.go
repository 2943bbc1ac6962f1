package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/report"
)

// simulatedResults are those of a small log, in the current directory.
func simulatedResults(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"mooncake_conversation.jsonl": sharingLog(60)})
	must(t, "import", "mooncake_conversation.jsonl", "-o", "t.parquet")
	must(t, "simulate", "t.parquet", "--preset", "l4-qwen2.5-0.5b", "-o", "r.parquet")
}

func writeFiles(t *testing.T, files map[string]string) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// What the contract came to is the exit code and the last line, of report and of
// simulate.
func TestContractExitCodes(t *testing.T) {
	simulatedResults(t)
	for _, c := range []struct {
		clauses, flags string
		code           int
		says           string
	}{
		{"[max ttft <= 1h, error_rate <= 0%]", "", cli.Good, ""},
		{"[max ttft <= 1ns, error_rate <= 0%]", "", cli.Check, "the contract is not met (1/2): max ttft from schedule is "},
		{"[p99.9 ttft <= 1h]", "", cli.Untrusted, "cannot be judged: p99.9 ttft from schedule: it takes 1,000 values, and there were 60"},
		{"[p99.9 ttft <= 1h, max ttft <= 1ns]", "", cli.Check, "the contract is not met (0/2): max ttft"}, // whatever more requests would show
		{"[max ttft <= 1]", "", cli.Usage, "c.yaml:1:23: write the limit as a duration"},
		{"[goodput >= 50%]", "", cli.Usage, "c.yaml: goodput >= 50%: the clause has no slo"},
		{"[goodput >= 50%]", "--slo ttft:1h", cli.Good, ""},
		{"[cost_per_million_output_tokens <= 1000000]", "", cli.Usage, "cost needs gpus"},
		{"[cost_per_million_output_tokens <= 1000000]", "--gpus 1 --price-per-gpu-hour 0.8", cli.Good, ""},
		{"[cost_per_million_output_tokens <= 0.001]", "--gpus 1 --price-per-gpu-hour 0.8", cli.Check, "over 0.001"},
		{"[max ttft <= 1h]", "--gpus -1", cli.Usage, "--gpus"},
	} {
		writeFiles(t, map[string]string{"c.yaml": "clauses: " + c.clauses + "\n"})
		for _, command := range []string{"report r.parquet", "simulate t.parquet --preset l4-qwen2.5-0.5b -o s.parquet"} {
			args := strings.Fields(command + " --contract c.yaml " + c.flags)
			_, errs, code := reprise(t, args...)
			if code != c.code || !strings.Contains(errs, c.says) {
				t.Errorf("%s, %s: exit code %d, want %d\n%s", strings.Join(args, " "), c.clauses, code, c.code, errs)
			}
			if _, err := os.Stat("s.parquet"); c.code == cli.Usage && err == nil {
				t.Errorf("%s was simulated", c.clauses)
			}
			os.Remove("s.parquet")
		}
	}
	for args, want := range map[string]int{
		"report r.parquet --contract none.yaml":                               cli.Failure,
		"report r.parquet --gpus 0":                                           cli.Usage,
		"report r.parquet --price-per-gpu-hour 4":                             cli.Usage, // without a contract it means nothing
		"simulate t.parquet --preset l4-qwen2.5-0.5b --contract c.yaml":       cli.Usage, // of which results?
		"replay t.parquet --url http://127.0.0.1:1 -o x.parquet --contract b": cli.Failure,
	} {
		if _, errs, code := reprise(t, strings.Fields(args)...); code != want {
			t.Errorf("%s: exit code %d, want %d\n%s", args, code, want, errs)
		}
	}
}

// What was read before the run is what judges it: the file may change meanwhile.
func TestContractIsReadOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"c.yaml": "clauses: [max ttft <= 1h]\n"})
	f := flags.Contract{Path: "c.yaml"}
	first, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, map[string]string{"c.yaml": "clauses: ["})
	if second, err := f.Read(); err != nil || second != first {
		t.Errorf("%v, %v", second, err)
	}
}

// A run that cannot be trusted stays so, whatever the contract says.
func TestContractOfAnUntrustedRun(t *testing.T) {
	simulatedResults(t)
	writeFiles(t, map[string]string{"good.yaml": "clauses: [max ttft <= 1h]\n", "bad.yaml": "clauses: [max ttft <= 1ns]\n"})
	url := simulate(t)
	for name, want := range map[string]string{"good.yaml": "the report says why\n", "bad.yaml": "the report says why; the contract is not met"} {
		_, errs, code := reprise(t, "replay", "t.parquet", "--url", url, "-o", "x.parquet", "--open-loop", "--speed", "100", "--max-cpu", "0", "--contract", name)
		if code != cli.Untrusted || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d\n%s", name, code, errs)
		}
	}
}

// A contract that is wrong ends a replay before it looks for the server.
func TestContractIsReadBeforeSending(t *testing.T) {
	simulatedResults(t)
	writeFiles(t, map[string]string{"c.yaml": "clauses:\n  - p95 ttft <= 1s\n  - p95 speed <= 1s\n"})
	_, errs, code := reprise(t, "replay", "t.parquet", "--url", "http://127.0.0.1:1", "-o", "x.parquet", "--contract", "c.yaml")
	if code != cli.Usage || !strings.Contains(errs, "c.yaml:3:9: no such metric") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

// The contracts of the documentation are read as they stand there, and each of
// their clauses is judged on a run. So is each of its table of clauses.
func TestContractsOfTheDocumentation(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "contract.md"))
	if err != nil {
		t.Fatal(err)
	}
	simulatedResults(t)
	blocks := strings.Split(string(doc), "```yaml\n")[1:]
	for i := range blocks {
		blocks[i], _, _ = strings.Cut(blocks[i], "```")
	}
	if len(blocks) != 2 {
		t.Fatalf("%d contracts", len(blocks))
	}
	table := "clauses:\n"
	_, rows, _ := strings.Cut(string(doc), "| clause | about |\n|---|---|\n")
	rows, _, _ = strings.Cut(rows, "\n\n")
	for _, row := range strings.Split(rows, "\n") {
		table += "  - " + strings.Split(row, "`")[1] + "\n"
	}
	blocks = append(blocks, table+"gpus: 1\nprice_per_gpu_hour: 1\n")
	for i, block := range blocks {
		name := fmt.Sprintf("c%d.yaml", i)
		writeFiles(t, map[string]string{name: block})
		out, errs, code := reprise(t, "report", "r.parquet", "--json", "--slo", "ttft:1s", "--contract", name)
		var s report.Summary
		if err := json.Unmarshal([]byte(out), &s); err != nil || code != cli.Check && code != cli.Untrusted && code != cli.Good {
			t.Fatalf("%s: exit code %d, %v\n%s", block, code, err, errs)
		}
		if lines := strings.Count(block, "\n  - "); s.Contract == nil || len(s.Contract.Clauses) != lines || lines == 0 {
			t.Errorf("%+v of\n%s", s.Contract, block)
		}
	}
}
