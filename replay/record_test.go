package replay

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/openai"
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
		r := &Runner{Endpoint: f, Pacer: sleeper, Options: Options{About: result.Run{Model: "m", Seed: "5"}}}
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
	path := filepath.Join(t.TempDir(), "run.parquet")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer cancel()
		r := &Runner{Endpoint: &fake{}, Pacer: sleeper}
		if _, err := r.Record(ctx, reader(workload(every(time.Second, 300)...)), path); err != nil {
			t.Fatal(err)
		}
	})
	f, rows := readAll(t, path)
	if f.Run.EndedEarly != "the time limit was reached" || len(rows) != 5 || f.Run.NotSent != 295 {
		t.Errorf("%d rows, run %+v", len(rows), f.Run)
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

// Every class of end in one run, over the network: one Result for each row.
func TestRecordHTTP(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.parquet")
	handlers := []http.HandlerFunc{stream(role, tok, tok, stop, usage, done), stream(tok), breaks(tok), fails(503, ""), hangs(tok)}
	want := []string{"", openai.KindIncomplete, openai.KindReset, openai.KindUnavailable, openai.KindCancelled}
	next := make(chan http.HandlerFunc, 500)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { (<-next)(w, r) })
	h := endpoint(t, HTTPOptions{URL: url})
	var rows []trace.Request
	for i := range 100 {
		next <- handlers[i%5]
		rows = append(rows, trace.Request{ArrivalNS: int64(i) * 1e6, InputTokens: 2, OutputTokens: 2,
			Status: trace.StatusCancelled, E2ENS: trace.Ptr(int64(time.Hour))})
		if i%5 == 4 {
			rows[i].E2ENS = trace.Ptr(int64(20 * time.Millisecond))
		}
	}
	r := &Runner{Prompter: words{}, Endpoint: h, Options: Options{MaxInFlight: 1}} // one at a time: handlers in order
	h.Describe(&r.About)
	run, err := r.Record(t.Context(), reader(rows), path)
	if err != nil {
		t.Fatal(err)
	}
	f, results := readAll(t, path)
	if !reflect.DeepEqual(f.Run, run) || run.Requests != 100 || len(results) != 100 || run.API != result.APIChat || run.Connections != PerRequest || run.HeldBack == 0 {
		t.Errorf("run %+v", run)
	}
	for i, r := range results {
		if r.RowID != int64(i) || r.Error != want[i%5] {
			t.Errorf("row %d: result %d, error %q, want %q", i, r.RowID, r.Error, want[i%5])
		}
		inOrder(t, "row", &r.DueNS, r.ReleasedNS, r.SentNS, r.HeadersNS, r.FirstEventNS, r.FirstTokenNS, r.LastTokenNS, r.DoneNS)
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(stream(tok, stop, done))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	row := trace.Request{InputTokens: 1}
	if r := fire(t, endpoint(t, HTTPOptions{URL: s.URL}), row, 0); r.Error != openai.KindTLS || r.SentNS != nil {
		t.Errorf("a certificate of unknown origin: %+v", r)
	}
	if r := fire(t, endpoint(t, HTTPOptions{URL: s.URL, TLS: &tls.Config{InsecureSkipVerify: true}}), row, 0); r.Error != "" {
		t.Errorf("told not to mind: %q", r.Error)
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
