package replay

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/figure"
)

func TestParseConditions(t *testing.T) {
	errorRate, inFlight := figure.Of(0, figure.ErrorRate), figure.Of(0, figure.InFlight)
	for in, want := range map[string][]Condition{
		"error_rate>5%":                {{errorRate, 0.05}},
		"errors>0%":                    {{errorRate, 0}},
		"queue>100,p99_ttft>10s":       {{inFlight, 100}, {figure.Of(figure.P99, figure.TTFT), 10_000}},
		"itl-p50>80ms,lag-p95>1m":      {{figure.Of(figure.P50, figure.ITL), 80}, {figure.Of(figure.P95, figure.SendLag), 60_000}},
		"ttft-p50>1s, p99 ttft > 2.5s": {{figure.Of(figure.P50, figure.TTFT), 1000}, {figure.Of(figure.P99, figure.TTFT), 2500}},
		"error_share>2.5%,in_flight>0": {{errorRate, 0.025}, {inFlight, 0}},
	} {
		if got, err := ParseConditions(in); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", in, got, err)
		}
	}
	for in, want := range map[string]string{
		"": "WHAT>VALUE", "errors": "WHAT>VALUE", "errors>5": "percentage", "errors>100%": "less than 100%", "errors>-1%": "percentage", "errors>NaN%": "percentage",
		"queue>5%": "whole number of requests", "queue>-1": "whole number of requests", "queue>1.5": "whole number of requests", "errors>5%,": "condition 2",
		"ttft>1s": "say which ttft", "ttft-p42>1s": "cannot be told here", "tpot-p99>1s": "cannot be told here", "ttft-p99>10": "duration", "ttft-p99>0s": "duration", "ttft-p99>": "duration",
		"speed>5%": "no such metric", "queue>1,in_flight>2": "two of in_flight", "errors>=5%": "percentage",
	} {
		if _, err := ParseConditions(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
	_, err := ParseConditions("errors>5%,secret>1")
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error repeats what was given: %v", err)
	}
}

func FuzzParseConditions(f *testing.F) {
	f.Add("errors>5%,queue>100,ttft-p99>10s")
	f.Fuzz(func(t *testing.T, s string) {
		conditions, err := ParseConditions(s)
		if (err == nil) != (len(conditions) > 0) {
			t.Errorf("%q: %v, %v", s, conditions, err)
		}
		for _, c := range conditions {
			if !(c.Above >= 0) {
				t.Errorf("%q: %+v", s, c)
			}
		}
	})
}

// Each condition ends the run that meets it, within the window and not sooner, and
// no other.
func TestAbort(t *testing.T) {
	const rate = 100 * time.Millisecond // ten a second
	slow := func(after int32, d time.Duration) func(int32) time.Duration {
		return func(id int32) time.Duration {
			if id >= after {
				return d
			}
			return 50 * time.Millisecond
		}
	}
	for _, c := range []struct {
		name  string
		on    string
		f     *fake
		gap   time.Duration
		from  int64 // requests sent when it ends, 0 when it does not
		until int64
		says  string
	}{
		{"sound", "errors>5%,queue>100,lag-p99>1s", &fake{hold: slow(0, time.Second)}, rate, 0, 0, ""},
		// From row 200 on all fail: after 20 s, 5 % of a window are passed within a second.
		{"errors", "errors>5%", &fake{fail: func(id int32) bool { return id >= 200 }}, rate, 205, 222, "error_rate was"},
		{"some errors", "errors>5%", &fake{fail: func(id int32) bool { return id%25 == 0 }}, rate, 0, 0, ""},
		{"all fail from the start", "errors>5%", &fake{fail: func(int32) bool { return true }}, rate, 95, 112, "error_rate was 100%"},
		{"too few requests", "errors>5%", &fake{fail: func(int32) bool { return true }}, time.Second, 0, 0, ""},
		// From row 200 on nothing ends: 50 are in flight 5 s later, and have been for 10 s another 10 later.
		{"queue", "queue>50", &fake{hold: slow(200, time.Hour)}, rate, 335, 355, "requests were in flight for 10 s"},
		{"a burst that passes", "queue>50", &fake{hold: func(id int32) time.Duration {
			if id > 100 && id < 180 {
				return 20*time.Second - time.Duration(id)*rate
			}
			return 0
		}}, rate, 0, 0, ""},
		{"the first that holds", "queue>1000000,errors>50%", &fake{fail: func(int32) bool { return true }}, rate, 95, 112, "error_rate"},
		// The lag of a limit in flight: 1 s each, one at a time, of two a second.
		{"lag", "lag-p50>3s", &fake{hold: slow(0, time.Second)}, 500 * time.Millisecond, 0, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			conditions, err := ParseConditions(c.on)
			if err != nil {
				t.Fatal(err)
			}
			rows := workload(every(c.gap, 600)...)
			run, results := c.f.play(t, t.Context(), Options{Abort: conditions, Grace: time.Second}, rows)
			if c.from == 0 {
				if run.EndedEarly != "" || len(results) != 600 {
					t.Errorf("%s: %d sent, ended by %q", c.name, run.Requests, run.EndedEarly)
				}
				return
			}
			if run.Requests < c.from || run.Requests > c.until || !strings.Contains(run.EndedEarly, c.says) || int64(len(results)) != run.Requests || run.NotSent != 600-run.Requests {
				t.Errorf("%s: %d sent, %d results, ended by %q", c.name, run.Requests, len(results), run.EndedEarly)
			}
		})
	}
}

// Latencies are of the window alone, not of what came before.
func TestAborterWindow(t *testing.T) {
	conditions, _ := ParseConditions("ttft-p50>1s,itl-p99>5s")
	a := &aborter{conditions: conditions}
	second := func(ttft, itl time.Duration, n int64) *aborted {
		m := newMeters()
		for range n {
			m.ttft.add(int64(ttft))
			m.itl.add(int64(itl))
		}
		return a.look(n, 0, 0, m)
	}
	for i := range 50 {
		if got := second(time.Millisecond, time.Millisecond, 10); got != nil {
			t.Fatalf("after %d s: %v", i, got)
		}
	}
	for i := range 6 {
		if got := second(2*time.Second, time.Millisecond, 10); (got != nil) != (i >= 5) {
			t.Fatalf("after %d slow ones: %v", i+1, got)
		} else if i == 5 && (got.Of.String() != "p50_ttft" || got.requests != 100 || got.measured < 1900 || got.measured > 2100) {
			t.Errorf("%+v", got)
		}
	}
	for i := range 12 {
		if got := second(time.Millisecond, time.Millisecond, 10); i > 5 && got != nil {
			t.Fatalf("%d s after: %v", i, got)
		}
	}
	for range 20 { // slow, but too few
		if got := second(time.Minute, time.Minute, 1); got != nil && got.requests < 20 {
			t.Fatalf("%+v", got)
		}
	}
	if got := second(time.Minute, time.Minute, 1); got != nil {
		t.Errorf("ten requests are enough: %+v", got)
	}
}
