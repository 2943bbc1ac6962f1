package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
)

// captureMaps are the fields of captureLog.
var captureMaps = []string{"--map", "time=ts", "--map", "user=user", "--map", "input_tokens=in", "--map", "output_tokens=out"}

// captureLog writes a log of one request a minute from 10:00 on 2 January 2026, one
// of each user, and of one more before them, early before 10:00, if that is not 0.
func captureLog(t *testing.T, name string, n int, early time.Duration) {
	t.Helper()
	var b strings.Builder
	ten := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	line := func(user int, at time.Time) {
		fmt.Fprintf(&b, `{"ts":%q,"user":"hunter%d","in":%d,"out":%d}`+"\n", at.Format(time.RFC3339), user, 100+user, 10+user%7)
	}
	if early > 0 {
		line(n, ten.Add(-early))
	}
	for i := range n {
		line(i, ten.Add(time.Duration(i)*time.Minute))
	}
	writeFiles(t, map[string]string{name: b.String()})
}

func importAs(out, log string, more ...string) []string {
	return slices.Concat([]string{"import", log, "-o", out}, captureMaps, more)
}

var (
	secondOfJanuary = []string{"--capture-begin", "2026-01-02T00:00:00Z", "--capture-end", "2026-01-03T00:00:00Z"}
	thatDay         = trace.Capture{Begin: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), End: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)}
)

// With a declared capture times count from its begin, whoever was first; without
// one they count from the first request, as ever, and the rows are the same.
func TestCaptureIsTimeZero(t *testing.T) {
	t.Chdir(t.TempDir())
	captureLog(t, "late.jsonl", 30, 0)
	captureLog(t, "early.jsonl", 30, 9*time.Hour)
	for _, log := range []string{"late", "early"} {
		must(t, importAs(log+".parquet", log+".jsonl", secondOfJanuary...)...)
	}
	meta, late := publicRows(t, "late.parquet")
	_, early := publicRows(t, "early.parquet")
	if meta.Capture != thatDay {
		t.Errorf("the trace says that it was captured %+v", meta.Capture)
	}
	if late[0].ArrivalNS != int64(10*time.Hour) || early[0].ArrivalNS != int64(time.Hour) || len(early) != 31 {
		t.Fatalf("the first arrivals are %v and %v", time.Duration(late[0].ArrivalNS), time.Duration(early[0].ArrivalNS))
	}
	for i := range late {
		if early[i+1].ArrivalNS != late[i].ArrivalNS {
			t.Fatalf("row %d arrives at %v with one request before, and at %v without", i, time.Duration(early[i+1].ArrivalNS), time.Duration(late[i].ArrivalNS))
		}
	}
	// In the zone that was told, and by the log's own zero.
	must(t, importAs("zone.parquet", "late.jsonl", "--tz", "Europe/Paris", "--capture-begin", "2026-01-02 01:00:00", "--capture-end", "2026-01-03 01:00:00")...)
	if m, _ := publicRows(t, "zone.parquet"); m.Capture != thatDay || m.Digest != meta.Digest {
		t.Errorf("by another zone it was captured %+v", m.Capture)
	}
	must(t, importAs("none.parquet", "late.jsonl")...)
	if m, rows := publicRows(t, "none.parquet"); m.Capture.Declared() || rows[0].ArrivalNS != 0 {
		t.Errorf("without a window the first arrival is %d, and the capture %+v", rows[0].ArrivalNS, m.Capture)
	}
}

// What is made of a trace keeps its capture: a slice the part that it asked for, a
// mirror all of it. What is generated has none.
func TestCaptureInherited(t *testing.T) {
	t.Chdir(t.TempDir())
	captureLog(t, "log.jsonl", 60, 0)
	must(t, importAs("t.parquet", "log.jsonl", secondOfJanuary...)...)
	must(t, "slice", "t.parquet", "--start", "10h30m", "--end", "48h", "-o", "slice.parquet")
	must(t, "slice", "slice.parquet", "--end", "20m", "-o", "part.parquet")
	must(t, "synth", "--mirror", "t.parquet", "-o", "mirror.parquet")
	must(t, "synth", "t.parquet", "-n", "20", "-o", "work.parquet")
	must(t, importAs("none.parquet", "log.jsonl")...)
	must(t, "slice", "none.parquet", "--start", "5m", "-o", "bare.parquet")
	half := thatDay.Begin.Add(10*time.Hour + 30*time.Minute)
	for name, want := range map[string]struct {
		capture trace.Capture
		rows    int
		first   time.Duration
	}{
		"slice":  {trace.Capture{Begin: half, End: thatDay.End}, 30, 0},
		"part":   {trace.Capture{Begin: half, End: half.Add(20 * time.Minute)}, 20, 0},
		"mirror": {thatDay, 60, 10 * time.Hour},
		"work":   {trace.Capture{}, 20, 0},
		"bare":   {trace.Capture{}, 55, 0},
	} {
		meta, rows := publicRows(t, name+".parquet")
		if meta.Capture != want.capture || want.rows >= 0 && (len(rows) != want.rows || rows[0].ArrivalNS != int64(want.first)) {
			t.Errorf("%s: %d rows from %d on, captured %+v", name, len(rows), rows[0].ArrivalNS, meta.Capture)
		}
	}
	if _, errs, code := reprise(t, "slice", "t.parquet", "--start", "24h", "-o", "x.parquet"); code != cli.Usage || !strings.Contains(errs, "after the declared capture, which lasts 24h0m0s") {
		t.Errorf("a slice after the end: exit code %d\n%s", code, errs)
	}
}

// Every way to a release refuses a trace without a declared capture,
// says what to do, and enters nothing in a ledger.
func TestPublicWithoutCapture(t *testing.T) {
	t.Chdir(t.TempDir())
	captureLog(t, "log.jsonl", 60, 0)
	must(t, importAs("t.parquet", "log.jsonl")...)
	must(t, importAs("whole.parquet", "log.jsonl", secondOfJanuary...)...)
	must(t, "synth", "whole.parquet", "-n", "20", "-o", "work.parquet")
	for name, args := range map[string][]string{
		"synth fit":      {"synth", "fit", "t.parquet", "--tier", "public", "-o", "x.parquet"},
		"anonymize":      {"anonymize", "t.parquet", "--tier", "public", "-o", "x.parquet"},
		"import":         importAs("x.parquet", "log.jsonl", "--tier", "public", "--ledger", "l.jsonl"),
		"another ledger": {"anonymize", "t.parquet", "--tier", "public", "--ledger", "l.jsonl", "-o", "x.parquet"},
		"one request":    {"synth", "fit", "t.parquet", "--tier", "public", "--unit", "request", "-o", "x.parquet"},
		"a workload":     {"anonymize", "work.parquet", "--tier", "public", "-o", "x.parquet"},
		"a partner":      {"anonymize", "t.parquet", "-o", "x.parquet"},
		"import for one": importAs("x.parquet", "log.jsonl", "--tier", "partner", "--ledger", "l.jsonl"),
	} {
		_, errs, code := reprise(t, args...)
		if code != cli.Usage || !strings.Contains(errs, "declared capture window") || !strings.Contains(errs, "--capture-begin T --capture-end T") {
			t.Errorf("%s: exit code %d\n%s", name, code, errs)
		}
		for _, file := range []string{"x.parquet", "x.model.parquet", "x.privacy.json", "t.ledger.jsonl", "work.ledger.jsonl", "l.jsonl"} {
			if _, err := os.Stat(file); err == nil {
				t.Errorf("%s: there is %s", name, file)
			}
		}
	}
	// With one it is refused for its few requests, before any noise is drawn, and that costs nothing.
	_, errs, code := reprise(t, "synth", "fit", "whole.parquet", "--tier", "public", "-o", "x.parquet")
	_, err := os.Stat("whole.ledger.jsonl")
	if code != cli.Check || !strings.Contains(errs, "no ε is spent") || err == nil {
		t.Errorf("with a window: exit code %d, the ledger %v\n%s", code, err, errs)
	}
}

// What declares no window, or one that does not suit the source, is refused; a
// request outside is named by its place, with how far outside it is.
func TestCaptureRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	captureLog(t, "log.jsonl", 3, 72*time.Hour)
	writeFiles(t, map[string]string{
		"chat.json":      `[{"id":"a","conversations":[{"from":"human","value":"hello"},{"from":"gpt","value":"good day"}]}]`,
		"relative.jsonl": sharingLog(20),
	})
	for want, c := range map[string]struct {
		args []string
		code int
	}{
		"--capture-begin alone declares no window":                                         {importAs("x.parquet", "log.jsonl", secondOfJanuary[:2]...), cli.Usage},
		"--capture-end alone declares no window":                                           {importAs("x.parquet", "log.jsonl", secondOfJanuary[2:]...), cli.Usage},
		"its begin must be before its end":                                                 {importAs("x.parquet", "log.jsonl", "--capture-begin", secondOfJanuary[3], "--capture-end", secondOfJanuary[1]), cli.Usage},
		"the begin of the capture: want a date":                                            {importAs("x.parquet", "log.jsonl", "--capture-begin", "noon", "--capture-end", secondOfJanuary[3]), cli.Usage},
		"log.jsonl:1:7: its time is 62h0m0s before the declared begin":                     {importAs("x.parquet", "log.jsonl", append(secondOfJanuary, "--max-bad", "1")...), cli.Failure},
		"log.jsonl:1:7: its times are dates":                                               {importAs("x.parquet", "log.jsonl", "--capture-begin", "0s", "--capture-end", "1h"), cli.Failure},
		"relative.jsonl:1:15: its times count from a zero of the source's own":             {append([]string{"import", "relative.jsonl", "-o", "x.parquet"}, secondOfJanuary...), cli.Failure},
		"sharegpt does not say when requests arrived, and each time that is mad":           {[]string{"import", "chat.json", "--arrivals", "poisson:1", "--capture-begin", "0s", "--capture-end", "1h", "-o", "x.parquet"}, cli.Usage},
		"so it has no capture window to declare, and no release of tier partner or public": {[]string{"import", "chat.json", "--arrivals", "poisson:1", "--tier", "public", "--ledger", "l.jsonl", "-o", "x.parquet"}, cli.Usage},
		"--capture-begin says how --source is imported":                                    {append([]string{"audit", "x.parquet"}, secondOfJanuary...), cli.Usage},
	} {
		if _, errs, code := reprise(t, c.args...); code != c.code || !strings.Contains(errs, want) || strings.Contains(errs, "hunter") {
			t.Errorf("%s: exit code %d, want %d\n%s", want, code, c.code, errs)
		}
	}
	if _, err := os.Stat("x.parquet"); err == nil {
		t.Error("there is a trace")
	}
}

// A replay does not wait for the first request of a capture, unless it is asked to.
func TestReplaySkipsLead(t *testing.T) {
	t.Chdir(t.TempDir())
	captureLog(t, "log.jsonl", 5, 0)
	must(t, importAs("t.parquet", "log.jsonl", secondOfJanuary...)...)
	must(t, "slice", "t.parquet", "--start", "9h", "-o", "slice.parquet")
	for _, c := range []struct {
		args  []string
		first string // due time of the first request in ns
		note  bool
	}{
		{[]string{"t.parquet"}, "0", true},
		{[]string{"slice.parquet"}, "0", true},
		{[]string{"t.parquet", "--end", "10h3m"}, "0", true},
		{[]string{"t.parquet", "--loop", "2"}, "0", true},
		{[]string{"slice.parquet", "--start", "0s"}, "3600000000000", false},
		{[]string{"t.parquet", "--start", "10h1m30s"}, "30000000000", false},
	} {
		out, errs, code := reprise(t, append(append([]string{"replay"}, c.args...), "--dry-run", "--json")...)
		if code != cli.Good || !strings.Contains(out, `"first_due_ns": `+c.first+",") || strings.Contains(errs, "after the capture began") != c.note {
			t.Errorf("%v: exit code %d\n%s%s", c.args, code, out, errs)
		}
	}
}
