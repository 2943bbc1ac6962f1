package datasets

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
)

// Values are found by dotted paths, in which a key may have dots itself and numbers
// are places in lists; and so is where they begin.
func TestPathsOfValues(t *testing.T) {
	const raw = ` {"a": {"b": 1, "b.c": 2, "d": [10, {"e": "x"}]}, "a.b": {"c": 3, "f": true}, "n": null, "": 5}`
	v, _, ok := decodeJSON([]byte(raw))
	if !ok {
		t.Fatal(raw)
	}
	for path, want := range map[string]any{
		"a.b": map[string]any{"c": number("3"), "f": true}, "a.b.c": number("3"), "a.b.f": true, "a.d.0": number("10"), "a.d.1.e": "x",
		"a.d.2": nil, "a.d.-1": nil, "a.d.x": nil, "n": nil, "b": nil, "a.b.c.d": nil, "a.d.1.g": nil,
	} {
		got, ok := lookup(v, path)
		if !reflect.DeepEqual(got, want) || ok != (want != nil) {
			t.Errorf("%s: %v, %v, want %v", path, got, ok, want)
		}
	}
	for path, want := range map[string]string{
		"": "{", "a": `{"b": 1`, "a.d": "[10", "a.d.0": "10", "a.d.1": `{"e"`, "a.d.1.e": `"x"`, "n": "null", "a.d.9": "[10", "none": "{",
	} {
		at := offsetOf([]byte(raw), path)
		if got := strings.TrimLeft(raw[at:], " :,"); !strings.HasPrefix(got, want) {
			t.Errorf("%s is at %.20q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]string{"a.d": `[10, {"e": "x"}]`, "a.d.1.e": `"x"`, "n": "null"} {
		if got := string(writtenAt([]byte(raw), path)); got != want {
			t.Errorf("%s is written %s, want %s", path, got, want)
		}
	}
	if got := writtenAt([]byte("{"), "a"); got != nil {
		t.Errorf("of no JSON: %q", got)
	}
	for in, want := range map[string]string{"a": "a", "a[0].b": "a.0.b", "[1][2]": "1.2", "a.b": "a.b"} {
		if got := dotted(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	for _, c := range []struct {
		v    any
		want string
	}{{"x", "x"}, {number("1.50"), "1.50"}, {true, ""}, {nil, ""}, {[]any{"x"}, ""}} {
		if got := plain(c.v); got != c.want {
			t.Errorf("%v is %q", c.v, got)
		}
	}
}

// Where JSON is wrong is said by its first byte that does not fit.
func TestJSONThatIsNone(t *testing.T) {
	for in, want := range map[string]int{`{"a":}`: 5, `{"a":1`: 6, `{"a":1} x`: 8, `{"a":1}{}`: 7, ``: 0, `x`: 0, `[1,,2]`: 3} {
		if v, at, ok := decodeJSON([]byte(in)); ok || at != want || v != nil {
			t.Errorf("%s: %v at %d, %v, want %d", in, v, at, ok, want)
		}
	}
	for _, in := range []string{`1`, ` {} `, "[]\r\n\t", `"x"`, `null`} {
		if _, at, ok := decodeJSON([]byte(in)); !ok || at != 0 {
			t.Errorf("%s: at %d, %v", in, at, ok)
		}
	}
}

// What is packed in strings stands unpacked beside the record, and its place is that
// of the string.
func TestViewsOfRecords(t *testing.T) {
	raw := []byte(`{"x": "{\"a\": [1, {\"b\": 2.50}]}", "twice": "\"{\\\"c\\\": 3}\"", "bad": "{", "object": {"d": 4}, "own": {"e": 5}}`)
	root, _, _ := decodeJSON(raw)
	in := &onePlace{}
	v := newView(jsonRow{root: root.(map[string]any), raw: raw, records: in})
	for path, want := range map[string]bool{"x": true, "twice": true, "bad": false, "object": true, "none": true} {
		if got := v.unpack(path); got != want {
			t.Errorf("%s is JSON: %v", path, got)
		}
	}
	v.put("made", map[string]any{"e": number("5")}, "own")
	for path, want := range map[string]any{"x.a.0": number("1"), "x.a.1.b": number("2.50"), "twice.c": number("3"), "bad": "{", "object.d": number("4"), "made.e": number("5"), "own.e": number("5")} {
		if got, ok := v.value(path); !ok || got != want {
			t.Errorf("%s: %v, %v, want %v", path, got, ok, want)
		}
	}
	for path, want := range map[string]string{"x.a": `[1, {"b": 2.50}]`, "x.a.1": `{"b": 2.50}`, "x": `{"a": [1, {"b": 2.50}]}`, "twice.c": "3", "made.e": "5", "made": `{"e": 5}`, "own": `{"e": 5}`, "object.d": "4"} {
		if got := string(v.written(path)); got != want {
			t.Errorf("%s is written %s, want %s", path, got, want)
		}
	}
	for path, want := range map[string]string{"x.a.1": `"{\"a`, "twice.c": `"\"{`, "made.e": `{"e"`, "object.d": "4"} {
		_, at := v.place(path)
		if got := strings.TrimLeft(string(raw[at:]), " :,"); !strings.HasPrefix(got, want) {
			t.Errorf("%s is at %.12q, want %q", path, got, want)
		}
	}
}

// onePlace gives offsets as columns.
type onePlace struct{}

func (onePlace) Next() ([]byte, error)             { return nil, io.EOF }
func (onePlace) Place(at int) (line, column int64) { return 1, int64(at) }
func (onePlace) Last() bool                        { return false }

func TestFirstRows(t *testing.T) {
	rows := &limitedRows{jsonRows{records: record.NewLines(bufio.NewReader(strings.NewReader("{}\n{}\n{}\n")))}, 2}
	for i := range 4 {
		if _, err := rows.next(); (err == io.EOF) != (i >= 2) {
			t.Errorf("row %d: %v", i, err)
		}
	}
}

// Decimals of Parquet keep their digits, whatever they are stored in.
func TestDecimalsOfParquet(t *testing.T) {
	i32, i64 := parquet.Int32Value, parquet.Int64Value
	b := func(bytes ...byte) parquet.Value { return parquet.ByteArrayValue(bytes) }
	for _, c := range []struct {
		scale int
		v     parquet.Value
		want  any
	}{
		{0, i32(-7), number("-7")}, {2, i32(1234), number("12.34")}, {2, i32(-5), number("-0.05")}, {2, i32(0), number("0.00")}, {3, i64(1234), number("1.234")}, {4, i64(-1234), number("-0.1234")},
		{1, b(0x7f), number("12.7")}, {1, b(0x80), number("-12.8")}, {0, b(0xff, 0xff), number("-1")}, {1, b(1, 0), number("25.6")}, {1, b(), number("0.0")},
		{-1, i32(1), nil}, {77, i32(1), nil}, {76, i32(1), number("0." + strings.Repeat("0", 75) + "1")},
	} {
		if got := decimal(c.scale)(c.v); got != c.want {
			t.Errorf("%v with %d places: %v, want %v", c.v, c.scale, got, c.want)
		}
	}
	for f, want := range map[float64]any{1.5: number("1.5"), 1e21: number("1000000000000000000000"), -0.000001: number("-0.000001"), math.Inf(1): nil, math.Inf(-1): nil, 0: number("0")} {
		if got := float(f, 64); got != want {
			t.Errorf("%v: %v, want %v", f, got, want)
		}
	}
	if got := float(float64(float32(0.1)), 32); got != number("0.1") {
		t.Errorf("%v, want 0.1", got)
	}
	if got := float(math.NaN(), 64); got != nil {
		t.Errorf("no number: %v", got)
	}
}

// Times of Spark and Impala: the Julian day and the nanoseconds of it.
func TestOldTimesOfParquet(t *testing.T) {
	type row struct {
		At   deprecated.Int96 `parquet:"at"`
		Flag bool             `parquet:"flag"`
		F    float32          `parquet:"f"`
	}
	of := func(day uint32, nanos uint64) deprecated.Int96 {
		return deprecated.Int96{uint32(nanos), uint32(nanos >> 32), day}
	}
	all := readParquetRows(t, toParquet(t, row{of(2440588, 0), true, 0.1}, row{of(2440589, 86_399_999_999_999), false, -2}, row{of(2440587, 1), false, 0}), everything)
	want := []map[string]any{
		{"at": "1970-01-01T00:00:00Z", "flag": true, "f": number("0.1")}, {"at": "1970-01-02T23:59:59.999999999Z", "flag": false, "f": number("-2")},
		{"at": "1969-12-31T00:00:00.000000001Z", "flag": false, "f": number("0")},
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
}

// A file without the columns that are asked for is refused at its beginning.
func TestParquetWithoutColumns(t *testing.T) {
	p, err := spoolParquet(bytes.NewReader([]byte(toParquet(t, struct{ N int64 }{1}))))
	if err != nil {
		t.Fatal(err)
	}
	defer p.close(nil)
	_, err = p.rows(func([]string) bool { return false })
	var f *fault.Fault
	if !errors.As(err, &f) || *f != *fault.Refuse(1, 1, "the Parquet file has none of the columns that are asked for") {
		t.Errorf("%+v", err)
	}
}

// The walk over a record that a decoder reads into structs counts what the table does
// not name, whatever the record holds.
func TestScanOfFields(t *testing.T) {
	known := &fieldCounter{}
	known.root.ensureKey("a", nil).named = true
	list := known.root.ensureKey("l", nil).ensureKey(listMembers, nil)
	list.ensureKey("m", nil).named = true
	inner := known.root.ensureKey("o", nil)
	inner.ensureKey("p", nil).named = true
	fresh := func() *fieldCounter {
		for _, k := range []*knownField{known.root.below["a"], list, inner, known.root.below["l"]} {
			k.dropped = fieldNode{}
		}
		return &fieldCounter{root: knownField{below: known.root.below}}
	}
	for in, want := range map[string]map[string]int{
		`{}`:                                       nil,
		`{"a":1,"A":2}`:                            nil,
		`{"a":{"x":1},"b":"t"}`:                    {"text": 1},
		`{"b":1,"c":-2.5e3,"d":true,"e":false}`:    {"number": 2, "flag": 2},
		`{"b":null,"c":[1,{"x":2}],"d":[]}`:        {"list": 2},
		`{"b":{"c":{"d":"x","e":1},"f":null}}`:     {"text": 1, "number": 1},
		`{"l":[{"m":1,"n":2},{"m":1,"n":"x"}]}`:    {"number": 1},
		`{"l":{"m":1},"o":{"p":1,"q":"\"}"}}`:      {"number": 1, "text": 1},
		` { "b" : "x\\" , "c" : [ ] , "a" : [{}]}`: {"text": 1, "list": 1},
		`{"k\u0061":1,"ka":2}`:                     {"number": 1},
		`{"b":"x`:                                  {"text": 1},
		`{"b":}`:                                   nil,
	} {
		c := fresh()
		c.scan([]byte(in))
		if got := c.count().Kinds; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", in, got, want)
		}
	}
	var none *fieldCounter
	none.scan([]byte(`{"a":1}`))
	if !none.reads("a") || none.admit(map[string]any{"a": 1}) {
		t.Error("without a table all is let through")
	}
	// Keys of more than a thousand bytes are cut, and so are one.
	c := fresh()
	c.scan([]byte(`{"` + strings.Repeat("k", maxKey) + `1":1,"` + strings.Repeat("k", maxKey) + `2":1,"` + strings.Repeat("k", maxKey-2) + `":1}`))
	if got := c.count().Dropped; got != 2 {
		t.Errorf("%d long keys", got)
	}
}

// So many fields are told apart and no more, and then there may be more.
func TestMostFields(t *testing.T) {
	for n, more := range map[int]bool{maxFields: false, maxFields + 1: true} {
		c, columns := &fieldCounter{columns: map[string]bool{}}, &fieldCounter{columns: map[string]bool{}}
		object := map[string]any{}
		for i := range n {
			object[fmt.Sprint(i)] = number("1")
			columns.reads(fmt.Sprint(i))
		}
		if !c.admit(object) || len(object) != 0 {
			t.Errorf("%d fields are left", len(object))
		}
		if f := c.count(); f.Dropped != maxFields || f.More != more || f.Kinds["number"] != maxFields {
			t.Errorf("%d fields: %+v", n, f)
		}
		if f := columns.count(); f.Dropped != maxFields || f.More != more || f.Kinds != nil {
			t.Errorf("%d columns: %+v", n, f)
		}
	}
}

// Statuses of HTTP and the usual words, at the bounds of each class.
func TestStatusesOfSources(t *testing.T) {
	const why = "want an HTTP status or a word"
	for v, want := range map[any]string{
		number("200"): "ok", "299": "ok", number("300"): "failed", "199": "failed", "100": "failed", "599": "failed", number("499"): "cancelled", "498": "failed", "500": "failed",
		"OK": "ok", "Succeeded": "ok", "completed": "ok", "Failure": "failed", "aborted": "cancelled", "canceled": "cancelled",
		"99": why, "600": why, "": why, true: why, number("0"): why,
	} {
		b := &builder{}
		got := setStatus(b, v)
		if got == "" {
			got = b.e.Status
		}
		if got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	for _, c := range []struct {
		v         any
		was, want string
	}{{"x", "", "failed"}, {"", "ok", "ok"}, {false, "ok", "ok"}, {map[string]any{}, "ok", "failed"}, {"x", "cancelled", "cancelled"}} {
		b := &builder{}
		b.e.Status = c.was
		if why := setError(b, c.v); why != "" || b.e.Status != c.want {
			t.Errorf("an error %v of %q: %q, want %q", c.v, c.was, b.e.Status, c.want)
		}
	}
	for in, want := range map[string]string{"[]": "[]", "[0,18446744073709551615]": "[0 18446744073709551615]", "[1,": "", "{}": "", `["1"]`: "", "[-1]": "", "[1.5]": "", "[18446744073709551616]": "", "[true]": ""} {
		b := &builder{}
		why := setBlocks(b, in)
		if want == "" && why != "want an array of whole numbers that are not negative" || want != "" && (why != "" || fmt.Sprint(b.e.SourceBlocks) != want) {
			t.Errorf("blocks %s: %v, %q", in, b.e.SourceBlocks, why)
		}
	}
	for n, want := range map[int32]int{0: 0, 1: 1, 16: 1, 17: 2, 32: 2, math.MaxInt32: 1 << 27} {
		if got := blocksOf(n, 16); got != want {
			t.Errorf("%d tokens in %d blocks, want %d", n, got, want)
		}
	}
	for in, want := range map[string]bool{"0": true, " 2147483647 ": true, "2147483648": false, "-1": false, "1.5": false, "1.0": true, "": false, "4294967296": false} {
		if _, ok := countOf(in); ok != want {
			t.Errorf("%q is a count: %v", in, ok)
		}
	}
}
