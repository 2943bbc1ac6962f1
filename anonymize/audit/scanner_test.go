package audit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/parquet-go/parquet-go"

	"reprise/trace"
)

// secrets makes n random strings of 26 characters of base32.
func secrets(rng *rand.Rand, n int) []string {
	out := make([]string, n)
	for i := range out {
		b := make([]byte, 26)
		for j := range b {
			b[j] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[rng.IntN(32)]
		}
		out[i] = string(b)
	}
	return out
}

func wide(s string, big bool) string {
	var out []byte
	for _, u := range utf16.Encode([]rune(s)) {
		if big {
			out = append(out, byte(u>>8), byte(u))
		} else {
			out = append(out, byte(u), byte(u>>8))
		}
	}
	return string(out)
}

// Every planted string is found in every spelling, wherever the writes of a stream
// end, and when only ten of its characters are left.
func TestScannerFindsAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	planted := secrets(rng, 64)
	s, err := NewScanner(planted)
	if err != nil {
		t.Fatal(err)
	}
	spellings := map[string]func(string) string{
		"as it is": func(s string) string { return s },
		"lower":    strings.ToLower,
		"cut":      func(s string) string { return s[7 : 7+window] },
		"hex":      func(s string) string { return hex.EncodeToString([]byte(s)) },
		"HEX":      func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(strings.ToLower(s)))) },
		"UTF-16LE": func(s string) string { return wide(s, false) },
		"UTF-16BE": func(s string) string { return wide(strings.ToLower(s), true) },
		"base64":   func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"shifted":  func(s string) string { return base64.StdEncoding.EncodeToString([]byte("x" + s[:window] + "y")) },
		"shifted2": func(s string) string { return base64.URLEncoding.EncodeToString([]byte("xy" + s[:window])) },
		"base64 of lower case": func(s string) string {
			return base64.RawStdEncoding.EncodeToString([]byte("abcd" + strings.ToLower(s)))
		},
		"bound of an index": func(s string) string { return s[:15] + "B" },
	}
	for name, spell := range spellings {
		for i, secret := range planted {
			var noise [300]byte
			for j := range noise {
				noise[j] = byte(rng.Uint32())
			}
			text := string(noise[:rng.IntN(300)]) + spell(secret) + string(noise[:rng.IntN(20)])
			var h Hits
			w := s.walk(&h, "here")
			for len(text) > 0 {
				n := 1 + rng.IntN(len(text))
				w.Write([]byte(text[:n]))
				text = text[n:]
			}
			w.endNumber()
			if len(h.Strings) != 1 || !h.Strings[i] {
				t.Fatalf("%s of string %d: found %v", name, i, h.Strings)
			}
		}
	}
}

// Nine characters of a string are no hit, and ten of random base32 never come by
// chance: a scan of a few megabytes of it expects far less than one.
func TestScannerFindsNothingElse(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	planted := secrets(rng, 64)
	s, err := NewScanner(planted)
	if err != nil {
		t.Fatal(err)
	}
	var h Hits
	for _, p := range planted {
		if err := s.Bytes(&h, "here", strings.NewReader("-"+p[:window-1]+"- -"+p[len(p)-window+1:]+"-")); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if err := s.Bytes(&h, "here", strings.NewReader(strings.Join(secrets(rng, 4000), ""))); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.Strings) > 0 {
		t.Errorf("found %v", h.Strings)
	}
	if f := s.FalseAlarms(1 << 30); f > 2e-3 || f < 1e-4 {
		t.Errorf("%g false alarms in a GiB", f)
	}
	for _, short := range []string{"short", ""} {
		if _, err := NewScanner([]string{short}); err == nil {
			t.Errorf("%q is planted", short)
		}
	}
}

// Numbers are found as decimals that stand alone.
func TestScannerFindsNumbers(t *testing.T) {
	s, err := NewScanner([]string{"104729", "131071"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"a 104729,131071": 2, `{"x":104729}`: 1, "1047290": 0, "2104729": 0, "131071": 1, "13107": 0,
		"000000000000000000000104729": 0, "": 0} {
		var h Hits
		if err := s.Bytes(&h, "here", strings.NewReader(text)); err != nil || len(h.Strings) != want {
			t.Errorf("%q: %v, %v", text, h.Strings, err)
		}
	}
}

// spilt is a row that is not text-free: a planted bug.
type spilt struct {
	Plain string  `parquet:"plain"`
	Dict  string  `parquet:"dictionary,dict"`
	List  []int64 `parquet:"list,list"`
	Float float64 `parquet:"float"`
}

// A string or a number in any sink of a Parquet file is found, where a scan of the
// compressed bytes sees nothing.
func TestScannerInParquet(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	planted := append(secrets(rng, 3), "104729")
	clean := func() []spilt {
		rows := make([]spilt, 500)
		for i := range rows {
			rows[i] = spilt{Plain: fmt.Sprint("row ", i%7), Dict: fmt.Sprint("word ", i%5), List: []int64{int64(i)}, Float: float64(i) / 3}
		}
		return rows
	}
	for name, c := range map[string]struct {
		change func(rows []spilt)
		opts   []parquet.WriterOption
		found  int // of planted
		where  string
	}{
		"nothing":    {func([]spilt) {}, nil, -1, ""},
		"a value":    {func(rows []spilt) { rows[300].Plain = planted[0] }, nil, 0, "values"},
		"dictionary": {func(rows []spilt) { rows[200].Dict = planted[1] }, nil, 1, "dictionaries"},
		"a number":   {func(rows []spilt) { rows[100].List = []int64{1, 104729} }, nil, 3, "values"},
		"a float":    {func(rows []spilt) { rows[100].Float = 104729 }, nil, 3, "values"},
		"metadata":   {func([]spilt) {}, []parquet.WriterOption{parquet.KeyValueMetadata("note", planted[2])}, 2, "metadata"},
		"a key":      {func([]spilt) {}, []parquet.WriterOption{parquet.KeyValueMetadata(planted[2], "x")}, 2, "metadata"},
		"creator":    {func([]spilt) {}, []parquet.WriterOption{parquet.CreatedBy(planted[2], "1", "x")}, 2, "created by"},
		"bounds":     {func(rows []spilt) { rows[0].Plain = "zzz" + planted[0] + strings.Repeat("y", 80) }, []parquet.WriterOption{parquet.DataPageStatistics(true)}, 0, "column index"},
	} {
		rows := clean()
		c.change(rows)
		var file bytes.Buffer
		opts := append(trace.WriterOptions(), c.opts...)
		w := parquet.NewGenericWriter[spilt](&file, opts...)
		if _, err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		s, err := NewScanner(planted)
		if err != nil {
			t.Fatal(err)
		}
		var h Hits
		if err := s.File(&h, bytes.NewReader(file.Bytes()), int64(file.Len())); err != nil {
			t.Fatal(err)
		}
		switch {
		case c.found < 0 && len(h.Strings) > 0:
			t.Errorf("%s: found %v in %v", name, h.Strings, h.Where)
		case c.found >= 0 && (len(h.Strings) != 1 || !h.Strings[c.found] || !strings.Contains(strings.Join(h.Where, ","), c.where)):
			t.Errorf("%s: found %v in %v, want %d in %s", name, h.Strings, h.Where, c.found, c.where)
		}
	}
}

// What is packed is unpacked.
func TestScannerUnpacks(t *testing.T) {
	secret := secrets(rand.New(rand.NewPCG(4, 4)), 1)
	s, err := NewScanner(secret)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w := gzip.NewWriter(&file)
	fmt.Fprint(w, "a page with ", secret[0])
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var h Hits
	if err := s.File(&h, bytes.NewReader(file.Bytes()), int64(file.Len())); err != nil || len(h.Strings) != 1 {
		t.Errorf("found %v, %v", h.Strings, err)
	}
}

// The command's checks judge planted strings and numbers apart, and in files of any
// kind.
func TestCanariesInAnyFile(t *testing.T) {
	secret := secrets(rand.New(rand.NewPCG(5, 5)), 1)[0]
	for name, c := range map[string]struct {
		text             string
		strings, numbers Status
	}{
		"clean.json": {`{"tier":"partner","n":12}`, Pass, Pass},
		"leak.json":  {`{"tier":"partner","n":"` + strings.ToLower(secret) + `"}`, Fail, Pass},
		"count.json": {`{"tier":"partner","n":104729}`, Pass, Fail},
		"house.json": {`{"tier":"internal","n":104729}`, Pass, Pass},
		"page.html":  {"<!doctype html><dt>Tier</dt><dd>partner<p>" + secret[3:15], Fail, Pass},
		"other.txt":  {secret, Fail, Pass},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := OpenOutput(path)
		if err != nil {
			t.Fatal(err)
		}
		got := found(t, &Case{Output: o, Canaries: []string{secret, "104729"}}, "canaries", "numbers")
		if got["canaries"].Status != c.strings || got["numbers"].Status != c.numbers {
			t.Errorf("%s: %v", name, got)
		}
		for _, f := range got {
			if strings.Contains(fmt.Sprint(f), secret) {
				t.Errorf("%s: the finding quotes what it found", name)
			}
		}
		o.Close()
	}
}

func FuzzScannerParquet(f *testing.F) {
	var file bytes.Buffer
	w := parquet.NewGenericWriter[spilt](&file, trace.WriterOptions()...)
	if _, err := w.Write([]spilt{{Plain: "a", Dict: "b", List: []int64{1}}}); err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	s, err := NewScanner([]string{"ABCDEFGHIJKLMNOP"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Hits
		_ = s.File(&h, bytes.NewReader(b), int64(len(b))) // an error, never a panic
	})
}

func BenchmarkScanner(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	s, err := NewScanner(append(secrets(rng, 64), "104729"))
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Join(secrets(rng, 40_000), " ")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var h Hits
		if err := s.Bytes(&h, "here", strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}
