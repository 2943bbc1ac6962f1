package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// Document lays the comparison out: the decision with the figures that it rests on as the headline, and on the first
// screen what A and B are, the main metrics and the distributions of both.
func (c *Comparison) Document() *doc.Document {
	p := &doc.Document{Title: "Comparison", Tag: trace.TierNote("comparison", c.Tier), Headline: c.headline(),
		Verdict: c.verdict(), Lead: c.lead(), Facts: c.facts(), Table: c.firstTable(), Plot: c.distributions(),
		About: c.about()}

	for i := range c.Versus {
		differ, same := c.Versus[i].otherMetrics()
		if !c.Versus[i].Decided() {
			differ = "" // it is beside the verdict
		}
		if other := strings.TrimSpace(differ + " " + same); other != "" {
			p.Notes = append(p.Notes, doc.Note{Level: doc.Info, Word: "Other metrics", Text: other})
		}
	}
	for _, w := range c.Warnings {
		if !slices.Contains(foremost, w.Code) {
			p.Notes = append(p.Notes, doc.Note{Level: doc.Warn, Text: w.Text})
		}
	}

	for i := range c.Versus {
		p.Sections = append(p.Sections, c.sections(&c.Versus[i])...)
	}
	return p
}

// headline is the decision in a sentence, and how many runs cannot be trusted. The decisions on several arms are
// notes of the verdict.
func (c *Comparison) headline() string {
	doubt := c.untrustedRuns()
	if len(c.Versus) > 1 && doubt != "" {
		return "Do not rely on this: " + doubt
	} else if len(c.Versus) > 1 {
		return ""
	}
	v := &c.Versus[0]
	decision, _ := v.decisionSentences()
	in, decides := c.doubted(v.deciding())
	if in != "" {
		doubt += " in " + in
	}
	switch decision = strings.TrimSuffix(decision, "."); {
	case doubt == "":
		return decision + "."
	case !decides:
		return decision + "; besides, " + doubt + ", on which " + v.deciding().Label + " does not rest"
	case v.Decided():
		return decision + ", but do not rely on it: " + doubt
	}
	return decision + "; besides, " + doubt
}

// doubted names the latencies that the reasons against runs are about, "" where some reason is about all figures, and
// tells whether a metric rests on what is in doubt.
func (c *Comparison) doubted(m *Contrast) (in string, decides bool) {
	var names []string
	f, err := figure.Parse(m.Metric, comparable)
	decides = err != nil || !f.Spread || f.Sessions
	for _, run := range c.untrusted() {
		for i := range run.Reasons {
			of, _ := run.Reasons[i].Doubts()
			if of == nil {
				return "", true
			}
			for _, s := range of {
				names, decides = append(names, s.Label), decides || s == f.Subject
			}
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", "), decides || len(names) == 0
}

// decisionSentences are the first sentence of the decision, and the others.
func (v *Versus) decisionSentences() (first, others string) {
	first, others, more := strings.Cut(v.Text, ". ")
	if more {
		first += "."
	}
	return first, others
}

// foremost are the warnings without which nobody would doubt the decision.
var foremost = []string{warnUntrusted, report.WarnPreset}

// verdict is what to know beside the headline, before any figure.
func (c *Comparison) verdict() (notes []doc.Note) {
	levels := map[string]doc.Level{Worse: doc.Bad, better: doc.Good, notFound: doc.Info, undecided: doc.Info}
	for i := range c.Versus {
		v := &c.Versus[i]
		if _, others := v.decisionSentences(); len(c.Versus) > 1 {
			notes = append(notes, doc.Note{Level: levels[v.Decision], Word: textpage.Plain(v.B), Text: v.Text})
		} else if others != "" {
			notes = append(notes, doc.Note{Level: doc.Info, Text: others})
		}
		if differ, _ := v.otherMetrics(); differ != "" && !v.Decided() {
			notes = append(notes, doc.Note{Level: doc.Info, Text: differ})
		}
	}

	for _, w := range c.Warnings {
		switch {
		case w.Code == warnUntrusted:
			notes = append(notes, doc.Note{Level: doc.Bad, Text: w.Text})
		case slices.Contains(foremost, w.Code):
			notes = append(notes, doc.Note{Level: doc.Warn, Text: w.Text})
		}
	}
	if loosened := c.Loosened.String(); loosened != "" {
		notes = append(notes, doc.Note{Level: doc.Warn, Text: loosened})
	}
	return notes
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
		requests := doc.Many(c.Runs[0].Requests, "request")
		if warm := c.Runs[0].WarmUp; warm > 0 {
			requests += " (after " + doc.Brief(warm) + " of warm-up)"
		}
		rounds := doc.Many(int64(n), "round")
		if c.Kind == kindSingle {
			rounds = "1 run"
		}
		out = append(out, rounds+" of "+requests+" a side")
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

// facts are what the rounds could find.
func (c *Comparison) facts() (out []doc.Fact) {
	if len(c.Versus) != 1 || c.Kind != kindRounds {
		return nil
	}
	m := c.Versus[0].deciding()
	if m.Detectable != nil {
		out = append(out, doc.Fact{Label: "Minimum detectable effect", Value: size(m, *m.Detectable),
			Note: fmt.Sprintf("of %s, power %s, alpha %s", m.Label, doc.Number(c.Power), doc.Number(c.Alpha))})
	}
	if m.Noise != nil {
		out = append(out, doc.Fact{Label: "Noise", Value: size(m, m.Noise.SD), Note: "SD from round to round"})
	}
	return out
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
		return out.OrNil()
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
		if name := row[0]; name == "seed" || name == "version" || strings.HasPrefix(name, "environment.host") ||
			strings.HasSuffix(name, "_from") { // where a figure was read, not what it is
			continue
		}
		for i, value := range row[1:] {
			if len(of[i]) < 3 {
				of[i] = append(of[i], named(row[0], textpage.Plain(value)))
			}
		}
	}
	out := map[string]string{}
	for i, arm := range arms {
		out[arm.Name] = strings.Join(slices.Compact(of[i]), ", ")
	}
	return out
}

// selfSaid are settings whose value says what it is.
var selfSaid = []string{"endpoints", "model", "simulated", "server version"}

// named is a setting of a run with its value, such as block size 16. The place of the setting in the results is left
// out of its name.
func named(setting, value string) string {
	var words []string
	for _, word := range strings.FieldsFunc(setting, func(r rune) bool { return strings.ContainsRune("._[]", r) }) {
		if _, err := strconv.Atoi(word); err != nil && !slices.Contains([]string{"environment", "servers", "sampling"},
			word) {
			words = append(words, word)
		}
	}
	name := strings.Join(words, " ")
	switch {
	case value == "":
		return "without " + name
	case value == "true" || value == "false":
		return name + " " + map[string]string{"true": "on", "false": "off"}[value]
	case slices.Contains(selfSaid, name):
		return value
	}
	return name + " " + value
}

func (c *Comparison) about() []doc.Group {
	g := doc.Group{Title: "Runs"}
	fact := g.Add
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
	caption := "Metrics"
	if few := c.tooFew(v); few != "" {
		caption += ". " + few
	}
	main := doc.Section{Title: c.named(v.B) + " against " + c.named(c.A),
		Text:   append(append([]string{v.Text}, c.reading()...), c.planned()...),
		Tables: []doc.Table{{Caption: caption, Head: head, Rows: rows, Align: doc.FiguresOf(len(head))}}}
	if head, rows := c.resampledTable(v); len(rows) > 0 {
		main.Tables = append(main.Tables, doc.Table{Caption: "Resampled by session", Head: head, Rows: rows,
			Align: doc.FiguresOf(len(head))})
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
