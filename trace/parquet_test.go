package trace_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/trace"
	"reprise/trace/longtest"
)

func encode(t testing.TB, rows []trace.Request, meta trace.Meta) []byte {
	t.Helper()
	var out bytes.Buffer
	w := trace.NewRequestWriter(&out)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(meta); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// drain reads a whole file and returns its digest and metadata.
func drain(b []byte) (string, trace.Meta, error) {
	tr, err := trace.Spool("test", bytes.NewReader(b))
	if err != nil {
		return "", trace.Meta{}, err
	}
	defer tr.Close()
	r, err := tr.Reader()
	if err != nil {
		return "", tr.Meta, err
	}
	d := trace.NewDigest()
	err = trace.Each(r, func(_ int64, q *trace.Request) error {
		d.Add([]trace.Request{*q})
		return nil
	})
	return d.Sum(), tr.Meta, err
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	meta := trace.Meta{BlockSize: 512, Convention: trace.PartialTail, Tokenizer: "o200k_base", Tier: "internal", Seed: "7", Card: "{}"}
	for _, n := range []int{0, 1, 511, 512, 5000} {
		rows := randomRows(r, n)
		got, m, err := drain(encode(t, rows, meta))
		if err != nil {
			t.Fatal(err)
		}
		want := meta
		want.Schema, want.Digest = trace.Schema, digest(rows)
		if got != want.Digest || m != want {
			t.Errorf("%d rows: came back with digest %s and %+v, want %+v", n, got, m, want)
		}
	}
}

// Null and zero, null and empty are different values.
func TestNullIsNotZero(t *testing.T) {
	rows := []trace.Request{
		{}, {CachedTokens: trace.Ptr(int32(0))}, {OutputBlocks: []uint64{}}, {Class: trace.Ptr("")},
		{Stream: trace.Ptr(false)}, {Temperature: trace.Ptr(float32(0))}, {ThinkNS: trace.Ptr(int64(0))},
	}
	seen := map[string]int{}
	for i, r := range rows {
		want := digest([]trace.Request{r})
		if j, dup := seen[want]; dup {
			t.Errorf("rows %d and %d have one digest", i, j)
		}
		seen[want] = i
		if got, _, err := drain(encode(t, []trace.Request{r}, trace.Meta{})); err != nil || got != want {
			t.Errorf("row %d: came back as %s (%v), want %s", i, got, err, want)
		}
	}
}

func TestWriterRefusesDisorder(t *testing.T) {
	w := trace.NewRequestWriter(io.Discard)
	if _, err := w.Write([]trace.Request{{ArrivalNS: 2}, {ArrivalNS: 1}}); err == nil {
		t.Error("rows out of order were written")
	}
}

func TestOpenRefuses(t *testing.T) {
	type foreign struct{ A int64 }
	var other bytes.Buffer
	if err := parquet.Write(&other, []foreign{{1}}, parquet.KeyValueMetadata("reprise.schema", trace.Schema)); err != nil {
		t.Fatal(err)
	}
	var stranger bytes.Buffer
	if err := parquet.Write(&stranger, []foreign{{1}}); err != nil {
		t.Fatal(err)
	}
	var unmarked bytes.Buffer
	if err := parquet.Write(&unmarked, []trace.Request{{}}); err != nil {
		t.Fatal(err)
	}
	whole := encode(t, randomRows(rand.New(rand.NewPCG(3, 4)), 100), trace.Meta{})
	for _, c := range []struct {
		name, want string
		file       []byte
	}{
		{"empty", "not a whole Parquet file", nil},
		{"text", "not a whole Parquet file", []byte("{\"timestamp\": 0}\n")},
		{"foreign columns", "no column", other.Bytes()},
		{"foreign file", "so it is not a trace", stranger.Bytes()},
		{"no schema key", "not a trace", unmarked.Bytes()},
		{"no footer", "not a whole Parquet file", whole[:len(whole)-8]},
		{"negative tokens", "negative", encode(t, []trace.Request{{InputTokens: -1}}, trace.Meta{})},
		{"parent outside", "parent", encode(t, []trace.Request{{Parents: []int64{7}}}, trace.Meta{})},
		{"own parent", "parent", encode(t, []trace.Request{{Parents: []int64{0}}}, trace.Meta{})},
	} {
		_, _, err := drain(c.file)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
}

// An io.ReaderAt may say io.EOF with the last bytes, and may fail having read some.
type endingReader struct {
	data []byte
	err  error
	cut  int // bytes of every read that are held back
}

func (r endingReader) ReadAt(p []byte, at int64) (int, error) {
	n := copy(p, r.data[at:])
	return n - r.cut, r.err
}

func TestOpenParquetReadErrors(t *testing.T) {
	whole := encode(t, randomRows(rand.New(rand.NewPCG(3, 4)), 10), trace.Meta{})
	size := int64(len(whole))
	if f, err := trace.OpenParquet(endingReader{data: whole, err: io.EOF}, size); err != nil || f.NumRows() != 10 {
		t.Errorf("all bytes and io.EOF: %v", err)
	}
	if _, err := trace.OpenParquet(endingReader{data: whole, err: io.ErrUnexpectedEOF, cut: 1}, size); !errors.Is(err, trace.ErrNoFooter) {
		t.Errorf("a read that fails: %v, want %v", err, trace.ErrNoFooter)
	}
}

// Every truncation and many corruptions are an error or other rows, never a panic.
func TestBrokenFiles(t *testing.T) {
	longtest.Skip(t)
	r := rand.New(rand.NewPCG(5, 6))
	whole := encode(t, randomRows(r, 40), trace.Meta{BlockSize: 512})
	for n := range whole {
		if _, _, err := drain(whole[:n]); err == nil {
			t.Fatalf("a file cut to %d of %d bytes was read", n, len(whole))
		}
	}
	for range 2000 {
		b := bytes.Clone(whole)
		for range 1 + r.IntN(4) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		drain(b) // must return
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(encode(f, randomRows(rand.New(rand.NewPCG(7, 8)), 3), trace.Meta{BlockSize: 16}))
	f.Add([]byte("PAR1"))
	f.Fuzz(func(t *testing.T, b []byte) { drain(b) })
}

// The library takes memory for a footer of any length that is said, and a file
// of other rows is told by its schema before its columns.
func TestFooterLongerThanFile(t *testing.T) {
	var out bytes.Buffer
	w := trace.NewRowsWriter[trace.Request](&out, nil)
	w.SetMetadata("reprise.schema", "model/1")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "t.parquet")
	open := func(b []byte) string {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := trace.Open(path)
		return fmt.Sprint(err)
	}
	if err := open(out.Bytes()); !strings.Contains(err, "so it is not a trace") {
		t.Errorf("a model: %s", err)
	}
	forged := bytes.Clone(out.Bytes())
	copy(forged[len(forged)-8:], []byte{0xff, 0xff, 0xff, 0x7f})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := open(forged)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; !strings.Contains(err, "not a whole Parquet file") || took > 1<<24 {
		t.Errorf("a forged footer: %s, and %d bytes were taken", err, took)
	}
	for n := range 12 {
		if err := open(out.Bytes()[:n]); !strings.Contains(err, "not a whole Parquet file") {
			t.Errorf("%d bytes: %s", n, err)
		}
	}
}

// A wrong bit in the name of the compression made the library allocate until
// there was no memory left.
func TestLZ4IsRefused(t *testing.T) {
	var out bytes.Buffer
	w := parquet.NewGenericWriter[trace.Request](&out, parquet.Compression(&parquet.Lz4Raw))
	if _, err := w.Write([]trace.Request{{InputTokens: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := trace.NewRowsReader[trace.Request](bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err == nil || !strings.Contains(err.Error(), "LZ4") {
		t.Errorf("LZ4: %v", err)
	}
}

func TestNoStatisticsInFile(t *testing.T) {
	marker := int64(0x1122334455667788)
	b := encode(t, []trace.Request{{ArrivalNS: 1, E2ENS: &marker}, {ArrivalNS: 2, Model: "model-0"}}, trace.Meta{})
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if by := f.Metadata().CreatedBy; by != "reprise version 1(build trace)" {
		t.Errorf("created by %q: it is to be the same wherever a file is made", by)
	}
	for _, g := range f.Metadata().RowGroups {
		for _, c := range g.Columns {
			if s := c.MetaData.Statistics; len(s.Min)+len(s.Max)+len(s.MinValue)+len(s.MaxValue) > 0 {
				t.Errorf("column %v keeps its bounds", c.MetaData.PathInSchema)
			}
		}
	}
	for _, g := range f.ColumnIndexes() {
		for _, v := range append(g.MinValues, g.MaxValues...) {
			if len(v) > 0 && !bytes.Equal(v, make([]byte, len(v))) {
				t.Errorf("the column index keeps bounds: %x", v)
			}
		}
	}
}

// The largest value of a column stands in its page and nowhere else in clear.
func TestNoStatisticsInPages(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	rows := make([]trace.Request, 1000)
	for i := range rows {
		rows[i].E2ENS = trace.Ptr(r.Int64N(1 << 62)) // too random to be compressed
	}
	marker := int64(0x7122334455667788)
	rows[500].E2ENS = &marker
	b := encode(t, rows, trace.Meta{})
	if n := bytes.Count(b, []byte{0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x71}); n > 1 {
		t.Errorf("the largest value stands in %d places", n)
	}
}

func TestCreateIsWholeOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "t.parquet")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		if _, err := w.Write(randomRows(rand.New(rand.NewPCG(9, 9)), 5000)); err != nil {
			return trace.Meta{}, err
		}
		return trace.Meta{}, boom
	})
	if !errors.Is(err, boom) {
		t.Fatalf("got %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Error("a failed write touched the file")
	}
	err = trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		_, err := w.Write([]trace.Request{{}})
		return trace.Meta{}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	tr.Close()
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("%d files are left beside the output", len(entries)-1)
	}
}

func BenchmarkWrite(b *testing.B) {
	rows := randomRows(rand.New(rand.NewPCG(1, 1)), 10_000)
	for b.Loop() {
		w := trace.NewRequestWriter(io.Discard)
		if _, err := w.Write(rows); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(trace.Meta{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*1e4/b.Elapsed().Seconds(), "rows/s")
}
