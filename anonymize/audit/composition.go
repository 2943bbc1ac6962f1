package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/trace/doc"
)

// A released is an output as composition reads it.
type released struct {
	dp.Release
	statement string // what its noise is known by: a model and what is drawn from it have one
	unit      string
	captures  string
}

// composition reads the output together with others, whose ε adds up: of one capture by
// whatever unit, and by user over all captures, since any user may be in each.
func composition(ctx context.Context, c *Case) Finding {
	if len(c.Others) == 0 {
		return skipped("it needs other outputs of the same source: audit OUTPUT OTHER …")
	}
	all := append([]*Output{c.Output}, c.Others...)
	fig := Figures{"outputs": len(all)}
	var list []released
	for _, o := range all {
		r, why, err := releasedBy(o)
		switch {
		case err != nil:
			return broken(err)
		case why != "":
			return inconclusive(fig, "%s", why)
		}
		if !slices.ContainsFunc(list, func(other released) bool { return other.statement == r.statement }) {
			list = append(list, r)
		}
	}
	most, total := together(list)
	captures := 1
	for i := range most {
		if otherCapture(most[i].captures, most[0].captures) {
			captures++
		}
	}
	of := "of one source "
	if captures > 1 {
		of = "by user, of different captures that may have the same users, "
	}
	fig["releases_with_noise"], fig["epsilon_of_all"], fig["releases_that_add_up"] = len(list), total.Epsilon, len(most)
	apart := ""
	if sum := sumOf(most); sum > 1.001*total.Epsilon {
		fig["epsilon_as_a_sum"] = sum
		apart = fmt.Sprintf(" (%.3g as a sum, which a ledger limits)", sum)
	}
	if n := len(list) - len(most); n > 0 {
		apart += fmt.Sprintf("; nothing is added by %s of other captures, by session or request",
			doc.Many(int64(n), "release"))
	}
	if total.Epsilon > synth.MaxEpsilon {
		return failed(fig, "%d releases %shave ε = %.3g together, above the limit of %d%s", len(most), of,
			total.Epsilon, synth.MaxEpsilon, apart)
	}
	if captures == 1 {
		of = ""
	}
	return passed(fig, "%d releases %shave ε = %.3g together, within the limit of %d%s", len(most), of, total.Epsilon,
		synth.MaxEpsilon, apart)
}

// releasedBy is what an output was released by. why says what keeps it from being added up.
func releasedBy(o *Output) (r released, why string, err error) {
	card, err := anonymize.ParseCard(o.Meta["card"], o.Meta["card_sha256"])
	if err != nil {
		return r, "", err
	}
	r = released{Release: dp.Release{Tier: card.Tier}, unit: card.Unit, captures: o.Meta["capture_ids"]}
	var statement any
	switch {
	case card.FormerPublic != nil:
		statement, r.Budget = card.FormerPublic, card.FormerPublic.Budget
	case card.Sessions != nil:
		of := *card.Sessions
		of.Ledger, statement, r.Budget = nil, &of, of.Budget
		if r.Rho = of.Rho; of.Trunks != nil {
			r.Selection = of.Trunks.Delta
		}
	default:
		return r, fmt.Sprintf("one of the outputs is of tier %s and not drawn from noisy counts: what it tells "+
			"beside others is not limited by any rule", orNone(o.Tier())), nil
	}
	b, err := json.Marshal(statement)
	r.statement = string(b)
	return r, "", err
}

// together are those releases that cost the most of all that add up.
func together(list []released) (most []released, total dp.Total) {
	meet := func(a, b *released) bool {
		byUser := func(r *released) bool { return r.unit == "" || r.unit == anonymize.UnitUser }
		return !otherCapture(a.captures, b.captures) || byUser(a) && byUser(b)
	}
	left := list
	for len(left) > 0 {
		group := left[:1:1]
		left = left[1:]
		for i := 0; i < len(group); i++ { // whoever meets one of them joins
			var others []released
			for j := range left {
				if meet(&group[i], &left[j]) {
					group = append(group, left[j])
				} else {
					others = append(others, left[j])
				}
			}
			left = others
		}
		var of []dp.Release
		for i := range group {
			of = append(of, group[i].Release)
		}
		if t := dp.Spent(of); most == nil || t.Epsilon > total.Epsilon {
			most, total = group, t
		}
	}
	return most, total
}

func sumOf(list []released) (epsilon float64) {
	for i := range list {
		epsilon += list[i].Epsilon
	}
	return epsilon
}
