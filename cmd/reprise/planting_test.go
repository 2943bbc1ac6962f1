package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/anonymize"
	"reprise/trace"
)

// overlaying is a file for go's -overlay, with other text in one of the program's files; no
// file changes nothing.
func overlaying(t testing.TB, file, from, to string) string {
	t.Helper()
	dir, replaced := t.TempDir(), map[string]string{}
	if file != "" {
		file, err := filepath.Abs(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// A line of it may be broken anywhere.
		place := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(from), " ", `\s+`))
		if n := len(place.FindAllIndex(b, -1)); n != 1 {
			t.Fatalf("%s has %q %d times, and the bug is to be put in its place", file, from, n)
		}
		replaced[file] = filepath.Join(dir, "changed.go")
		if err := os.WriteFile(replaced[file], place.ReplaceAllLiteral(b, []byte(to)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// buildWith builds the program with an overlay.
func buildWith(t testing.TB, overlay string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "reprise")
	if b, err := exec.Command("go", "build", "-overlay", overlay, "-o", out, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return out
}

// traceOfMany writes a trace of so many users that it may be released.
func traceOfMany(t testing.TB) (house string) {
	t.Helper()
	house = filepath.Join(t.TempDir(), "t.parquet")
	meta := trace.Meta{Tier: anonymize.Internal, Sessions: "source", Capture: trace.RelativeCapture(0, 3600e9)}
	err := trace.Create(house, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		d := trace.NewDigest()
		for i := range int64(20_000) {
			rows := []trace.Request{{ArrivalNS: i * 18e7, InputTokens: int32(1024 + 37*i%1024), OutputTokens: trace.Ptr(int32(128 + i%128)), User: trace.Ptr(i % 10_000), Session: trace.Ptr(i % 10_000), Status: trace.StatusOK}}
			d.Add(rows)
			if _, err := w.Write(rows); err != nil {
				return meta, err
			}
		}
		meta.Digest = d.Sum()
		return meta, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return house
}

// Two processes that release one trace draw other noise: whoever knows the noise takes it off. A program that
// draws its noise from a seed shows, since the cells of its two releases are alike.
func TestProcessesDrawOtherNoise(t *testing.T) {
	long(t)
	house := traceOfMany(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bins := map[string]bool{self: false}
	if os.Getenv("REPRISE_TEST_PLANTED") != "" { // since it builds the program anew
		bins[buildWith(t, overlaying(t, "anonymize/dp/noise.go", "func NewNoise() *Noise { return NewNoiseFrom(rand.Reader) }", seededNoise))] = true
	}

	for bin, want := range bins {
		var sides [2]map[string]int
		for i := range sides {
			dir := t.TempDir()
			model := filepath.Join(dir, "m.parquet")
			cmd := exec.Command(bin, "synth", "fit", house, "--i-understand", "--tier", "partner", "--epsilon", "8", "--max-input", "4096", "--max-output", "1024", "-o", model)
			cmd.Args[0], cmd.Env = "reprise", append(os.Environ(), "XDG_STATE_HOME="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			sides[i] = cellsOf(t, model)
		}

		alike, all := 0, 0
		for row, n := range sides[0] {
			all, alike = all+n, alike+min(n, sides[1][row])
		}
		if got := 2*alike > all; all == 0 || got != want {
			t.Errorf("two processes with noise of a seed (%v) drew %d of %d cells alike", want, alike, all)
		}
	}
}

// cellsOf are the rows of a model, as text, and how often each occurs.
func cellsOf(t testing.TB, model string) map[string]int {
	t.Helper()
	f, err := os.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := parquet.NewReader(f)
	defer rows.Close()

	cells, batch := map[string]int{}, make([]parquet.Row, 256)
	for {
		n, err := rows.ReadRows(batch)
		for _, row := range batch[:n] {
			cells[fmt.Sprint(row)]++
		}
		if err == io.EOF {
			return cells
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
