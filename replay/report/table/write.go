// Package table turns the results of runs into a flat table for pandas, Polars, DuckDB
// or a spreadsheet: one row for each request.
//
//  1. A row says which request it was, how it ended, when things happened in seconds,
//     latencies in milliseconds, and tokens. It has no lists, so CSV holds it too.
//     docs/data.md has the columns.
//  2. [WriteParquet] and [WriteCSV] read the results of one or several [Run]s, row by
//     row, in memory that grows only with the sessions of a run. Each run is read
//     twice, first for the times of its sessions.
//
// Latencies are computed as in package report, by the same code: over the requests of phase
// "measured", means and counts equal its summary's.
//
// # Files
//
//   - request.go: a row, its columns, and how it is derived from a result
//   - write.go: the rows of several runs, as Parquet and as CSV
//
// Exported names may change in any release.
package table

import (
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"reprise/replay/result"
	"reprise/trace"
)

// schema names the layout of the table in the metadata of its Parquet file. Columns may
// be added without a change of it.
const schema = "requests/1"

// A Run is the results of a run, under the name that its rows have in the column run.
type Run struct {
	Name    string
	Results *result.File
}

// Tier is the strictest tier of the runs, which the table inherits.
func Tier(runs []Run) string {
	return trace.Strictest(runs, func(r *Run) string { return r.Results.Run.Tier })
}

// WriteParquet writes the rows of the runs, one run after the other, as Parquet with its
// schema and tier in the metadata. progress is called now and then with the number of
// rows that were read; its error ends the writing.
func WriteParquet(w io.Writer, runs []Run, progress func(rows int64) error) error {
	out := trace.NewRowsWriter[request](w, nil)
	out.SetMetadata("reprise.schema", schema)
	if tier := Tier(runs); tier != "" {
		out.SetMetadata("reprise.tier", tier)
	}
	if _, err := trace.Copy(out, &rows{runs: runs, progress: progress}); err != nil {
		return err
	}
	return out.Close()
}

// WriteCSV writes the rows as WriteParquet does, as comma-separated values in UTF-8
// below a line with the names of the columns. Null is an empty field.
func WriteCSV(w io.Writer, runs []Run, progress func(rows int64) error) error {
	out := csvWriter{csv: csv.NewWriter(w), fields: columns()}
	var names []string
	for _, c := range out.fields {
		names = append(names, c.name)
	}
	if err := out.csv.Write(names); err != nil {
		return err
	}
	if _, err := trace.Copy(&out, &rows{runs: runs, progress: progress}); err != nil {
		return err
	}
	out.csv.Flush()
	return out.csv.Error()
}

// rows reads the runs one after the other, as the rows of the table.
type rows struct {
	runs     []Run
	progress func(rows int64) error

	reader  trace.Reader[result.Result] // of the first of the runs; nil before its first row
	deriver deriver
	results []result.Result
	read    int64
}

// Read implements [trace.Reader].
func (s *rows) Read(out []request) (n int, err error) {
	if len(s.runs) == 0 {
		return 0, io.EOF
	}
	first := &s.runs[0]
	if s.reader == nil {
		s.deriver = deriver{name: first.Name, run: &first.Results.Run}
		if err := s.deriver.meet(first.Results.Reader()); err != nil {
			return 0, fmt.Errorf("%s: %w", first.Name, err)
		}
		s.reader = first.Results.Reader()
	}
	if len(s.results) < len(out) {
		s.results = make([]result.Result, len(out))
	}
	got, err := s.reader.Read(s.results[:len(out)])
	for i := range s.results[:got] {
		row, bad := s.deriver.derive(&s.results[i])
		if bad != nil {
			return i, fmt.Errorf("%s: %w", first.Name, bad)
		}
		out[i] = row
	}
	if s.read += int64(got); err == io.EOF {
		s.runs, s.reader, err = s.runs[1:], nil, nil
	}
	if err == nil {
		err = s.progress(s.read)
	}
	return got, err
}

// A column is a field of a request by its name in the files.
type column struct {
	name  string
	index []int
}

// columns are those of a request, in their order.
func columns() (all []column) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[request]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("parquet"), ","); name != "" && name != "-" {
			all = append(all, column{name, f.Index})
		}
	}
	return all
}

// A csvWriter writes rows as CSV.
type csvWriter struct {
	csv    *csv.Writer
	fields []column
	line   []string
}

// Write implements [trace.Writer].
func (w *csvWriter) Write(rows []request) (int, error) {
	for i := range rows {
		row := reflect.ValueOf(&rows[i]).Elem()
		w.line = w.line[:0]
		for _, c := range w.fields {
			w.line = append(w.line, text(row.FieldByIndex(c.index)))
		}
		if err := w.csv.Write(w.line); err != nil {
			return i, err
		}
	}
	return len(rows), nil
}

// text is a value as CSV has it: numbers with all their digits, null as nothing.
func text(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch {
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	}
	return v.String()
}
