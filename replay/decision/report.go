package decision

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"reprise/trace/page"
	"reprise/trace/textpage"
)

// schema names the layout of a [Report] as JSON. Fields may be added to it.
const schema = "decisions/1"

// The limits of a report.
const (
	capacityLimit   = 0.05 // difference of capacities, over the reference's
	otherSignsLimit = 1    // of 20 changes
	leastDecisions  = 10   // changes that must decide something for the reference
)

// A Report says whether two workloads lead to the same decisions about an engine.
type Report struct {
	Schema    string `json:"schema"`
	Engine    string `json:"engine"`
	Contract  string `json:"contract"`
	Reference int    `json:"reference_requests"` // that were played
	Candidate int    `json:"candidate_requests"`
	Capacity  struct {
		Ref        float64 `json:"ref_rps"`
		Cand       float64 `json:"cand_rps"`
		Difference float64 `json:"relative_difference"`
		Limit      float64 `json:"limit"`
		OK         bool    `json:"ok"`
	} `json:"capacity"`
	RateRPS float64        `json:"changes_at_rps"`
	Changes []ChangeResult `json:"changes"`
	Signs   struct {
		Decide int   `json:"changes_that_decide"`
		Same   int   `json:"same_sign"`
		Limit  int   `json:"other_signs_at_most"`
		OK     *bool `json:"ok"` // null when too few changes decide something
	} `json:"signs"`
	OK bool `json:"ok"`
}

// A ChangeResult is what a change does to the p95 of TTFT of each side, in percent.
type ChangeResult struct {
	Name string  `json:"change"`
	Ref  float64 `json:"ref_percent"`
	Cand float64 `json:"cand_percent"`
	// Decides tells whether the reference's effect is 2 % or more and the same in every
	// round.
	Decides  bool `json:"decides"`
	SameSign bool `json:"same_sign"`
}

// judge holds the report against its limits.
func (r *Report) judge() {
	c := &r.Capacity
	c.Limit = capacityLimit
	c.Difference = math.Abs(c.Cand/c.Ref - 1)
	c.OK = c.Difference <= c.Limit
	s := &r.Signs
	s.Limit = otherSignsLimit
	for _, change := range r.Changes {
		if change.Decides {
			s.Decide++
			if change.SameSign {
				s.Same++
			}
		}
	}
	r.OK = c.OK
	if s.Decide >= leastDecisions {
		ok := s.Decide-s.Same <= s.Limit
		s.OK, r.OK = &ok, r.OK && ok
	}
}

// WriteJSON writes the report.
func (r Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteText prints the report for people: the verdict, then the changes that the workloads
// differ most on, in [textpage.AnswerLines] lines at most. With details it prints all.
func (r Report) WriteText(w io.Writer, o textpage.Options) error {
	p := textpage.New(o)
	verdict := "Both lead to the same decisions"
	if !r.OK {
		verdict = "The two do not lead to the same decisions"
	}
	c, s := &r.Capacity, &r.Signs
	p.LineAtMost(2, "", fmt.Sprintf("%s, by %s.", verdict, r.Engine))
	p.LineAtMost(2, "", fmt.Sprintf("Capacity within %s: %s req/s for the reference, %s for the candidate, %s apart (at most %s): %s.", r.Contract,
		page.Number(c.Ref), page.Number(c.Cand), page.Percent(c.Difference), page.Percent(c.Limit), word(c.OK)))
	signs := fmt.Sprintf("Changes of the engine at %s req/s: %d of %d decide something, %d of them with the same sign for both", page.Number(r.RateRPS),
		s.Decide, len(r.Changes), s.Same)
	if s.OK == nil {
		signs += fmt.Sprintf(": too few to judge, which takes %d.", leastDecisions)
	} else {
		signs += fmt.Sprintf(" (at most %d with another): %s.", s.Limit, word(*s.OK))
	}
	p.LineAtMost(3, "", signs)
	if r.Reference == MostRows || r.Candidate == MostRows {
		p.LineAtMost(2, "", fmt.Sprintf("Only the first %s requests were played.", page.Count(MostRows)))
	}
	list := slices.Clone(r.Changes)
	if !o.Details {
		slices.SortStableFunc(list, func(a, b ChangeResult) int { return cmp.Compare(b.apart(), a.apart()) })
		list = list[:min(len(list), textpage.AnswerLines-p.Lines()-4)]
	}
	var rows [][]string
	for _, change := range list {
		sign := "same"
		switch {
		case !change.Decides:
			sign = "no decision"
		case !change.SameSign:
			sign = "OTHER"
		}
		rows = append(rows, []string{change.Name, signed(change.Ref), signed(change.Cand), sign})
	}
	p.Columns([]string{"effect on p95 TTFT of", "reference", "candidate", "sign"}, rows)
	if more := len(r.Changes) - len(list); more > 0 {
		p.Line("", fmt.Sprintf("and %s. %s", page.Many(int64(more), "more change"), o.Rest))
	}
	_, err := p.WriteTo(w)
	return err
}

// apart says how much a reader must know of a change: another sign first, then how far the
// effects are apart.
func (c ChangeResult) apart() float64 {
	apart := math.Abs(math.Log((100 + c.Ref) / (100 + c.Cand)))
	if c.Decides && !c.SameSign {
		apart += 1e9
	}
	return apart
}

func word(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAIL"
}

func signed(percent float64) string { return fmt.Sprintf("%+.1f %%", percent) }
