package history

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"reprise/trace/page"
)

// A Side says to which of two known states the newest run belongs.
type Side struct {
	Metric string `json:"metric"`
	Run    Where  `json:"run"`
	// Bad tells which, where Why is empty. Else it cannot be told, and Why says what to do.
	Bad bool   `json:"bad"`
	Why string `json:"not_judged,omitempty"`
	// Good, BadRuns and Runs are how many trusted runs it rests on: of the good state, of
	// the bad one, and of the newest run's commit. Beside them stand their medians.
	GoodRuns int     `json:"good_runs"`
	BadRuns  int     `json:"bad_runs"`
	Runs     int     `json:"runs"`
	Good     float64 `json:"good_median"`
	BadAt    float64 `json:"bad_median"`
	Is       float64 `json:"median"`
}

// sideAlpha is the probability of a wrong side for a run whose true value is right
// between the two states; it is smaller for any other. It is also that of taking two
// states for different that are not.
const sideAlpha = 0.05

// leastReference is how many runs each of the two states needs. Three against three are
// in order with a probability of 1 in 20 by chance.
const leastReference = 3

// Side tells whether the newest run, with the others of its commit, is like the runs of
// one commit or like those of another one: which is good, and which is bad. Both are
// names of commits, or notes. All runs must be of one series. The first metric decides.
//
// The difference of the two states must be significant at 5 % by Student's t, and the
// newest runs further from the middle between them than chance moves them in 19 of 20
// cases. Else it says that more runs are needed.
func (h *History) Side(good, bad string) Side {
	newest := h.Newest()
	s := Side{Metric: h.Metrics[0], Run: where(newest)}
	metric := h.metrics[0]
	higher, _ := metric.Higher()
	var sets [3][]float64 // good, bad and the newest, as the test sees them
	var shown [3][]float64
	for _, r := range h.Runs {
		same := r == newest || r.Name() == newest.Name() && (r.Commit != "" || r.Note != "")
		if r.Series != newest.Series || !r.Trustworthy || r.Figures[0] == nil {
			continue
		}
		for i, belongs := range []bool{r.is(good), r.is(bad), same} {
			if belongs {
				sets[i] = append(sets[i], compared(metric, *r.Figures[0]))
				shown[i] = append(shown[i], *r.Figures[0])
			}
		}
	}
	s.GoodRuns, s.BadRuns, s.Runs = len(sets[0]), len(sets[1]), len(sets[2])
	for i, to := range []*float64{&s.Good, &s.BadAt, &s.Is} {
		if len(shown[i]) > 0 {
			*to = median(shown[i])
		}
	}
	switch {
	case !newest.Trustworthy:
		s.Why = "it is not trustworthy: " + newest.Reasons[0]
		return s
	case newest.Figures[0] == nil:
		s.Why = "it has no " + h.label() + "; a p99 takes 100 successful requests"
		return s
	}
	for i, name := range []string{good, bad} {
		if n := len(sets[i]); n < leastReference {
			s.Why = fmt.Sprintf("%s has %s with the settings of the newest run, and %d are needed: measure it again, with --note commit=%s",
				name, page.Many(int64(n), "trusted run"), leastReference, name)
			return s
		}
	}
	s.decide(sets, higher)
	return s
}

// decide finds the side of the third set.
func (s *Side) decide(sets [3][]float64, higher bool) {
	good, bad, is := sets[0], sets[1], sets[2]
	a, b, k := float64(len(good)), float64(len(bad)), float64(len(is))
	meanGood, meanBad := stat.Mean(good, nil), stat.Mean(bad, nil)
	apart := meanBad - meanGood
	if higher {
		apart = -apart
	}
	// The noise is that within all three: a disturbed run of the newest commit makes it
	// larger, and does not decide.
	squares, freedom := 0.0, 0.0
	for _, set := range sets {
		if n := float64(len(set) - 1); n > 0 {
			squares, freedom = squares+n*stat.Variance(set, nil), freedom+n
		}
	}
	sd := math.Sqrt(squares / freedom)
	least := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(1 - sideAlpha)
	switch {
	case apart <= 0:
		s.Why = "the runs of the bad commit are not worse than those of the good one"
		return
	case apart < least*sd*math.Sqrt(1/a+1/b):
		s.Why = "the runs of the good and the bad commit cannot be told apart by their noise: measure both again"
		return
	}
	off := stat.Mean(is, nil) - (meanGood+meanBad)/2
	if higher {
		off = -off
	}
	s.Bad = off > 0
	if math.Abs(off) < least*sd*math.Sqrt(1/k+1/(4*a)+1/(4*b)) {
		s.Why = fmt.Sprintf("it is too near to the middle of good and bad after %s: measure it again", page.Many(int64(len(is)), "run"))
	}
}

// String says it in a sentence.
func (s Side) String() string {
	label := strings.ReplaceAll(s.Metric, "_", " ")
	if s.Why != "" {
		return fmt.Sprintf("%s cannot be judged by %s: %s", s.Run.Name, label, s.Why)
	}
	state := map[bool]string{false: "good", true: "bad"}[s.Bad]
	return fmt.Sprintf("%s is %s: %s %s in %s, against %s of the good commit and %s of the bad one",
		s.Run.Name, state, label, page.Number(s.Is), page.Many(int64(s.Runs), "run"), page.Number(s.Good), page.Number(s.BadAt))
}
