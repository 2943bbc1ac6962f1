package report

import (
	"bytes"
	"io"
	"path/filepath"
	"regexp"
	"testing"

	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace/textpage"
)

// noNumber finds the outcome of a division by nothing, in a text or between the tags of a page.
var noNumber = regexp.MustCompile(`(^|[ >|:])[-+]?(NaN|Inf)([ <|,%]|$)`)

// inEveryForm writes the report in each format and as each page, without a fault and without numbers
// that are none.
func inEveryForm(t *testing.T, of string, s Summary) {
	t.Helper()
	named := []Named{{Name: "a", Summary: s}, {Name: "b", Summary: s}}
	for name, write := range map[string]func(io.Writer) error{
		"text":       func(w io.Writer) error { return Page(s).WriteText(w, textpage.Options{Width: 80}) },
		"details":    func(w io.Writer) error { return Page(s).WriteText(w, textpage.Options{Width: 80, Details: true}) },
		"json":       func(w io.Writer) error { return writeJSON(w, s) },
		"json, runs": func(w io.Writer) error { return writeJSON(w, named) },
		"text, runs": func(w io.Writer) error {
			return Overlay(named).WriteText(w, textpage.Options{Width: 80, Details: true})
		},
		"page":       Page(s).Write,
		"overlay":    Overlay(named).Write,
		"markdown":   Page(s).WriteMarkdown,
		"csv":        func(w io.Writer) error { return WriteCSV(w, s) },
		"junit":      func(w io.Writer) error { return WriteJUnit(w, s) },
		"prometheus": func(w io.Writer) error { return WritePrometheus(w, s) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil || b.Len() == 0 || noNumber.Match(b.Bytes()) {
			t.Fatalf("%s: %s: %v, %q", of, name, err, noNumber.Find(b.Bytes()))
		}
	}
}

// A results file may come from anywhere: whatever it says of its rows and of the run, it is shown in
// every form without a fault.
func FuzzReport(f *testing.F) {
	f.Add([]byte{1, 200, 3, 90, 0, 17, 255, 4}, uint8(3))
	f.Add(bytes.Repeat([]byte{7, 130, 255, 0, 66}, 40), uint8(5))
	f.Fuzz(func(t *testing.T, drawn []byte, n uint8) {
		path := filepath.Join(t.TempDir(), "r.parquet")
		if err := resulttest.WriteDrawn(path, drawn, int(n%8)); err != nil {
			return
		}
		file, err := result.Open(path)
		if err != nil {
			return
		}
		defer file.Close()
		slo, err := ParseSLO("ttft:5ms,tpot:5ms,e2e:10ms")
		if err != nil {
			t.Fatal(err)
		}
		if s, err := Summarise(file.Run, file.Reader(), Options{SLO: slo, Exact: 3, GPUs: 1, PricePerGPUHour: 1}); err == nil {
			inEveryForm(t, "fuzzed rows", s)
		}
	})
}
