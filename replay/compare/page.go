package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// Page lays the comparison out for a browser: the decision with the effect and its
// interval as the headline, and on the first screen what A and B are, the main metrics
// and the distributions of both.
func Page(c Comparison) *doc.Document {
	p := &doc.Document{Title: "Comparison", Tag: trace.TierNote("page", c.Tier), Lead: c.lead(), Facts: c.facts(),
		Table: c.firstTable(), Plot: c.distributions(), About: c.about()}
	levels := map[string]doc.Level{Worse: doc.Bad, better: doc.Good, notFound: doc.Info, undecided: doc.Info}
	if len(c.Versus) == 1 {
		p.Headline = c.headline(&c.Versus[0])
	}
	if says := c.trust(); !c.Trustworthy() {
		_, says, _ = strings.Cut(says, ": ")
		p.Verdict = append(p.Verdict, doc.Note{Level: doc.Bad, Word: "Not trustworthy", Text: says})
	} else if says != "" {
		p.Verdict = append(p.Verdict, doc.Note{Level: doc.Warn, Text: says})
	}
	for i := range c.Versus {
		v := &c.Versus[i]
		if len(c.Versus) > 1 {
			p.Verdict = append(p.Verdict, doc.Note{Level: levels[v.Decision], Word: v.B, Text: c.headline(v)})
		}
		if also := v.otherMetricsText(); also != "" {
			p.Notes = append(p.Notes, doc.Note{Level: doc.Info, Word: "Other metrics", Text: also})
		}
	}
	for _, w := range c.Warnings {
		p.Notes = append(p.Notes, doc.Note{Level: doc.Info, Text: w.Text})
	}
	for i := range c.Versus {
		p.Sections = append(p.Sections, c.sections(&c.Versus[i])...)
	}
	return p
}

// lead says what the sides are.
func (c *Comparison) lead() string {
	var out []string
	for _, name := range c.names() {
		if what := c.settings[name]; what != "" {
			out = append(out, textpage.Plain(name)+": "+what)
		}
	}
	switch n := c.Versus[0].Rounds; c.Kind {
	case kindProduction:
		out = append(out, "What the trace recorded against a replay of it")
	default:
		out = append(out, doc.Many(int64(n), "round")+" of "+doc.Many(c.Runs[0].Requests, "request")+" a side")
	}
	if m := c.Runs[0].Model; m != "" && !slices.ContainsFunc(c.Runs, func(r Run) bool { return r.Model != m }) {
		out = append(out, "model "+textpage.Plain(m))
	}
	return strings.Join(out, " · ")
}

func (c *Comparison) names() []string {
	out := []string{c.A}
	for i := range c.Versus {
		out = append(out, c.Versus[i].B)
	}
	return out
}

// named is the name of a side; one that says nothing has with it what differs.
func (c *Comparison) named(arm string) string {
	what := c.settings[arm]
	if utf8.RuneCountInString(arm) > 1 || what == "" || utf8.RuneCountInString(what) > 40 {
		return textpage.Plain(arm)
	}
	return textpage.Plain(arm) + " (" + what + ")"
}

// headline is the decision with the effect and its interval.
func (c *Comparison) headline(v *Versus) string {
	m := v.deciding()
	if m.Change == nil {
		return v.Text
	}
	effect := m.Label + " " + c.effect(m)
	switch v.Decision {
	case Worse, better:
		words := map[bool]string{true: "better", false: "worse"}
		if figure.Unit(m.Unit).IsTime() {
			words = map[bool]string{true: "faster", false: "slower"}
		}
		return c.named(v.B) + " is " + words[v.Decision == better] + ": " + effect
	case notFound:
		return "No significant difference in " + m.Label + ": " + c.effect(m)
	}
	return "No verdict: " + effect
}

// effect is a change with the interval that it lies in.
func (c *Comparison) effect(m *Contrast) string {
	i := m.Change
	if i.Low == nil && m.Resampled != nil && m.Resampled.Change != nil {
		i = m.Resampled.Change
	}
	out := signed(i.Estimate) + m.unit()
	if i.Low != nil && i.High != nil {
		out += fmt.Sprintf(" (%s CI %s to %s%s)", doc.Percent(c.Confidence), hundredths(*i.Low),
			hundredths(*i.High), m.unit())
	}
	return out
}

func (c *Comparison) facts() (out []doc.Fact) {
	put := func(label, value, note string) {
		out = append(out, doc.Fact{Label: label, Value: value, Note: note})
	}
	if len(c.Versus) != 1 || c.Kind != kindRounds {
		return nil
	}
	m := c.Versus[0].deciding()
	if m.Primary {
		put("p", doc.OrDash(m.P, pValue), fmt.Sprintf("%s, Wilcoxon; alpha %s", m.Label, doc.Number(c.Alpha)))
	} else {
		put("p", doc.OrDash(m.GuardP, pValue), fmt.Sprintf("%s, flipped signs; alpha %s", m.Label,
			doc.Number(c.Alpha)))
	}
	if m.Detectable != nil {
		put("Minimum detectable effect", size(m, *m.Detectable), "power "+doc.Number(c.Power))
	}
	if m.Noise != nil {
		put("Noise", size(m, m.Noise.SD), "SD from round to round")
	}
	return out
}

// firstMetrics are those of the first screen, besides the primary one.
var firstMetrics = []string{"p50_ttft", "p99_ttft", "p50_tpot", "p99_tpot", "p99_e2e", "p50_session_time",
	"output_tokens_per_s", "error_rate"}

func (c *Comparison) firstTable() *doc.Table {
	t := &doc.Table{Caption: "Medians over the rounds; * is significant", Head: []string{"", textpage.Plain(c.A)},
		Align: []doc.Align{doc.Left, doc.Right}}
	if c.Kind != kindRounds {
		t.Caption = ""
	}
	for i := range c.Versus {
		t.Head, t.Align = append(t.Head, textpage.Plain(c.Versus[i].B), "change"),
			append(t.Align, doc.Right, doc.Right)
	}
	for _, m := range c.Versus[0].metricsInOrder() {
		if !m.Primary && !slices.Contains(firstMetrics, m.Metric) {
			continue
		}
		row := []string{m.titled(), valueOf(m, m.A)}
		for i := range c.Versus {
			value, change := "–", "–"
			for j := range c.Versus[i].Metrics {
				if o := &c.Versus[i].Metrics[j]; o.Metric == m.Metric {
					if value = valueOf(o, o.B); o.Change != nil {
						change = signed(o.Change.Estimate) + o.unit()
					}
					if o.Significant || o.Regressed {
						change += " *"
					}
				}
			}
			row = append(row, value, change)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// drawnSpread is the latency that the primary metric is of; TTFT where it is of none.
func (c *Comparison) drawnSpread() int {
	f, err := figure.Parse(c.Primary, comparable)
	if m := metricOf(f); err == nil && m.spread != noSpread {
		return m.spread
	}
	return spreadTTFT
}

// distributions draws that latency of every arm; nil where the requests are not known.
func (c *Comparison) distributions() *doc.Plot {
	for _, l := range latencies {
		if l.spread != c.drawnSpread() {
			continue
		}
		label := l.of.Label
		out := doc.Plot{Title: label + " distribution",
			Text: "All requests of all rounds. A curve further to the left is faster.", Kind: doc.CDF, XLabel: label,
			XUnit: "ms", YLabel: "share of requests"}
		if l.spread == spreadITL {
			out.YLabel = "share of gaps"
		}
		if l.spread == spreadSession {
			out.Text, out.YLabel = "All sessions of all rounds that succeeded. A curve further to the left is faster.",
				"share of sessions"
		}
		for _, s := range c.curves {
			s.Name = c.named(s.Name)
			out.Series = append(out.Series, s)
		}
		if drawn := doc.Drawn(out); len(drawn) > 0 {
			return &drawn[0]
		}
	}
	return nil
}

// curve is the cumulative distribution of the values, in milliseconds, in steps of half
// a percent and finer at its end.
func (c *clustered) curve(name string) doc.Series {
	c.merge()
	s := doc.Series{Name: name}
	for _, x := range c.cells {
		s.N += int64(x.n)
	}
	seen, drawn := int64(0), 0.0
	for i, x := range c.cells {
		seen += int64(x.n)
		share, bar := float64(seen)/float64(s.N), x.key>>groupBits
		if i+1 < len(c.cells) && c.cells[i+1].key>>groupBits == bar {
			continue // the bar goes on with another group
		}
		if i+1 < len(c.cells) && len(s.X) > 0 && share-drawn < min(0.005, (1-drawn)/10) {
			continue
		}
		s.X, s.Y = append(s.X, middleOf(int(bar))/1e6), append(s.Y, share)
		drawn = share
	}
	return s
}

// settingsOf tells for each arm how the set-up of its runs differs from the others: its
// engine, endpoint or model, not the client.
func settingsOf(arms []Arm) map[string]string {
	var all []*result.Run
	for _, arm := range arms {
		all = append(all, &arm.Runs[0].Run)
	}
	rows, err := report.Differing(all...)
	if err != nil { // what cannot be told is left out
		return nil
	}
	of := make([][]string, len(arms))
	for _, row := range rows {
		if name := row[0]; name == "seed" || name == "version" || strings.HasPrefix(name, "environment.host") {
			continue
		}
		for i, value := range row[1:] {
			if len(of[i]) < 3 {
				if value == "true" || value == "false" {
					value = row[0] + "=" + value
				}
				of[i] = append(of[i], textpage.Plain(cmp.Or(value, "no "+row[0])))
			}
		}
	}
	out := map[string]string{}
	for i, arm := range arms {
		out[arm.Name] = strings.Join(slices.Compact(of[i]), ", ")
	}
	return out
}

func (c *Comparison) about() []doc.Group {
	g := doc.Group{Title: "Runs"}
	fact := func(label, value, note string) {
		if value != "" {
			g.Facts = append(g.Facts, doc.Fact{Label: label, Value: value, Note: note})
		}
	}
	for i := range c.Runs {
		if r := &c.Runs[i]; r.Round == 1 {
			fact(r.Arm, strings.TrimPrefix(strings.Join([]string{c.settings[r.Arm], r.Model}, ", "), ", "),
				doc.Many(r.Requests, "request")+" in the first round")
		}
	}
	fact("Rounds", doc.Brief(int64(c.Versus[0].Rounds)), "")
	fact("Workload", report.ShortDigest(c.Runs[0].Workload), "digest of its rows; whole in the JSON")
	fact("Tier", c.Tier, "the strictest of the runs")
	fact("Started", report.ToSecond(c.Runs[0].Started), "")
	return []doc.Group{g}
}

func (c *Comparison) sections(v *Versus) []doc.Section {
	head, rows := c.table(v)
	main := doc.Section{Title: c.named(v.B) + " against " + c.named(c.A),
		Text:   append(append([]string{v.Text}, c.reading()...), c.planned()...),
		Tables: []doc.Table{{Caption: "Metrics", Head: head, Rows: rows}}}
	if head, rows := c.resampledTable(v, false); len(rows) > 0 {
		main.Tables = append(main.Tables, doc.Table{Caption: "Resampled by session", Head: head, Rows: rows})
	}
	if c.Kind != kindRounds {
		return []doc.Section{main}
	}
	plots := doc.Section{Title: "By round",
		Text: []string{"Both sides of every round, and their change; a pair is compared with itself, so that what " +
			"moves both is not in the change."}}
	for i := range v.Metrics {
		m := &v.Metrics[i]
		a, b, change := doc.Series{Name: c.named(c.A)}, doc.Series{Name: c.named(v.B)}, doc.Series{Name: "change"}
		for round := range m.AEach {
			at, before, after := float64(round+1), m.AEach[round], m.BEach[round]
			if before == nil || after == nil {
				continue
			}
			a.X, a.Y = append(a.X, at), append(a.Y, *before)
			b.X, b.Y = append(b.X, at), append(b.Y, *after)
			d := *after - *before
			if m.Relative && *before > 0 {
				d /= *before
			}
			change.X, change.Y = append(change.X, at), append(change.Y, 100*d)
		}
		plot := func(title, label, unit string, series ...doc.Series) doc.Plot {
			return doc.Plot{Title: title, Kind: doc.Line, XLabel: "round", YLabel: label, YUnit: unit, Series: series}
		}
		plots.Plots = append(plots.Plots, doc.Drawn(plot(m.Label, m.Label, m.Unit, a, b))...)
		if m.Primary {
			changes := plot("Change of "+m.Label, c.named(v.B)+" over "+c.named(c.A), "%", change)
			changes.Zero = true
			plots.Plots = append(plots.Plots, doc.Drawn(changes)...)
		}
	}
	return []doc.Section{main, plots}
}
