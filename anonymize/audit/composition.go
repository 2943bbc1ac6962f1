package audit

import (
	"context"
	"encoding/json"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/synth"
)

// composition reads the output together with others of the same source, whose ε adds up.
func composition(ctx context.Context, c *Case) Finding {
	if len(c.Others) == 0 {
		return skipped("it needs other outputs of the same source: audit OUTPUT OTHER …")
	}
	all := append([]*Output{c.Output}, c.Others...)
	fig := Figures{"outputs": len(all)}
	var noised []dp.Release
	stated := map[string]bool{} // a model and what is drawn from it are one release
	for i, o := range all {
		if i > 0 && otherCapture(o.Meta["capture_ids"], c.Output.Meta["capture_ids"]) {
			return inconclusive(fig, "the outputs are of different captures, so nothing of one adds to the other")
		}
		card, err := anonymize.ParseCard(o.Meta["card"], o.Meta["card_sha256"])
		if err != nil {
			return broken(err)
		}
		r := dp.Release{Tier: card.Tier}
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
			return inconclusive(fig, "one of the outputs is of tier %s and not drawn from noisy counts: what it tells beside others is not limited by any rule", orNone(o.Tier()))
		}
		b, err := json.Marshal(statement)
		if err != nil {
			return broken(err)
		}
		if !stated[string(b)] {
			stated[string(b)] = true
			noised = append(noised, r)
		}
	}
	total := dp.Spent(noised)
	fig["releases_with_noise"], fig["epsilon_of_all"] = total.Releases, total.Epsilon
	if total.Epsilon > synth.MaxEpsilon {
		return failed(fig, "%d releases of one source have ε = %.3g together, above the limit of %d", total.Releases, total.Epsilon, synth.MaxEpsilon)
	}
	return passed(fig, "%d releases have ε = %.3g together, within the limit of %d", total.Releases, total.Epsilon, synth.MaxEpsilon)
}
