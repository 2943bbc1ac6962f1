package fidelity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"reprise/trace/doc"
)

// measureTable has a row for each of these measures, with its check where there is one.
func measureTable(measures []Measure, checks []Check) doc.Table {
	t := doc.Table{Head: []string{"measure", "reference", "candidate", "distance", "limit", "check"},
		Align: []doc.Align{doc.Left, doc.Right, doc.Right, doc.Right, doc.Right, doc.Left}}
	for i := range measures {
		m := &measures[i]
		about := aboutMeasure(m.Name)
		row := []string{m.Name, about.form.print(m.Ref), about.form.print(m.Cand), asRatio.print(m.Distance), noValue,
			""}
		for j := range checks {
			if c := &checks[j]; c.Name == m.Name {
				row[4], row[5] = strconv.FormatFloat(c.Limit, 'g', -1, 64), c.result()
				if m.Distance != nil {
					row[3] = doc.Beside(*m.Distance, c.Limit)
				}
			}
		}
		t.Rows, t.RowTerms = append(t.Rows, row), append(t.RowTerms, m.Name)
	}
	return t
}

// ofLimit is the distance of a check over its limit: above 1 it does not hold.
func (c Check) ofLimit() float64 {
	switch {
	case c.Value == nil:
		return math.Inf(1) // the candidate lacks what is measured
	case *c.Value == 0:
		return 0
	}
	return *c.Value / c.Limit
}

// nearestLimit lists the checks that apply: those that do not hold, the farthest off first,
// and then those nearest to their limit.
func nearestLimit(checks []Check) []Check {
	applied := slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return c.OK == nil })
	slices.SortStableFunc(applied, func(a, b Check) int { return cmp.Compare(b.ofLimit(), a.ofLimit()) })
	return applied
}

// idcTable has the dispersion of arrivals at each scale.
func (f Report) idcTable() doc.Table {
	t := doc.Table{Caption: "IDC by scale", Folded: true,
		Head: []string{"window, s", "reference", "candidate", "left out"}}
	for _, one := range f.IDC {
		t.Rows = append(t.Rows, []string{strconv.FormatFloat(one.WindowS, 'g', -1, 64), asNumber.print(one.Ref),
			asNumber.print(one.Cand), one.LeftOut})
	}
	return t
}

// routeTable has the hit ratio of each fleet.
func (f Report) routeTable() doc.Table {
	t := doc.Table{Caption: "Hit ratio behind routers", Folded: true,
		Head: []string{"router", "replicas", "blocks of each", "reference", "candidate"}}
	for _, one := range f.Routes {
		t.Rows = append(t.Rows, []string{one.Router, doc.Count(int64(one.Replicas)),
			doc.Count(one.CapacityBlocks), asRatio.print(&one.Ref), asRatio.print(&one.Cand)})
	}
	return t
}

// queueTable has a row for each load at which either side has a queue.
func (f Report) queueTable() doc.Table {
	t := doc.Table{Caption: "TTFT of a queue, s", Folded: true,
		Head: []string{"load", "p50, reference", "p90", "p99", "p50, candidate", "p90", "p99"}}
	for _, one := range f.Queues {
		row := []string{doc.Percent(one.Load)}
		for _, q := range []*QueueTimes{one.Ref, one.Cand} {
			if q == nil {
				row = append(row, noValue, noValue, noValue)
			} else {
				row = append(row, doc.Number(q.P50), doc.Number(q.P90), doc.Number(q.P99))
			}
		}
		if one.Ref != nil || one.Cand != nil {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// rateTable has a row for each width that either side has windows of.
func (f Report) rateTable() doc.Table {
	t := doc.Table{Caption: "Rates by window or lag", Folded: true, Head: []string{"s", "CV of tokens, reference",
		"candidate", "IDC of requests, reference", "candidate", "autocorrelation, reference", "candidate"}}
	for _, one := range f.Rates {
		row := []string{doc.Count(int64(one.Seconds))}
		for _, v := range []*float64{one.RefCV, one.CandCV, one.RefIDC, one.CandIDC, one.RefACF, one.CandACF} {
			row = append(row, asRatio.print(v))
		}
		if one.RefIDC != nil || one.CandIDC != nil {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// reasons say why checks failed, each reason once, or of a few checks what they measure.
func reasons(checks []Check) []string {
	const few = 3
	var said []string
	names, failed := map[string][]string{}, Failures(checks)
	for _, c := range failed {
		if c.Why == "" && len(failed) <= few {
			c.Why = aboutMeasure(c.Name).about
		}
		if c.Why == "" {
			continue
		}
		if names[c.Why] == nil {
			said = append(said, c.Why)
		}
		names[c.Why] = append(names[c.Why], c.Name)
	}
	for i, why := range said {
		said[i] = strings.Join(names[why], ", ") + ": " + why
	}
	return said
}

// verdict counts the checks, and says which do not hold.
func verdict(checks []Check) (says string, failed []string) {
	applied, missing := 0, ""
	for _, c := range checks {
		if c.OK != nil {
			applied++
		} else {
			missing = c.Name
		}
		if c.Failed() {
			failed = append(failed, c.Name)
		}
	}
	says = fmt.Sprintf("All %d checks hold", applied)
	if len(failed) > 0 {
		says = fmt.Sprintf("%d of %d checks do not hold", len(failed), applied)
	}
	switch n := len(checks) - applied; {
	case n == 1:
		says += "; " + missing + " does not apply"
	case n > 1:
		says += fmt.Sprintf("; %d do not apply", n)
		if slices.ContainsFunc(checks, func(c Check) bool { return c.Name == "hit_by_block" && c.OK == nil }) {
			says += ", prefix reuse among them"
		}
	}
	return says, failed
}
