package trace_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"reprise/trace"
)

type failingWriter struct{ err error }

func (w failingWriter) Write([]trace.Request) (int, error) { return 0, w.err }

// A pass takes and writes the rows that a reader reads, once and in order, and ends with the first error
// wherever that is.
func TestPass(t *testing.T) {
	s := trace.NewSorter(t.TempDir())
	defer s.Close()
	for i := range 1000 {
		r := trace.Request{ArrivalNS: int64(i * 7919 % 1000), Model: []string{"a", "b"}[i/300%2], InputTokens: int32(i), Blocks: make([]uint64, i%50*i%7)}
		for k := range r.Blocks {
			r.Blocks[k] = uint64(i * k)
		}
		if i%3 == 0 {
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
	take := func(row int64, rows []trace.Request) error {
		if row != next {
			t.Errorf("a batch begins at row %d, want %d", row, next)
		}
		for i := range rows {
			rows[i].Turn = trace.Ptr(int32(row) + int32(i))
		}
		next += int64(len(rows))
		return nil
	}
	if err := sorted.Pass(t.Context(), take, &got); err != nil {
		t.Fatal(err)
	}
	for i := range want.Rows {
		want.Rows[i].Turn = trace.Ptr(int32(i))
	}
	if !reflect.DeepEqual(got.Rows, want.Rows) {
		t.Error("a pass has other rows than a reader")
	}

	fault := errors.New("no more")
	if err := sorted.Pass(t.Context(), func(row int64, _ []trace.Request) error {
		if row > 0 {
			return fault
		}
		return nil
	}, nil); err != fault {
		t.Errorf("a pass whose rows are not taken ends with %v", err)
	}
	none := func(int64, []trace.Request) error { return nil }
	if err := sorted.Pass(t.Context(), none, failingWriter{fault}); err != fault {
		t.Errorf("a pass whose rows are not written ends with %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := sorted.Pass(ended, none, nil); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a pass that is broken off ends with %v", err)
	}
}
