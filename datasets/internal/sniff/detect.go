package sniff

import (
	"bytes"
	"io"
	"slices"

	"reprise/datasets/internal/row"
)

// Lines makes a detector of JSON lines by the keys of an object: the
// first lines are tried in turn, since one of them may be at fault.
func Lines(match func(has func(key string) bool) bool) func(head *Sample) bool {
	return func(head *Sample) bool {
		return slices.ContainsFunc(head.Lines(), func(line *Record) bool { return match(line.Has) })
	}
}

// Objects makes a detector of JSON objects by their keys, however they
// stand: see [record.NewJSON].
func Objects(match func(has func(key string) bool) bool) func(head *Sample) bool {
	return func(head *Sample) bool {
		return slices.ContainsFunc(head.Records(), func(record *Record) bool { return match(record.Has) })
	}
}

// Rows makes a detector of JSON lines by all the keys of a row: the first
// rows are tried in turn.
func Rows(match func(keys []string) bool) func(head *Sample) bool {
	return func(head *Sample) bool {
		return slices.ContainsFunc(head.Lines(), func(line *Record) bool { return match(line.Keys) })
	}
}

// Any reports whether one of some keys is among those of a row.
func Any(keys []string, some ...string) bool {
	return slices.ContainsFunc(some, func(key string) bool { return slices.Contains(keys, key) })
}

// Columns makes a detector of CSV by columns that must be there.
func Columns(names ...string) func(head *Sample) bool {
	return func(head *Sample) bool {
		columns := head.Header()
		return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(columns, name) })
	}
}

// AnyRow reports whether one of the first rows of CSV is as wanted.
func AnyRow(head *Sample, match func(row.Row) bool) bool {
	rows, err := row.NewCSV(bytes.NewReader(head.Bytes), row.CSVOptions{})
	for n := 0; err == nil && n < MaxRecords; n++ {
		r, fault := rows.Next()
		if fault == io.EOF {
			return false
		}
		if fault == nil && match(r) {
			return true
		}
	}
	return false
}
