package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

func TestPrintSlowest(t *testing.T) {
	var rows []result.Result
	for i := range int64(9) { // TTFT of 0, 40, 80, … ms, not in order
		ttft := i * 4 % 9 * 10 * int64(time.Millisecond)
		rows = append(rows, result.Result{RowID: i, DueNS: i * int64(time.Second), FirstTokenNS: trace.Ptr(i*int64(time.Second) + ttft), WantInput: 100})
	}
	rows[2].Cached = trace.Ptr(int32(64)) // the slowest
	rows = append(rows, result.Result{RowID: 9, DueNS: 9e9, Error: "refused"})
	path := filepath.Join(t.TempDir(), "r.parquet")
	if err := result.Write(path, result.Run{}, &trace.SliceReader[result.Result]{Rows: rows}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := printSlowest(&out, path, 2); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"  row  due  TTFT  input tokens  of them cached\n" +
		"    2   2s  80ms           100              64\n" +
		"    4   4s  70ms           100         unknown\n" +
		"1 of 10 requests failed or gave no token\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}
