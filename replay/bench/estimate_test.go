package bench

import (
	"testing"
	"time"
)

// An estimate is of all the time that runs take: what they send, the pauses between them and their set-up.
func TestEstimateIsWallTime(t *testing.T) {
	timed, open := Trial{Duration: 10 * time.Second}, Trial{Duration: 0, Workload: "-", Load: Load{Concurrency: 4}}
	for _, c := range []struct {
		trials []Trial
		rest   time.Duration
		want   string
	}{
		{nil, time.Second, ""},
		{[]Trial{timed, timed}, 0, "at most 2 runs, about 21s: 20s of sending with warm-up, and set-up"},
		{[]Trial{timed, timed, timed}, 10 * time.Second, "at most 3 runs, about 51s: 30s of sending with warm-up, " +
			"20s of pauses (--rest), and set-up"},
		{[]Trial{timed, open}, time.Second, "at most 2 runs, about 12s: 10s of sending with warm-up, 1s of pauses " +
			"(--rest), and set-up; and as long as the server takes for 1 of them"},
		{[]Trial{open, open}, 10 * time.Second, "at most 2 runs with 10s of pauses (--rest); how long they send is up to " +
			"the server, and not known before the first"},
		{[]Trial{open}, 0, "at most 1 run; how long they send is up to the server, and not known before the first"},
	} {
		e := Estimate{}
		for i := range c.trials {
			takes := c.trials[i].takes(workloadSpan{})
			if e.Runs++; takes == 0 {
				e.Open++
			}
			e.Sending += takes
		}
		if e.Rest = c.rest * time.Duration(max(0, e.Runs-1)); e.String() != c.want {
			t.Errorf("%q, want %q", e, c.want)
		}
	}
}
