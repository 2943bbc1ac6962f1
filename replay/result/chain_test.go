package result

import (
	"testing"

	"reprise/trace"
)

// A row that two journals have is read once, and every other as well.
func TestMergeRows(t *testing.T) {
	var readers []trace.Reader[Result]
	for _, ids := range [][]int64{{0, 3, 4, 900}, nil, {1, 3, 5}, {2, 4, 900}} {
		var rows []Result
		for _, id := range ids {
			rows = append(rows, Result{RowID: id, DueNS: int64(len(readers))})
		}
		readers = append(readers, &trace.SliceReader[Result]{Rows: rows})
	}
	var out trace.SliceWriter[Result]
	if _, err := trace.Copy(&out, trace.Reader[Result](mergeRows(readers))); err != nil {
		t.Fatal(err)
	}
	want := []Place{{0, 0, 0}, {2, 1, 0}, {3, 2, 0}, {0, 3, 0}, {0, 4, 0}, {2, 5, 0}, {0, 900, 0}}
	if len(out.Rows) != len(want) {
		t.Fatalf("%d rows", len(out.Rows))
	}
	for i, r := range out.Rows {
		if r.RowID != want[i].Row || r.DueNS != want[i].DueNS {
			t.Errorf("row %d is %d of %d", i, r.RowID, r.DueNS)
		}
	}
}
