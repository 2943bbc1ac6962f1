package bench

import (
	"fmt"
	"math"
	"slices"
	"time"

	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/doc"
)

// An Estimate says before the first of several runs how long they take by a clock on the wall. It is at most so long:
// levels end at saturation, and a comparison once it is decided.
type Estimate struct {
	Runs    int
	Sending time.Duration // of the runs that end by the clock, with their warm-up
	Rest    time.Duration // all pauses between runs
	Open    int           // runs that last as long as the server takes
}

// setUp is how long a run takes beside its sending: it asks the server what it is, waits for the last answers and
// writes the results. At engines on the same machine it was 0.1 to 0.4 s.
const setUp = 300 * time.Millisecond

// EstimateOf is the estimate of trials with a pause between two.
func EstimateOf(trials []Trial, rest time.Duration) (e Estimate, err error) {
	spans := map[string]workloadSpan{}
	for i := range trials {
		t := &trials[i]
		span, ok := spans[t.Workload]
		if !ok && t.Duration == 0 {
			if span, err = spanOf(t.Workload); err != nil {
				return e, err
			}
			spans[t.Workload] = span
		}
		if e.Runs++; e.Runs > 1 {
			e.Rest += rest
		}
		if takes := t.takes(span); takes > 0 {
			e.Sending += takes
		} else {
			e.Open++
		}
	}
	return e, nil
}

// String is the estimate in words; "" where there is nothing to make.
func (e Estimate) String() string {
	if e.Runs == 0 {
		return ""
	}
	out := "at most " + doc.Many(int64(e.Runs), "run")
	if e.Open == e.Runs {
		if e.Rest > 0 {
			out += fmt.Sprintf(" with %v of pauses (--rest)", e.Rest.Round(time.Second))
		}
		return out + "; how long they send is up to the server, and not known before the first"
	}
	takes := e.Sending + e.Rest + time.Duration(e.Runs)*setUp
	out += fmt.Sprintf(", about %v: %v of sending with warm-up", takes.Round(time.Second), e.Sending.Round(time.Second))
	if e.Rest > 0 {
		out += fmt.Sprintf(", %v of pauses (--rest)", e.Rest.Round(time.Second))
	}
	out += ", and set-up"
	if e.Open > 0 {
		out += fmt.Sprintf("; and as long as the server takes for %d of them", e.Open)
	}
	return out
}

// A workloadSpan is how many requests a workload has, over which time.
type workloadSpan struct {
	rows  int64
	lasts time.Duration
}

func spanOf(path string) (s workloadSpan, err error) {
	w, err := trace.Open(path)
	if err != nil {
		return s, err
	}
	defer w.Close()
	arrivals, err := trace.Columns[trace.Arrival](w)
	if err != nil {
		return s, err
	}
	return s, trace.Each(arrivals, func(_ int64, r *trace.Arrival) error {
		s.rows, s.lasts = s.rows+1, max(s.lasts, time.Duration(r.ArrivalNS))
		return nil
	})
}

// takes is how long a trial sends; 0 where only the server can tell.
func (t *Trial) takes(w workloadSpan) time.Duration {
	rows, share := float64(w.rows), 1.0
	if t.Rows > 0 && t.Rows < w.rows {
		share = float64(t.Rows) / rows
	}
	switch {
	case t.Duration > 0:
		return t.Duration
	case t.Load.Concurrency > 0 || t.Load.bySession() || t.Load.Rate == allAtOnce:
		return 0
	case t.Load.Rate != "":
		process, err := arrival.ParseProcess(t.Load.Rate)
		if err != nil || !(process.Rate() > 0) {
			return 0
		}
		return time.Duration(min(rows*share/process.Rate()*1e9, math.MaxInt64/2))
	case t.Load.Speed > 0:
		return time.Duration(float64(w.lasts) * share / t.Load.Speed)
	}
	return time.Duration(float64(w.lasts) * share)
}

// EstimateSearch is how long the first level of a search lasts at most, and how long each at a high load does.
func (s *Sweep) EstimateSearch() (first, least time.Duration, err error) {
	m := newMeasurement(&s.Report, s.Sessions != nil)
	t, err := s.trial(roleLevel, s.Ladder.From, s.Duration, m)
	if err != nil || s.Sessions != nil {
		return t.Duration, s.Duration, err
	}
	high, err := s.trial(roleLevel, mostLoad, s.Duration, m)
	return t.Duration, high.Duration, err
}

// Estimate counts the levels that a sweep names and the runs that confirm the highest load, without the levels that its
// directory has. A sweep that searches has no runs to count.
func (s *Sweep) Estimate() (Estimate, error) {
	var trials []Trial
	var highest *Trial
	for _, load := range s.Ladder.Loads {
		t, err := s.trial(roleLevel, load, s.Duration, newMeasurement(&s.Report, s.Sessions != nil))
		if err != nil {
			return Estimate{}, err
		}
		if highest = &t; s.Dir == nil || !s.Dir.Has(s.Dir.Results(s.Folder, t.Name)) {
			trials = append(trials, t)
		}
	}
	ended := s.Dir != nil && slices.ContainsFunc(s.Dir.Trials, func(t KeptTrial) bool {
		return t.Role == roleSustain && t.Setting == s.Keys.Setting
	})
	if highest != nil && s.Confirm && s.Precision == 0 && !ended {
		trials = append(trials, *highest)
		if s.Sustain > 0 {
			t := *highest
			t.Duration += max(s.Sustain-s.Duration, 0)
			trials = append(trials, t)
		}
	}
	return EstimateOf(trials, 0)
}
