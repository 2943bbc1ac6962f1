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
		count(s.Series.Sampled), count(s.Series.SampledFrom), number(s.Series.BinS))
	return page.Plot{
		Title: title, Text: about, Kind: page.Points,
		XLabel: "time since the start", XUnit: "s", YLabel: label, YUnit: "ms",
		Series: []page.Series{points, largest},
	}
}

func ttftSection(s *Summary) page.Section {
	p := &s.Series
	return page.Section{Title: "Time to first token", Text: sayTTFT(s),
		Plots: page.Drawn(
			cdf("TTFT distribution", "Where the curve from due lies to the right, requests waited before they were sent.", false, p.TTFTSent, p.TTFTDue),
			overTime(s, "TTFT over time", "TTFT from sent", p.TTFTPoints, p.TTFTMax)),
		Tables: lengthTables(s),
	}
}

func itlSection(s *Summary) page.Section {
	p := &s.Series
	return page.Section{Title: "Between tokens", Text: sayITL(s), Plots: page.Drawn(
		cdf("ITL distribution", "All gaps of all requests, by event and by token; gaps under a microsecond are drawn at one.", true, p.ITLChunk, p.ITLToken),
		cdf("TPOT distribution", "One value for each request.", false, p.TPOT))}
}

func e2eSection(s *Summary) page.Section {
	p := &s.Series
	return page.Section{Title: "End to end", Text: sayE2E(s), Plots: page.Drawn(
		cdf("E2E distribution", "", false, p.E2ESent, p.E2EDue))}
}

func loadSection(s *Summary) page.Section {
	p := &s.Series
	over := func(title, about, label string, kind page.Kind, series ...page.Series) page.Plot {
		return page.Plot{Title: title, Text: about, Kind: kind, XLabel: "time since the start", XUnit: "s", YLabel: label, Series: series}
	}
	bins := fmt.Sprintf("In bins of %s s.", number(p.BinS))
	return page.Section{Title: "Load and send lag", Text: sayLag(s), Plots: page.Drawn(
		over("Arrivals", bins+" Where the two part, the client did not keep to the schedule.", "requests per second", page.Step, p.DuePerS, p.SentPerS),
		over("In flight", "Requests sent and not done, at the end of each bin of "+number(p.BinS)+" s.", "requests", page.Line, p.InFlight),
		cdf("Send lag distribution", "Lags under a microsecond are drawn at one.", true, p.Lag),
		logY(overTime(s, "Send lag over time", "sent − due", p.LagPoints, p.LagMax)))}
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
		Plots: page.Drawn(bars("Prompt lengths", p.Input), bars("Output lengths", outputs...))}
}

func cacheSection(s *Summary) page.Section {
	sec := page.Section{Title: "Prefix cache", Text: sayCache(s)}
	if len(s.ByCategory) > 0 {
		sec.Tables = []page.Table{{Caption: "By reuse category: TTFT from sent, and hit ratios by token", Head: categoryHead, Rows: categoryRows(s)}}
	}
	return sec
}

func lengthTables(s *Summary) []page.Table {
	if len(s.ByInputLength) == 0 {
		return nil
	}
	return []page.Table{{Caption: "TTFT from sent, by prompt length", Head: lengthHead, Rows: lengthRows(s)}}
}

func errorSection(s *Summary) page.Section {
	if len(s.Errors) == 0 {
		return page.Section{}
	}
	return page.Section{Title: "Errors", Tables: []page.Table{{Caption: "Share of the requests that ended", Head: errorHead, Rows: errorRows(s)}}}
}
