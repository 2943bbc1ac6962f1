package audit

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"reprise/anonymize"
	"reprise/trace"
)

// The file of planted strings is read line by line, and refused when it is not one.
func TestPlantedFile(t *testing.T) {
	got, err := Planted(strings.NewReader("  ABCDEFGHIJ \r\n\n104729\nKLMNOPQRSTUV"))
	if want := []string{"ABCDEFGHIJ", "104729", "KLMNOPQRSTUV"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	line := strings.Repeat("A", 1<<10-1) + "\n"
	if got, err := Planted(strings.NewReader(strings.Repeat("\n", 1<<20-len(line)) + line)); err != nil || len(got) != 1 {
		t.Errorf("a megabyte: %d strings, %v", len(got), err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"more than a megabyte": {strings.Repeat("\n", 1<<20+1), "more than a megabyte of canaries"},
		"a short one":          {"ABCDEFGHIJ\nABCDEFGHI\n", "canary 2 is shorter than 10 bytes, so it would match by chance: use a longer one"},
		"a long one":           {strings.Repeat("A", 1<<16+1), "canary 1 is longer than 65536 bytes"},
	} {
		if got, err := Planted(strings.NewReader(c.text)); err == nil || err.Error() != c.want || got != nil {
			t.Errorf("%s: %d strings, %v, want %s", name, len(got), err, c.want)
		}
	}
	bad := errors.New("no disk")
	if _, err := Planted(iotest.ErrReader(bad)); !errors.Is(err, bad) {
		t.Errorf("a read that fails: %v", err)
	}
}

// What the checks of planted strings and numbers say, whole.
func TestCanaryFindings(t *testing.T) {
	const secret = "ABCDEFGHIJKL" // three windows
	planted := []string{secret, "MNOPQRSTUVWX", "104729", "131071"}
	alarms := func(n int) float64 { return 6 * float64(n) / math.Pow(2, 50) }
	for name, c := range map[string]struct {
		text             string
		strings, numbers Finding
	}{
		"clean": {`{"tier":"partner"}`,
			passed(Figures{"planted": 2, "found": 0, "bytes_scanned": int64(18), "values_compared": int64(0), "expected_false_alarms": alarms(18)}, "none of 2 planted strings is in the output"),
			passed(Figures{"planted": 2, "found": 0, "bytes_scanned": int64(18), "values_compared": int64(0)}, "none of 2 planted numbers is in the output")},
		"leaks": {secret + " 104729",
			failed(Figures{"planted": 2, "found": 1, "bytes_scanned": int64(19), "values_compared": int64(0), "found_in": []string{"bytes of the file"}, "expected_false_alarms": alarms(19)}, "1 of 2 planted strings are in the output"),
			failed(Figures{"planted": 2, "found": 1, "bytes_scanned": int64(19), "values_compared": int64(0), "found_in": []string{"bytes of the file"}}, "1 of 2 planted numbers are in the output")},
		"in the house": {`{"tier":"internal","n":[104729,131071]}`,
			passed(Figures{"planted": 2, "found": 0, "bytes_scanned": int64(39), "values_compared": int64(0), "expected_false_alarms": alarms(39)}, "none of 2 planted strings is in the output"),
			passed(Figures{"planted": 2, "found": 2, "bytes_scanned": int64(39), "values_compared": int64(0), "found_in": []string{"bytes of the file"}},
				"2 of 2 planted numbers are in the output, as tier internal keeps exact lengths and times: report only")},
		"a string in the house": {`{"tier":"internal","n":"` + secret + `"}`,
			failed(Figures{"planted": 2, "found": 1, "bytes_scanned": int64(38), "values_compared": int64(0), "found_in": []string{"bytes of the file"}, "expected_false_alarms": alarms(38)}, "1 of 2 planted strings are in the output"),
			passed(Figures{"planted": 2, "found": 0, "bytes_scanned": int64(38), "values_compared": int64(0)}, "none of 2 planted numbers is in the output")},
	} {
		got := found(t, &Case{Output: textOutput(t, c.text), Canaries: planted}, "canaries", "numbers")
		c.strings.Check, c.numbers.Check = "canaries", "numbers"
		if f := got["canaries"]; !reflect.DeepEqual(f, c.strings) {
			t.Errorf("%s: %+v, want %+v", name, f, c.strings)
		}
		if f := got["numbers"]; !reflect.DeepEqual(f, c.numbers) {
			t.Errorf("%s: %+v, want %+v", name, f, c.numbers)
		}
	}
	o := textOutput(t, "x")
	if f := numeric(t.Context(), &Case{Output: o, Canaries: planted[:2]}); !reflect.DeepEqual(f, skipped("no numbers were planted")) {
		t.Errorf("%+v", f)
	}
	if f := canaries(t.Context(), &Case{Output: o, Canaries: []string{"short"}}); !f.broken || !strings.HasSuffix(f.Why, "canary 1 is shorter than 10 bytes, so it would match by chance: use a longer one") {
		t.Errorf("%+v", f)
	}
	o.Close()
	if f := canaries(t.Context(), &Case{Output: o, Canaries: planted}); !f.broken {
		t.Errorf("of a closed file: %+v", f)
	}
}

// A number is of up to 19 digits, and nothing else.
func TestPlantedNumbers(t *testing.T) {
	for s, want := range map[string]uint64{"0": 0, "9": 9, "007": 7, "104729": 104729, "9999999999999999999": 9999999999999999999} {
		if n, ok := number(s); !ok || n != want {
			t.Errorf("%q is %d, %v", s, n, ok)
		}
	}
	for _, s := range []string{"", "10000000000000000000", "1/", "1:", "-1", "1.5", "12a"} {
		if n, ok := number(s); ok || n != 0 {
			t.Errorf("%q is the number %d", s, n)
		}
	}
}

// In text a number has five to nineteen digits, alone.
func TestNumbersInText(t *testing.T) {
	s, err := NewScanner([]string{"1234", "12345", "1234567890123456789", "0", "99999"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Planted() != 5 {
		t.Errorf("%d are planted", s.Planted())
	}
	for text, want := range map[string]map[int]bool{
		"1234": nil, "12345": {1: true}, "/12345:": {1: true}, "01234": {0: true}, "00000": {3: true}, "0": nil,
		"x99999y12345": {1: true, 4: true}, "1234567890123456789": {2: true}, "12345678901234567890 12345": {1: true}, "01234567890123456789": nil,
	} {
		for _, cut := range []int{0, 1, 3} {
			h := Hits{}
			w := s.walk(&h, "here")
			cut = min(cut, len(text))
			w.Write([]byte(text[:cut]))
			w.Write([]byte(text[cut:]))
			w.endNumber()
			if !reflect.DeepEqual(h.Strings, want) || h.Bytes != int64(len(text)) {
				t.Errorf("%q cut at %d: %v in %d bytes, want %v", text, cut, h.Strings, h.Bytes, want)
			}
		}
	}
}

// The ends of the lengths that strings may have, and every window of one.
func TestWindowsOfStrings(t *testing.T) {
	const text = "ABCDEFGHIJKLM"
	s, err := NewScanner([]string{text, strings.Repeat("-", 1<<16)})
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at+window <= len(text); at++ {
		var h Hits
		if err := s.Bytes(&h, "here", strings.NewReader(text[at:at+window])); err != nil || !reflect.DeepEqual(h, Hits{Bytes: 10, Strings: map[int]bool{0: true}, Where: []string{"here"}}) {
			t.Errorf("window %d: %+v, %v", at, h, err)
		}
	}
	one, err := NewScanner([]string{text, "NOPQRSTUVW"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := one.FalseAlarms(1000), 5*1000/math.Pow(2, 50); math.Abs(got/want-1) > 1e-12 {
		t.Errorf("%g false alarms, want %g", got, want)
	}
	var h Hits
	for _, where := range []string{"b", "a", "b"} {
		if err := one.Bytes(&h, where, strings.NewReader("abcdefghij.NOPQRSTUVW")); err != nil {
			t.Fatal(err)
		}
	}
	if want := (Hits{Bytes: 63, Strings: map[int]bool{0: true, 1: true}, Where: []string{"b", "a"}}); !reflect.DeepEqual(h, want) {
		t.Errorf("%+v, want %+v", h, want)
	}
}

// What is packed by zstd is unpacked, and what only begins like a packed file is not.
func TestScanOfPackedFiles(t *testing.T) {
	const secret = "ABCDEFGHIJKL"
	s, err := NewScanner([]string{secret})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a page ", 50) + "abcdefghijkl" + strings.Repeat(" a page", 50)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var h Hits
	if err := s.File(&h, bytes.NewReader(packed.Bytes()), int64(packed.Len())); err != nil || !h.Strings[0] || h.Bytes != int64(packed.Len()+len(text)) || h.Where[len(h.Where)-1] != "unpacked bytes" {
		t.Errorf("%+v, %v", h, err)
	}
	for _, head := range []string{"\x1f\x8b", "\x1f\x8bxx", "\x28\xb5", ""} {
		h = Hits{}
		if err := s.File(&h, strings.NewReader(head+secret), int64(len(head+secret))); err != nil || !slices.Equal(h.Where, []string{"bytes of the file"}) {
			t.Errorf("%q: %+v, %v", head, h, err)
		}
	}
	for _, head := range []string{"\x28\xb5\x2f\xfd", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x00"} {
		if err := s.File(&h, strings.NewReader(head+secret), int64(len(head+secret))); err == nil {
			t.Errorf("%q: a file that does not unpack is no error", head)
		}
	}
}

// Values of every type of Parquet are compared, each as what it is.
func TestScanOfValues(t *testing.T) {
	const secret = "ABCDEFGHIJKL"
	s, err := NewScanner([]string{secret, "12", "9223372036854775807", "9223372036854775808", "0"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		v      parquet.Value
		want   map[int]bool
		values int64
		bytes  int64
	}{
		"null":                {parquet.NullValue(), nil, 0, 0},
		"flag":                {parquet.BooleanValue(true), nil, 0, 0},
		"32 bits":             {parquet.Int32Value(12), map[int]bool{1: true}, 1, 0},
		"64 bits":             {parquet.Int64Value(9223372036854775807), map[int]bool{2: true}, 1, 0},
		"another":             {parquet.Int64Value(13), nil, 1, 0},
		"float":               {parquet.FloatValue(12), map[int]bool{1: true}, 1, 0},
		"double":              {parquet.DoubleValue(12), map[int]bool{1: true}, 1, 0},
		"nothing":             {parquet.DoubleValue(0), map[int]bool{4: true}, 1, 0},
		"a fraction":          {parquet.DoubleValue(12.5), nil, 0, 0},
		"below none":          {parquet.DoubleValue(-12), nil, 0, 0},
		"the largest":         {parquet.DoubleValue(1<<63 - 1024), nil, 1, 0},
		"too large":           {parquet.DoubleValue(1 << 63), nil, 0, 0},
		"not a number":        {parquet.DoubleValue(math.NaN()), nil, 0, 0},
		"bytes":               {parquet.ByteArrayValue([]byte(secret)), map[int]bool{0: true}, 0, 12},
		"bytes of one length": {parquet.FixedLenByteArrayValue([]byte(secret)), map[int]bool{0: true}, 0, 12},
	} {
		var h Hits
		s.value(&h, "values", c.v)
		if !reflect.DeepEqual(h.Strings, c.want) || h.Values != c.values || h.Bytes != c.bytes {
			t.Errorf("%s: %+v, want %v of %d values and %d bytes", name, h, c.want, c.values, c.bytes)
		}
	}
	var h Hits
	s.bounds(&h, "x", format.Int64, [][]byte{nil, {12, 0, 0, 0, 0, 0, 0, 0}})
	s.bounds(&h, "y", format.ByteArray, [][]byte{[]byte(secret), {}})
	s.bounds(&h, "z", format.FixedLenByteArray, [][]byte{[]byte(secret[1:])})
	if want := (Hits{Bytes: 23, Values: 1, Strings: map[int]bool{0: true, 1: true}, Where: []string{"x", "y", "z"}}); !reflect.DeepEqual(h, want) {
		t.Errorf("bounds: %+v, want %+v", h, want)
	}
}

// A scan of Parquet compares each value and each entry of a dictionary once, and the
// bounds of each column by its own type.
func TestScanOfParquetIsWhole(t *testing.T) {
	type row struct {
		ID   int64   `parquet:"id"`
		Word string  `parquet:"word,dict"`
		Rate float32 `parquet:"rate"`
	}
	var file bytes.Buffer
	w := parquet.NewGenericWriter[row](&file, parquet.CreatedBy("c", "1", "x"), parquet.KeyValueMetadata("key", "value"))
	for g := range 2 { // row groups
		for i := range 3 {
			if _, err := w.Write([]row{{int64(1_000_000 + 10*g + i), []string{"one", "two", "one"}[i], float32(10*g + i)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := NewScanner([]string{"1000000", "1000012", "99999"})
	if err != nil {
		t.Fatal(err)
	}
	var h Hits
	if err := s.File(&h, bytes.NewReader(file.Bytes()), int64(file.Len())); err != nil {
		t.Fatal(err)
	}
	// Of each row group: 3 ids and 3 whole rates; their bounds in the statistics, of
	// both the old and the new fields, or the column index.
	f, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	values, text := int64(2*3*2), int64(0)
	count := func(kind format.Type, bounds ...[]byte) {
		for _, b := range bounds {
			if kind == format.ByteArray {
				text += int64(len(b))
			} else if len(b) > 0 {
				values++
			}
		}
	}
	for g, group := range f.Metadata().RowGroups {
		for c, col := range group.Columns {
			st := col.MetaData.Statistics
			count(col.MetaData.Type, st.Min, st.Max, st.MinValue, st.MaxValue)
			x := f.ColumnIndexes()[g*3+c]
			count(col.MetaData.Type, x.MinValues...)
			count(col.MetaData.Type, x.MaxValues...)
		}
	}
	for _, e := range f.Metadata().Schema {
		text += int64(len(e.Name))
	}
	text += int64(len(f.Metadata().CreatedBy)+len("keyvalue")) + 2*int64(len("onetwo")+len("onetwoone"))
	want := Hits{Bytes: int64(file.Len()) + text, Values: values, Strings: map[int]bool{0: true, 1: true}, Where: []string{"statistics of columns", "column index", "values"}}
	if !reflect.DeepEqual(h, want) {
		t.Errorf("%+v, want %+v", h, want)
	}
}

// In a trace planted numbers are found among the values of its columns.
func TestCanariesInATrace(t *testing.T) {
	c := &Case{Output: tinyTrace(t, trace.Meta{Tier: anonymize.Partner}, trace.Request{InputTokens: 104729}, trace.Request{InputTokens: 5}), Canaries: []string{"104729", "131071", "ABCDEFGHIJKL"}}
	got := found(t, c, "canaries", "numbers")
	if f := got["numbers"]; f.Status != Fail || f.Why != "1 of 2 planted numbers are in the output" || !reflect.DeepEqual(f.Figures["found_in"], []string{"values"}) || f.Figures["found"] != 1 {
		t.Errorf("%+v", f)
	}
	if f := got["canaries"]; f.Status != Pass || f.Figures["bytes_scanned"].(int64) <= c.Output.size {
		t.Errorf("%+v", f)
	}
}
