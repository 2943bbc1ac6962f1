package input

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"reprise/datasets/internal/record"
	"reprise/trace/arrowipc"
)

// Beginnings of files that are no text: Arrow IPC as a file, which Feather is too, and as
// a stream; the first Feather; a workbook of Excel before 2007.
const (
	arrowFileMagic   = "ARROW1\x00\x00"
	arrowStreamMagic = "\xff\xff\xff\xff"
	oldFeatherMagic  = "FEA1"
	oldExcelMagic    = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
)

// An arrowReader yields the rows of Arrow IPC as lines of JSON. Memory holds one batch.
type arrowReader struct {
	in    *ipc.Reader
	batch arrow.RecordBatch // nil before the first and behind the last
	row   int64             // of the batch, that comes next
	line  bytes.Buffer      // what of the row before it is left
}

// newArrowReader reads a stream, which a file holds behind its first eight bytes, with
// batches of so many bytes at the most.
func newArrowReader(in *bufio.Reader, most int) (*arrowReader, error) {
	r, err := arrowipc.NewReader(in, most, nil)
	return &arrowReader{in: r}, err
}

func (a *arrowReader) Read(p []byte) (int, error) {
	for a.line.Len() == 0 {
		if err := a.next(); err != nil {
			return 0, err
		}
	}
	return a.line.Read(p)
}

// next writes the next row into line.
func (a *arrowReader) next() (err error) {
	defer func() {
		if damage := recover(); damage != nil { // by values that lead out of their column
			err = fmt.Errorf("%v", damage)
		}
	}()
	for a.batch == nil || a.row == a.batch.NumRows() {
		if !a.in.Next() {
			if a.in.Err() != nil {
				return a.in.Err()
			}
			return io.EOF
		}
		a.batch, a.row = a.in.RecordBatch(), 0
	}
	left := arrowRoom{bytes: record.MaxBytes, values: record.MaxValues}
	a.line.Reset()
	a.line.WriteByte('{')
	for i, column := range a.batch.Columns() {
		if i > 0 {
			a.line.WriteByte(',')
		}
		name, _ := json.Marshal(a.batch.ColumnName(i))
		if !left.take(column, int(a.row)) {
			return errArrowRow
		}
		value, err := json.Marshal(column.GetOneForMarshal(int(a.row)))
		if err != nil {
			return err
		}
		a.line.Write(name)
		a.line.WriteByte(':')
		a.line.Write(value)
	}
	a.line.WriteString("}\n")
	a.row++
	return nil
}

var errArrowRow = errors.New("a row of it is larger than 64 MiB, or has more than 2 million values")

// An arrowRoom is what a row may still have. Its lists may overlap and hold one another, so that
// a few bytes stand for more than any memory: they are counted before they are written out.
type arrowRoom struct{ bytes, values int }

// take takes room for an element of a column and all that it holds, and reports whether there was
// enough.
func (r *arrowRoom) take(column arrow.Array, i int) bool {
	if r.values--; r.values < 0 || r.bytes < 0 {
		return false
	}
	if column.IsNull(i) {
		return true
	}
	all := func(values arrow.Array, from, to int64) bool {
		for ; from < to; from++ {
			if !r.take(values, int(from)) {
				return false
			}
		}
		return true
	}

	switch c := column.(type) {
	case array.ListLike: // lists of all kinds, and maps
		from, to := c.ValueOffsets(i)
		return all(c.ListValues(), from, to)
	case *array.Struct:
		for f := range c.NumField() {
			if !r.take(c.Field(f), i) {
				return false
			}
		}
	case *array.Dictionary:
		return r.take(c.Dictionary(), c.GetValueIndex(i))
	case *array.RunEndEncoded:
		return r.take(c.Values(), c.GetPhysicalIndex(i))
	case array.Union:
		child := c.ChildID(i)
		if dense, ok := c.(*array.DenseUnion); ok {
			return r.take(dense.Field(child), int(dense.ValueOffset(i)))
		}
		return r.take(c.Field(child), i)
	case array.ExtensionArray:
		return r.take(c.Storage(), i)
	case interface{ ValueLen(int) int }:
		r.bytes -= c.ValueLen(i)
	case interface{ Value(int) string }:
		r.bytes -= len(c.Value(i))
	case interface{ Value(int) []byte }:
		r.bytes -= len(c.Value(i))
	}
	return r.bytes >= 0
}

// workbook is the advice for a spreadsheet, or "" for another zip: names of what is in it
// stand in its first bytes.
func workbook(head []byte) string {
	switch {
	case bytes.Contains(head, []byte("opendocument.spreadsheet")):
		return "an OpenDocument spreadsheet (ODS)"
	case bytes.Contains(head, []byte("xl/")):
		return "an Excel workbook (XLSX)"
	case bytes.Contains(head, []byte("Index/Document.iwa")):
		return "a Numbers spreadsheet"
	}
	return ""
}

// asCSV is how a spreadsheet becomes a file that is read.
const asCSV = "spreadsheets are not read. Save the sheet as CSV (UTF-8) and import that, or run: soffice --headless " +
	"--convert-to csv FILE"

// asCSVByDuckDB does the same for XLSX without an office.
const asCSVByDuckDB = ", or: duckdb -c \"COPY (FROM 'FILE.xlsx') TO 'FILE.csv'\""
