package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"reprise/replay/figure"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// WriteJSON writes the comparison as indented JSON with a line feed at
// its end.
func WriteJSON(w io.Writer, c Comparison) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(c)
}

// WriteText writes the comparison for people: for each arm the decision, then the
// metrics that differ and the primary one, in [textpage.AnswerLines] lines for one arm.
// With details it writes all metrics, how to read them, and the warnings.
func WriteText(w io.Writer, c Comparison, o textpage.Options) error {
	p := textpage.New(o)
	for i := range c.Versus {
		v := &c.Versus[i]
		p.Line("", v.Text)
		if also := v.otherMetricsText(); also != "" {
			p.Line("  ", also)
		}
	}
	if says := c.trust(); says != "" {
		p.Line("", says)
	}
	if tier := trace.TierNote("comparison", c.Tier); tier != "" {
		p.Line("", tier)
	}
	if o.Details {
		c.writeDetails(p)
	} else {
		c.writeAnswer(p, o.Rest)
	}
	_, err := p.WriteTo(w)
	return err
}

// An answer has so many metrics of each arm.
const (
	answerMetrics = 8
	leastMetrics  = 4 // however much there is to warn of
)

// writeAnswer writes the first metrics of each arm, fewer of them where there is much to warn of,
// the warnings, and where the rest is.
func (c *Comparison) writeAnswer(p *textpage.Page, rest string) {
	foot := textpage.New(textpage.Options{Width: p.Width()})
	for _, warning := range c.Warnings {
		foot.Line("warning: ", warning.Text)
	}
	foot.Line("", rest)
	room := textpage.AnswerLines - p.Lines() - foot.Lines() - 2 - 3*len(c.Versus)
	most := min(max(room/max(len(c.Versus), 1), leastMetrics), answerMetrics)
	for i := range c.Versus {
		v := &c.Versus[i]
		head, rows := c.table(v)
		more := max(0, len(rows)-most)
		rows = rows[:len(rows)-more]
		for j := range rows {
			rows[j] = rows[j][:4]
		}
		p.Blank()
		p.Columns(head[:4], rows)
		if more > 0 {
			p.Line("", fmt.Sprintf("and %s", doc.Many(int64(more), "more metric")))
		}
	}
	p.Blank()
	p.Append(foot)
}

// writeDetails writes all metrics, how to read them, and the warnings.
func (c *Comparison) writeDetails(p *textpage.Page) {
	for i := range c.Versus {
		v := &c.Versus[i]
		head, rows := c.table(v)
		p.Table(v.B+" against "+c.A, head, rows)
		head, rows = c.resampledTable(v, c.Kind == kindRounds)
		p.Table("Resampled by session", head, rows)
	}
	p.Blank()
	for _, says := range c.reading() {
		p.Line("  ", says)
	}
	if c.Kind == kindRounds {
		p.Line("  ", "Intervals from resampling of the metrics that do not differ are in the JSON and on the page.")
	}
	for _, says := range c.planned() {
		p.Line("  ", says)
	}
	for _, warning := range c.Warnings {
		p.Line("warning: ", warning.Text)
	}
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

// resampledTable has the intervals from resampling; with found, only those of the
// primary metric and of the metrics that differ.
func (c *Comparison) resampledTable(v *Versus, found bool) (head []string, rows [][]string) {
	head = []string{"", textpage.Plain(c.A), textpage.Plain(v.B), "change"}
	for _, m := range v.metricsInOrder() {
		if r := m.Resampled; r != nil && (!found || m.Primary || m.Significant) {
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

// reading explains the table.
func (c *Comparison) reading() (says []string) {
	confidence := doc.Percent(c.Confidence)
	switch c.Kind {
	case kindRounds:
		says = append(says, fmt.Sprintf(
			"Figures are medians over the rounds; latencies are response times, from the schedule. The change is the "+
				"Hodges-Lehmann estimate with its %s CI. "+
				"p is that of Wilcoxon's exact signed ranks after Holm: of the first line at alpha %s, of all others "+
				"together at %s; * is significant. "+
				"Being worse in any of these decides too, at alpha %s over all of them by flipping the signs of "+
				"whole rounds: "+guardNames()+". "+
				"The paired t-test and Cohen's dz beside it decide nothing. MDE is the minimum detectable effect: a "+
				"smaller change is found in less than %s of the cases. Noise is the standard deviation from one round of "+
				"%s to the next.",
			confidence, doc.Number(c.Alpha), doc.Number(c.FamilyAlpha), doc.Number(c.Alpha),
			doc.Percent(c.Power), c.A))
	case kindSingle:
		says = append(says, "Figures are those of the two runs; latencies are response times, from the schedule.")
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
					"request without one for itself, %s. It knows how sessions differ, not how runs do.",
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
