package fidelity

import (
	"slices"
	"strings"

	"reprise/trace"
	"reprise/trace/doc"
)

// Page lays the comparison out for a browser: the verdict, every measure with
// its check, and the curves of both sides over each other.
func (f Report) Page(checks []Check) *doc.Document {
	p := &doc.Document{
		Title: "Fidelity report", Tag: trace.TierNote("report", f.Tier), Facts: f.facts(),
		About: []doc.Group{{Title: "Compared", Facts: f.about()}}, Table: f.checkTable(checks),
	}
	var failed []string
	p.Headline, failed = verdict(checks)
	if len(failed) > 0 {
		p.Verdict = []doc.Note{{Level: doc.Bad, Text: strings.Join(failed, ", "), Items: reasons(checks)}}
	}
	for _, plots := range [][]doc.Plot{f.reusePlots(), f.cdfPlots("input tokens")} {
		if len(plots) > 0 && p.Plot == nil {
			p.Plot = &plots[0]
		}
	}
	for _, w := range f.Warnings {
		p.Notes = append(p.Notes,
			doc.Note{Level: doc.Warn, Text: strings.ToUpper(w.Message[:1]) + w.Message[1:] + "."})
	}
	every := doc.Section{Title: "Every measure", Tables: []doc.Table{measureTable(f.Measures, checks)}}
	for _, c := range checks {
		if c.OK == nil {
			every.Text = append(every.Text, c.Name+" does not apply: "+c.Why+".")
		}
	}
	for _, m := range f.Measures {
		about := aboutMeasure(m.Name)
		term := doc.Term{Name: m.Name, Text: "The distance is the " + about.about + "."}
		if m.Why != "" {
			term.Text = m.Why + "."
		}
		if about.sides != "" {
			term.Text += " The sides are the " + about.sides + "."
		}
		p.Terms = append(p.Terms, term)
	}
	p.Sections = []doc.Section{
		{Title: "Prefix reuse", Plots: f.reusePlots()},
		{Title: "Lengths", Plots: f.cdfPlots("input tokens", "output tokens")},
		{Title: "Arrivals", Plots: append(f.idcPlots(), f.ratePlots()...),
			Tables: []doc.Table{f.idcTable(), f.rateTable()}},
		{Title: "Sessions and time to reuse",
			Plots: f.cdfPlots("turns of a session", growthCurve, "turn gap", "block reuse time", "think time")},
		{Title: "What a server would see", Plots: append(f.routePlots(), f.queuePlots()...),
			Tables: []doc.Table{f.routeTable(), f.queueTable()}},
		every,
	}
	if f.Sessions != "" {
		p.Sections[3].Text = []string{"Turns and turn gaps are of " + f.Sessions + " sessions, in both."}
	}
	for i := range p.Sections {
		s := &p.Sections[i]
		s.Tables = slices.DeleteFunc(s.Tables, func(t doc.Table) bool { return len(t.Rows) == 0 })
	}
	p.Sections = slices.DeleteFunc(p.Sections, func(s doc.Section) bool { return len(s.Tables)+len(s.Plots) == 0 })
	return p
}

// checkTable has the checks that apply, those that are the farthest off, or nearest to it, first; nil
// when none applies.
func (f Report) checkTable(checks []Check) *doc.Table {
	var measures []Measure
	for _, c := range nearestLimit(checks) {
		if m, ok := f.Measure(c.Name); ok {
			measures = append(measures, m)
		}
	}
	if len(measures) == 0 {
		return nil
	}
	t := measureTable(measures, checks)
	return &t
}

// facts say what was compared.
func (f Report) facts() (facts []doc.Fact) {
	for _, s := range f.sides() {
		facts = append(facts, doc.Fact{Label: s.name, Value: doc.Count(s.Requests) + " requests",
			Note: s.SourceFormat})
	}
	return facts
}

type namedSide struct {
	name string
	Side
}

func (f Report) sides() []namedSide {
	return []namedSide{{"Reference", f.Reference}, {"Candidate", f.Candidate}}
}

// about is where both sides come from. What is not known is left out.
func (f Report) about() (facts []doc.Fact) {
	for _, s := range f.sides() {
		if s.Tier != "" {
			facts = append(facts, doc.Fact{Label: s.name + "'s tier", Value: s.Tier,
				Note: "this report is no more public than that"})
		}
		if s.Digest != "" {
			facts = append(facts, doc.Fact{Label: s.name + "'s digest", Value: s.Digest, Note: "of its rows"})
		}
		if s.WarmUpS > 0 {
			facts = append(facts, doc.Fact{Label: s.name + "'s history", Value: doc.Number(s.WarmUpS) + " s",
				Note: "known, and in no figure"})
		}
	}
	if f.BlockSizeTokens > 0 {
		facts = append(facts, doc.Fact{Label: "Block", Value: doc.Count(int64(f.BlockSizeTokens)) + " tokens"})
	}
	return facts
}

func (f Report) reusePlots() []doc.Plot {
	if len(f.LRUCurve) == 0 {
		return nil
	}
	ref, cand := doc.Series{Name: "reference"}, doc.Series{Name: "candidate"}
	for _, p := range f.LRUCurve {
		ref.X, ref.Y = append(ref.X, float64(p.CapacityBlocks)), append(ref.Y, p.Ref)
		cand.X, cand.Y = append(cand.X, float64(p.CapacityBlocks)), append(cand.Y, p.Cand)
	}
	return []doc.Plot{{Title: "Hit ratio of an LRU prefix cache",
		Text:   "By block, at each capacity. The first check is of the mean distance between the curves.",
		XLabel: "capacity", XUnit: "blocks", YLabel: "hit ratio", LogX: true, Series: []doc.Series{ref, cand}}}
}

func (f Report) idcPlots() []doc.Plot {
	ref, cand := doc.Series{Name: "reference"}, doc.Series{Name: "candidate"}
	for _, p := range f.IDC {
		if p.Ref != nil {
			ref.X, ref.Y = append(ref.X, p.WindowS), append(ref.Y, *p.Ref)
		}
		if p.Cand != nil {
			cand.X, cand.Y = append(cand.X, p.WindowS), append(cand.Y, *p.Cand)
		}
	}
	if len(ref.X)+len(cand.X) == 0 {
		return nil
	}
	return []doc.Plot{{Title: "Index of dispersion for counts",
		Text: "Variance over mean of the number of arrivals in a window: 1 for a Poisson process, above for " +
			"bursts. A warning names the scales that have no part in the distance.",
		XLabel: "window", XUnit: "s", YLabel: "IDC", LogX: true, LogY: true, Series: []doc.Series{ref, cand}}}
}

// ratePlots draws how the rate of input tokens varies.
func (f Report) ratePlots() []doc.Plot {
	var cv, acf [2]doc.Series
	for i, name := range []string{"reference", "candidate"} {
		cv[i].Name, acf[i].Name = name, name
		for _, p := range f.Rates {
			x := float64(p.Seconds)
			if v := [2]*float64{p.RefCV, p.CandCV}[i]; v != nil {
				cv[i].X, cv[i].Y = append(cv[i].X, x), append(cv[i].Y, *v)
			}
			if v := [2]*float64{p.RefACF, p.CandACF}[i]; v != nil {
				acf[i].X, acf[i].Y = append(acf[i].X, x), append(acf[i].Y, *v)
			}
		}
	}
	return drawn(
		doc.Plot{Title: "CV of the input tokens in a window",
			Text:   "Standard deviation over mean of the input tokens that arrive in a window.",
			XLabel: "window", XUnit: "s", YLabel: "CV", LogX: true, LogY: true, Series: cv[:]},
		doc.Plot{Title: "Autocorrelation of the input tokens per second",
			Text:   "How far a busy second tells of a busy second later.",
			XLabel: "lag", XUnit: "s", YLabel: "autocorrelation", LogX: true, Series: acf[:]})
}

// drawn leaves out the plots that have nothing to show.
func drawn(plots ...doc.Plot) []doc.Plot {
	return slices.DeleteFunc(plots, func(p doc.Plot) bool {
		return !slices.ContainsFunc(p.Series, func(s doc.Series) bool { return len(s.X) > 0 })
	})
}

// routePlots draws the hit ratios behind routers, at the middle capacity.
func (f Report) routePlots() []doc.Plot {
	var series []doc.Series
	var capacity int64
	for _, router := range routeNames {
		ref, cand := doc.Series{Name: router + ", reference"}, doc.Series{Name: router + ", candidate"}
		for i, p := range f.Routes {
			if p.Router != router || i%len(routeShares) != gainCapacity {
				continue
			}
			x := float64(p.Replicas)
			ref.X, ref.Y = append(ref.X, x), append(ref.Y, p.Ref)
			cand.X, cand.Y = append(cand.X, x), append(cand.Y, p.Cand)
			capacity = p.CapacityBlocks
		}
		series = append(series, ref, cand)
	}
	return drawn(doc.Plot{Title: "Hit ratio behind routers",
		Text: "By block, where each replica holds " + doc.Count(capacity) +
			" blocks. The checks are of 12 fleets each.",
		XLabel: "replicas", YLabel: "hit ratio", LogX: true, Series: series})
}

// queuePlots draws the tail of a queue.
func (f Report) queuePlots() []doc.Plot {
	ref, cand := doc.Series{Name: "reference"}, doc.Series{Name: "candidate"}
	for _, p := range f.Queues {
		if p.Ref != nil {
			ref.X, ref.Y = append(ref.X, 100*p.Load), append(ref.Y, p.Ref.P90)
		}
		if p.Cand != nil {
			cand.X, cand.Y = append(cand.X, 100*p.Load), append(cand.Y, p.Cand.P90)
		}
	}
	return drawn(doc.Plot{Title: "p90 TTFT of a queue",
		Text:   "One server, first come first served, which takes its time by tokens that are not cached.",
		XLabel: "load", XUnit: "%", YLabel: "p90 TTFT, s", LogY: true, Series: []doc.Series{ref, cand}})
}

// cdfPlots draws the named distributions, those that either side has.
func (f Report) cdfPlots(names ...string) []doc.Plot {
	var plots []doc.Plot
	for _, c := range f.curves {
		if !slices.Contains(names, c.name) {
			continue
		}
		p := doc.Plot{Title: "Distribution of the " + c.name,
			Text:   "The largest vertical distance is the Kolmogorov-Smirnov distance.",
			XLabel: c.name, XUnit: c.unit, YLabel: "share at most", Kind: doc.CDF}
		for _, s := range []doc.Series{cdfSeries("reference", c.ref, c.per), cdfSeries("candidate", c.cand, c.per)} {
			if len(s.X) > 0 {
				p.Series = append(p.Series, s)
			}
		}
		if len(p.Series) > 0 {
			plots = append(plots, p)
		}
	}
	return plots
}

// cdfSeries is a cumulative distribution.
func cdfSeries(name string, l valueList, per float64) doc.Series {
	s := doc.Series{Name: name, N: l.total()}
	var sum int64
	for _, b := range l {
		sum += b.n
		s.X, s.Y = append(s.X, float64(b.v)/per), append(s.Y, float64(sum)/float64(s.N))
	}
	return s
}
