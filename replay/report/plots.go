package report

import (
	"fmt"
	"slices"

	"reprise/trace/page"
)

// cdf is a cumulative distribution of milliseconds.
func cdf(title, about string, log bool, series ...page.Series) page.Plot {
	return page.Plot{
		Title: title, Text: about, Kind: page.Line, LogX: log,
		XLabel: "at most", XUnit: "ms", YLabel: "share", Series: series,
	}
}

// logY draws a plot on a logarithmic Y axis, with what is too small for it at
// its foot: one stall must not flatten all else.
func logY(p page.Plot) page.Plot {
	p.LogY = true
	p.Text += " What is under a microsecond is drawn at one."
	for i := range p.Series {
		s := &p.Series[i]
		s.Y = slices.Clone(s.Y)
		for j := range s.Y {
			s.Y[j] = max(s.Y[j], minDrawnMS)
		}
	}
	return p
}

// overTime is a scatter of sampled requests with the largest of each bin.
func overTime(s *Summary, title, label string, points, largest page.Series) page.Plot {
	about := fmt.Sprintf("Each point is a request: %s of %s that were sent, chosen by a hash of their rows. The largest of every %s s is of all of them.",
		page.Brief(s.Series.Sampled), page.Brief(s.Series.SampledFrom), page.Number(s.Series.BinS))
	return page.Plot{
		Title: title, Text: about, Kind: page.Points,
		XLabel: "time since the start", XUnit: "s", YLabel: label, YUnit: "ms",
		Series: []page.Series{points, largest},
	}
}

// bothOrigins draws a latency from both of its origins, which in a simulation are one.
func bothOrigins(s *Summary, sent, due page.Series, name string) []page.Series {
	if s.Run.Simulated != "" {
		sent.Name = name
		return []page.Series{sent}
	}
	return []page.Series{sent, due}
}

// farApart says that a metric needs a logarithmic axis: on a linear one its tail
// would leave no room for the rest.
func farApart(st *Stat) bool {
	return st.P50 != nil && *st.Min > 0 && *st.Max > 10**st.P50
}

// defined gives plots the definition that they share.
func defined(term string, plots ...page.Plot) []page.Plot {
	for i := range plots {
		plots[i].Term = termOf(term)
	}
	return page.Drawn(plots...)
}

func ttftSection(s *Summary) page.Section {
	p := &s.Series
	return page.Section{Title: "Time to first token", Text: sayTTFT(s),
		Plots: defined("ttft",
			cdf("TTFT distribution", originsNote(s), farApart(&s.Latency.FromSent.TTFT), bothOrigins(s, p.TTFTSent, p.TTFTDue, "TTFT")...),
			overTime(s, "TTFT over time", "TTFT from sent", p.TTFTPoints, p.TTFTMax)),
		Tables: lengthTables(s),
	}
}

func originsNote(s *Summary) string {
	if s.Run.Simulated != "" {
		return "Share of the requests whose first token came within the time."
	}
	return "Where the curve from due lies to the right, requests waited before they were sent."
}

func itlSection(s *Summary) page.Section {
	p := &s.Series
	gaps, about := []page.Series{p.ITLChunk}, "All gaps between token events, of all requests; each event carried one token. "
	if per := s.Tokens.PerEvent; per == nil || *per != 1 {
		gaps, about = append(gaps, p.ITLToken), "All gaps of all requests, by event and by token. "
	}
	itl := defined("itl_chunk", cdf("ITL distribution", about+"Gaps under a microsecond are drawn at one.", true, gaps...))
	tpot := defined("tpot", cdf("TPOT distribution", "One value for each request.", farApart(&s.Latency.TPOT), p.TPOT))
	return page.Section{Title: "Between tokens", Text: sayITL(s), Plots: append(itl, tpot...)}
}

func e2eSection(s *Summary) page.Section {
	p := &s.Series
	return page.Section{Title: "End to end", Text: sayE2E(s), Plots: defined("e2e",
		cdf("E2E distribution", "To the last token.", farApart(&s.Latency.FromSent.E2E), bothOrigins(s, p.E2ESent, p.E2EDue, "E2E")...))}
}

func loadSection(s *Summary) page.Section {
	p := &s.Series
	over := func(title, about, label string, kind page.Kind, series ...page.Series) page.Plot {
		return page.Plot{Title: title, Text: about, Kind: kind, XLabel: "time since the start", XUnit: "s", YLabel: label, Series: series}
	}
	bins := fmt.Sprintf("In bins of %s s.", page.Number(p.BinS))
	coarse := fmt.Sprintf("In bins of %s s.", page.Number(p.CoarseS))
	arrivals := over("Arrivals", bins+" Where the two part, the client did not keep to the schedule.", "requests per second", page.Step, p.DuePerS, p.SentPerS)
	if s.Run.Simulated != "" {
		arrivals.Text, arrivals.Series = bins, []page.Series{p.DuePerS}
	}
	sec := page.Section{Title: "Load and send lag", Text: sayLag(s), Plots: slices.Concat(
		defined("arrivals", arrivals),
		defined("in_flight", over("In flight", "Requests sent and not done, at the end of each bin of "+page.Number(p.BinS)+" s.", "requests", page.Line, p.InFlight)),
		defined("tokens over time",
			over("Prompt tokens over time", coarse+" Each prompt counts at its first token, which ends its prefill.", "tokens per second", page.Step, p.PromptPerS),
			over("Output tokens over time", coarse+" Each token counts when it came.", "tokens per second", page.Step, p.OutputPerS)),
		defined("send_lag",
			cdf("Send lag distribution", "Lags under a microsecond are drawn at one.", true, p.Lag),
			logY(overTime(s, "Send lag over time", "sent − due", p.LagPoints, p.LagMax))))}
	if s.Run.Simulated != "" {
		sec.Title = "Load"
	}
	return sec
}

func lengthSection(s *Summary) page.Section {
	p := &s.Series
	bars := func(title string, series ...page.Series) page.Plot {
		return page.Plot{Title: title, Kind: page.Bars, LogX: true, XLabel: "length", XUnit: "tokens", YLabel: "requests", Series: series,
			Text: "Eight buckets to each doubling. Successful requests."}
	}
	outputs := []page.Series{p.Output}
	if s.Tokens.OutputMiss.SumAbs > 0 {
		outputs = append(outputs, p.Wanted)
	}
	return page.Section{Title: "Lengths", Text: sayTokens(s),
		Plots: defined("lengths", bars("Prompt lengths", p.Input), bars("Output lengths", outputs...))}
}

func cacheSection(s *Summary) page.Section {
	sec := page.Section{Title: "Prefix cache", Text: sayCache(s)}
	if len(s.ByCategory) > 0 {
		var groups []Group
		for _, c := range s.ByCategory {
			groups = append(groups, c.Group)
		}
		t := groupTable("By reuse category", "category", categoryRows(s), groups)
		t.Head = append(t.Head, categoryHead[len(categoryHead)-3:]...)
		t.HeadTerms = append(t.HeadTerms, termOf("measured_ratio"), termOf("expected_ratio"), termOf("difference"))
		for i, row := range categoryRows(s) {
			t.Rows[i] = append(t.Rows[i], row[len(row)-3:]...)
		}
		sec.Tables = []page.Table{t}
	}
	if len(s.Series.Hits.X) > 0 { // what a workload allows says little alone
		sec.Plots = defined("hit ratio over time", page.Plot{Title: "Hit ratio over time", Text: fmt.Sprintf("By token, of the requests that were sent in each %s s.", page.Number(s.Series.CoarseS)), Kind: page.Line,
			XLabel: "time since the start", XUnit: "s", YLabel: "share of the prompt tokens", Series: []page.Series{s.Series.Hits, s.Series.HitsAllowed}})
	}
	return sec
}

// groupTable shows the latencies of parts of the results, each under the first
// cell of its row.
func groupTable(caption, what string, named [][]string, groups []Group) page.Table {
	t := page.Table{Caption: caption, Head: []string{what, "requests", "succeeded"}, HeadTerms: []string{"", termOf("rows"), termOf("succeeded")}}
	for _, m := range []string{"TTFT p50, ms", "p99", "TPOT p50, ms", "p99", "E2E p50, ms", "p99"} {
		t.Head, t.HeadTerms = append(t.Head, m), append(t.HeadTerms, termOf("groups"))
	}
	for i, g := range groups {
		t.Rows = append(t.Rows, []string{named[i][0], page.Brief(g.Rows), page.Brief(g.Succeeded),
			page.OrDash(g.TTFTP50, page.Short), page.OrDash(g.TTFTP99, page.Short), page.OrDash(g.TPOTP50, page.Short), page.OrDash(g.TPOTP99, page.Short), page.OrDash(g.E2EP50, page.Short), page.OrDash(g.E2EP99, page.Short)})
	}
	return t
}

func lengthTables(s *Summary) []page.Table {
	if len(s.ByInputLength) == 0 {
		return nil
	}
	var groups []Group
	for _, b := range s.ByInputLength {
		groups = append(groups, b.Group)
	}
	return []page.Table{groupTable("By prompt length", "prompt tokens", lengthRows(s), groups)}
}

func classSection(s *Summary) page.Section {
	if len(s.ByClass) == 0 {
		return page.Section{}
	}
	var groups []Group
	for _, c := range s.ByClass {
		groups = append(groups, c.Group)
	}
	return page.Section{Title: "Classes", Tables: []page.Table{groupTable("By class", "class", classRows(s), groups)}}
}

func errorSection(s *Summary) page.Section {
	if len(s.Errors) == 0 {
		return page.Section{}
	}
	return page.Section{Title: "Errors", Tables: []page.Table{{Caption: "Share of the requests that ended", Head: errorHead, Rows: errorRows(s),
		HeadTerms: []string{"", termOf("errors"), termOf("errors")}}}}
}
