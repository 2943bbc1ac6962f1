package audit

import (
	"fmt"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/trace"
)

// Outputs of one source are judged together: ε adds up, and a model and what is drawn of it
// count once.
func TestComposition(t *testing.T) {
	public := func(epsilon float64, dropped float64, captures string) *Output {
		card := anonymize.Card{Schema: anonymize.CardSchema, Tier: anonymize.Public, FormerPublic: &anonymize.FormerStatement{Budget: dp.Budget{Epsilon: epsilon, Delta: 1e-6}, Protects: fmt.Sprint(dropped)}}
		text, hash, err := card.JSON()
		if err != nil {
			t.Fatal(err)
		}
		return &Output{Kind: "model", Meta: map[string]string{"tier": anonymize.Public, "card": text, "card_sha256": hash, "capture_ids": captures}}
	}
	drawn := func(epsilon, rho float64) *Output {
		card := anonymize.SessionsCard(dp.SessionStatement{Unit: anonymize.UnitUser, Budget: dp.Budget{Epsilon: epsilon, Delta: 1e-6}, Rho: rho}, trace.Meta{Tier: anonymize.Partner})
		text, hash, err := card.JSON()
		if err != nil {
			t.Fatal(err)
		}
		return &Output{Kind: kindTrace, Meta: map[string]string{"tier": anonymize.Partner, "card": text, "card_sha256": hash}}
	}
	days := func(n int, unit string) (list []*Output) {
		for day := range n {
			o := drawn(1, dp.Rho(1, 1e-6))
			card := anonymize.SessionsCard(dp.SessionStatement{Unit: unit, Budget: dp.Budget{Epsilon: 1, Delta: 1e-6}, Rho: dp.Rho(1, 1e-6), MaxInput: int64(day)}, trace.Meta{Tier: anonymize.Partner, Unit: unit})
			text, hash, err := card.JSON()
			if err != nil {
				t.Fatal(err)
			}
			o.Meta["card"], o.Meta["card_sha256"], o.Meta["capture_ids"] = text, hash, fmt.Sprint("day ", day)
			list = append(list, o)
		}
		return list
	}
	selecting := func(epsilon float64) *Output { // without ρ they would have ε = 10.1 together
		b := dp.Budget{Epsilon: epsilon, Delta: 1e-6}
		card := anonymize.SessionsCard(dp.SessionStatement{Unit: anonymize.UnitUser, Budget: b, Rho: dp.Rho(epsilon, 9e-7), Trunks: &dp.Trunks{Delta: 1e-7}}, trace.Meta{Tier: anonymize.Partner})
		text, hash, err := card.JSON()
		if err != nil {
			t.Fatal(err)
		}
		return &Output{Kind: kindTrace, Meta: map[string]string{"tier": anonymize.Partner, "card": text, "card_sha256": hash}}
	}
	for name, c := range map[string]struct {
		of   []*Output
		want Status
		says string
	}{
		"one alone":                      {[]*Output{public(1, 0, "")}, Skipped, "other outputs"},
		"within the limit":               {[]*Output{public(4, 0, "a"), public(4, .1, "a")}, Pass, "2 releases have ε = 8 together"},
		"beyond the limit":               {[]*Output{public(4, 0, "a"), public(4, .1, "b,a"), public(4, .2, "")}, Fail, "3 releases of one source have ε = 12 together, above the limit of 10"},
		"a model and what was drawn":     {[]*Output{public(6, 0, "a"), public(6, 0, "a")}, Pass, "1 releases have ε = 6"},
		"different captures":             {[]*Output{public(6, 0, "a"), public(6, .1, "b")}, Fail, "2 releases by user, of different captures that may have the same users, have ε = 12 together"},
		"twelve days of the same users":  {days(12, anonymize.UnitUser), Pass, "12 releases by user, of different captures that may have the same users, have ε = 3.86 together, within the limit of 10 (12 as a sum, which a ledger limits)"},
		"twelve days by session":         {days(12, anonymize.UnitSession), Pass, "1 releases have ε = 1 together, within the limit of 10; nothing is added by 11 releases of other captures, by session or request"},
		"one draw twice":                 {[]*Output{drawn(8, 0), drawn(8, 0)}, Pass, "1 releases have ε = 8"},
		"two for partners":               {[]*Output{drawn(8, 1.0524), drawn(7, 0.85)}, Fail, "2 releases of one source have ε = 11.3 together"},
		"two with shared prefixes":       {[]*Output{selecting(5), selecting(5.1)}, Pass, "2 releases have ε = 7."},
		"one of each tier":               {[]*Output{drawn(8, 0), public(1, 0, "")}, Pass, "2 releases have ε = 9"},
		"with the internal trace beside": {[]*Output{drawn(8, 1), tinyTrace(t, trace.Meta{Tier: anonymize.Internal})}, Inconclusive, "could not be run"},
	} {
		f := composition(t.Context(), &Case{Output: c.of[0], Others: c.of[1:]})
		if f.Status != c.want || !strings.Contains(f.Why, c.says) {
			t.Errorf("%s: %s: %s %v", name, f.Status, f.Why, f.Figures)
		}
	}
}
