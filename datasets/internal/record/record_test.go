package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"reprise/datasets/internal/fault"
)

// each lists the records of a reader, with where each begins, and how they end.
func each(r Reader, offset int) (out []string) {
	for {
		raw, err := r.Next()
		var f *fault.Fault
		switch {
		case err == io.EOF:
			return out
		case errors.As(err, &f):
			return append(out, fmt.Sprintf("%d:%d %s", f.Line, f.Col, f.Reason))
		case err != nil:
			return append(out, err.Error())
		}
		line, col := r.Place(min(offset, len(raw)))
		out = append(out, fmt.Sprintf("%d:%d %s", line, col, raw))
	}
}

// Lines, elements of an array and objects that follow one another are told apart by
// how a source begins, and have their places.
func TestRecordsAndTheirPlaces(t *testing.T) {
	for in, want := range map[string][]string{
		"{}\n\n \r\n{\"a\":1}\r\n{\"b\":2}": {"1:1 {}", `4:1 {"a":1}`, `5:1 {"b":2}`},
		"":                                  nil,
		"{\n\"a\":1}\n{}":                   {"1:1 {\n\"a\":1}", "3:1 {}"},
		"{\n\"a\":1} {} x":                  {"1:1 {\n\"a\":1}", "2:8 {}", "2:11 want a JSON object"},
		"{\n\"a\":1}\n{\"b\":": {"1:1 {\n\"a\":1}",
			"3:6 unexpected end of file: the last record is not whole"},
		"[]": nil,
		" [\n1, \"a\\\"]\" ,\n [2,[3]],{\"x\":\"}\"}, null ]\n": {"2:1 1", `2:4 "a\"]"`, "3:2 [2,[3]]",
			`3:10 {"x":"}"}`, "3:21 null"},
		"[1,2":  {"1:2 1", "1:5 unexpected end of file: the JSON array is not closed"},
		"[1,\n": {"1:2 1", "2:1 unexpected end of file: the JSON array is not closed"},
		"[1]x":  {"1:2 1", "1:4 something follows the end of the JSON array"},
		"[1 2]": {"1:2 1", "1:4 want an element, a comma or the end of the JSON array"},
		"[,1]":  {"1:2 want an element, a comma or the end of the JSON array"},
		"[1,]":  {"1:2 1", "1:4 want an element, a comma or the end of the JSON array"},
		"[}]":   {"1:2 want an element, a comma or the end of the JSON array"},
		"[[1":   {"1:4 unexpected end of file: the JSON array is not closed"},
	} {
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
			if got := each(NewJSON(bufio.NewReader(r), []byte(in)), 0); !slices.Equal(got, want) {
				t.Errorf("%q: %q, want %q", in, got, want)
			}
		}
	}
	if got := each(newArrayReader(bufio.NewReader(strings.NewReader(" x"))), 0); !slices.Equal(got,
		[]string{"1:2 want a JSON array"}) {
		t.Errorf("%q", got)
	}
	// An offset within a record over several lines.
	if got := each(newArrayReader(bufio.NewReader(strings.NewReader("[ {\n \"a\":\n1}]"))), 8); !slices.Equal(got,
		[]string{"3:1 {\n \"a\":\n1}"}) {
		t.Errorf("%q", got)
	}
}

// A record may be as long as the bound and no longer, and an error of the file stands
// at its place.
func TestLongRecords(t *testing.T) {
	for n, want := range map[int]string{20: "", 21: "1:1 " + TooLong} {
		in := strings.Repeat("a", n)
		l := NewLines(bufio.NewReaderSize(strings.NewReader(in), 16))
		l.max = 20
		if got := each(l, 0); want == "" && !slices.Equal(got, []string{"1:1 " + in}) || want != "" &&
			!slices.Equal(got, []string{want}) {
			t.Errorf("a line of %d: %q", n, got)
		}
	}
	for n, want := range map[int]string{20: "1:3 ", 60: "1:3 " + TooLong} { // more than a buffer longer
		in := `"` + strings.Repeat("a", n-2) + `"`
		a := newArrayReader(bufio.NewReaderSize(strings.NewReader("[ "+in+"]"), 16))
		a.max = 20
		if n == 20 {
			want += in
		}
		if got := each(a, 0); !slices.Equal(got, []string{want}) {
			t.Errorf("an element of %d: %q, want %q", n, got, want)
		}
	}
	bad := errors.New("no disk")
	l := NewLines(bufio.NewReader(io.MultiReader(strings.NewReader("{}\nabc"), iotest.ErrReader(bad))))
	if got := each(l, 0); !slices.Equal(got, []string{"1:1 {}", "2:4 no disk"}) {
		t.Errorf("lines of a broken file: %q", got)
	}
	a := newArrayReader(bufio.NewReader(io.MultiReader(strings.NewReader("[1,\n"), iotest.ErrReader(bad))))
	if got := each(a, 0); !slices.Equal(got, []string{"1:2 1", "2:1 no disk"}) {
		t.Errorf("an array of a broken file: %q", got)
	}
	v := &valueReader{*newArrayReader(bufio.NewReader(io.MultiReader(strings.NewReader("{}\n "),
		iotest.ErrReader(bad))))}
	if got := each(v, 0); !slices.Equal(got, []string{"1:1 {}", "2:2 no disk"}) {
		t.Errorf("objects of a broken file: %q", got)
	}
}

// The splitter finds the elements that encoding/json finds, however the input
// is cut into reads.
func TestArrayReaderAgreesWithJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var value func(depth int) any
	value = func(depth int) any {
		switch n := r.IntN(8); {
		case n == 0 || depth == 0:
			return strings.Repeat(`\"]},`+"\n\\", r.IntN(4))
		case n == 1:
			return []any{}
		case n < 4:
			return []any{value(depth - 1), value(depth - 1)}
		case n < 7:
			return map[string]any{`k"\`: value(depth - 1), "l": value(depth - 1)}
		}
		return r.Float64()
	}
	for range 300 {
		want := make([]any, r.IntN(6))
		for i := range want {
			want[i] = value(4)
		}
		in, err := json.MarshalIndent(want, "", strings.Repeat(" ", r.IntN(3)))
		if err != nil {
			t.Fatal(err)
		}
		a := newArrayReader(bufio.NewReaderSize(iotest.HalfReader(iotest.OneByteReader(strings.NewReader(string(in)))), 4096))
		var got []any
		for {
			raw, err := a.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", in, err)
			}
			line, col := a.Place(0)
			if at := offsetAt(string(in), line, col); in[at] != raw[0] {
				t.Fatalf("%s: an element at %d:%d", in, line, col)
			}
			var v any
			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
			got = append(got, v)
		}
		if a, b := fmt.Sprintf("%#v", append([]any{}, got...)), fmt.Sprintf("%#v", want); a != b {
			t.Fatalf("%s\n%s", a, b)
		}
	}
}

// offsetAt turns a line and a column into an offset.
func offsetAt(s string, line, col int64) int {
	at := 0
	for ; line > 1; line-- {
		at += strings.IndexByte(s[at:], '\n') + 1
	}
	return at + int(col) - 1
}

// A record that is much longer than the buffer is refused too, and stops the reading.
func TestLineLimit(t *testing.T) {
	long := strings.Repeat("x", 300_000)
	l := NewLines(bufio.NewReader(strings.NewReader(long)))
	a := newArrayReader(bufio.NewReader(strings.NewReader(`["` + long)))
	l.max, a.max = 200_000, 200_000
	for _, r := range []Reader{l, a} {
		var f *fault.Fault
		if _, err := r.Next(); !errors.As(err, &f) || !f.Stop || f.Reason != TooLong || f.Line != 1 {
			t.Errorf("%T: %v", r, err)
		}
	}
}
