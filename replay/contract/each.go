package contract

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace/page"
)

// mostEach is how many values of a field a clause with each may have.
const mostEach = 4096

// eachFields are those whose values a clause may be held against one by one.
var eachFields = []string{"user", "model", "adapter", "session", "class", "endpoint"}

// An eachJudge holds a clause against the requests of each user apart, or of each value of
// another field. The clause fails where it does for one of them. Those with too few requests
// are not judged and are counted; it cannot be judged where that is so of all.
type eachJudge struct {
	clause *Clause
	in     *circumstances
	parts  map[string]*scoped
	begin  func() *scoped
	other  bool // there were more than mostEach
}

func (e *eachJudge) add(r *result.Result, failed bool, d *report.Durations) {
	if e.clause.where != nil && !e.clause.where.holds(r, e.in) {
		return
	}
	key := e.clause.each.text(r, e.in)
	part := e.parts[key]
	if part == nil {
		if len(e.parts) >= mostEach {
			e.other = true
			return
		}
		part = e.begin()
		e.parts[key] = part
	}
	part.add(r, failed, d)
}

// result is that of the value that is worst off, and how many others there are.
func (e *eachJudge) result(judge func(*scoped) report.ClauseResult) report.ClauseResult {
	var worst, most report.ClauseResult // judged; not judged, with the most samples
	var found, judged, failing int64
	for _, key := range slices.SortedFunc(maps.Keys(e.parts), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) // numbers in their order
	}) {
		r := judge(e.parts[key])
		if r.Worst = key; key == "" {
			r.Worst = wordNone
		}
		found++
		if r.Outcome == report.Unjudged {
			if most.Outcome == "" || r.Samples > most.Samples {
				most = r
			}
			continue
		}
		judged++
		if r.Outcome == report.Fails {
			failing++
		}
		if worst.Outcome == "" || e.clause.beyond(r.Measured) > e.clause.beyond(worst.Measured) {
			worst = r
		}
	}
	out, name := worst, e.clause.each.name
	if judged == 0 {
		out = most
		if found == 0 {
			out = report.ClauseResult{Clause: e.clause.String(), Allowed: e.clause.allowed, Unit: e.clause.quantity.unit(), Outcome: report.Unjudged, Why: "no measured request is in its scope"}
		} else {
			out.Why = fmt.Sprintf("of %s none can be judged; %s %s has the most: %s", page.Many(found, name), name, out.Worst, out.Why)
		}
	}
	if e.other && out.Outcome != report.Fails {
		out.Outcome, out.Measured, out.Margin = report.Unjudged, nil, nil
		out.Why = fmt.Sprintf("there are more than %s", page.Many(mostEach, name))
	}
	out.Each = &report.EachResult{Of: name, Values: found, Judged: judged, Failing: failing}
	if e.clause.where != nil {
		out.Where = e.clause.where.String()
	} else {
		out.Where = ""
	}
	return out
}

// beyond is how far a measurement is beyond what is allowed; below zero it is within.
func (c *Clause) beyond(v *float64) float64 {
	if c.quantity.floor {
		return c.allowed - *v
	}
	return *v - c.allowed
}
