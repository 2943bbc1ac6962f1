package trace_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"reprise/trace"
)

func day(hour int) time.Time { return time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC) }

// A capture comes back from a file as it was declared.
func TestCaptureInFile(t *testing.T) {
	for _, c := range []trace.Capture{
		{},
		{Begin: day(0), End: day(24)},
		{Begin: day(0).Add(123456789), End: day(1)},
		trace.RelativeCapture(0, time.Hour),
		trace.RelativeCapture(1500*time.Millisecond, 26*time.Hour),
	} {
		_, meta, err := drain(encode(t, []trace.Request{{ArrivalNS: 5}}, trace.Meta{Capture: c}))
		if err != nil || meta.Capture != c {
			t.Errorf("%+v comes back as %+v, %v", c, meta.Capture, err)
		}
	}
}

// What is no window is refused when a file is opened.
func TestCaptureRefused(t *testing.T) {
	for name, edges := range map[string][2]string{
		"one edge":       {"2026-01-02T00:00:00Z", ""},
		"words":          {"yesterday", "today"},
		"two kinds":      {"0s", "2026-01-02T00:00:00Z"},
		"reversed":       {"1h0m0s", "0s"},
		"empty":          {"1h0m0s", "1h0m0s"},
		"before 1970":    {"-1h0m0s", "1h0m0s"},
		"the far future": {"2026-01-02T00:00:00Z", "2300-01-02T00:00:00Z"},
	} {
		var b bytes.Buffer
		w := trace.NewRowsWriter[trace.Request](&b, nil)
		w.SetMetadata("reprise.schema", trace.Schema)
		w.SetMetadata("reprise.capture_begin", edges[0])
		w.SetMetadata("reprise.capture_end", edges[1])
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := trace.Spool("x", &b); err == nil || !strings.Contains(err.Error(), "its capture window is not two instants") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A slice declares what is left of the window; its begin and end are public, since
// both were asked for.
func TestCaptureSlice(t *testing.T) {
	whole := trace.Capture{Begin: day(0), End: day(24)}
	hour := int64(time.Hour)
	for _, c := range []struct {
		from, to int64
		want     trace.Capture
		ok       bool
	}{
		{0, 0, whole, true},
		{6 * hour, 0, trace.Capture{Begin: day(6), End: day(24)}, true},
		{6 * hour, 8 * hour, trace.Capture{Begin: day(6), End: day(8)}, true},
		{6 * hour, 48 * hour, trace.Capture{Begin: day(6), End: day(24)}, true},
		{24 * hour, 0, trace.Capture{}, false},
		{25 * hour, 26 * hour, trace.Capture{}, false},
	} {
		got, ok := whole.Slice(c.from, c.to)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("from %d to %d: %+v, %v", c.from, c.to, got, ok)
		}
	}
	if got, ok := (trace.Capture{}).Slice(5, 7); !ok || got.Declared() {
		t.Errorf("a slice of a trace without a window: %+v, %v", got, ok)
	}
	if got := whole.Undated(); got != trace.RelativeCapture(0, 24*time.Hour) {
		t.Errorf("a release says %+v", got)
	}
}

// The begin is part of a window and the end is not.
func TestCaptureOutside(t *testing.T) {
	c := trace.Capture{Begin: day(1), End: day(2)}
	for at, want := range map[time.Time]string{
		day(1): "", day(2).Add(-1): "",
		day(1).Add(-1): "its time is 1ns before the declared begin of the capture",
		day(0):         "its time is 1h0m0s before the declared begin of the capture",
		day(2):         "its time is 0s after the declared end of the capture, which is not part of it",
		day(5):         "its time is 3h0m0s after the declared end of the capture, which is not part of it",
	} {
		if got := c.Outside(at); got != want {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
}

// No writer makes a trace whose rows are outside its capture.
func TestWriterHoldsCapture(t *testing.T) {
	for arrival, good := range map[int64]bool{0: true, 9: true, 10: false} {
		w := trace.NewRequestWriter(new(bytes.Buffer))
		if _, err := w.Write([]trace.Request{{ArrivalNS: arrival}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(trace.Meta{Capture: trace.RelativeCapture(5, 15)}); (err == nil) != good {
			t.Errorf("an arrival at %d of 10: %v", arrival, err)
		}
	}
}
