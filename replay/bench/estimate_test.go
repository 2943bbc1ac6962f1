package bench

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
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

// A sweep that goes on counts the levels that are left, and the runs that confirm the highest load all the same.
func TestEstimateOfTheRest(t *testing.T) {
	dir, err := Continue(filepath.Join(t.TempDir(), "sw"), "sweep", "plan", report.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	s := Sweep{Ladder: Ladder{Loads: []float64{5, 10}}, Duration: 10 * time.Second, Warmup: "5", Process: "poisson",
		Confirm: true, Sustain: time.Minute, Dir: dir, Workload: "-"}
	for done, want := range []int{4, 3, 2} {
		e, err := s.Estimate()
		if err != nil || e.Runs != want {
			t.Errorf("with %d levels: %d runs, %v, want %d", done, e.Runs, err, want)
		}
		if done == 2 {
			break
		}
		name := "level-rate-" + spelled(s.Ladder.Loads[done])
		path := dir.Results(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := result.Write(path, result.Run{}, &trace.SliceReader[result.Result]{}); err != nil {
			t.Fatal(err)
		}
		dir.Trials = append(dir.Trials, KeptTrial{Results: filepath.Join(name, resultsName)})
	}
}
