package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"reprise/replay/figure"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// firstMetrics are those of the first screen, besides the ones that decide.
var firstMetrics = []string{"p50_ttft", "p99_ttft", "p50_tpot", "p99_tpot", "p99_e2e", "p50_session_time",
	"output_tokens_per_s", "error_rate"}

// firstTable has what most look for, of every arm: first what differs.
func (c *Comparison) firstTable() *doc.Table {
	t := &doc.Table{Head: []string{"", textpage.Plain(c.A)}}
	if c.Kind == kindRounds {
		t.Caption = "Medians over the rounds, and of the changes in a round; * is significant"
		if v := &c.Versus[0]; len(c.Versus) == 1 && v.Decided() && c.tooFew(v) != "" {
			t.Caption += ", which so few rounds can show for the first line only"
		}
	}
	for i := range c.Versus {
		t.Head = append(t.Head, textpage.Plain(c.Versus[i].B), "change")
	}
	t.Align = doc.FiguresOf(len(t.Head))

	for _, m := range c.Versus[0].metricsInOrder() {
		if !m.Primary && m != c.Versus[0].deciding() && !slices.Contains(firstMetrics, m.Metric) {
			continue
		}
		row := []string{m.titled(), valueOf(m, m.A)}
		for i := range c.Versus {
			value, change := "–", "–"
			if o := c.Versus[i].metric(m.Metric); o != nil {
				value, change = valueOf(o, o.B), changeOf(o, o.Change)
				if o.Significant || o.Regressed {
					change += " *"
				}
			}
			row = append(row, value, change)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// metric finds a metric by its name, nil where the arm has none of it.
func (v *Versus) metric(name string) *Contrast {
	i := slices.IndexFunc(v.Metrics, func(m Contrast) bool { return m.Metric == name })
	if i < 0 {
		return nil
	}
	return &v.Metrics[i]
}

// table has one row for each metric.
func (c *Comparison) table(v *Versus) (head []string, rows [][]string) {
	head = []string{"", textpage.Plain(c.A), textpage.Plain(v.B), "change"}
	rounds := c.Kind == kindRounds
	if rounds {
		head = append(head, "p", "t-test", "dz", "MDE", "noise")
	}
	for _, m := range v.metricsInOrder() {
		row := []string{m.titled(), valueOf(m, m.A), valueOf(m, m.B), changeOf(m, m.Change)}
		if rounds {
			p, t, dz, mde, noise := doc.OrDash(m.P, pValue), "–", "–", "–", "–"
			switch {
			case m.Significant:
				p += " *"
			case m.Regressed:
				p = pValue(*m.GuardP) + " *"
			}
			if m.T != nil {
				t, dz = pValue(m.T.P), strings.Replace(strconv.FormatFloat(m.T.CohenDz, 'f', 1, 64), "-", "−", 1)
			}
			if m.Detectable != nil {
				mde = size(m, *m.Detectable)
			}
			if m.Noise != nil {
				noise = size(m, m.Noise.SD)
			}
			row = append(row, p, t, dz, mde, noise)
		}
		rows = append(rows, row)
	}
	return head, rows
}

// resampledTable has the intervals from resampling.
func (c *Comparison) resampledTable(v *Versus) (head []string, rows [][]string) {
	head = []string{"", textpage.Plain(c.A), textpage.Plain(v.B), "change"}
	for _, m := range v.metricsInOrder() {
		if r := m.Resampled; r != nil {
			rows = append(rows, []string{m.Label, bounded(r.A, m.Unit), bounded(r.B, m.Unit), changeOf(m, r.Change)})
		}
	}
	return head, rows
}

func bounded(i *Interval, unit string) string {
	if i == nil {
		return "–"
	}
	return fmt.Sprintf("%s [%s, %s] %s", doc.Short(i.Estimate), doc.OrDash(i.Low, doc.Short),
		doc.OrDash(i.High, doc.Short), unit)
}

// titled is the label with its unit, of a time.
func (m *Contrast) titled() string {
	if figure.Unit(m.Unit).IsTime() {
		return m.Label + ", " + m.Unit
	}
	return m.Label
}

func valueOf(m *Contrast, v *float64) string {
	if m.Unit == "share" {
		return doc.OrDash(v, doc.Percent)
	}
	return doc.OrDash(v, doc.Short)
}

// tooFew says that no other metric can be significant after so few rounds, and why; "" where one can.
func (c *Comparison) tooFew(v *Versus) string {
	family := 0
	c.each(func(_ *Versus, m *Contrast) {
		if m.Wilcoxon != nil && !m.Primary {
			family++
		}
	})
	least := func(rounds int) float64 { return min(1, float64(family)*math.Ldexp(2, -rounds)) }
	if c.Kind != kindRounds || family == 0 || least(v.Rounds) <= c.FamilyAlpha {
		return ""
	}
	enough := v.Rounds
	for least(enough) > c.FamilyAlpha {
		enough++
	}
	return fmt.Sprintf("p of the %s beside the first line is corrected for their number (Holm): with %s it is "+
		"never below %s, so no change in them is significant by this test, however large. From %d rounds on it can be.",
		doc.Many(int64(family), "metric"), doc.Many(int64(v.Rounds), "round"), pValue(least(v.Rounds)), enough)
}

// reading explains the table.
func (c *Comparison) reading() (says []string) {
	confidence := doc.Percent(c.Confidence)
	switch c.Kind {
	case kindRounds:
		says = append(says, fmt.Sprintf(
			"Figures are medians over the rounds; latencies are response times, from the schedule. The change is the "+
				"Hodges-Lehmann estimate with its %s CI. "+
				"p is by Wilcoxon's exact signed ranks after Holm: of the first line at alpha %s, of all others "+
				"together at %s; * is significant. "+
				"Being worse in any of these decides too, at alpha %s over all of them by flipping the signs of "+
				"whole rounds: "+guardNames()+". "+
				"The paired t-test and Cohen's dz are for reference only. MDE is the minimum detectable effect: a "+
				"smaller change is found in less than %s of the cases. Noise is the standard deviation from one round of "+
				"%s to the next.",
			confidence, doc.Number(c.Alpha), doc.Number(c.FamilyAlpha), doc.Number(c.Alpha),
			doc.Percent(c.Power), c.A))
	case kindSingle:
		says = append(says, "Figures are of the two runs; latencies are response times, from the schedule.")
	case kindProduction:
		says = append(says, "Recorded is what the trace says that its requests took; replayed is the same rows from "+
			"when they were sent.")
	}
	for i := range c.Versus {
		for _, m := range c.Versus[i].Metrics {
			if r := m.Resampled; r != nil {
				drawn := "each side drawn for itself"
				if r.Paired {
					drawn = "the same sessions drawn on both sides"
				}
				return append(says, fmt.Sprintf("Resampled: %s with their %s CI, from %s draws of %s of sessions, a "+
					"request without one for itself, %s. These intervals cover variation between sessions, not runs.",
					"percentiles and means of all requests", confidence, doc.Brief(int64(r.Replicates)),
					doc.Many(int64(r.Clusters), "group"), drawn))
			}
		}
	}
	return says
}

// planned is the plan of the rounds, or says how many would find the change that was asked
// about.
func (c *Comparison) planned() (says []string) {
	if p := c.Plan; p != nil {
		if p.Pilot > 0 {
			says = append(says, "The plan: "+p.String())
		}
		return says
	}
	for i := range c.Versus {
		for _, m := range c.Versus[i].Metrics {
			if m.Primary && m.RoundsFor != nil {
				says = append(says, fmt.Sprintf("%s against %s: with the spread of these rounds, a change of %s of "+
					"the size asked about needs %s (power %s, alpha %s).",
					c.Versus[i].B, c.A, m.Label, doc.Many(int64(*m.RoundsFor), "round"), doc.Number(c.Power),
					doc.Number(c.Alpha)))
			}
		}
	}
	return says
}
