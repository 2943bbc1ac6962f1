package row

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/datasets/internal/record"
)

// The temporary file is gone at the end of the rows.
func TestSpoolIsClosed(t *testing.T) {
	in, err := os.Open("../../testdata/foreign.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p, err := SpoolParquet(in)
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := p.Read(func([]string) bool { return true }, 10, NewFields())
	for err == nil {
		_, err = all.Next()
	}
	if _, closed := p.spool.Stat(); err != io.EOF || !errors.Is(closed, os.ErrClosed) {
		t.Errorf("the temporary file is still open after %v: %v", err, closed)
	}
}

// A row may go on in the next page, and a page's memory is used again.
func TestParquetRowsAcrossPages(t *testing.T) {
	value := func(repetition int, text string) parquet.Value {
		return parquet.ByteArrayValue([]byte(text)).Level(repetition, 1, 0)
	}
	leaf := parquetLeaf{pages: &scribbled{pages: [][]parquet.Value{
		{value(0, "a"), value(1, "b")}, {value(1, "c")}, {}, {value(1, "d"), value(0, "e")}, {value(0, "f")},
	}}}
	for _, want := range []string{"abcd", "e", "f"} {
		row, err := leaf.next(&rowRoom{bytes: record.MaxBytes, memory: rowMemory})
		got := ""
		for _, v := range row {
			got += string(v.ByteArray())
		}
		if err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if _, err := leaf.next(&rowRoom{bytes: record.MaxBytes, memory: rowMemory}); err != io.EOF {
		t.Error(err)
	}
}

// scribbled are pages that are overwritten when they are released.
type scribbled struct {
	parquet.Pages
	pages [][]parquet.Value
}

func (s *scribbled) ReadPage() (parquet.Page, error) {
	if len(s.pages) == 0 {
		return nil, io.EOF
	}
	p := &scribbledPage{values: s.pages[0]}
	s.pages = s.pages[1:]
	return p, nil
}

type scribbledPage struct {
	parquet.Page
	values []parquet.Value
	read   int
}

func (p *scribbledPage) Values() parquet.ValueReader { return p }

func (p *scribbledPage) ReadValues(values []parquet.Value) (int, error) {
	n := copy(values, p.values[p.read:])
	p.read += n
	return n, io.EOF
}

func (p *scribbledPage) Retain() {}

func (p *scribbledPage) Release() {
	for _, v := range p.values {
		copy(v.ByteArray(), "?")
	}
}
