package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"reprise/replay/figure"
	"reprise/trace/doc"
)

// decide decides for every arm, and puts the decision into words.
func (c *Comparison) decide() {
	for i := range c.Versus {
		v := &c.Versus[i]
		v.Others = []string{}
		for j := range v.Metrics {
			m := &v.Metrics[j]
			switch {
			case m.Primary:
				switch {
				case c.Kind != kindRounds || m.Rounds < c.LeastRounds || c.Plan != nil && c.Plan.level(v.Rounds) == 0:
					v.Decision = undecided
				case !m.Significant && c.Plan != nil && v.Rounds < c.Plan.Rounds():
					v.Decision = undecided
				case !m.Significant:
					v.Decision = notFound
				case (m.Change.Estimate > 0) != m.Higher:
					v.Decision = Worse
				default:
					v.Decision = better
				}
				if regressed := v.regressions(); v.Decision != Worse && len(regressed) > 0 {
					v.Decision = Worse
					v.Text = c.regressionText(v, regressed)
					continue
				}
				v.Text = c.decisionText(v, m)
			case m.Significant:
				v.Others = append(v.Others, fmt.Sprintf("%s %s, p %s", m.Label, changeOf(m, m.Change), equals(m.P)))
			}
		}
	}
}

// otherMetrics say which other metrics differ, and for which no difference was found. They are empty where there are
// none, and where none could have been found.
func (v *Versus) otherMetrics() (differ, same string) {
	var different []*Contrast
	var alike []string
	primary := v.metricsInOrder()[0]
	for i := range v.Metrics {
		m := &v.Metrics[i]
		switch {
		case m.Primary || m.P == nil || m.Rounds < minRounds:
		case m.Regressed && v.deciding() != primary: // the decision names it
		case m.Guarded && v.Decision == notFound: // likewise
		case !m.Significant && m.Detectable == nil: // so few rounds could have found none
		case !m.Significant:
			alike = append(alike, fmt.Sprintf("%s (MDE %s)", m.Label, size(m, *m.Detectable)))
		default:
			different = append(different, m)
		}
	}

	switch {
	case len(different) > 0 && !v.Decided():
		differ = "Other metrics differ, after Holm: " + changes(different) + "."
	case len(different) > 0:
		differ = "After Holm, also " + changes(different) + "."
	}
	if len(alike) > 0 {
		same = "No difference found in " + strings.Join(alike, ", ") + "."
	}
	return differ, same
}

// changes lists metrics with how far they changed: TTFT p50 +2 %, p99 +1 %; error share +3 pt.
func changes(of []*Contrast) string {
	var out []string
	family := ""
	for _, m := range of {
		change := signed(m.Change.Estimate) + m.unit()
		at := strings.LastIndex(m.Label, " ")
		latency, statistic := m.Label[:max(at, 0)], m.Label[at+1:]
		switch {
		case !figure.Unit(m.Unit).IsTime():
			latency = ""
			out = append(out, m.Label+" "+change)
		case latency == family: // p99 +1 % after TTFT p50 +2 %
			out[len(out)-1] += ", " + statistic + " " + change
		default:
			out = append(out, m.Label+" "+change)
		}
		family = latency
	}
	return strings.Join(out, "; ")
}

// metricsInOrder returns the primary metric, then those that differ, then the rest.
func (v *Versus) metricsInOrder() []*Contrast {
	var out []*Contrast
	for i := range v.Metrics {
		out = append(out, &v.Metrics[i])
	}
	slices.SortStableFunc(out, func(a, b *Contrast) int {
		return cmp.Or(cmp.Compare(b2i(b.Primary), b2i(a.Primary)),
			cmp.Compare(b2i(b.Significant || b.Regressed), b2i(a.Significant || a.Regressed)))
	})
	return out
}

// decisionText returns the decision in words, with the figures that it rests on.
func (c *Comparison) decisionText(v *Versus, m *Contrast) string {
	if m.Change == nil {
		return fmt.Sprintf("No verdict: %s has no value in %s; a p99 needs 100 successful requests in a run.", m.Label,
			m.lacking(c.A, v.B))
	}
	if c.Kind == kindRounds {
		figures := fmt.Sprintf("%s %s, p %s, %s", m.Label, changeOf(m, m.Change), equals(m.P),
			doc.Many(int64(m.Rounds), "round"))
		if c.Plan != nil && c.Plan.Clear != nil {
			figures = fmt.Sprintf("%s %s, p %s by the t-test of %s", m.Label, changeOf(m, m.Change), equals(m.P),
				doc.Many(int64(m.Rounds), "pilot round"))
		}
		switch v.Decision {
		case Worse, better:
			rose := m.Change.Estimate > 0
			comparative := "better"
			switch {
			case figure.Unit(m.Unit).IsTime() && rose:
				comparative = "slower"
			case figure.Unit(m.Unit).IsTime():
				comparative = "faster"
			case rose != m.Higher:
				comparative = "worse"
			}
			return v.B + " is " + comparative + ": " + figures + c.ofAtMost(v) + "."
		case notFound:
			covered, sizes := v.guardText()
			out := "No difference found in " + m.Label + ":" + strings.TrimPrefix(figures, m.Label) + covered + "."
			if m.Detectable != nil {
				out += fmt.Sprintf(" Minimum detectable effect: %s (power %s).", size(m, *m.Detectable),
					doc.Number(c.Power))
			}
			return out + sizes
		}
		if p := c.Plan; p != nil && p.next(v.Rounds) > 0 && len(p.Looks) > 1 {
			return fmt.Sprintf("No verdict yet: the plan has up to %s, and the next look is after %d. So far: %s.",
				doc.Many(int64(p.Rounds()), "round"), p.next(v.Rounds), figures)
		}
		return fmt.Sprintf("No verdict: %s are too few, alpha %s needs %d. So far: %s.",
			doc.Many(int64(m.Rounds), "round"), doc.Number(c.Alpha), c.LeastRounds, figures)
	}
	figures := fmt.Sprintf("%s %s", m.Label, changeOf(m, m.Change))
	if m.Resampled != nil {
		figures = fmt.Sprintf("%s %s, from resampling %s", m.Label, changeOf(m, m.Resampled.Change),
			doc.Many(int64(m.Resampled.Clusters), "group")+" of sessions")
	}
	if c.Kind == kindProduction {
		return "No verdict on a change, since one replay cannot separate it from the noise between runs: replayed " +
			"against recorded, " + figures + "."
	}
	return "No verdict, since one run each cannot separate a change from the noise between runs: " + figures + "."
}

// lacking names the sides that have no value of a metric in any round.
func (m *Contrast) lacking(a, b string) string {
	none := func(each []*float64) bool {
		return !slices.ContainsFunc(each, func(v *float64) bool { return v != nil })
	}
	switch inA, inB := none(m.AEach), none(m.BEach); {
	case inA && inB:
		return a + " and in " + b
	case inA:
		return a
	case inB:
		return b
	}
	return a + " and in " + b + " of one round"
}

// ofAtMost says after a number of rounds that there could have been more.
func (c *Comparison) ofAtMost(v *Versus) string {
	if p := c.Plan; p != nil && v.Rounds < p.Rounds() {
		return fmt.Sprintf(" of at most %d", p.Rounds())
	}
	return ""
}

// regressionText returns the decision by guarded metrics in words: the one that changed most, then the others.
func (c *Comparison) regressionText(v *Versus, regressed []*Contrast) string {
	m := regressed[0]
	others := slices.DeleteFunc(slices.Clone(v.metricsInOrder()),
		func(o *Contrast) bool { return !o.Regressed || o == m })
	word := "slower"
	if !figure.Unit(m.Unit).IsTime() {
		word = "worse"
	}
	out := fmt.Sprintf("%s is %s: %s %s, p %s after correction, %s%s.", v.B, word, m.Label,
		changeOf(m, m.Change), equals(m.GuardP),
		doc.Many(int64(m.Rounds), "round"), c.ofAtMost(v))
	if len(others) > 0 {
		out += " Likewise " + changes(others) + "."
	}
	return out
}

// deciding returns the metric that the decision is by.
func (v *Versus) deciding() *Contrast {
	primary := v.metricsInOrder()[0]
	if regressed := v.regressions(); len(regressed) > 0 && !(primary.Significant && primary.worse()) {
		return regressed[0]
	}
	return primary
}

// changeOf prints a change between its bounds: +10.2 % [8.1, 12.5].
func changeOf(m *Contrast, i *Interval) string {
	if i == nil {
		return "–"
	}
	if i.Low == nil || i.High == nil {
		return signed(i.Estimate) + m.unit()
	}
	return fmt.Sprintf("%s%s [%s, %s]", signed(i.Estimate), m.unit(), hundredths(*i.Low), hundredths(*i.High))
}

// size prints the size of a change.
func size(m *Contrast, v float64) string {
	return hundredths(v) + m.unit()
}

// unit returns the unit of a change: percent, or percentage points.
func (m *Contrast) unit() string {
	if m.Relative {
		return " %"
	}
	return " pt"
}

func signed(share float64) string {
	out := hundredths(share)
	if share > 0 && out != "0" {
		return "+" + out
	}
	return out
}

// hundredths prints a share in percent with one decimal, or two below 1 %.
func hundredths(share float64) string {
	places := 1
	if math.Abs(share) < 0.01 {
		places = 2
	}
	out := strconv.FormatFloat(share*100, 'f', places, 64)
	if strings.Trim(out, "-0.") == "" {
		return "0"
	}
	return strings.Replace(out, "-", "−", 1)
}

// pValue prints a probability to two digits.
func pValue(p float64) string {
	switch {
	case p < 0.001:
		return "<0.001"
	case p < 0.0995:
		return strconv.FormatFloat(p, 'g', 2, 64)
	}
	return strconv.FormatFloat(p, 'f', 2, 64)
}

// equals prints a probability as it follows the letter p.
func equals(p *float64) string {
	if p == nil {
		return "unknown"
	}
	if out := pValue(*p); out[0] == '<' {
		return "< " + out[1:]
	}
	return "= " + pValue(*p)
}
