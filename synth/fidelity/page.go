package fidelity

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"reprise/trace"
	"reprise/trace/page"
)

// Page lays the comparison out for a browser: the verdict, every measure with
// its check, and the curves of both sides over each other.
func (f Report) Page(checks []Check) *page.Page {
	p := &page.Page{
		Title: "Fidelity report", Headline: headline(checks),
		Lead: "How close a candidate workload is to a reference trace. A distance of 0 means that the two agree; " +
			"where a plot shows one curve, the other lies under it.",
		Facts: f.facts(), About: []page.Group{{Title: "Compared", Facts: f.about()}}, Table: firstChecks(checks),
	}
	for _, plots := range [][]page.Plot{f.reusePlots(), f.cdfPlots("input tokens")} {
		if len(plots) > 0 && p.Plot == nil {
			p.Plot = &plots[0]
		}
	}
	level := page.Good
	if len(Failures(checks)) > 0 {
		level = page.Bad
	}
	p.Notes = []page.Note{{Level: level, Text: gateVerdict(checks)}}
	for _, said := range reasons(checks) {
		p.Notes = append(p.Notes, page.Note{Level: page.Bad, Text: said + "."})
	}
	if tier := trace.TierNote("page", f.Tier); tier != "" {
		p.Notes = append(p.Notes, page.Note{Level: page.Warn, Text: tier})
	}
	for _, w := range f.Warnings {
		p.Notes = append(p.Notes,
			page.Note{Level: page.Warn, Text: strings.ToUpper(w.Message[:1]) + w.Message[1:] + "."})
	}
	checked := page.Table{Head: []string{"Check", "Distance", "Limit", "Result", "The distance is the"},
		Align: []page.Align{page.Left, page.Right, page.Right, page.Left, page.Left}}
	for _, c := range checks {
		result := c.result()
		if c.OK == nil {
			result += ": " + c.Why
		}
		about := aboutMeasure(c.Name).about
		checked.Rows = append(checked.Rows,
			[]string{c.Name, asRatio.print(c.Value), strconv.FormatFloat(c.Limit, 'g', -1, 64), result, about})
	}
	measured := page.Table{Head: []string{"Measure", "Reference", "Candidate", "Distance", "The distance is the",
		"The sides are the"},
		Align: []page.Align{page.Left, page.Right, page.Right, page.Right, page.Left, page.Left}}
	for _, m := range f.Measures {
		about := aboutMeasure(m.Name)
		what := about.about
		if m.Why != "" {
			what = m.Why
		}
		measured.Rows = append(measured.Rows, []string{m.Name, about.form.print(m.Ref), about.form.print(m.Cand),
			asRatio.print(m.Distance), what, about.sides})
	}
	p.Sections = []page.Section{
		{Title: "Checks", Tables: []page.Table{checked}},
		{Title: "Prefix reuse", Plots: f.reusePlots()},
		{Title: "Lengths", Plots: f.cdfPlots("input tokens", "output tokens")},
		{Title: "Arrivals", Plots: append(f.idcPlots(), f.ratePlots()...)},
		{Title: "Sessions and time to reuse",
			Plots: f.cdfPlots("turns of a session", growthCurve, "turn gap", "block reuse time", "think time")},
		{Title: "What a server would see", Plots: append(f.routePlots(), f.queuePlots()...)},
		{Title: "Every measure", Tables: []page.Table{measured}},
	}
	if f.Sessions != "" {
		p.Sections[4].Text = []string{"Turns and turn gaps are of " + f.Sessions + " sessions, in both."}
	}
	p.Sections = slices.DeleteFunc(p.Sections, func(s page.Section) bool { return len(s.Tables)+len(s.Plots) == 0 })
	return p
}

// headline counts the checks that hold.
func headline(checks []Check) string {
	held, applied := 0, 0
	for _, c := range checks {
		if c.OK != nil {
			applied++
			if *c.OK {
				held++
			}
		}
	}
	if held == applied {
		return "All " + page.Many(int64(applied), "check") + " hold"
	}
	return strconv.Itoa(held) + " of " + page.Many(int64(applied), "check") + " hold"
}

// checkTitles say on the first screen what a check is of.
var checkTitles = map[string]string{"mrc_mae": "Hit ratio over all cache sizes", "hit_by_block": "Hit ratio by block",
	"hit_by_token":           "Hit ratio by token",
	"hit_mean_over_requests": "Hit ratio, mean of requests", "hit_full_blocks_only": "Hit ratio of full blocks",
	"input_ks": "Input lengths", "output_ks": "Output lengths",
	"rho_input_output": "Input with output lengths", "rho_hit_new": "Hit with new blocks",
	"rho_new_output": "New blocks with outputs", "idc_log2": "Bursts of arrivals",
	"categories": "Reuse categories", "turns_ks": "Turns of a session", "turn_gap_ks": "Time between turns",
	"reuse_time_ks": "Time to reuse", pairMatchName: "Repeated pairs of lengths",
	"mrc_max": "Hit ratio, the worst cache size", "hit_at_1000_blocks": "Hit ratio at 1,000 blocks",
	"turns_top10_log2": "Longest sessions", "turns_max_log2": "The longest session",
	"growth_ks": "Growth from turn to turn", "fanout": "Requests that several build on",
	"top_block_log2": "Most used block", "route_round_robin": "Hits, round-robin",
	"route_sticky": "Hits, sticky sessions", "route_prefix": "Hits, prefix and load",
	"route_sticky_gain": "Gain of sticky sessions", "queue_70_log2": "Queue at 70 % load",
	"queue_85_log2": "Queue at 85 % load", "queue_95_log2": "Queue at 95 % load", "token_cv_log2": "Bursts of tokens",
	"rate_idc_log2": "Bursts of requests, 1 to 300 s", "token_acf": "Autocorrelation of tokens",
	"ticks":             "Ticks of the clock",
	uniquePairMatchName: "Repeated unique pairs", linkageName: "Linkage by an outsider",
	chainExactName: "Repeated chains of turns", chainNearName: "Near chains of turns"}

// firstChecks are as many checks as the first screen has room for, those that are the
// farthest off, or nearest to it, first; nil when none applies.
func firstChecks(checks []Check) *page.Table {
	const room = 6
	t := page.Table{Head: []string{"Check", "Distance", "Limit", ""},
		Align: []page.Align{page.Left, page.Right, page.Right, page.Left}}
	applied := nearestLimit(checks)
	for _, c := range applied[:min(room, len(applied))] {
		sign := "✓ holds"
		if c.Failed() {
			sign = "✕ fails"
		}
		t.Rows = append(t.Rows, []string{cmp.Or(checkTitles[c.Name], c.Name), asRatio.print(c.Value),
			strconv.FormatFloat(c.Limit, 'g', -1, 64), sign})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return &t
}

// facts say what was compared.
func (f Report) facts() (facts []page.Fact) {
	for _, s := range f.sides() {
		facts = append(facts, page.Fact{Label: s.name, Value: page.Count(s.Requests) + " requests",
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
func (f Report) about() (facts []page.Fact) {
	for _, s := range f.sides() {
		if s.Tier != "" {
			facts = append(facts, page.Fact{Label: s.name + "'s tier", Value: s.Tier,
				Note: "this page is no more public than that"})
		}
		if s.Digest != "" {
			facts = append(facts, page.Fact{Label: s.name + "'s digest", Value: s.Digest, Note: "of its rows"})
		}
		if s.WarmUpS > 0 {
			facts = append(facts, page.Fact{Label: s.name + "'s history", Value: page.Number(s.WarmUpS) + " s",
				Note: "known, and in no figure"})
		}
	}
	if f.BlockSizeTokens > 0 {
		facts = append(facts, page.Fact{Label: "Block", Value: page.Count(int64(f.BlockSizeTokens)) + " tokens"})
	}
	return facts
}

func (f Report) reusePlots() []page.Plot {
	if len(f.LRUCurve) == 0 {
		return nil
	}
	ref, cand := page.Series{Name: "reference"}, page.Series{Name: "candidate"}
	for _, p := range f.LRUCurve {
		ref.X, ref.Y = append(ref.X, float64(p.CapacityBlocks)), append(ref.Y, p.Ref)
		cand.X, cand.Y = append(cand.X, float64(p.CapacityBlocks)), append(cand.Y, p.Cand)
	}
	return []page.Plot{{Title: "Hit ratio of an LRU prefix cache",
		Text:   "By block, at each capacity. The first check is of the mean distance between the curves.",
		XLabel: "capacity", XUnit: "blocks", YLabel: "hit ratio", LogX: true, Series: []page.Series{ref, cand}}}
}

func (f Report) idcPlots() []page.Plot {
	ref, cand := page.Series{Name: "reference"}, page.Series{Name: "candidate"}
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
	return []page.Plot{{Title: "Index of dispersion for counts",
		Text: "Variance over mean of the number of arrivals in a window: 1 for a Poisson process, above for " +
			"bursts. A warning names the scales that have no part in the distance.",
		XLabel: "window", XUnit: "s", YLabel: "IDC", LogX: true, LogY: true, Series: []page.Series{ref, cand}}}
}

// ratePlots draws how the rate of input tokens varies.
func (f Report) ratePlots() []page.Plot {
	var cv, acf [2]page.Series
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
		page.Plot{Title: "CV of the input tokens in a window",
			Text:   "Standard deviation over mean of the input tokens that arrive in a window.",
			XLabel: "window", XUnit: "s", YLabel: "CV", LogX: true, LogY: true, Series: cv[:]},
		page.Plot{Title: "Autocorrelation of the input tokens per second",
			Text:   "How far a busy second tells of a busy second later.",
			XLabel: "lag", XUnit: "s", YLabel: "autocorrelation", LogX: true, Series: acf[:]})
}

// drawn leaves out the plots that have nothing to show.
func drawn(plots ...page.Plot) []page.Plot {
	return slices.DeleteFunc(plots, func(p page.Plot) bool {
		return !slices.ContainsFunc(p.Series, func(s page.Series) bool { return len(s.X) > 0 })
	})
}

// routePlots draws the hit ratios behind routers, at the middle capacity.
func (f Report) routePlots() []page.Plot {
	var series []page.Series
	var capacity int64
	for _, router := range routeNames {
		ref, cand := page.Series{Name: router + ", reference"}, page.Series{Name: router + ", candidate"}
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
	return drawn(page.Plot{Title: "Hit ratio behind routers",
		Text: "By block, where each replica holds " + page.Count(capacity) +
			" blocks. The checks are of 12 fleets each.",
		XLabel: "replicas", YLabel: "hit ratio", LogX: true, Series: series})
}

// queuePlots draws the tail of a queue.
func (f Report) queuePlots() []page.Plot {
	ref, cand := page.Series{Name: "reference"}, page.Series{Name: "candidate"}
	for _, p := range f.Queues {
		if p.Ref != nil {
			ref.X, ref.Y = append(ref.X, 100*p.Load), append(ref.Y, p.Ref.P90)
		}
		if p.Cand != nil {
			cand.X, cand.Y = append(cand.X, 100*p.Load), append(cand.Y, p.Cand.P90)
		}
	}
	return drawn(page.Plot{Title: "p90 TTFT of a queue",
		Text:   "One server, first come first served, which takes its time by tokens that are not cached.",
		XLabel: "load", XUnit: "%", YLabel: "p90 TTFT, s", LogY: true, Series: []page.Series{ref, cand}})
}

// cdfPlots draws the named distributions, those that either side has.
func (f Report) cdfPlots(names ...string) []page.Plot {
	var plots []page.Plot
	for _, c := range f.curves {
		if !slices.Contains(names, c.name) {
			continue
		}
		p := page.Plot{Title: "Distribution of the " + c.name,
			Text:   "The largest vertical distance is the Kolmogorov-Smirnov distance.",
			XLabel: c.name, XUnit: c.unit, YLabel: "share at most", Kind: page.CDF}
		for _, s := range []page.Series{cdfSeries("reference", c.ref, c.per), cdfSeries("candidate", c.cand, c.per)} {
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
func cdfSeries(name string, l valueList, per float64) page.Series {
	s := page.Series{Name: name, N: l.total()}
	var sum int64
	for _, b := range l {
		sum += b.n
		s.X, s.Y = append(s.X, float64(b.v)/per), append(s.Y, float64(sum)/float64(s.N))
	}
	return s
}
