package datasets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/trace"
	"reprise/trace/longtest"
)

// toParquet writes rows with the project's own writer, in row groups of two.
func toParquet[T any](t testing.TB, rows ...T) string {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, parquet.MaxRowsPerRowGroup(2))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// foreign is a file that Arrow wrote: Snappy, dictionaries, two row groups,
// nested lists and structs, a map, decimals, times, nulls.
func foreign(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "foreign.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func everything([]string) bool { return true }

func readParquetRows(t testing.TB, in string, wanted func([]string) bool) []map[string]any {
	t.Helper()
	p, err := row.SpoolParquet(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := p.Read(wanted, 0, row.NewFields())
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for {
		one, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, _ := one.Place("x"); line != int64(len(all)+1) {
			t.Errorf("row %d is at line %d", len(all), line)
		}
		root, _ := one.Value("")
		all = append(all, root.(map[string]any))
	}
}

// What another writer wrote comes out as its JSON would.
func TestParquetForeignValues(t *testing.T) {
	all := readParquetRows(t, foreign(t), everything)
	if len(all) != 3 {
		t.Fatalf("%d rows", len(all))
	}
	n := func(s string) any { return row.Number(s) }
	want := map[string]any{
		"conversation_hash": "c0", "model": "gpt-4", "timestamp": "2023-04-09T00:02:53Z", "turn": n("2"),
		"usage": map[string]any{"prompt_tokens": n("12"), "completion_tokens": n("4000000000")},
		"ids":   []any{n("9007199254740993"), n("-1")}, "attributes": map[string]any{"a": "x"},
		"price": n("-0.005"), "local": "2026-01-02T03:04:05.678",
		"deep": []any{[]any{n("1"), n("2")}, []any{}, []any{n("3")}, nil},
	}
	for name, v := range want {
		if !reflect.DeepEqual(all[0][name], v) {
			t.Errorf("%s: %#v, want %#v", name, all[0][name], v)
		}
	}
	chat := all[0]["conversation"].([]any)
	if len(chat) != 4 || !reflect.DeepEqual(chat[1], map[string]any{"content": "Hi!", "role": "assistant", "timestamp": "2023-04-09T00:01:00.5Z", "turn_identifier": n("1")}) {
		t.Errorf("%#v", chat)
	}
	if all[1]["price"] != n("12345678901234567.891") || len(all[1]["deep"].([]any)) != 0 || len(all[1]["ids"].([]any)) != 0 {
		t.Errorf("%#v", all[1])
	}
	for _, name := range []string{"model", "usage", "ids", "attributes", "price", "local", "deep"} {
		if v, ok := all[2][name]; ok {
			t.Errorf("%s of the last row is %#v", name, v)
		}
	}
}

// Rows of Go values are the oracle: whatever is written comes back, also where
// a list is longer than a page.
func TestParquetRoundTrip(t *testing.T) {
	type inner struct {
		A *int32   `parquet:"a,optional"`
		B []string `parquet:"b,list"`
	}
	type outer struct {
		Name  string            `parquet:"name,dict"`
		List  []inner           `parquet:"list,list"`
		Words []string          `parquet:"words"`
		Plain []int64           `parquet:"plain"` // repeated, without the list convention
		Opt   *inner            `parquet:"opt,optional"`
		Map   map[string]int64  `parquet:"map"`
		Bool  bool              `parquet:"bool"`
		U     uint64            `parquet:"u"`
		F     float32           `parquet:"f"`
		Day   int32             `parquet:"day,date"`
		Clock int32             `parquet:"clock,time(millisecond)"`
		At    time.Time         `parquet:"at,timestamp(nanosecond)"`
		Deep  [][]int32         `parquet:"-"`
		Attr  map[string]string `parquet:"attr"`
	}
	seven := int32(7)
	long := make([]int64, 100_000)
	for i := range long {
		long[i] = int64(i)
	}
	words := make([]string, 50_000)
	for i := range words {
		words[i] = fmt.Sprintf("word %d of a long list", i)
	}
	rows := []outer{
		{Name: "x", List: []inner{{A: &seven, B: []string{"p", "q"}}, {}}, Plain: []int64{1, 2}, Opt: &inner{B: []string{"z"}}, Map: map[string]int64{"k": 5},
			Bool: true, U: math.MaxUint64, F: 1.5, Day: 3, Clock: 11045250, At: time.Unix(1700000000, 123456789)},
		{Name: "y", F: float32(math.NaN())},
		{Plain: long, Words: words},
		{Name: "é\xff", List: []inner{{B: []string{""}}}},
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[outer](&b, parquet.PageBufferSize(1000), parquet.MaxRowsPerRowGroup(3))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	all := readParquetRows(t, b.String(), everything)
	if len(all) != len(rows) {
		t.Fatalf("%d rows", len(all))
	}
	if got, want := fmt.Sprint(all[0]), "map[at:2023-11-14T22:13:20.123456789Z attr:map[] bool:true "+
		"clock:03:04:05.25 day:1970-01-04 f:1.5 list:[map[a:7 b:[p q]] map[b:[]]] map:map[k:5] name:x "+
		"opt:map[b:[z]] plain:[1 2] u:18446744073709551615 words:[]]"; got != want {
		t.Errorf("%s\n%s", got, want)
	}
	if _, ok := all[1]["f"]; ok || all[1]["opt"] != nil || len(all[1]["list"].([]any)) != 0 {
		t.Errorf("%v", all[1])
	}
	for i, v := range all[2]["words"].([]any) {
		if v != words[i] {
			t.Fatalf("word %d is %v", i, v)
		}
	}
	plainList := all[2]["plain"].([]any)
	for i, v := range plainList {
		if v != row.Integer(int64(i)) {
			t.Fatalf("element %d is %v", i, v)
		}
	}
	if len(plainList) != len(long) || all[3]["name"] != "é\uFFFD" {
		t.Errorf("%d elements, %v", len(plainList), all[3]["name"])
	}
}

type mappedRow struct {
	T     float64 `parquet:"t"`
	Usage struct {
		In  int64  `parquet:"prompt_tokens"`
		Out *int64 `parquet:"completion_tokens,optional"`
	} `parquet:"usage"`
	User string `parquet:"user.name"`
	Junk []byte `parquet:"junk"`
}

func TestParquetMapped(t *testing.T) {
	rows := make([]mappedRow, 5)
	for i := range rows {
		rows[i].T, rows[i].Usage.In, rows[i].User = 0.5*float64(i), int64(10*i), "u"
	}
	out := int64(3)
	rows[0].Usage.Out, rows[4].Usage.Out = &out, &out
	rows[2].Usage.In = -1
	m := Mapping{"time": {"t"}, "input_tokens": {"usage.prompt_tokens"}, "output_tokens": {"nowhere", "usage.completion_tokens"}, "user": {"user.name"}}
	in := toParquet(t, rows...)
	for _, o := range []Options{{Map: m}, {Map: m, Format: "parquet"}} {
		o.MaxBad = 0.5
		all, info := mustRead(t, in, o)
		if len(all) != 4 || info.Format != "parquet" || info.TimeUnit != "s" || info.Bad != 1 {
			t.Fatalf("%d entries, %+v", len(all), info)
		}
		if got := info.FirstBad[0].Error(); !strings.HasPrefix(got, "log:3:1: input_tokens: want a whole number") {
			t.Error(got)
		}
		if got := summary(&all[3]); got != "2s user=u in=40 out=3" {
			t.Error(got)
		}
	}
	for name, o := range map[string]Options{
		"no mapping": {}, "no column": {Map: Mapping{"input_tokens": {"x"}}}, "another format": {Format: "mooncake"}, "no text": {Format: "jsonl", Map: m},
	} {
		if _, _, err := read(strings.NewReader(in), o); err == nil || strings.Contains(err.Error(), "prompt_tokens=") != (name == "no mapping") && name == "no column" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := read(strings.NewReader("x"), Options{Format: "parquet", Map: m}); err == nil {
		t.Error("a file that is no Parquet was read")
	}
}

// A file that is cut, or has a byte that is another, gives rows or a located
// error, and never a panic.
func TestParquetDamaged(t *testing.T) {
	stride := 5 // every so many cuts and bytes
	if longtest.On() {
		stride = 1
	}
	in := foreign(t)
	o := Options{Map: Mapping{"input_tokens": {"turn"}, "user": {"conversation_hash"}, "session": {"deep", "ids", "conversation"}, "model": {"model"}}, MaxBad: 1}
	for k := 0; k < len(in); k += 13 * stride {
		_, _, err := read(strings.NewReader(in[:k]), o)
		var at *trace.SourceError
		if k >= 12 && (!errors.As(err, &at) || !errors.Is(err, io.ErrUnexpectedEOF) || at.Line != 1) {
			t.Fatalf("cut at %d: %v", k, err)
		}
	}
	for k := 4; k < len(in)-4; k += 5 * stride {
		b := []byte(in)
		b[k] ^= 0x55
		if _, _, err := read(bytes.NewReader(b), o); err != nil {
			var at *trace.SourceError
			if !errors.As(err, &at) || at.Line < 1 || at.Column != 1 {
				t.Fatalf("byte %d: %v", k, err)
			}
		}
	}
	torn := errors.New("torn cable")
	_, _, err := read(io.MultiReader(strings.NewReader(in[:100]), iotest.ErrReader(torn)), o)
	if !errors.Is(err, torn) {
		t.Errorf("%v", err)
	}
}

// Only the columns that are asked for are decoded, and the temporary file is
// gone at the end.
func TestParquetBounds(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	rows := make([]mappedRow, 400)
	for i := range rows {
		rows[i].Junk = bytes.Repeat([]byte{byte(i)}, 1<<17)
		rows[i].Junk[i] = 7
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[mappedRow](&b, parquet.SkipPageBounds("junk"), parquet.PageBufferSize(1<<20))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	in := b.String()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s, err := Open(strings.NewReader(in), Options{Map: Mapping{"input_tokens": {"usage.prompt_tokens"}}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for batch := make([]trace.Entry, 10); err == nil; {
		var m int
		m, err = s.Read(batch)
		n += m
	}
	runtime.ReadMemStats(&now)
	if err != io.EOF || n != 400 {
		t.Fatal(n, err)
	}
	if grown := now.TotalAlloc - before.TotalAlloc; grown > uint64(len(in))/2 {
		t.Errorf("%d bytes were allocated for a file of %d", grown, len(in))
	} else {
		t.Logf("%d bytes were allocated for a file of %d", grown, len(in))
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d files are left", len(left))
	}
}

func FuzzParquet(f *testing.F) {
	f.Add([]byte(foreign(f)))
	rows := make([]mappedRow, 3)
	rows[0].User = "MARK"
	f.Add([]byte(toParquet(f, rows...)))
	f.Add([]byte("PAR1MARKPAR1"))
	m := Mapping{"input_tokens": {"usage.prompt_tokens", "turn"}, "user": {"user.name", "conversation_hash"}, "time": {"t", "timestamp"}, "model": {"model", "deep"}}
	f.Fuzz(func(t *testing.T, in []byte) { fuzz(t, in, Options{Format: "parquet", Map: m, AllowLongSpan: true}) })
}

func FuzzParquetKinds(f *testing.F) {
	f.Add([]byte(foreign(f)))
	f.Fuzz(func(t *testing.T, in []byte) {
		if _, _, err := read(bytes.NewReader(in), Options{Format: "parquet"}); errors.Is(err, fault.ErrUsage) {
			return // columns of no known kind
		}
		fuzz(t, in, Options{Format: "parquet", AllowLongSpan: true})
	})
}

func BenchmarkParquet(b *testing.B) {
	rows := make([]mappedRow, 20_000)
	var out bytes.Buffer
	if err := parquet.Write(&out, rows); err != nil {
		b.Fatal(err)
	}
	in := out.String()
	b.ReportAllocs()
	for b.Loop() {
		if all, _ := mustRead(b, in, Options{Map: Mapping{"input_tokens": {"usage.prompt_tokens"}, "user": {"user.name"}}}); len(all) != len(rows) {
			b.Fatal(len(all))
		}
	}
	b.ReportMetric(float64(len(rows)*b.N)/b.Elapsed().Seconds(), "rows/s")
}

// The library takes all memory there is for a block that is said to be LZ4 and
// is not.
func TestForeignLZ4IsRefused(t *testing.T) {
	type one struct{ A int64 }
	var b bytes.Buffer
	w := parquet.NewGenericWriter[one](&b, parquet.Compression(&parquet.Lz4Raw))
	if _, err := w.Write([]one{{1}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := row.SpoolParquet(&b)
	if err == nil || !strings.Contains(err.Error(), "LZ4") {
		t.Errorf("LZ4: %v", err)
	}
}

// Times of Spark and Impala: the Julian day and the nanoseconds of it.
func TestOldTimesOfParquet(t *testing.T) {
	type one struct {
		At   deprecated.Int96 `parquet:"at"`
		Flag bool             `parquet:"flag"`
		F    float32          `parquet:"f"`
	}
	of := func(day uint32, nanos uint64) deprecated.Int96 {
		return deprecated.Int96{uint32(nanos), uint32(nanos >> 32), day}
	}
	all := readParquetRows(t, toParquet(t, one{of(2440588, 0), true, 0.1},
		one{of(2440589, 86_399_999_999_999), false, -2}, one{of(2440587, 1), false, 0}), everything)
	want := []map[string]any{
		{"at": "1970-01-01T00:00:00Z", "flag": true, "f": row.Number("0.1")}, {"at": "1970-01-02T23:59:59.999999999Z",
			"flag": false, "f": row.Number("-2")},
		{"at": "1969-12-31T00:00:00.000000001Z", "flag": false, "f": row.Number("0")},
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
}

// A file without the columns that are asked for is refused at its beginning.
func TestParquetWithoutColumns(t *testing.T) {
	p, err := row.SpoolParquet(bytes.NewReader([]byte(toParquet(t, struct{ N int64 }{1}))))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(nil)
	_, err = p.Rows(func([]string) bool { return false })
	var f *fault.Fault
	if !errors.As(err, &f) || *f != *fault.Refuse(1, 1, "the Parquet file has none of the columns that are asked for") {
		t.Errorf("%+v", err)
	}
}
