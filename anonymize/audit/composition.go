package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/trace"
)

// singledOut is the share of the joined rows that may be in classes below k_class.
// Some rows are joined wrongly, and make classes that are nobody's.
const singledOut = 0.01

// composition reads the output together with others of the same source. The ε of those
// that noise protects add up. Those of tier partner are joined row by row: two grids cut
// finer than each, so a class of both may be smaller than k_class.
func composition(ctx context.Context, c *Case) Finding {
	if len(c.Others) == 0 {
		return skipped("it needs other outputs of the same source: audit OUTPUT OTHER …")
	}
	all := append([]*Output{c.Output}, c.Others...)
	fig := Figures{"outputs": len(all)}
	captures := func(o *Output) []string { return strings.Split(o.Meta["capture_ids"], ",") }
	var noised []dp.Release
	var rows []*Output
	stated := map[string]bool{} // a model and what is drawn from it are one release
	for i, o := range all {
		if mine := captures(o); i > 0 && mine[0] != "" && captures(c.Output)[0] != "" && !slices.ContainsFunc(mine, func(id string) bool { return slices.Contains(captures(c.Output), id) }) {
			return inconclusive(fig, "the outputs are of different captures, so nothing of one adds to the other")
		}
		card, err := anonymize.ParseCard(o.Meta["card"], o.Meta["card_sha256"])
		if err != nil {
			return broken(err)
		}
		switch s := card.Public; {
		case s != nil:
			of := *s
			of.Ledger = nil
			b, err := json.Marshal(of)
			if err != nil {
				return broken(err)
			}
			if !stated[string(b)] {
				stated[string(b)] = true
				r := dp.Release{Tier: card.Tier, Budget: s.Budget}
				if s.Selection == nil { // else ρ is not all that it cost
					r.Rho = s.Rho
				}
				noised = append(noised, r)
			}
		case card.Partner != nil && o.Trace != nil:
			rows = append(rows, o)
		default:
			return inconclusive(fig, "one of the outputs is of tier %s: what it tells beside others is not limited by any rule", orNone(o.Tier()))
		}
	}
	total := dp.Spent(noised)
	fig["releases_with_noise"], fig["epsilon_of_all"] = total.Releases, total.Epsilon
	j, k, err := joinReleases(ctx, rows)
	if err != nil {
		return broken(err)
	}
	share := float64(j.below) / float64(max(1, j.joined))
	if len(rows) > 1 {
		fig["k_class"], fig["rows"], fig["rows_joined"], fig["rows_in_classes_below_k"], fig["share_below_k"] = k, j.rows, j.joined, j.below, share
	}
	switch {
	case total.Epsilon > synth.MaxEpsilon:
		return failed(fig, "%d releases of one source have ε = %.3g together, above the limit of %d", total.Releases, total.Epsilon, synth.MaxEpsilon)
	case share > singledOut:
		return failed(fig, "rows of %d releases can be joined, and then %d of %d stand in classes of fewer than %d: each grid hides what the other shows", len(rows), j.below, j.joined, k)
	case len(rows) > 0 && len(noised) > 0:
		return passed(fig, "ε = %.3g of %d releases; rows of %d that are joined stay in classes of %d", total.Epsilon, total.Releases, len(rows), k)
	case len(rows) > 1 && j.joined*20 < j.rows:
		return inconclusive(fig, "only %d rows of %d could be joined: a better join may show more", j.joined, j.rows)
	case len(rows) > 1:
		return passed(fig, "rows of %d releases that are joined stay in classes of %d", len(rows), k)
	}
	return passed(fig, "%d releases have ε = %.3g together, within the limit of %d", total.Releases, total.Epsilon, synth.MaxEpsilon)
}

// A joinedReleases says how many rows of the first release have one partner in each of the
// others, and how many of these are in classes too small.
type joinedReleases struct{ rows, joined, below int }

// joinReleases joins the rows of releases: those of the same bin of time whose buckets of
// lengths overlap, where no other row of either release fits.
func joinReleases(ctx context.Context, outputs []*Output) (j joinedReleases, k int, err error) {
	if len(outputs) < 2 {
		return j, 0, nil
	}
	var first []gridRow
	class := map[int][]string{} // of the rows of the first that were joined every time
	for i, o := range outputs {
		p, _, err := policyOf(o)
		if err != nil {
			return j, 0, err
		}
		rows, err := gridRows(ctx, o, p)
		if err != nil {
			return j, 0, err
		}
		if i == 0 {
			first, k = rows, p.KClass
			for at := range rows {
				class[at] = []string{rows[at].shown}
			}
			continue
		}
		k = max(k, p.KClass)
		reach := int64(p.Quantum) + first[0].quantum
		if o.Trace.Meta.Capture.Declared() && outputs[0].Trace.Meta.Capture.Declared() {
			reach = max(int64(p.Quantum), first[0].quantum) // bins of both begin with the capture
		}
		there, back := onlyPartners(first, rows, reach), onlyPartners(rows, first, reach)
		for at := range first {
			if to := there[at]; to < 0 || back[to] != at {
				delete(class, at)
			} else if c, ok := class[at]; ok {
				class[at] = append(c, rows[to].shown)
			}
		}
	}
	size := map[string]int{}
	for _, c := range class {
		size[strings.Join(c, " ")]++
	}
	j.rows, j.joined = len(first), len(class)
	for _, n := range size {
		if n < k {
			j.below += n
		}
	}
	return j, k, nil
}

// A gridRow is a row of a release: when it was, and the buckets of its lengths.
type gridRow struct {
	at, quantum int64
	in, out     [2]int64 // first and last length of the bucket
	shown       string
}

func gridRows(ctx context.Context, o *Output, p anonymize.PartnerPolicy) (rows []gridRow, err error) {
	edges := bucketsOf(p.PerOctave)
	err = eachRow(ctx, sourceOf(o.Trace), func(_ int64, r *trace.Request) error {
		rows = append(rows, gridRow{r.ArrivalNS, int64(max(p.Quantum, time.Nanosecond)), edges[int64(r.InputTokens)], edges[int64(r.OutputTokens)],
			fmt.Sprint(r.InputTokens, ",", r.OutputTokens)})
		return nil
	})
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("one of the releases has no rows")
	}
	return rows, err
}

// onlyPartners gives for each row the one row of others that it may be, or -1. Both are in
// order of time.
func onlyPartners(rows, others []gridRow, reach int64) []int {
	out := make([]int, len(rows))
	from := 0
	overlap := func(a, b [2]int64) bool { return a[0] <= b[1] && b[0] <= a[1] }
	for i, r := range rows {
		for from < len(others) && others[from].at <= r.at-reach {
			from++
		}
		out[i] = -1
		for at := from; at < len(others) && others[at].at < r.at+reach; at++ {
			if overlap(r.in, others[at].in) && overlap(r.out, others[at].out) {
				if out[i] >= 0 {
					out[i] = -1
					break
				}
				out[i] = at
			}
		}
	}
	return out
}
