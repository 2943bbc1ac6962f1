package trace_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"

	"reprise/trace"
)

type failingWriter struct{ err error }

func (w failingWriter) Write([]trace.Request) (int, error) { return 0, w.err }

// A pass takes and writes the rows that a reader reads, once and in order, and ends with the first error
// wherever that is. Most rows differ in some columns only, until they are taken.
func TestPass(t *testing.T) {
	s := trace.NewSorter(t.TempDir())
	defer s.Close()
	for i := range 5000 {
		r := trace.Request{ArrivalNS: int64(i * 7919 % 5000), Model: []string{"a", "b"}[i/300%7/6],
			InputTokens: int32(i), Blocks: make([]uint64, i%50*i%7)}
		for k := range r.Blocks {
			r.Blocks[k] = uint64(i * k)
		}
		if i%3 == 0 {
			r.OutputTokens = trace.Ptr(int32(i))
		}
		if i%301 == 0 && i < 2500 {
			r.Session, r.OutputTokens, r.Stream = trace.Ptr(int64(i)), trace.Ptr(int32(i)), trace.Ptr(i%2 == 0)
		}
		if _, err := s.Write([]trace.Request{r}); err != nil {
			t.Fatal(err)
		}
	}
	sorted, err := s.Sort()
	if err != nil {
		t.Fatal(err)
	}
	defer sorted.Close()
	rows, err := sorted.Reader()
	if err != nil {
		t.Fatal(err)
	}
	var want, got trace.SliceWriter[trace.Request]
	if _, err := trace.Copy(&want, rows); err != nil {
		t.Fatal(err)
	}
	next := int64(0)
	begin := func(row int64) {
		if row != next {
			t.Errorf("a batch begins at row %d, want %d", row, next)
		}
	}
	change := func(row int64, r *trace.Request) {
		r.Turn, r.Category = trace.Ptr(int32(row)), []string{"cold", "branch"}[row/100%2]
		if row > 3000 && row%701 == 0 {
			r.MaxTokens = trace.Ptr(int32(row))
		}
	}
	take := func(row int64, r *trace.Request) error {
		if row != next {
			t.Errorf("row %d is taken, want %d", row, next)
		}
		change(row, r)
		next++
		return nil
	}
	if err := sorted.Pass(t.Context(), begin, take, &got); err != nil {
		t.Fatal(err)
	}
	for i := range want.Rows {
		change(int64(i), &want.Rows[i])
	}
	if !reflect.DeepEqual(got.Rows, want.Rows) {
		t.Error("a pass has other rows than a reader")
	}

	// What takes rows column by column makes the same file of them.
	var byRow, byColumn bytes.Buffer
	w, p := trace.NewRequestWriter(&byRow), trace.NewRequestWriter(&byColumn)
	if _, err := w.Write(want.Rows); err != nil {
		t.Fatal(err)
	}
	next = 0
	if err := sorted.Pass(t.Context(), begin, take, p); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(trace.Meta{}), p.Close(trace.Meta{})); err != nil {
		t.Fatal(err)
	}
	if w.Digest() != p.Digest() || !bytes.Equal(byRow.Bytes(), byColumn.Bytes()) {
		t.Error("a pass writes another file than its rows make")
	}

	fault := errors.New("no more")
	ignore := func(int64) {}
	if err := sorted.Pass(t.Context(), ignore, func(row int64, _ *trace.Request) error {
		if row > 0 {
			return fault
		}
		return nil
	}, nil); err != fault {
		t.Errorf("a pass whose rows are not taken ends with %v", err)
	}
	none := func(int64, *trace.Request) error { return nil }
	if err := sorted.Pass(t.Context(), ignore, none, failingWriter{fault}); err != fault {
		t.Errorf("a pass whose rows are not written ends with %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := sorted.Pass(ended, ignore, none, nil); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a pass that is broken off ends with %v", err)
	}
}
