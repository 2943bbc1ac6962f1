package trace_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/trace"
	"reprise/trace/longtest"
)

// filledRows have every column, null in half of the rows, whatever columns there are.
func filledRows(r *rand.Rand, n int) []trace.Request {
	rows := make([]trace.Request, n)
	for i := range rows {
		v := reflect.ValueOf(&rows[i]).Elem()
		for f := range v.NumField() {
			fill(r, v.Field(f), n)
		}
		rows[i].ArrivalNS = int64(i)
		for j := range rows[i].Parents {
			rows[i].Parents[j] = int64((i + 1) % n)
		}
	}
	return rows
}

func fill(r *rand.Rand, v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), n)
		}
	case reflect.Slice:
		if k := r.IntN(60) - 10; k >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), k, k))
			for i := range k {
				fill(r, v.Index(i), n)
			}
		}
	case reflect.String:
		v.SetString([]string{"", "ok", "model-0", "other"}[r.IntN(4)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(r.IntN(100)) / 8)
	case reflect.Uint64:
		v.SetUint(r.Uint64N(1 << 40))
	default:
		v.SetInt(r.Int64N(1 << 30))
	}
}

// Whoever wrote a file, its rows are those that the library's own reader of rows
// finds, down to what is null and what is empty.
func TestRowsAreTheLibrarys(t *testing.T) {
	const n = 3001
	rows := filledRows(rand.New(rand.NewPCG(21, 22)), n)
	dictionaries := []parquet.WriterOption{parquet.PageBufferSize(1000)}
	for _, kind := range []parquet.Kind{parquet.Int32, parquet.Int64, parquet.Float} {
		dictionaries = append(dictionaries, parquet.DefaultEncodingFor(kind, &parquet.RLEDictionary))
	}
	for name, options := range map[string][]parquet.WriterOption{
		"plain":        nil,
		"old pages":    {parquet.DataPageVersion(1), parquet.PageBufferSize(1000)},
		"small pages":  {parquet.PageBufferSize(100)},
		"small groups": {parquet.MaxRowsPerRowGroup(70)},
		"dictionaries": dictionaries,
	} {
		var file bytes.Buffer
		w := parquet.NewGenericWriter[trace.Request](&file, append(options, parquet.KeyValueMetadata("reprise.schema", trace.Schema))...)
		if _, err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want := make([]trace.Request, n)
		library := parquet.NewGenericReader[trace.Request](bytes.NewReader(file.Bytes()))
		if got, err := library.Read(want); got < n || err != nil && err != io.EOF {
			t.Fatal(name, got, err)
		}
		tr, err := trace.Spool("test", bytes.NewReader(file.Bytes()))
		if err != nil {
			t.Fatal(name, err)
		}
		defer tr.Close()
		r, err := tr.Reader()
		if err != nil {
			t.Fatal(err)
		}
		got := readAll(t, r)
		if len(got) != n {
			t.Fatalf("%s: %d rows of %d", name, len(got), n)
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("%s: row %d is\n%+v, not\n%+v", name, i, got[i], want[i])
			}
		}
	}
}

// A someRow has a field of each type that rows may have, some in a struct that it embeds.
type someRow struct {
	trace.Row `parquet:"-"`

	Plain int32 `parquet:"plain"`
	Group struct {
		Long *int64 `parquet:"long,optional"`
		Word string `parquet:"word,optional,dict"`
	} `parquet:"group"`
	somePart
	Absent   int64  `parquet:"absent,optional"`
	Word     string `parquet:"word"`
	Optional string `parquet:"optional,optional,dict"`
	Unnamed  *uint64
	Skipped  int64    `parquet:"-"`
	Share    *float64 `parquet:"share,optional"`
	Double   float64  `parquet:"double"`
	Set      bool     `parquet:"set"`
	Name     *string  `parquet:"name,optional"`
}

type somePart struct {
	Longs []int64  `parquet:"longs,optional,list"`
	Ints  []int32  `parquet:"ints,list"`
	Plain []uint64 `parquet:"unlisted"`
}

// someRows have every field, null in half of the rows where it may be.
func someRows(n int) []someRow {
	rows := make([]someRow, n)
	rng := rand.New(rand.NewPCG(31, 32))
	for i := range rows {
		for _, f := range reflect.VisibleFields(reflect.TypeFor[someRow]()) {
			v := reflect.ValueOf(&rows[i]).Elem().FieldByIndex(f.Index)
			switch {
			case f.Name == "Group":
				fill(rng, v.Field(0), n)
				fill(rng, v.Field(1), n)
			case !f.Anonymous && f.Name != "Skipped":
				fill(rng, v, n)
			}
		}
	}
	return rows
}

// What holds for requests holds for rows of any type.
func TestAnyRowsAreTheLibrarys(t *testing.T) {
	const n = 3001
	rows := someRows(n)
	var file bytes.Buffer
	w := parquet.NewGenericWriter[someRow](&file, parquet.PageBufferSize(1000), parquet.MaxRowsPerRowGroup(700))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := make([]someRow, n)
	library := parquet.NewGenericReader[someRow](bytes.NewReader(file.Bytes()))
	if got, err := library.Read(want); got < n || err != nil && err != io.EOF {
		t.Fatal(got, err)
	}
	r, err := trace.NewRowsReader[someRow](bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	got := make([]someRow, n+1)
	if n, err := r.Read(got); n != len(want) || err != nil && err != io.EOF {
		t.Fatal(n, err)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("row %d is\n%+v, not\n%+v", i, got[i], want[i])
		}
	}
}

// What is written is what the library writes: its reader finds the same rows, and the footer says the same of
// them, the nulls of each column above all, since some readers suppose none where it says nothing.
func TestAnyRowsAreWrittenAsTheLibraryDoes(t *testing.T) {
	longtest.Skip(t)
	const n = 200_001
	rows := someRows(n)
	for i := range rows {
		if i > n/2 {
			rows[i].Share, rows[i].Word = nil, "same"
		}
		rows[i].Absent = 0
	}
	var file, lib bytes.Buffer
	ours := trace.NewRowsWriter(&file, func(*someRow) int64 { return 250 })
	library := parquet.NewGenericWriter[someRow](&lib, append(trace.WriterOptions(), trace.SkipBounds[someRow]()...)...)
	for at := 0; at < n; at += 70_000 {
		some := rows[at:min(n, at+70_000)]
		if got, err := ours.Write(some); err != nil || got != len(some) {
			t.Fatal(got, err)
		}
		if _, err := library.Write(some); err != nil {
			t.Fatal(err)
		}
	}
	ours.SetMetadata("k", "v")
	library.SetKeyValueMetadata("k", "v")
	if err := errors.Join(ours.Close(), library.Close()); err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) ([]someRow, *parquet.File) {
		f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		out := make([]someRow, n)
		r := parquet.NewGenericReader[someRow](bytes.NewReader(b))
		if got, err := r.Read(out); got < n || err != nil && err != io.EOF {
			t.Fatal(got, err)
		}
		return out, f
	}
	got, f := read(file.Bytes())
	want, g := read(lib.Bytes())
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("row %d is\n%+v, not\n%+v", i, got[i], want[i])
		}
	}
	says := func(f *parquet.File) (of []string) {
		of = append(of, fmt.Sprint(f.Metadata().Schema, f.Metadata().NumRows, f.Metadata().CreatedBy, f.Metadata().KeyValueMetadata))
		sums := map[string][2]int64{}
		for _, g := range f.Metadata().RowGroups {
			for _, c := range g.Columns {
				m := c.MetaData
				name := fmt.Sprint(m.PathInSchema, m.Type, m.Codec, m.Encoding, m.DictionaryPageOffset > 0)
				sums[name] = [2]int64{sums[name][0] + m.NumValues, sums[name][1] + m.Statistics.NullCount}
				if m.Statistics.NullCount < 0 || len(m.Statistics.MaxValue)+len(m.Statistics.MinValue) > 0 {
					t.Errorf("%s: statistics %+v", name, m.Statistics)
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(sums)) {
			of = append(of, fmt.Sprint(name, sums[name]))
		}
		return of
	}
	if len(f.RowGroups()) != 2 {
		t.Errorf("%d groups of rows", len(f.RowGroups()))
	}
	for i, want := range says(g) {
		if got := says(f); i >= len(got) || got[i] != want {
			t.Errorf("it says\n%s, and the library\n%s", got[min(i, len(got)-1)], want)
		}
	}
	if file.Len() > lib.Len()*51/50 {
		t.Errorf("%d bytes, and the library's %d", file.Len(), lib.Len())
	}
}

// Columns that nobody asked for are not there, and the others are.
func TestOnlySomeColumns(t *testing.T) {
	rows := filledRows(rand.New(rand.NewPCG(23, 24)), 2000)
	tr, err := trace.Spool("test", bytes.NewReader(encode(t, rows, trace.Meta{})))
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	r, err := tr.Reader()
	if err != nil {
		t.Fatal(err)
	}
	r.Only("user", "blocks")
	got := readAll(t, r)
	if len(got) != len(rows) {
		t.Fatalf("%d rows of %d", len(got), len(rows))
	}
	for i, q := range got {
		want := trace.Request{User: rows[i].User, Blocks: rows[i].Blocks}
		if digest([]trace.Request{q}) != digest([]trace.Request{want}) {
			t.Fatalf("row %d is %+v, not %+v", i, q, want)
		}
	}
}

// benchmarkRows reads a trace of 100,000 rows.
func benchmarkRows(b *testing.B, open func(file []byte) (trace.Reader[trace.Request], error)) {
	file := encode(b, randomRows(rand.New(rand.NewPCG(1, 1)), 100_000), trace.Meta{})
	b.ReportAllocs()
	for b.Loop() {
		r, err := open(file)
		if err != nil {
			b.Fatal(err)
		}
		if err := trace.Each(r, func(int64, *trace.Request) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*1e5/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkRead(b *testing.B) {
	benchmarkRows(b, func(file []byte) (trace.Reader[trace.Request], error) {
		return trace.NewRowsReader[trace.Request](bytes.NewReader(file), int64(len(file)))
	})
}
