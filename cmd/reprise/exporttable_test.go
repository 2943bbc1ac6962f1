package main

import (
	"os"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
	"reprise/trace"
)

// answered is the result of a request that got one token.
func answered(row int64) result.Result {
	at := trace.Ptr(row + 10)
	return result.Result{RowID: row, DueNS: row, SentNS: trace.Ptr(row), FirstTokenNS: at, LastTokenNS: at, DoneNS: at, WantInput: 5, WantOutput: trace.Ptr[int32](1), Events: 1}
}

// Export takes its formats from the schema of the file, and says which way a file goes.
func TestExportBySchema(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, "synth", "chat", "-n", "5", "-o", "w.parquet")
	rows := []result.Result{answered(0), {RowID: 1, DueNS: 20, SentNS: trace.Ptr(int64(30)), Error: "timeout"}}
	for name, tier := range map[string]string{"r.parquet": "internal", "s.parquet": "public"} {
		err := result.Write(name, result.Run{Source: result.Source{Tier: tier}}, &trace.SliceReader[result.Result]{Rows: rows})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		line, errs string
		code       int
	}{
		{"export r.parquet --to table -o r.csv", "r.csv: 2 requests of 1 run\nnote: This table is internal: not for release. CSV has no place to say so.\nuse:  read_csv(\"r.csv\") of pandas, Polars or DuckDB\n", cli.Good},
		{"export s.parquet -o t.parquet", "t.parquet: 2 requests of 1 run\nuse:  read_parquet(\"t.parquet\") of pandas, Polars or DuckDB\n", cli.Good},
		{"export s.parquet r.parquet -o both.parquet", "both.parquet: 4 requests of 2 runs\nuse:  read_parquet(\"both.parquet\") of pandas, Polars or DuckDB\n", cli.Good},
		{"export r.parquet --to mooncake",
			"reprise: r.parquet holds results of a run: want --to table -o FILE.parquet, or FILE.csv\n", cli.Usage},
		{"export w.parquet --to table", "reprise: w.parquet is a trace, and --to table is for results: any reader " +
			"of Parquet opens a trace as it is\n", cli.Usage},
		{"export r.parquet -o r.xlsx", "reprise: -o r.xlsx: want a name that ends in .parquet or .csv\n", cli.Usage},
		{"export r.parquet --model m", "reprise: --header, --model, --tokenizer, --seed and --corpus are for " +
			"traces, and --to table is for results\n", cli.Usage},
		{"export w.parquet w.parquet --to mooncake", "reprise: --to mooncake takes one trace: only results become " +
			"one table, by --to table\n", cli.Usage},
		{"export no.parquet --to table", "reprise: there is no file or folder no.parquet\n", cli.Failure},
		{"export s.parquet -o " + os.DevNull, os.DevNull + ": 2 requests of 1 run\n", cli.Good},
		{"export s.parquet -o UPPER.CSV", "UPPER.CSV: 2 requests of 1 run\nuse:  read_csv(\"UPPER.CSV\") of pandas, Polars or DuckDB\n", cli.Good},
		{"export r.parquet -o r.parquet", "reprise: r.parquet is an input and would be overwritten: name another " +
			"output\n", cli.Usage},
	} {
		if _, errs, code := reprise(t, strings.Fields(c.line)...); errs != c.errs || code != c.code {
			t.Errorf("%s: exit code %d\n%s", c.line, code, errs)
		}
	}
	csv := must(t, "export", "s.parquet", "r.parquet")
	if csv != must(t, "export", "s.parquet")+strings.SplitAfterN(string(read(t, "r.csv")), "\n", 2)[1] || strings.Count(csv, "\n") != 5 {
		t.Errorf("two files are\n%s", csv)
	}
	for name, want := range map[string]os.FileMode{"t.parquet": 0o644, "both.parquet": 0o600, "r.csv": 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// A journal in the place of results is read, or why it cannot be is said, and no other
// run begins beside it. Package result tests journals that are cut off.
func TestJournalOf(t *testing.T) {
	t.Chdir(t.TempDir())
	j, err := result.CreateJournal("r.parquet.journal", result.Run{Schema: result.Schema})
	if err != nil {
		t.Fatal(err)
	}
	for row := range int64(3) {
		if _, err := j.Write([]result.Result{answered(row)}); err != nil {
			t.Fatal(err)
		}
	}
	_, errs, _ := reprise(t, "report", "r.parquet")
	if want := "r.parquet is not finished: its run is still going on. Read from its journal: 3 requests. The " +
		"figures are of the run so far.\n"; !strings.HasPrefix(errs, want) {
		t.Errorf("while it is written:\n%s", errs)
	}
	must(t, "synth", "chat", "-n", "5", "-o", "w.parquet")
	again := func(want string) {
		t.Helper()
		_, errs, code := reprise(t, "replay", "w.parquet", "--url", "http://127.0.0.1:1", "-o", "r.parquet")
		if errs != "reprise: "+want+"\n" || code != cli.Usage {
			t.Errorf("another run: exit code %d: %s", code, errs)
		}
	}
	again("a running replay writes r.parquet.journal: name another file with -o")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	again("r.parquet.journal is from a run that did not finish: read it with reprise report r.parquet, or begin again " +
		"with --overwrite")
	// A run that cannot begin replaces nothing.
	_, errs, code := reprise(t, "replay", "w.parquet", "--url", "http://127.0.0.1:1", "-o", "r.parquet", "--overwrite")
	if code != cli.Failure {
		t.Errorf("exit code %d: %s", code, errs)
	}
	csv, errs, code := reprise(t, "export", "r.parquet")
	if code != cli.Good || !strings.HasPrefix(errs, "r.parquet is not finished: its run ended at ") ||
		!strings.Contains(errs, ". Read from its journal: 3 requests. To run it whole, repeat its command with "+
			"--overwrite.\n") || strings.Count(csv, "\nr,") != 3 {
		t.Errorf("exit code %d: %s%s", code, errs, csv)
	}
	must(t, "replay", "w.parquet", "--url", simulate(t), "--speed", "50", "-o", "r.parquet", "--overwrite")
	if _, err := os.Stat("r.parquet.journal"); err == nil {
		t.Error("the journal is left beside the results that replaced it")
	}
	writeFiles(t, map[string]string{"q.parquet.journal": "mine"})
	_, errs, code = reprise(t, "report", "q.parquet")
	if want := "reprise: q.parquet does not exist, and its journal cannot be read: q.parquet.journal: it is neither Parquet nor a journal\n"; errs != want || code != cli.Failure {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
