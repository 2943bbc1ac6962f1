package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"reprise/replay/report"
)

// documented are the types of some columns as the schema gives them, by reader.
var documented = map[string]map[string]string{
	"pyarrow": {"arrival_ns": "int64", "session": "int64", "turn": "int32", "parents": "list<element: int64 not null>",
		"input_tokens": "int32", "temperature": "float", "stream": "bool", "blocks": "list<element: uint64 not null>", "category": "string"},
	"polars": {"arrival_ns": "Int64", "session": "Int64", "turn": "Int32", "parents": "List(Int64)",
		"input_tokens": "Int32", "temperature": "Float32", "stream": "Boolean", "blocks": "List(UInt64)", "category": "String"},
	"duckdb": {"arrival_ns": "BIGINT", "session": "BIGINT", "turn": "INTEGER", "parents": "BIGINT[]",
		"input_tokens": "INTEGER", "temperature": "FLOAT", "stream": "BOOLEAN", "blocks": "UBIGINT[]", "category": "VARCHAR"},
}

// interopFiles makes a trace of the demo log and results of a replay.
func interopFiles(t *testing.T) (trace, results string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log.jsonl")
	if err := os.WriteFile(log, []byte(sharingLog(50)), 0o600); err != nil {
		t.Fatal(err)
	}
	trace, results = filepath.Join(dir, "t.parquet"), filepath.Join(dir, "r.parquet")
	must(t, "import", log, "-o", trace)
	// Tokens that come at once have no TPOT, which the table is read for too.
	url := simulateStream(t, 2*time.Millisecond)
	reprise(t, "replay", trace, "--url", url, "-o", results, "--max-lag", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1")
	return trace, results
}

// Files are read by arrow-go, which is not the library that wrote them.
func TestReadByArrow(t *testing.T) {
	long(t)
	trace, results := interopFiles(t)
	for path, rows := range map[string]int64{trace: 50, results: 50} {
		f, err := file.OpenParquetFile(path, false)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		table, err := r.ReadTable(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer table.Release()
		if table.NumRows() != rows {
			t.Errorf("%d rows, want %d", table.NumRows(), rows)
		}
		if path != trace {
			continue
		}
		for column, want := range documented["pyarrow"] {
			i := table.Schema().FieldIndices(column)
			if len(i) != 1 {
				t.Errorf("there is no column %s", column)
				continue
			}
			got := table.Schema().Field(i[0]).Type.String()
			if spelling := strings.NewReplacer("float", "float32", "string", "utf8", " not null", ""); got != spelling.Replace(want) {
				t.Errorf("column %s is %s, want %s", column, got, want)
			}
		}
	}
}

// Files are read by PyArrow, Polars and DuckDB with the documented types and
// the same values. REPRISE_TEST_PYTHON names a Python that has some of them.
func TestReadByOthers(t *testing.T) {
	python := os.Getenv("REPRISE_TEST_PYTHON")
	if python == "" {
		t.Skip("REPRISE_TEST_PYTHON names no Python with pyarrow, polars or duckdb")
	}
	trace, results := interopFiles(t)
	out, err := exec.Command(python, "testdata/interop.py", trace, results).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]struct {
		Types   map[string]string
		Rows    []map[string]any
		Results int
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) == 0 {
		t.Fatal("that Python has none of pyarrow, polars and duckdb")
	}
	want := func() []map[string]any {
		for _, g := range got {
			return g.Rows
		}
		return nil
	}()
	for name, g := range got {
		for column, kind := range documented[name] {
			if g.Types[column] != kind {
				t.Errorf("%s: column %s is %s, want %s", name, column, g.Types[column], kind)
			}
		}
		a, _ := json.Marshal(g.Rows)
		b, _ := json.Marshal(want)
		if string(a) != string(b) || len(g.Rows) != 50 || g.Results != 50 {
			t.Errorf("%s reads other values, or %d and %d rows in place of 50", name, len(g.Rows), g.Results)
		}
		t.Logf("%s: %d columns, %d rows", name, len(g.Types), len(g.Rows))
	}
}

// anyPython is a Python that may have readers of tables: the one that
// REPRISE_TEST_PYTHON names, or else the first on the path.
func anyPython(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath(cmp.Or(os.Getenv("REPRISE_TEST_PYTHON"), "python3"))
	if err != nil {
		t.Skip("there is no Python: ", err)
	}
	return python
}

// pandas, Polars and DuckDB read the table, as Parquet and as CSV, and find the figures
// of the report in it.
func TestTableReadByOthers(t *testing.T) {
	long(t)
	python := anyPython(t)
	_, results := interopFiles(t)
	dir := t.TempDir()
	parquet, csv := filepath.Join(dir, "requests.parquet"), filepath.Join(dir, "requests.csv")
	must(t, "export", results, "--to", "table", "-o", parquet)
	must(t, "export", results, "-o", csv)
	out, err := exec.Command(python, "testdata/table.py", parquet, csv).Output()
	if err != nil {
		t.Fatal(err)
	}
	var read map[string][][5]float64
	if err := json.Unmarshal(out, &read); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(read) == 0 {
		t.Skip("this Python has none of pandas with pyarrow, Polars and DuckDB")
	}
	doc, _, _ := reprise(t, "report", results, "--json")
	var s report.Summary
	if err := json.Unmarshal([]byte(doc), &s); err != nil {
		t.Fatal(err)
	}
	want := [5]float64{float64(s.Requests.Succeeded), *s.Latency.FromSent.TTFT.Mean, *s.Latency.FromSent.E2E.Mean, *s.Latency.TPOT.Mean, float64(s.Tokens.Output)}
	for reader, files := range read {
		for i, got := range files {
			for k := range got {
				if math.Abs(got[k]-want[k]) > 1e-6 {
					t.Errorf("%s, %s: %v, want %v", reader, []string{"Parquet", "CSV"}[i], got, want)
				}
			}
		}
		t.Logf("%s: %v", reader, files)
	}
}

// The Python in docs/data.md runs on any results.
func TestDataSnippets(t *testing.T) {
	long(t)
	python := anyPython(t)
	doc, err := os.ReadFile("../../docs/data.md")
	if err != nil {
		t.Fatal(err)
	}
	trace, results := interopFiles(t)
	t.Chdir(filepath.Dir(results))
	must(t, "export", results, "--to", "table", "-o", "requests.parquet")
	if err := os.Rename(trace, "w.parquet"); err != nil {
		t.Fatal(err)
	}
	snippets := regexp.MustCompile("(?s)```python\n(.*?)```").FindAllSubmatch(doc, -1)
	if len(snippets) < 5 {
		t.Fatalf("docs/data.md has %d snippets", len(snippets))
	}
	for _, code := range snippets {
		out, err := exec.Command(python, "-c", string(code[1])).CombinedOutput()
		if err != nil && strings.Contains(string(out), "No module named") {
			t.Logf("not run: %s", out)
			continue
		}
		if err != nil || len(out) == 0 {
			t.Errorf("%v\n%s%s", err, code[1], out)
		}
	}
}

// The notebook runs from its first cell to its last, on results in the place of the
// demo's.
func TestNotebookRuns(t *testing.T) {
	long(t)
	python := anyPython(t)
	if out, err := exec.Command(python, "-c", "import pandas, matplotlib").CombinedOutput(); err != nil {
		t.Skipf("%s", out)
	}
	notebook, err := filepath.Abs("../../examples/notebook.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	_, results := interopFiles(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	err = errors.Join(os.Mkdir("bin", 0o755), os.Symlink(self, "bin/reprise"), os.Mkdir("demo", 0o755), os.Rename(results, "demo/results.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	const cells = `import json, sys
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]))`
	cmd := exec.Command(python, "-c", cells, notebook)
	cmd.Env = append(os.Environ(), asCommand+"=1", "MPLBACKEND=Agg")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "measured  succeeded") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A Benchmark Report is valid by the library that defines it, and has the figures of the report.
func TestBenchmarkReportByPeers(t *testing.T) {
	long(t)
	const script = `import sys
from llmd_benchmark_report.core import import_benchmark_report
of = import_benchmark_report(sys.argv[1])
all = of.results.request_performance.aggregate
print(of.version, all.requests.total, all.latency.time_to_first_token.mean, all.latency.request_latency.p50,
      all.throughput.output_token_rate.mean)`
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "import llmd_benchmark_report").Run() != nil {
		t.Skip("there is no python3 with llmd-benchmark-report")
	}
	_, results := interopFiles(t)
	var s report.Summary
	out, _, _ := reprise(t, "report", results, "--json")
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "br.json")
	reprise(t, "report", results, "--format", "benchmark-report", "-o", path)
	read, err := exec.Command(python, "-c", script, path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, read)
	}
	var version string
	var total int64
	var ttft, e2e, rate float64
	if _, err := fmt.Sscan(string(read), &version, &total, &ttft, &e2e, &rate); err != nil {
		t.Fatalf("%v: %s", err, read)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Abs(b) }
	l := &s.Latency.FromSent
	if version != "0.2.1" || total != s.Requests.Rows || !near(1e3*ttft, *l.TTFT.Mean) || !near(1e3*e2e, *l.E2E.P50) ||
		!near(rate, *s.Throughput.OutputTokensPerS) {
		t.Errorf("%s", read)
	}
}
