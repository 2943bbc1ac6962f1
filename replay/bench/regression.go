package bench

import (
	"fmt"
	"math"
	"slices"
)

// regression judges the primary metric of a row by the baseline: it may be worse by
// most, a share of what it was. Where the runs of the two overlap, as far as rows
// repeat, a change may be chance, and is none.
func (m Metric) regression(is, was *Figure, most float64) *Outcome {
	if is == nil || was == nil || was.V == 0 {
		return &Outcome{Text: fmt.Sprintf("not held against the baseline, which has no %s to compare", m)}
	}
	change := is.V/was.V - 1
	worse, apart := change > 0, is.Lo > was.Hi
	switch {
	case slices.Contains([]string{"requests_per_s", "prompt_tokens_per_s", "output_tokens_per_s", "hit_ratio"}, m.name):
		worse, apart = change < 0, is.Hi < was.Lo
	case !m.isTime() && m.name != "error_rate":
		return &Outcome{Text: fmt.Sprintf("not held against the baseline: neither more nor less %s is worse", m)}
	}
	said := fmt.Sprintf("%s is %s, in the baseline %s (%s, limit %s %%)", m.Label(), m.format(*is), m.format(*was), signed(change), figure(most*100))
	held := !worse || math.Abs(change) <= most || !apart
	switch {
	case !held:
		said = "REGRESSION: " + said
	case worse && math.Abs(change) > most:
		said = fmt.Sprintf("no regression, since repeats overlap: %s; they are %s to %s, and were %s to %s", said,
			m.format(Figure{V: is.Lo}), m.format(Figure{V: is.Hi}), m.format(Figure{V: was.Lo}), m.format(Figure{V: was.Hi}))
	default:
		said = "no regression: " + said
	}
	return &Outcome{&held, said, &change}
}

// Regressed tells whether a row is worse than the baseline by more than may be.
func (r *SuiteResult) Regressed() bool {
	return r.any(func(m *ModelResult) bool { return m.Regression.regressed() })
}

func (o *Outcome) regressed() bool { return o != nil && o.Held != nil && !*o.Held }
