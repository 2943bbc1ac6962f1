package replay

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

func TestRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.parquet")
	var run result.Run
	synctest.Test(t, func(t *testing.T) {
		// The earlier a row, the longer it takes: completion is in reverse.
		f := &fake{hold: func(id int32) time.Duration { return time.Hour - time.Duration(id)*10*time.Second }}
		f.fired = func() {
			if fi, err := os.Stat(result.JournalName(path)); err != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("during the run, the journal: %v", err)
			}
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("during the run, the results: %v", err)
			}
		}
		var err error
		r := &Runner{Endpoint: f, Pacer: sleeper, Options: Options{About: result.Run{Load: result.Load{Model: "m"}, Source: result.Source{Seed: "5"}}}}
		if run, err = r.Record(t.Context(), reader(workload(every(time.Second, 300)...)), path); err != nil {
			t.Fatal(err)
		}
	})
	f, rows := readAll(t, path)
	if f.Unfinished || !reflect.DeepEqual(f.Run, run) || run.Requests != 300 || run.Model != "m" || run.EndedEarly != "" || f.Rows() != 300 {
		t.Errorf("the file's run %+v, returned %+v", f.Run, run)
	}
	if !slices.IsSortedFunc(rows, func(a, b result.Result) int { return int(a.RowID - b.RowID) }) || *rows[0].DoneNS < *rows[299].DoneNS {
		t.Error("the rows are not in order")
	}
	if _, err := os.Stat(result.JournalName(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the journal is still there: %v", err)
	}
}

func TestRecordInterrupted(t *testing.T) {
	for _, n := range []int{300, 6} { // of which 295 and 1 are not sent
		path := filepath.Join(t.TempDir(), "run.parquet")
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
			defer cancel()
			r := &Runner{Endpoint: &fake{}, Pacer: sleeper}
			if _, err := r.Record(ctx, reader(workload(every(time.Second, n)...)), path); err != nil {
				t.Fatal(err)
			}
		})
		f, rows := readAll(t, path)
		if f.Run.EndedEarly != "the time limit was reached" || len(rows) != 5 || f.Run.NotSent != int64(n-5) {
			t.Errorf("%d rows, run %+v", len(rows), f.Run)
		}
	}
}

// What a Record cannot finish stays in the journal, which nothing replaces.
func TestRecordCannotFinish(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.parquet")
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{Endpoint: &fake{}, Pacer: sleeper}
		_, err := r.Record(t.Context(), reader(workload(0, 0, 0)), path)
		if err == nil || !strings.Contains(err.Error(), result.JournalName(path)) {
			t.Errorf("error %v", err)
		}
		if _, err := r.Record(t.Context(), reader(workload(0)), path); !errors.Is(err, fs.ErrExist) {
			t.Errorf("over a journal: %v", err)
		}
	})
	if f, rows := readAll(t, result.JournalName(path)); len(rows) != 3 || !f.Unfinished {
		t.Errorf("%d rows are in the journal", len(rows))
	}
}

// readAll reads the results at path, or the journal.
func readAll(t testing.TB, path string) (*result.File, []result.Result) {
	t.Helper()
	f, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	var out trace.SliceWriter[result.Result]
	if _, err := trace.Copy(&out, f.Reader()); err != nil {
		t.Fatal(err)
	}
	return f, out.Rows
}

// Options that cannot be used together are refused before anything is written.
func TestRecordRefusesOptions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.parquet")
	r := Runner{Endpoint: &fake{}, Options: Options{Concurrency: 1, Speed: 2}}
	if _, err := r.Record(t.Context(), reader(workload(0)), path); err == nil {
		t.Error("a closed loop with a speed is recorded")
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) > 0 {
		t.Errorf("%d files are left, %v", len(files), err)
	}
}
