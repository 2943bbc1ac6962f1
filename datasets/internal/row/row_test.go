package row

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/datasets/internal/record"
)

// Values are found by dotted paths, in which a key may have dots itself and numbers
// are places in lists; and so is where they begin.
func TestPathsOfValues(t *testing.T) {
	const raw = ` {"a": {"b": 1, "b.c": 2, "d": [10, {"e": "x"}]}, "a.b": {"c": 3, "f": true}, "n": null, "": 5}`
	v, _, ok := DecodeJSON([]byte(raw))
	if !ok {
		t.Fatal(raw)
	}
	for path, want := range map[string]any{
		"a.b": map[string]any{"c": Number("3"),
			"f": true}, "a.b.c": Number("3"), "a.b.f": true, "a.d.0": Number("10"), "a.d.1.e": "x",
		"a.d.2": nil, "a.d.-1": nil, "a.d.x": nil, "n": nil, "b": nil, "a.b.c.d": nil, "a.d.1.g": nil,
	} {
		got, ok := Lookup(v, path)
		if !reflect.DeepEqual(got, want) || ok != (want != nil) {
			t.Errorf("%s: %v, %v, want %v", path, got, ok, want)
		}
	}
	for path, want := range map[string]string{
		"": "{", "a": `{"b": 1`, "a.d": "[10", "a.d.0": "10", "a.d.1": `{"e"`, "a.d.1.e": `"x"`, "n": "null", "a.d.9": "[10", "none": "{",
	} {
		at := OffsetOf([]byte(raw), path)
		if got := strings.TrimLeft(raw[at:], " :,"); !strings.HasPrefix(got, want) {
			t.Errorf("%s is at %.20q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]string{"a.d": `[10, {"e": "x"}]`, "a.d.1.e": `"x"`, "n": "null"} {
		if got := string(WrittenAt([]byte(raw), path)); got != want {
			t.Errorf("%s is written %s, want %s", path, got, want)
		}
	}
	if got := WrittenAt([]byte("{"), "a"); got != nil {
		t.Errorf("of no JSON: %q", got)
	}
	for in, want := range map[string]string{"a": "a", "a[0].b": "a.0.b", "[1][2]": "1.2", "a.b": "a.b"} {
		if got := Dotted(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	for _, c := range []struct {
		v    any
		want string
	}{{"x", "x"}, {Number("1.50"), "1.50"}, {true, ""}, {nil, ""}, {[]any{"x"}, ""}} {
		if got := Plain(c.v); got != c.want {
			t.Errorf("%v is %q", c.v, got)
		}
	}
}

// Where JSON is wrong is said by its first byte that does not fit.
func TestJSONThatIsNone(t *testing.T) {
	for in, want := range map[string]int{`{"a":}`: 5, `{"a":1`: 6, `{"a":1} x`: 8, `{"a":1}{}`: 7, ``: 0, `x`: 0, `[1,,2]`: 3} {
		if v, at, ok := DecodeJSON([]byte(in)); ok || at != want || v != nil {
			t.Errorf("%s: %v at %d, %v, want %d", in, v, at, ok, want)
		}
	}
	for _, in := range []string{`1`, ` {} `, "[]\r\n\t", `"x"`, `null`} {
		if _, at, ok := DecodeJSON([]byte(in)); !ok || at != 0 {
			t.Errorf("%s: at %d, %v", in, at, ok)
		}
	}
}

// What is packed in strings stands unpacked beside the record, and its place is that
// of the string.
func TestViewsOfRecords(t *testing.T) {
	raw := []byte(`{"x": "{\"a\": [1, {\"b\": 2.50}]}", "twice": "\"{\\\"c\\\": 3}\"", "bad": "{", "object": {"d": 4}, "own": {"e": 5}}`)
	root, _, _ := DecodeJSON(raw)
	in := &onePlace{}
	v := NewView(JSONRow{Root: root.(map[string]any), Raw: raw, Records: in})
	for path, want := range map[string]bool{"x": true, "twice": true, "bad": false, "object": true, "none": true} {
		if got := v.Unpack(path); got != want {
			t.Errorf("%s is JSON: %v", path, got)
		}
	}
	v.Put("made", map[string]any{"e": Number("5")}, "own")
	for path, want := range map[string]any{"x.a.0": Number("1"), "x.a.1.b": Number("2.50"), "twice.c": Number("3"),
		"bad": "{", "object.d": Number("4"), "made.e": Number("5"), "own.e": Number("5")} {
		if got, ok := v.Value(path); !ok || got != want {
			t.Errorf("%s: %v, %v, want %v", path, got, ok, want)
		}
	}
	for path, want := range map[string]string{"x.a": `[1, {"b": 2.50}]`, "x.a.1": `{"b": 2.50}`, "x": `{"a": [1, {"b": 2.50}]}`, "twice.c": "3", "made.e": "5", "made": `{"e": 5}`, "own": `{"e": 5}`, "object.d": "4"} {
		if got := string(v.Written(path)); got != want {
			t.Errorf("%s is written %s, want %s", path, got, want)
		}
	}
	for path, want := range map[string]string{"x.a.1": `"{\"a`, "twice.c": `"\"{`, "made.e": `{"e"`, "object.d": "4"} {
		_, at := v.Place(path)
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
	rows := &First{JSON{Records: record.NewLines(bufio.NewReader(strings.NewReader("{}\n{}\n{}\n")))}, 2}
	for i := range 4 {
		if _, err := rows.Next(); (err == io.EOF) != (i >= 2) {
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
		{0, i32(-7), Number("-7")}, {2, i32(1234), Number("12.34")}, {2, i32(-5), Number("-0.05")}, {2, i32(0),
			Number("0.00")}, {3, i64(1234), Number("1.234")}, {4, i64(-1234), Number("-0.1234")},
		{1, b(0x7f), Number("12.7")}, {1, b(0x80), Number("-12.8")}, {0, b(0xff, 0xff), Number("-1")}, {1, b(1, 0),
			Number("25.6")}, {1, b(), Number("0.0")},
		{-1, i32(1), nil}, {77, i32(1), nil}, {76, i32(1), Number("0." + strings.Repeat("0", 75) + "1")},
	} {
		if got := decimal(c.scale)(c.v); got != c.want {
			t.Errorf("%v with %d places: %v, want %v", c.v, c.scale, got, c.want)
		}
	}
	for f, want := range map[float64]any{1.5: Number("1.5"), 1e21: Number("1000000000000000000000"),
		-0.000001: Number("-0.000001"), math.Inf(1): nil, math.Inf(-1): nil, 0: Number("0")} {
		if got := float(f, 64); got != want {
			t.Errorf("%v: %v, want %v", f, got, want)
		}
	}
	if got := float(float64(float32(0.1)), 32); got != Number("0.1") {
		t.Errorf("%v, want 0.1", got)
	}
	if got := float(math.NaN(), 64); got != nil {
		t.Errorf("no number: %v", got)
	}
}

// The walk over a record that a decoder reads into structs counts what the table does
// not name, whatever the record holds.
func TestScanOfFields(t *testing.T) {
	known := &Fields{}
	known.root.ensureKey("a", nil).named = true
	list := known.root.ensureKey("l", nil).ensureKey(ListMembers, nil)
	list.ensureKey("m", nil).named = true
	inner := known.root.ensureKey("o", nil)
	inner.ensureKey("p", nil).named = true
	fresh := func() *Fields {
		for _, k := range []*knownField{known.root.below["a"], list, inner, known.root.below["l"]} {
			k.dropped = fieldNode{}
		}
		return &Fields{root: knownField{below: known.root.below}}
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
		c.Scan([]byte(in))
		if _, got, _ := c.Dropped(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", in, got, want)
		}
	}
	var none *Fields
	none.Scan([]byte(`{"a":1}`))
	if !none.Reads("a") || none.Admit(map[string]any{"a": 1}) {
		t.Error("without a table all is let through")
	}
	// Keys of more than a thousand bytes are cut, and so are one.
	c := fresh()
	c.Scan([]byte(`{"` + strings.Repeat("k", MaxKey) + `1":1,"` + strings.Repeat("k", MaxKey) + `2":1,"` +
		strings.Repeat("k", MaxKey-2) + `":1}`))
	if got, _, _ := c.Dropped(); got != 2 {
		t.Errorf("%d long keys", got)
	}
}

// So many fields are told apart and no more, and then there may be more.
func TestMostFields(t *testing.T) {
	for n, more := range map[int]bool{MaxFields: false, MaxFields + 1: true} {
		c, columns := &Fields{columns: map[string]bool{}}, &Fields{columns: map[string]bool{}}
		object := map[string]any{}
		for i := range n {
			object[fmt.Sprint(i)] = Number("1")
			columns.Reads(fmt.Sprint(i))
		}
		if !c.Admit(object) || len(object) != 0 {
			t.Errorf("%d fields are left", len(object))
		}
		paths, kinds, there := c.Dropped()
		if paths != MaxFields || there != more || kinds["number"] != MaxFields {
			t.Errorf("%d fields: %d, %v, %v", n, paths, kinds, there)
		}
		if paths, kinds, there = columns.Dropped(); paths != MaxFields || there != more || kinds != nil {
			t.Errorf("%d columns: %d, %v, %v", n, paths, kinds, there)
		}
	}
}
