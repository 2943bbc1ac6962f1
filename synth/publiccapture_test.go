package synth

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/datasets"
	"reprise/trace"
)

// dayLog is a log of 40 users with six requests each on 2 January 2026, from half
// past five to half past nine, and of one more at the time that is given, if it is.
func dayLog(early string) string {
	var b strings.Builder
	line := func(user int, at string) {
		fmt.Fprintf(&b, `{"ts":%q,"user":"u%d","in":%d,"out":%d}`+"\n", at, user, 100+37*user, 10+user)
	}
	if early != "" {
		line(99, early)
	}
	begin := time.Date(2026, 1, 2, 5, 30, 0, 0, time.UTC)
	for i := range 240 {
		line(i%40, begin.Add(time.Duration(i)*time.Minute).Format(time.RFC3339))
	}
	return b.String()
}

// imported is the trace that an import makes of a log, with its declared capture.
func imported(t *testing.T, log string, capture trace.Capture) ([]trace.Request, trace.Meta) {
	t.Helper()
	m, err := datasets.ParseMapping([]string{"time=ts", "user=user", "input_tokens=in", "output_tokens=out"})
	if err != nil {
		t.Fatal(err)
	}
	file := datasets.File{Name: "log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(log)), nil }}
	src, err := datasets.OpenFiles([]datasets.File{file}, datasets.Options{Map: m, Capture: capture})
	if err != nil {
		t.Fatal(err)
	}
	var rows trace.SliceWriter[trace.Request]
	if _, err := anonymize.Run(t.Context(), anonymize.Policy{Tier: anonymize.Internal, BlockSize: 512, SpillDir: t.TempDir(), Capture: capture}, src, &rows); err != nil {
		t.Fatal(err)
	}
	return rows.Rows, trace.Meta{Tier: anonymize.Internal, Capture: capture}
}

// Two logs that differ in one user, whose only request is the first of all or the
// last: before any noise, no table of the one differs from that of the other by
// more than that user's request.
func TestPublicCellsStandStill(t *testing.T) {
	day, err := datasets.ParseCapture("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", nil)
	if err != nil {
		t.Fatal(err)
	}
	tables := func(log string) (*layout, [histograms][]int64) {
		rows, meta := imported(t, log, day)
		o := PublicOptions{Unit: UnitUser}
		if err := o.defaults(meta); err != nil {
			t.Fatal(err)
		}
		c := collected(t, rows, meta, &o)
		l := newLayout(&o, meta, c.sessions)
		var out [histograms][]int64
		for h := range histograms {
			if l.cells(h) > 0 {
				out[h], _ = l.count(h, c.units)
			}
		}
		return l, out
	}
	with, before := tables(dayLog(""))
	for _, at := range []string{"2026-01-02T00:00:00Z", "2026-01-02T05:29:50Z", "2026-01-02T23:59:59.999999999Z"} {
		l, after := tables(dayLog(at))
		if l.span != with.span || l.span != int64(24*time.Hour) {
			t.Errorf("one request at %s: periods divide %v", at, time.Duration(l.span))
		}
		for h := range after {
			changed := int64(0)
			for i, n := range after[h] {
				changed += max(n-before[h][i], before[h][i]-n)
			}
			if len(after[h]) != len(before[h]) || changed > 1 {
				t.Errorf("one request at %s: %d requests of %q are in another cell of %d", at, changed, histogramNames[h], len(after[h]))
			}
		}
	}
}

// Without a declared capture there is no public model, and nothing is spent.
func TestPublicWantsCapture(t *testing.T) {
	rows := aCrowd{users: 500, hours: 1, size: 64}.rows(1)
	meta := trace.Meta{BlockSize: 64, Tier: anonymize.Internal}
	m, r, spent, err := FitPublic(t.Context(), cloned(rows), meta, PublicOptions{Unit: UnitUser, Noise: noiseOf(1)})
	if !errors.Is(err, ErrNoCapture) || spent || m != nil || r != nil {
		t.Errorf("without a capture: %v, spent %v", err, spent)
	}
	if err == nil || !strings.Contains(err.Error(), "--capture-begin T --capture-end T") {
		t.Errorf("%v does not say what to do", err)
	}
	meta = declared(meta, rows)
	meta.Capture.End = meta.Capture.End.Add(-1)
	if _, _, spent, err := FitPublic(t.Context(), cloned(rows), meta, PublicOptions{Unit: UnitUser, Noise: noiseOf(1)}); err == nil || spent || !strings.Contains(err.Error(), "after the declared end") {
		t.Errorf("a row after the end: %v, spent %v", err, spent)
	}
}

// A model says how long the capture was, and what is drawn from it has none: its
// times were never captured. A model of an internal trace loses the capture too.
func TestModelsKeepNoCapture(t *testing.T) {
	m, r := smallPublic(t, 3)
	if r.CaptureNS == 0 || m.Release().CaptureNS != r.CaptureNS {
		t.Errorf("the statement names a capture of %d ns", r.CaptureNS)
	}
	w, err := m.Generate(t.Context(), Options{Seed: 1, Requests: 10})
	if err != nil {
		t.Fatal(err)
	}
	rows := talk{block: 16, models: 1}.rows(2, 50)
	internal := fitted(t, rows, declared(trace.Meta{BlockSize: 16}, rows), 1, 0)
	for name, meta := range map[string]trace.Meta{"a workload": w.Meta(), "a model": internal.Meta()} {
		if meta.Capture.Declared() {
			t.Errorf("%s says that it was captured %+v", name, meta.Capture)
		}
	}
	meta := declared(trace.Meta{Tier: "internal"}, rows)
	if got := NewMirror(1, IDs{}).Meta(meta); got.Capture != meta.Capture {
		t.Errorf("a mirror has the capture %+v, want %+v", got.Capture, meta.Capture)
	}
}
