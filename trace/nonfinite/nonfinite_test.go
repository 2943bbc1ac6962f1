package nonfinite

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestNull(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":NaN,"b":[Infinity, -Infinity],"c":-1}`: `{"a":null,"b":[null    , null     ],"c":-1}`,
		`NaN`:                      `null`,
		`{"a":"NaN \" NaN","b":1}`: `{"a":"NaN \" NaN","b":1}`,
		`{"a":"\\","b":NaN}`:       `{"a":"\\","b":null}`,
		`{"Infinity":1}`:           `{"Infinity":1}`,
		`{"a":Na`:                  `{"a":Na`,
		`{"a":NaN,"b":-`:           `{"a":null,"b":-`,
		`[1,-2]`:                   `[1,-2]`,
	} {
		out, grown := Null([]byte(in))
		if string(out) != want {
			t.Errorf("%s became %s, want %s", in, out, want)
		}
		if len(out)-len(in) != len(grown) {
			t.Errorf("%s grew by %d bytes, at %v", in, len(out)-len(in), grown)
		}
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in)), iotest.DataErrReader(strings.NewReader(in))} {
			if read, err := io.ReadAll(NewReader(r)); string(read) != want || err != nil {
				t.Errorf("%s was read as %s, %v, want %s", in, read, err, want)
			}
		}
	}
	if _, grown := Null([]byte(`{"a":NaN,"b":NaN}`)); !slices.Equal(grown, []int{9, 18}) {
		t.Errorf("it grew at %v", grown)
	}
}

// What is JSON already stays as it is, and a reader does what Null does.
func FuzzNull(f *testing.F) {
	for _, s := range []string{`{"a":NaN}`, `"NaN"`, `[-Infinity,"\\\"",Infinity,-NaN]`, "Na", "-"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, grown := Null(in)
		if json.Valid(in) && string(out) != string(in) {
			t.Fatalf("%q became %q", in, out)
		}
		if len(out) != len(in)+len(grown) {
			t.Fatalf("%q became %q, which grew at %v", in, out, grown)
		}
		read, err := io.ReadAll(NewReader(iotest.HalfReader(strings.NewReader(string(in)))))
		if err != nil || string(read) != string(out) {
			t.Fatalf("%q was read as %q, %v, not %q", in, read, err, out)
		}
	})
}
