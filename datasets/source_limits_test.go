package datasets

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"reprise/datasets/internal/fault"
	"reprise/trace"
)

// Of bad records the first three are named and ten are kept.
func TestBadRecordsAreNamed(t *testing.T) {
	const good, broken = `{"prompt":"x"}` + "\n", `{"prompt":7}` + "\n"
	_, info, err := read(strings.NewReader(good), Options{Format: "openai-log"})
	if err != nil || info.Records != 1 {
		t.Fatal(info, err)
	}
	place := func(line int) string { return (&trace.SourceError{File: "log", Line: int64(line), Column: 11}).Error() }
	for n, more := range map[int]string{1: "", 2: "", 3: "", 4: "\n  …", 12: "\n  …"} {
		_, info, err := read(strings.NewReader(good+strings.Repeat(broken, n)), Options{Format: "openai-log", MaxBad: 0.25})
		var places []string
		for _, f := range info.FirstBad[:min(n, 3)] {
			places = append(places, "\n  "+f.Error())
		}
		share := map[int]string{1: "0.5", 2: "0.67", 3: "0.75", 4: "0.8", 12: "0.93"}[n]
		want := fmt.Sprintf("log: %d of %d records are bad, more than the tolerated 25 %%:%s%s\nMend them, or import the other 1 without them: --max-bad %s", n, n+1, strings.Join(places, ""), more, share)
		told, _ := strconv.ParseFloat(share, 64)
		if _, _, again := read(strings.NewReader(good+strings.Repeat(broken, n)), Options{Format: "openai-log", MaxBad: told}); again != nil {
			t.Errorf("what is said to do does not: %v", again)
		}
		if err == nil || err.Error() != want || info.Bad != int64(n) || len(info.FirstBad) != min(n, 10) {
			t.Errorf("%d bad ones: %v\nwant %s", n, err, want)
		}
		if !strings.HasPrefix(places[0], "\n  "+strings.TrimSuffix(place(2), ": ")[:8]) {
			t.Errorf("the first is at %s", places[0])
		}
	}
	// As many as are tolerated are no error: 1 of 4.
	if _, info, err := read(strings.NewReader(strings.Repeat(good, 3)+broken), Options{Format: "openai-log", MaxBad: 0.25}); err != nil || info.Bad != 1 || info.Records != 3 {
		t.Errorf("one of four: %+v, %v", info, err)
	}
}

// A source whose records are hopelessly bad is given up at the ten thousandth, where
// ten times as many are bad as may be; and not before.
func TestHopelessSources(t *testing.T) {
	s := &Source{name: "log", maxBad: 0.01}
	settle := func(good, broken int) int {
		for i := range good + broken {
			var err error
			if i >= good {
				err = fault.Bad(int64(i), 1, "bad")
			}
			if s.settle(err); s.err != nil {
				return i + 1
			}
		}
		return 0
	}
	if n := settle(9000, 1000); n != 0 { // a tenth is ten times as much as a hundredth
		t.Errorf("given up after %d records: %v", n, s.err)
	}
	const what = "\nThe rest was not read. Mend them, or import without them: --max-bad 0.11, if their share stays the same"
	if s.settle(fault.Bad(1, 1, "bad")); s.err == nil || s.info.Bad != 1001 || !strings.HasSuffix(s.err.Error(), what) {
		t.Errorf("one more: %v", s.err)
	}
	s = &Source{name: "log", maxBad: 0.01}
	if n := settle(0, 10_000); n != 10_000 {
		t.Errorf("given up after %d records", n)
	}
	s = &Source{name: "log"}
	if n := settle(9_999, 1); n != 10_000 {
		t.Errorf("where none may be: given up after %d records", n)
	}
	s = &Source{name: "log"}
	if n := settle(9_998, 1); n != 0 {
		t.Errorf("where none may be: given up after %d records", n)
	}
	if s.settle(io.EOF); s.err == nil || s.err == io.EOF {
		t.Errorf("at the end: %v", s.err)
	}
	s = &Source{}
	other := errors.New("other")
	if s.settle(other); s.err != other || s.info.Bad != 0 {
		t.Errorf("an error that is no fault: %v", s.err)
	}
	s = &Source{file: "log"}
	if s.settle(fault.Refuse(3, 4, "no more")); s.err == nil || s.err.Error() != "log:3:4: no more" || s.info.Bad != 0 {
		t.Errorf("a fault that stops: %v", s.err)
	}
}

// Notes keep their order; what is counted has its number.
func TestNotes(t *testing.T) {
	var n fault.Notes
	n.SayOnce("said")
	n.Count("counted")
	n.SayOnce("said")
	n.Count("counted")
	n.Count("once")
	if got, want := n.Lines(), []string{"said", "counted: 2", "once: 1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// An entry that does not fit a batch waits for the next one.
func TestBatchesOfAnySize(t *testing.T) {
	in := `{"custom_id":"a","body":{"prompt":"1"}}` + "\n" + `{"custom_id":"b","body":{"prompt":"2"}}` + "\n" + `{"custom_id":"c","body":{"prompt":"3"}}`
	for size := 1; size < 5; size++ {
		s, err := Open(strings.NewReader(in), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Empty() {
			t.Error("a source with entries is empty")
		}
		var got []string
		for err == nil {
			batch := make([]trace.Entry, size)
			var n int
			n, err = s.Read(batch)
			for i := range batch[:n] {
				got = append(got, batch[i].Messages[0].Content.Reveal())
			}
		}
		if err != io.EOF || !slices.Equal(got, []string{"1", "2", "3"}) {
			t.Errorf("batches of %d: %q, %v", size, got, err)
		}
	}
}

// The workloads that the tool brings are all there by their names.
func TestWorkloadsByName(t *testing.T) {
	names := Workloads()
	if len(names) == 0 || !slices.IsSorted(names) {
		t.Errorf("%q", names)
	}
	for _, name := range names {
		if text, ok := Workload(name); !ok || len(text) == 0 || strings.Contains(name, ".") {
			t.Errorf("%s: %d bytes, %v", name, len(text), ok)
		}
	}
	if text, ok := Workload("none"); ok || text != nil {
		t.Errorf("a workload of no name: %q", text)
	}
}

// A request of a batch to another endpoint than those of text is of kind other, and
// times are taken from all answers or from none.
func TestBatchKindsAndTimes(t *testing.T) {
	ask := func(id, url string) string {
		return `{"custom_id":"` + id + `","url":"` + url + `","body":{"prompt":"p","max_tokens":3}}` + "\n"
	}
	for url, kind := range map[string]string{"/v1/chat/completions": "chat", "/v1/completions": "completion", "/v1/responses": "responses", "/v1/embeddings": "embedding", "/v1/moderations": "other", "": "completion"} {
		all, _ := mustRead(t, ask("a", url), Options{})
		if len(all) != 1 || all[0].Kind != kind {
			t.Errorf("%s: %+v, want %s", url, all, kind)
		}
	}
	answer := func(id, created string) string {
		return `{"custom_id":"` + id + `","response":{"status_code":200,"body":{"created":` + created + `,"usage":{"prompt_tokens":1,"completion_tokens":2}}}}` + "\n"
	}
	for created, timed := range map[[2]string]bool{
		{"1767323046", "1767323047"}: true, {"1767323046", "7"}: false, {"7", "8"}: false, {"1767323046", "null"}: false, {`"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:06Z"`}: true,
		{`"2026-01-02T03:04:05Z"`, "1767323047"}: false,
	} {
		all, info := mustRead(t, ask("a", "/v1/completions")+ask("b", "/v1/completions")+answer("a", created[0])+answer("b", created[1]), Options{})
		if info.HasTimes != timed || all[0].Time.IsZero() == timed || all[1].Time.IsZero() == timed || (info.TimeUnit != "") != timed {
			t.Errorf("%v: %+v, times %v and %v", created, info, all[0].Time, all[1].Time)
		}
	}
}
