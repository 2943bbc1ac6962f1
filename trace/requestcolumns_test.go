package trace_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/trace"
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
	case reflect.Float32:
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

// benchFile is a trace in a file.
func benchFile(b *testing.B) *trace.Trace {
	path := filepath.Join(b.TempDir(), "t.parquet")
	if err := os.WriteFile(path, encode(b, randomRows(rand.New(rand.NewPCG(1, 1)), 100_000), trace.Meta{}), 0o600); err != nil {
		b.Fatal(err)
	}
	tr, err := trace.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { tr.Close() })
	return tr
}

func benchmarkRows(b *testing.B, open func(*trace.Trace) (trace.Reader[trace.Request], error)) {
	tr := benchFile(b)
	b.ReportAllocs()
	for b.Loop() {
		r, err := open(tr)
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
	benchmarkRows(b, func(t *trace.Trace) (trace.Reader[trace.Request], error) { return t.Reader() })
}

// The library's reader of rows, to compare with.
func BenchmarkReadByRows(b *testing.B) {
	benchmarkRows(b, func(t *trace.Trace) (trace.Reader[trace.Request], error) { return trace.Columns[trace.Request](t) })
}
