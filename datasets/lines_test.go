package datasets

import (
	"io"
	"slices"
	"strings"
	"testing"
)

func textFile(text string) File {
	return File{Name: "log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

func bytesOf(t *testing.T, files []File) string {
	t.Helper()
	var all []byte
	for _, f := range files {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return string(all)
}

// The records of one user are taken out of the bytes of a source, and altered ones are put first.
func TestLines(t *testing.T) {
	m, err := ParseMapping([]string{"time=ts", "user=who.id", "input_tokens=u.prompt_tokens", "cached_tokens=u.c"})
	if err != nil {
		t.Fatal(err)
	}
	const a, b, c = `{"ts":1767323045,"who":{"id":"a"},"u":{"prompt_tokens":9,"c":4,"total_tokens":12}}`, `{"ts":1767323046,"who":{"id":7},"u":{"prompt_tokens":9}}`, `{"ts":1767323047,"who":{"id":"a"}}`
	l, err := NewLines([]File{textFile(a + "\n\n" + b), textFile(c + "\n")}, Options{Map: m}, "jsonl", "user")
	if err != nil {
		t.Fatal(err)
	}
	if l.Records() != 3 || !slices.Equal(l.Of("a"), []int{0, 2}) || !slices.Equal(l.Of("7"), []int{1}) {
		t.Errorf("%d records, of a %v, of 7 %v", l.Records(), l.Of("a"), l.Of("7"))
	}
	if got := bytesOf(t, l.Without(l.Of("7"), nil)); got != a+"\n"+c+"\n" {
		t.Errorf("without one user: %q", got)
	}
	altered, err := l.Altered(l.Of("a"))
	if want := `{"ts":1767323045,"u":{"c":250000,"prompt_tokens":9},"who":{"id":"a"}}` + "\n" + `{"ts":1767323047,"who":{"id":"a"}}` + "\n"; err != nil || string(altered) != want {
		t.Errorf("altered: %q, %v", altered, err)
	}
	if got := bytesOf(t, l.Without(l.Of("a"), altered)); got != string(altered)+b+"\n" {
		t.Errorf("with altered records: %q", got)
	}

	// CSV keeps its header and what stands above it; a field may have line breaks.
	m, _ = ParseMapping([]string{"time=ts", "user=who", "input_tokens=n"})
	const head, x, y = "ts;who;n;note\n", "2026-01-02 03:04:05;x;9;\"a\nb;\"\n", "2026-01-02 03:04:06;y;9;\n"
	if l, err = NewLines([]File{textFile(head + x + y)}, Options{Map: m}, "csv", "user"); err != nil {
		t.Fatal(err)
	}
	if got := bytesOf(t, l.Without(l.Of("x"), []byte(x))); got != head+x+y {
		t.Errorf("a row of CSV: %q", got)
	}

	// Its cells are altered as the fields of JSON are, in the dialect of the file.
	for name, c := range map[string]struct{ head, row, want string }{
		"columns":    {"ts,who,cached_tokens,total_tokens,prompt\n", "2026-01-02,x,5,14,\"a, b\"\n", "2026-01-02,x,250000,,(withheld)\n"},
		"semicolons": {"ts;who;n;cached_tokens\n", "2026-01-02;'a;b';9;4\n", "2026-01-02;'a;b';9;250000\n"},
		"JSON inside": {"ts,who,response\n", "2026-01-02,x,\"{\"\"usage\"\":{\"\"prompt_tokens\"\":9,\"\"cached_tokens\"\":4}}\"\n",
			"2026-01-02,x,\"{\"\"usage\"\":{\"\"cached_tokens\"\":250000,\"\"prompt_tokens\"\":9}}\"\n"},
	} {
		m, _ = ParseMapping([]string{"time=ts", "user=who", "input_tokens=n"})
		l, err := NewLines([]File{textFile(c.head + c.row)}, Options{Map: m}, "csv", "user")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := l.Altered([]int{0}); err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	for _, in := range []string{"[" + a + "]", "{\n\"ts\":1\n}\n"} {
		if _, err := NewLines([]File{textFile(in)}, Options{Map: m}, "jsonl", "user"); err != ErrNoLines {
			t.Errorf("%q has no lines of its own: %v", in, err)
		}
	}
}
