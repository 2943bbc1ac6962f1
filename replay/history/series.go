package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"reprise/replay/bench"
)

// A Series is the runs that measured the same thing.
type Series struct {
	Name    string `json:"name"` // A, B, …
	Runs    int    `json:"runs"`
	Trusted int    `json:"trusted_runs"`
	// Differs names in what it differs from series A.
	Differs []string   `json:"differs_from_A_in,omitempty"`
	Judged  []Judgment `json:"judged"` // of the metrics, in their order

	all []*Run
}

// A Judgment is what was found in one metric of a series.
type Judgment struct {
	Metric  string   `json:"metric"`
	Values  int      `json:"values"`                    // trusted runs that have it
	Least   int      `json:"least_values"`              // that a test needs
	Why     string   `json:"not_judged,omitempty"`      // empty: it was
	Skipped int      `json:"older_values,omitempty"`    // beyond the newest that are judged
	Changes []Change `json:"changes"`                   // oldest first
	Small   int      `json:"smaller_changes,omitempty"` // that were found, and are not reported

	metric bench.Metric
	runs   []*Run // that have a value
	values []float64
	levels []level
}

// A level is the median of a metric between two changes.
type level struct {
	from, to int // indexes into runs, inclusive
	median   float64
}

// A Change is a metric that moved between two runs.
type Change struct {
	Metric string  `json:"metric"`
	After  Where   `json:"last_before"`
	At     Where   `json:"first_after"`
	Was    float64 `json:"median_before"` // from the change before, or the beginning
	Is     float64 `json:"median_after"`  // to the next change, or the end
	// Change is the share by which it moved; of metrics that are shares, the difference.
	Change float64 `json:"change"`
	P      float64 `json:"p"`
	Worse  bool    `json:"worse"`
	Last   bool    `json:"last"` // nothing changed since
}

// Where names a run.
type Where struct {
	File    string    `json:"file"`
	Name    string    `json:"name"`
	Started time.Time `json:"started"`
}

func where(r *Run) Where { return Where{r.File, r.Name(), r.Started} }

// judge groups the runs into series, and looks for changes in each.
func (h *History) judge() {
	of := map[string]*Series{}
	for _, r := range slices.Backward(h.Runs) {
		key := fmt.Sprint(r.fingerprint)
		s := of[key]
		if s == nil {
			s = &Series{Name: seriesName(len(h.Series))}
			of[key] = s
			h.Series = append(h.Series, s)
		}
		r.Series = s.Name
		s.all = append(s.all, r)
	}
	var tests, few []*Judgment
	for _, s := range h.Series {
		slices.Reverse(s.all)
		s.Runs = len(s.all)
		newest, own := h.Series[0].all[0].fingerprint, s.all[0].fingerprint
		for i := range newest {
			if i < len(own) && newest[i] != own[i] {
				s.Differs = append(s.Differs, newest[i].name)
			}
		}
		for i, m := range h.metrics {
			j := Judgment{Metric: m.String(), metric: m, Changes: []Change{}}
			for _, r := range s.all {
				if r.Trustworthy && r.Figures[i] != nil {
					j.runs, j.values = append(j.runs, r), append(j.values, *r.Figures[i])
				}
			}
			j.Values = len(j.values)
			s.Judged = append(s.Judged, j)
		}
		for _, r := range s.all {
			if r.Trustworthy {
				s.Trusted++
			}
		}
		for i := range s.Judged {
			tests = append(tests, &s.Judged[i])
		}
	}
	// A metric with too few runs for so many tests is not tested, which leaves more to
	// the others.
	for n := -1; n != len(tests); {
		n = len(tests)
		tests = slices.DeleteFunc(tests, func(j *Judgment) bool {
			if j.Least = leastRuns(h.Alpha / float64(n)); j.Values < j.Least {
				few = append(few, j)
				return true
			}
			return false
		})
	}
	h.Tests = len(tests)
	for _, j := range few { // as if those of one more series were
		j.Least = leastRuns(h.Alpha / float64(h.Tests+len(h.metrics)))
		if j.Why = fmt.Sprintf("%d of %d trusted runs", j.Values, j.Least); j.Values == 0 {
			j.Why = "no trusted run has it; a p99 takes 100 successful requests"
		}
	}
	for _, j := range tests {
		j.test(h.Alpha/float64(h.Tests), h.MinChange)
	}
}

func seriesName(i int) string {
	name := string(rune('A' + i%26))
	if i >= 26 {
		name = seriesName(i/26-1) + name
	}
	return name
}

// test looks for changes among the newest values, of at least a size. The random orders
// are the same at every call.
func (j *Judgment) test(alpha, least float64) {
	j.Skipped = max(j.Values-judgedRuns, 0)
	tested := make([]float64, 0, j.Values-j.Skipped)
	for _, v := range j.values[j.Skipped:] {
		tested = append(tested, compared(j.metric, v))
	}
	places, p := changesIn(tested, alpha, rand.New(rand.NewPCG(1, uint64(len(tested)))))
	// Levels that are too near to each other are one, the nearest first, so that many
	// small steps are still found as the change that they add up to.
	for {
		ends := append(append([]int{0}, places...), len(tested))
		at, smallest := -1, least-1e-9
		for i := range places {
			was, is := median(j.values[j.Skipped+ends[i]:j.Skipped+ends[i+1]]), median(j.values[j.Skipped+ends[i+1]:j.Skipped+ends[i+2]])
			of := was
			if j.metric.IsShare() {
				of = max(was, is)
			}
			if size := math.Abs(is-was) / math.Abs(of); size < smallest {
				at, smallest = i, size
			}
		}
		if at < 0 {
			break
		}
		places, p = slices.Delete(places, at, at+1), slices.Delete(p, at, at+1)
		j.Small++
	}
	ends := append(append([]int{0}, places...), len(tested))
	for i := range len(ends) - 1 {
		from, to := j.Skipped+ends[i], j.Skipped+ends[i+1]
		j.levels = append(j.levels, level{from, to - 1, median(j.values[from:to])})
	}
	higher, _ := j.metric.Higher()
	for i := range places {
		before, after := j.levels[i], j.levels[i+1]
		c := Change{Metric: j.Metric, After: where(j.runs[before.to]), At: where(j.runs[after.from]), Was: before.median, Is: after.median, P: p[i], Last: i == len(places)-1}
		c.Worse = (c.Is < c.Was) == higher
		if c.Change = c.Is - c.Was; !j.metric.IsShare() && c.Was != 0 {
			c.Change /= c.Was
		}
		j.Changes = append(j.Changes, c)
	}
}

// compared is a value as the test sees it: its logarithm where it has one and is no
// share.
func compared(m bench.Metric, v float64) float64 {
	if m.IsShare() || v <= 0 {
		return v
	}
	return math.Log(v)
}

func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// lastChange is the last change of a metric; nil where none was found.
func (j *Judgment) lastChange() *Change {
	if len(j.Changes) == 0 {
		return nil
	}
	return &j.Changes[len(j.Changes)-1]
}

// Worse are the metrics of the newest run's series whose last change was for the worse.
func (h *History) Worse() (out []Change) {
	if len(h.Series) == 0 {
		return nil
	}
	for i := range h.Series[0].Judged {
		if c := h.Series[0].Judged[i].lastChange(); c != nil && c.Worse {
			out = append(out, *c)
		}
	}
	return out
}

// Judged tells whether any metric of the newest run's series was.
func (h *History) Judged() bool {
	return len(h.Series) > 0 && slices.ContainsFunc(h.Series[0].Judged, func(j Judgment) bool { return j.Why == "" })
}
