package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
)

// Every command that takes a trace takes a folder of partitions, and says and writes the same
// of it as of the file that it was cut from. Commands that take none say of both that they hold a trace.
func TestPartitionedEverywhere(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"mooncake.jsonl": sharingLog(200)})
	for _, dir := range []string{"file", "folder"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		writeFiles(t, map[string]string{dir + "/suite.yaml": "rows: [{name: one, workload: t.parquet, load: burst}]\n"})
	}
	must(t, "import", "mooncake.jsonl", "--capture-begin", "0s", "--capture-end", "24h", "-o", "file/t.parquet")
	must(t, "slice", "file/t.parquet", "--partitions", "5", "-o", "folder/t.parquet")
	must(t, "simulate", "file/t.parquet", "--preset", "l4-qwen2.5-0.5b", "-o", "r.parquet")
	must(t, "synth", "chat", "-n", "20", "-o", "chat.parquet")
	if digestOf(t, "folder/t.parquet") != digestOf(t, "file/t.parquet") {
		t.Fatal("the folder has another digest")
	}
	url := simulate(t)
	engine := " --preset l4-qwen2.5-0.5b --rates 5,20 --level-duration 2s --level-requests 0 --no-confirm --json"
	if _, errs, code := reprise(t, "profile", "folder/t.parquet/"+trace.PartitionName(1, 5)); code != cli.Failure || !strings.Contains(errs, "one partition of a trace, not a trace or a workload: name its folder") {
		t.Errorf("a partition alone: code %d, %s", code, errs)
	}
	for _, line := range []string{
		"profile IN --json",
		"profile IN --histograms OUT",
		"profile IN --tables OUT",
		"profile IN --html OUT",
		"profile IN --details",
		"audit IN",
		"audit file/t.parquet IN",
		"audit chat.parquet --internal IN",
		"anonymize --card IN",
		"anonymize IN -o OUT --tier partner --unit request",
		"slice IN --end 5s -o OUT",
		"slice IN -o OUT",
		"slice IN --start 1s --partitions 3 -o OUT",
		"synth IN -n 50 --seed 7 --k-swap 1 -o OUT",
		"synth IN --mirror --seed 7 -o OUT",
		"synth fit IN --k-swap 1 -o OUT",
		"fidelity IN file/t.parquet --json",
		"fidelity file/t.parquet IN --json",
		"export IN --to mooncake -o OUT",
		"export IN --to table",
		"simulate IN --preset l4-qwen2.5-0.5b -o OUT",
		"simulate IN --preset l4-qwen2.5-0.5b --json",
		"sweep IN" + engine,
		"compare IN --preset l4-qwen2.5-0.5b --costs-b step=6ms --rounds 2 -o OUT",
		"compare --production IN r.parquet",
		"bench DIR/suite.yaml --preset l4-qwen2.5-0.5b -o OUT --quiet",
		"replay IN --url " + url + " --dry-run",
		"report IN",
		"compare IN r.parquet",
		"import IN -o OUT",
		"merge IN -o OUT",
		"merge IN chat.parquet -o OUT",
		"merge IN file/t.parquet -o OUT",
	} {
		file, folder := partitionedRun(t, line, "file"), partitionedRun(t, line, "folder")
		if file != folder {
			t.Errorf("%s: of a file\n%s\nof a folder\n%s", line, file, folder)
		}
		if !strings.Contains(file, "code 0") && !strings.Contains(file, " a trace") && !strings.Contains(file, "fit together") && !strings.Contains(file, "same rows") && !strings.HasPrefix(line, "fidelity") && !strings.HasPrefix(line, "anonymize IN") && !strings.HasPrefix(line, "compare --production") && line != "merge IN -o OUT" {
			t.Errorf("%s failed: %s", line, file)
		}
	}
}

// partitionedRun is what a command says, and a hash of what it writes, of the trace in a folder
// of this name.
func partitionedRun(t *testing.T, line, in string) string {
	t.Helper()
	path := filepath.Join(in, "out.parquet")
	line = strings.NewReplacer("IN", in+"/t.parquet", "OUT", path, "DIR", in).Replace(line)
	out, errs, code := reprise(t, strings.Fields(line)...)
	said := out + errs
	for _, word := range []string{"file/", "folder/"} {
		said = strings.ReplaceAll(said, "pro"+word, "PRO/")
		said = strings.ReplaceAll(said, word, "DIR/")
	}
	said = regexp.MustCompile(`sha256:[0-9a-f]{64}|[0-9.]+ requests/s of wall time|in [0-9.]+ m?s\b|all [0-9]+ strings|predicted error of .* is released`).ReplaceAllString(said, "…")
	said = strings.Join(strings.Fields(said), " ")
	written := "nothing"
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		written = fmt.Sprintf("%x", sha256.Sum256(b))
	} else if tr, err := trace.Open(path); err == nil {
		written = tr.Meta.Digest
		tr.Close()
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("code %d, wrote %s, said %s", code, written, said)
}

// Slice cuts a trace into a folder and puts it together again, to the same bytes. What stands in
// the way is not replaced without a word.
func TestSlicePartitions(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, "synth", "chat", "-n", "50", "-o", "w.parquet")
	must(t, "slice", "w.parquet", "--partitions", "4", "-o", "w/")
	must(t, "slice", "w/", "-o", "back.parquet")
	if a, b := contents(t, "w.parquet"), contents(t, "back.parquet"); a != b {
		t.Error("a file that was cut and put together has other bytes")
	}
	files, err := filepath.Glob("w/part-*")
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	if err := os.Mkdir("other", 0o700); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, map[string]string{"other/mine.parquet": "x"})
	for want, args := range map[string][]string{
		"--overwrite":          {"slice", "w.parquet", "--partitions", "2", "-o", "w"},
		"is a file":            {"slice", "w.parquet", "--partitions", "2", "-o", "back.parquet"},
		"want a number from 1": {"slice", "w.parquet", "--partitions", "0", "-o", "new"},
		"name it with -o":      {"slice", "w.parquet", "--partitions", "2", "-o", "-"},
		"is no partition":      {"slice", "w.parquet", "--partitions", "2", "-o", "other"},
		"is an input and":      {"slice", "w/", "--partitions", "2", "-o", "w", "--overwrite"},
		"would be overwritten": {"slice", "w/", "-o", "w/" + trace.PartitionName(0, 4), "--overwrite"},
	} {
		if _, errs, code := reprise(t, args...); code != cli.Usage || !strings.Contains(errs, want) {
			t.Errorf("%v: code %d, %s, want %q", args, code, errs, want)
		}
	}
	must(t, "slice", "w.parquet", "--partitions", "2", "-o", "w", "--overwrite")
	if files, _ = filepath.Glob("w/part-*"); len(files) != 2 || digestOf(t, "w") != digestOf(t, "w.parquet") {
		t.Error(files)
	}
}

// A process that is killed leaves no trace that is half there.
func TestKilledPartitions(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	must(t, "synth", "chat", "-n", "100000", "-o", "w.parquet")
	for _, after := range []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, time.Second} {
		cmd := child(t, "slice", "w.parquet", "--partitions", "50", "-o", "w")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after)
		cmd.Process.Kill()
		cmd.Wait()
		if trace.IsPartitioned("w") && digestOf(t, "w") != digestOf(t, "w.parquet") {
			t.Error("there is a manifest of another trace")
		}
		if err := os.RemoveAll("w"); err != nil {
			t.Fatal(err)
		}
	}
}

// Traces are merged in order of arrival, and histograms by adding: lengths of the merged trace
// have the histograms that the merged histograms have.
func TestMergeTracesAndHistograms(t *testing.T) {
	t.Chdir(t.TempDir())
	for i, name := range []string{"a", "b", "c"} {
		must(t, "synth", "chat", "-n", fmt.Sprint(30+i), "--seed", fmt.Sprint(i+1), "-o", name+".parquet")
		must(t, "profile", name+".parquet", "--histograms", name+".hist.parquet")
	}
	must(t, "merge", "a.parquet", "b.parquet", "c.parquet", "-o", "abc.parquet")
	must(t, "profile", "abc.parquet", "--histograms", "abc.hist.parquet")
	must(t, "merge", "a.hist.parquet", "b.hist.parquet", "c.hist.parquet", "-o", "sum.parquet")
	lengths := func(path string) (list []string) {
		rows := parquetRows[histogramCount](t, path)
		for _, r := range rows {
			if r.Metric == "input_tokens" || r.Metric == "output_tokens" || r.Metric == "turns" {
				list = append(list, fmt.Sprint(r))
			}
		}
		return list
	}
	if got, want := lengths("sum.parquet"), lengths("abc.hist.parquet"); len(want) == 0 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("histograms %v, want %v", got, want)
	}
	for want, args := range map[string][]string{
		"hold the same rows": {"merge", "a.parquet", "b.parquet", "a.parquet", "-o", "x.parquet"},
		"sum.parquet and a.hist.parquet hold the same rows": {"merge", "sum.parquet", "a.hist.parquet", "-o", "x.parquet"},
		"joins two traces or more":                          {"merge", "a.parquet", "-o", "x.parquet"},
		"files of one kind":                                 {"merge", "a.hist.parquet", "b.parquet", "-o", "x.parquet"},
		"holds the histograms of a profile, not a trace":    {"merge", "a.parquet", "b.hist.parquet", "-o", "x.parquet"},
		"name a file for the histograms":                    {"merge", "a.hist.parquet", "b.hist.parquet"},
	} {
		if _, errs, code := reprise(t, args...); code == cli.Good || !strings.Contains(errs, want) {
			t.Errorf("%v: code %d, %s, want %q", args, code, errs, want)
		}
		if _, err := os.Stat("x.parquet"); err == nil {
			t.Errorf("%v left a file", args)
		}
	}
}

// histogramCount is a row of histograms.
type histogramCount struct {
	trace.Row `parquet:"-"`
	Metric    string `parquet:"metric,dict"`
	Category  string `parquet:"category,dict"`
	Lo        int64  `parquet:"lo"`
	Count     int64  `parquet:"count"`
}

func parquetRows[T trace.TextFree](t *testing.T, path string) []T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewRowsReader[T](f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]T, r.Rows())
	if _, err := r.Read(rows); err != nil {
		t.Fatal(err)
	}
	return rows
}
