package profile

import (
	"fmt"
	"math"

	"reprise/trace/doc"
)

func (h *sheet) arrivals() doc.Section {
	if h.Arrivals.InterArrival == nil {
		return doc.Section{}
	}
	bins := ""
	if h.OverTime != nil {
		bins = "In bins of " + lasting(h.OverTime.BinS) + "."
		if list := h.OverTime.Bins; len(list) > 0 && h.stub(&list[len(list)-1]) {
			bins += " The last one is cut short by the end of the trace and has no rate."
		}
	}
	var says []string
	if h.warned("made_up_times") {
		says = append(says, "The source has no times: all that stands here describes the arrivals that were made "+
			"up at import.")
	}
	if h.Rate != nil {
		highest := 0.0
		if h.OverTime != nil && len(h.OverTime.Bins) > 1 {
			for i := range h.OverTime.Bins {
				b := &h.OverTime.Bins[i]
				if rate := h.binRate(b, b.Requests); rate != nil {
					highest = max(highest, *rate)
				}
			}
		}
		said := often(*h.Rate) + " arrive on average"
		if highest == 0 {
			said += " (rate)."
		} else {
			said += fmt.Sprintf("; in the busiest bin of %s it is %s, %s times the average (rate, requests over time).",
				lasting(h.OverTime.BinS), often(highest), figure(highest / *h.Rate))
		}
		says = append(says, said)
	}
	if said := h.sayIDC(); said != "" {
		says = append(says, said)
	}
	rate := func(of func(*TimeBin) int64) func(*TimeBin) *float64 {
		return func(b *TimeBin) *float64 { return h.binRate(b, of(b)) }
	}
	return doc.Section{Title: "Arrivals", Text: says,
		Tables: append(statsTable("Time from each request to the next", lasting,
			namedStats{"gap", h.Arrivals.InterArrival}), h.idcTable()...),
		Plots: doc.Drawn(
			overTimePlot("Requests over time", bins, "requests", "1/s",
				h.series("requests", rate(func(b *TimeBin) int64 { return b.Requests }))),
			h.idcPlot(),
			overTimePlot("Prompt tokens over time", bins, "prompt tokens", "1/s",
				h.series("prompt tokens", rate(func(b *TimeBin) int64 { return b.InputTokens }))),
			overTimePlot("Output tokens over time", "Of the requests that arrive in each bin. "+bins, "output tokens",
				"1/s", h.series("output tokens", rate(func(b *TimeBin) int64 { return b.OutputTokens }))),
			h.histogram("Time between requests", MetricInterArrival, "gaps", "gap", "s", second),
			cumulative("Distribution of the time between requests", "The share of gaps that are at most so long.",
				"gap", "s", h.cdf("gaps", MetricInterArrival, "", second))),
	}
}

// minBin is the part of a bin that the last one must reach for its rate to
// count: that of a few milliseconds says nothing.
const minBin = 0.5

func (h *sheet) stub(b *TimeBin) bool { return b.EndS-b.StartS < minBin*h.OverTime.BinS }

// binRate is how many a second there are in a bin, unless it is cut short.
func (h *sheet) binRate(b *TimeBin, n int64) *float64 {
	if h.stub(b) {
		return nil
	}
	return new(float64(n) / (b.EndS - b.StartS))
}

func (h *sheet) idcTable() []doc.Table {
	t := doc.Table{Caption: "Index of dispersion for counts: 1 for a Poisson process",
		Head:  []string{"window", "windows", "IDC"},
		Align: []doc.Align{doc.Right, doc.Right, doc.Right}}
	if h.Arrivals.Clock != nil {
		t.Head, t.Align = append(t.Head, "of"), append(t.Align, doc.Left)
	}
	add := func(list []IDC, what string) {
		for _, one := range list {
			if one.IDC == nil {
				continue
			}
			row := []string{lasting(one.WindowS), doc.Count(one.Windows), doc.Short(*one.IDC), what}
			if one.TickArtefact {
				row[3] = "the clock: an artefact of its ticks"
			}
			t.Rows = append(t.Rows, row[:len(t.Head)])
		}
	}
	add(h.Arrivals.IDC, "requests")
	if c := h.Arrivals.Clock; c != nil {
		add(c.IDC, "requests, by whole ticks")
	}
	if t.Rows == nil {
		return nil
	}
	return []doc.Table{t}
}

func (h *sheet) idcPlot() doc.Plot {
	traffic, artefacts, ticks := doc.Series{Name: "IDC"}, doc.Series{Name: "artefact of the clock's ticks"},
		doc.Series{Name: "by whole ticks"}
	poisson := doc.Series{Name: "Poisson process"}
	add := func(s *doc.Series, one IDC) {
		if one.IDC != nil {
			s.X, s.Y = append(s.X, one.WindowS), append(s.Y, *one.IDC)
			poisson.X, poisson.Y = append(poisson.X, one.WindowS), append(poisson.Y, 1)
		}
	}
	for _, one := range h.Arrivals.IDC {
		if one.TickArtefact {
			add(&artefacts, one)
		} else {
			add(&traffic, one)
		}
	}
	if c := h.Arrivals.Clock; c != nil {
		for _, one := range c.IDC {
			add(&ticks, one)
		}
	}
	return doc.Plot{Title: "Dispersion of counts",
		Text: "Variance over mean of the requests in a window. A line that rises with the window shows bursts and " +
			"trends that last longer than it.",
		XLabel: "window", XUnit: "s", YLabel: "IDC", LogX: true, LogY: true, Series: []doc.Series{traffic, ticks,
			artefacts, poisson}}
}

// fewWindows is below how many windows an IDC is not spoken of.
const fewWindows = 10

// sayIDC speaks of the shortest and of the longest window that say something of
// the traffic. One that holds less than a request on average does not: whatever
// the traffic, its IDC comes close to 1 as it gets shorter.
func (h *sheet) sayIDC() string {
	var list []IDC
	add := func(from []IDC) {
		for _, one := range from {
			if one.IDC != nil && !one.TickArtefact && one.Windows >= fewWindows && *h.Rate*one.WindowS >= 1 {
				list = append(list, one)
			}
		}
	}
	switch c := h.Arrivals.Clock; {
	case h.Rate == nil:
	case c != nil:
		add(c.IDC)
	default:
		add(h.Arrivals.IDC)
	}
	if len(list) == 0 {
		return ""
	}
	first, last := list[0], list[len(list)-1]
	near, far := dispersed(*first.IDC), dispersed(*last.IDC)
	switch {
	case first.WindowS == last.WindowS:
		return fmt.Sprintf("Over windows of %s the counts are %s a Poisson process (IDC %s).",
			lasting(first.WindowS), near, figure(*first.IDC))
	case near == far:
		return fmt.Sprintf("Over windows of %s and of %s the counts are %s a Poisson process (IDC "+
			"%s and %s).",
			lasting(first.WindowS), lasting(last.WindowS), near, figure(*first.IDC), figure(*last.IDC))
	}
	return fmt.Sprintf("Over windows of %s the counts are %s a Poisson process (IDC %s), over windows of %s "+
		"%s one (IDC %s).",
		lasting(first.WindowS), near, figure(*first.IDC), lasting(last.WindowS), far, figure(*last.IDC))
}

func dispersed(idc float64) string {
	switch {
	case idc < 0.8:
		return "more regular than"
	case idc <= 1.25:
		return "about as dispersed as"
	}
	return "burstier than"
}

func (h *sheet) lengths() doc.Section {
	var says []string
	if h.Input != nil && h.Output != nil {
		says = append(says, fmt.Sprintf(
			"Half of the prompts have at most %s tokens and one in a hundred more than %s; half of the outputs have "+
				"at most %s and one in a hundred more than %s (p50 and p99 of prompt and output tokens).",
			figure(h.Input.P50), figure(h.Input.P99), figure(h.Output.P50), figure(h.Output.P99)))
		if *h.OutputTotal > 0 && h.OutputUnknown == 0 {
			says = append(says, fmt.Sprintf(
				"There are %s prompt tokens for each output token (prompt and output tokens in all).",
				figure(float64(h.InputTotal)/float64(*h.OutputTotal))))
		}
		if rho := h.InputOutput.Rho; rho != nil {
			what := "say little about how long their outputs are"
			switch {
			case *rho >= 0.5:
				what = "have long outputs"
			case *rho >= 0.2:
				what = "tend to have longer outputs"
			case *rho <= -0.2:
				what = "tend to have shorter outputs"
			}
			says = append(says, fmt.Sprintf("Long prompts %s (Spearman's rank correlation of prompt and output "+
				"tokens, %s).", what, figure(math.Round(*rho*1000)/1000)))
		}
	}
	plain := func(v float64) string { return doc.Fixed(v, 0) }
	return doc.Section{Title: "Lengths", Text: says,
		Tables: statsTable("Tokens", plain, namedStats{"prompt", h.Input}, namedStats{"output", h.Output},
			namedStats{"reasoning", h.Reasoning}, namedStats{"cached, as recorded", h.Cached},
			namedStats{"image tokens", h.ImageTokens},
			namedStats{"images", h.Images}, namedStats{"max_tokens", h.MaxTokens}),
		Plots: doc.Drawn(
			cumulative("Length distributions", "The share of requests that are at most so long.", "length", "tokens",
				h.cdf("prompts", MetricInput, "", 1), h.cdf("outputs", MetricOutput, "", 1)),
			h.byCategory("Prompt lengths by reuse category", "Which kind of request has the long prompts.", MetricInput,
				"length", "tokens", 1),
			h.histogram("Prompt lengths", MetricInput, "requests", "prompt", "tokens", 1),
			h.histogram("Output lengths", MetricOutput, "requests", "output", "tokens", 1)),
	}
}

// byCategory draws a metric for each category that has values, when two have.
func (h *sheet) byCategory(title, about, metric, label, unit string, per float64) doc.Plot {
	var series []doc.Series
	for _, c := range h.Categories {
		if s := h.cdf(c.Category, metric, c.Category, per); len(s.X) > 0 {
			series = append(series, s)
		}
	}
	if len(series) < 2 {
		return doc.Plot{}
	}
	return cumulative(title, about, label, unit, series...)
}

// latency is what the source's server took.
func (h *sheet) latency() doc.Section {
	s := doc.Section{Title: "Recorded latency",
		Tables: statsTable("As recorded in production", lasting, namedStats{"TTFT", h.TTFT}, namedStats{"E2E", h.E2E})}
	if h.TTFT != nil {
		s.Text = append(s.Text, fmt.Sprintf("In production, half of the requests had their first token within %s and "+
			"99 %% within %s (p50 and p99 of TTFT over %s).",
			lasting(h.TTFT.P50), lasting(h.TTFT.P99), doc.Many(h.TTFT.Count, "request")))
	}
	if h.E2E != nil {
		s.Text = append(s.Text, fmt.Sprintf(
			"In production, half of the requests were done within %s and 99 %% within %s (p50 and p99 of E2E over %s).",
			lasting(h.E2E.P50), lasting(h.E2E.P99), doc.Many(h.E2E.Count, "request")))
	}
	return s
}

// sessions says how many requests belong to a session and how long turns wait.
func (h *sheet) sessions() doc.Section {
	s := doc.Section{Title: "Sessions"}
	if g := h.Sessions; g != nil {
		t := doc.Table{Caption: "Requests by where their session comes from",
			Head: []string{"session", "requests", "share"}}
		line := func(name string, requests int64) {
			if requests > 0 {
				t.Rows = append(t.Rows, []string{name, doc.Count(requests),
					doc.OrDash(share(requests, h.Requests), doc.Percent)})
			}
		}
		line("from an identifier in the source", h.SessionShares.Source)
		line("inferred from prompts that hold an earlier one and its answer", h.SessionShares.Inferred)
		line("of unknown origin", h.SessionShares.Unknown)
		line("none", h.SessionShares.Without)
		s.Tables = append(s.Tables, t)
		s.Tables = append(s.Tables, statsTable("Requests of a session", figure, namedStats{"turns", g.Turns})...)
	}
	s.Tables = append(s.Tables,
		statsTable("Time between turns", lasting, namedStats{"turn gap", turnGap(h.Summary.Sessions)},
			namedStats{"think time", h.Think}, namedStats{"tool time", h.Tool})...)
	s.Plots = doc.Drawn(
		h.histogram("Turns of a session", MetricTurns, "sessions", "turns", "requests", 1),
		h.histogram("Turn gap", metricTurnGap, "gaps", "from arrival to arrival", "s", second),
		h.histogram("Think time", metricThink, "turns", "think time", "s", second),
		h.histogram("Tool time", metricTool, "turns", "tool time", "s", second))
	g := h.Sessions
	if g == nil || g.Turns == nil {
		return s
	}
	origin := ""
	switch g.Origin {
	case originSource:
		origin = ", as the source's identifiers say"
	case originInferred:
		origin = ", inferred since the source names none: " + g.Rule
	}
	s.Text = append(s.Text, fmt.Sprintf("%s of the requests belong to %s%s; a session has %s turns on average and %s "+
		"at most (share with a session, turns).",
		doc.Percent(ratio(g.Requests, h.Requests)), doc.Many(g.Sessions, "session"), origin, figure(g.Turns.Mean),
		figure(g.Turns.Max)))
	if g.Origin == originInferred {
		s.Text = append(s.Text, g.inferred(h.Requests)+".")
	}
	if gap := g.TurnGap; gap != nil {
		s.Text = append(s.Text, fmt.Sprintf("Half of the next turns arrive within %s of the one before, and nine "+
			"tenths within %s (p50 and p90 of turn gap).", lasting(gap.P50), lasting(gap.P90)))
	}
	if h.Think != nil {
		said := fmt.Sprintf("People take %s between an answer and their next turn in half of the cases, or less (p50 "+
			"of think time over %s).", lasting(h.Think.P50), doc.Many(h.Think.Count, "turn"))
		if h.warned("made_up_times") {
			said = fmt.Sprintf("The think times were made up at import; half of them are at most %s (p50 of think "+
				"time).", lasting(h.Think.P50))
		}
		s.Text = append(s.Text, said)
	}
	return s
}
