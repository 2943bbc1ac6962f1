package row

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"

	"reprise/datasets/internal/record"
)

// ErrNotLines is the error of [CSVLines] where rows are not written in lines as encoding/csv has them.
var ErrNotLines = errors.New("the rows of the CSV are no lines of their own")

// CSVLines calls do with the lines of an input that begins with head, those of a row together. Those
// that are no records, such as a header, have no row; others are a [CSVLine].
func CSVLines(b *bufio.Reader, head []byte, o CSVOptions, do func(line []byte, r Row)) error {
	d := sniffCSV(head, o)
	rows, err := newRowsOf(bufio.NewReader(bytes.NewReader(head)), d)
	if err != nil || d.returns || d.escaped || d.latin1 {
		return ErrNotLines
	}
	lines, above := record.NewLines(b), d.above
	if !rows.Nameless {
		above++
	}
	var row []byte
	for !lines.Last() {
		raw, err := lines.ReadLine()
		if err != nil {
			return err
		}
		if row = append(row, raw...); above == 0 && bytes.Count(row, []byte{d.quote})%2 == 1 {
			continue // a line break in a field
		}
		if above > 0 || len(bytes.TrimSpace(row)) == 0 {
			above = max(0, above-1)
			do(row, nil)
		} else {
			fields, err := d.reader(bytes.NewReader(d.swapQuotes(bytes.Clone(row)))).Read()
			values := map[string]any{}
			for i, f := range fields {
				fields[i] = string(d.swapQuotes([]byte(f)))
				if i < len(rows.columns) && f != "" {
					values[rows.columns[i]] = fields[i]
				}
			}
			if err != nil {
				values = nil
			}
			do(row, CSVLine{JSONRow{Root: values}, rows.columns, fields, d})
		}
		row = row[:0]
	}
	return nil
}

// A CSVLine is a row of CSV with what it takes to write it again.
type CSVLine struct {
	JSONRow
	Columns, Fields []string
	dialect         csvDialect
}

// With is the line of the row with other fields.
func (c CSVLine) With(fields []string) ([]byte, error) {
	var line bytes.Buffer
	w := csv.NewWriter(&line)
	w.Comma = c.dialect.delimiter
	err := w.Write(fields)
	w.Flush()
	return c.dialect.swapQuotes(line.Bytes()), err
}
