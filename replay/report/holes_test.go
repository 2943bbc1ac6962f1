package report

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"testing"

	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace/longtest"
	"reprise/trace/textpage"
)

// noNumber finds the outcome of a division by nothing, in a text or between the tags of a page.
var noNumber = regexp.MustCompile(`(^|[ >|:])[-+]?(NaN|Inf)([ <|,%]|$)`)

// A statistic of nothing is no value and no fault: whichever groups are empty and whichever figures
// are missing, each format and page is written, and its readers take it.
func TestStatisticsOfNothing(t *testing.T) {
	longtest.Skip(t)
	for seed := range uint64(25) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rows := make([]result.Result, []int{0, 1, 2, 7, 40}[rng.IntN(5)])
		users, lacks := rng.IntN(4), []float64{0, .3, .7, 1}[rng.IntN(4)]
		for i := range rows {
			rows[i] = resulttest.Holed(rng, int64(i), users, lacks)
		}
		slo, err := ParseSLO("ttft:5ms,tpot:5ms,e2e:10ms")
		if err != nil {
			t.Fatal(err)
		}
		s := summarise(t, result.Run{Sending: result.Sending{Requests: int64(len(rows))}}, Options{SLO: slo, Exact: []int{0, 3}[rng.IntN(2)], GPUs: rng.IntN(2), PricePerGPUHour: 1}, rows...)

		readBack(t, "nothing", s)
		inEveryForm(t, fmt.Sprint("seed ", seed), s)
	}
}

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
