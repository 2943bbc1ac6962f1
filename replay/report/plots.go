package report

import (
	"fmt"
	"slices"

	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// cdf is a cumulative distribution of milliseconds.
func cdf(title, about, label string, series ...doc.Series) doc.Plot {
	return doc.Plot{Title: title, Text: about, Kind: doc.CDF, XLabel: label, XUnit: "ms",
		YLabel: "share of requests", Series: series}
}

// gapCDF is one of the gaps between tokens.
func gapCDF(title, about string, series ...doc.Series) doc.Plot {
	p := cdf(title, about, "time between tokens", series...)
	p.YLabel = "share of gaps"
	return p
}

// overTime is a scatter of requests. Where not all of them are drawn, the largest of
// each bin stands beside them.
func overTime(s *Summary, title, label string, largest doc.Series, points ...doc.Series) doc.Plot {
	about := "Each point is a request."
	if n, of := s.Series.Sampled, s.Series.SampledFrom; n < of {
		about = fmt.Sprintf("Each point is a request: a random %s of %s. The largest of every %s s is of all of them.",
			doc.Brief(n), doc.Brief(of), doc.Number(s.Series.BinS))
		points = append(points, largest)
	}
	return doc.Plot{Title: title, Text: about, Kind: doc.Points, LogY: true,
		XLabel: "time since the start", XUnit: "s", YLabel: label, YUnit: "ms", Series: points}
}

// defined gives plots the definition that they share.
func defined(term string, plots ...doc.Plot) []doc.Plot {
	for i := range plots {
		plots[i].Term = termOf(term)
	}
	return doc.Drawn(plots...)
}

// drawn draws series on common axes: of one run all that are named, of several the first of each.
func drawn(runs []Named, term string, p doc.Plot, of ...func(*Series) doc.Series) []doc.Plot {
	if len(runs) > 1 {
		p.Series = over(runs, of[0])
		return defined(term, p)
	}
	for _, series := range of {
		p.Series = append(p.Series, series(&runs[0].Series))
	}
	return defined(term, p)
}

// over collects one series of each run under the run's name.
func over(runs []Named, of func(*Series) doc.Series) (out []doc.Series) {
	for i := range runs {
		s := of(&runs[i].Series)
		s.Name = runs[i].Name
		out = append(out, s)
	}
	return out
}

// simulated tells whether all runs are, in which requests are sent when they are due.
func simulated(runs []Named) bool {
	return !slices.ContainsFunc(runs, func(r Named) bool { return r.Run.Simulated == "" })
}

// distributions draws the latencies of one run or several.
func distributions(runs []Named) []doc.Plot {
	ttft := []func(*Series) doc.Series{func(s *Series) doc.Series { return s.TTFTSent },
		func(s *Series) doc.Series { return s.TTFTDue }}
	e2e := []func(*Series) doc.Series{func(s *Series) doc.Series { return s.E2ESent },
		func(s *Series) doc.Series { return s.E2EDue }}
	itl := []func(*Series) doc.Series{func(s *Series) doc.Series { return s.ITLChunk }}
	if per := runs[0].Tokens.PerEvent; per == nil || *per != 1 {
		itl = append(itl, func(s *Series) doc.Series { return s.ITLToken })
	}

	const faster = " A curve further to the left is faster."
	plots := drawn(runs, "ttft", cdf("TTFT distribution", "From when a request was sent."+faster, "TTFT"), ttft[0])
	switch {
	case simulated(runs):
		e2e = e2e[:1]
	case len(runs) > 1:
		plots = append(plots, drawn(runs, "ttft", cdf("TTFT distribution, from schedule",
			"From when a request was due, its waiting in the client included."+faster, "TTFT"), ttft[1])...)
	default:
		plots = drawn(runs, "ttft", cdf("TTFT distribution", "Where the curve from schedule lies to the right, "+
			"requests waited in the client before they were sent.", "TTFT"), ttft...)
	}
	return slices.Concat(plots,
		drawn(runs, "itl_chunk", gapCDF("ITL distribution", "All gaps between token events, of all requests."), itl...),
		drawn(runs, "tpot", cdf("TPOT distribution", "One value for each request.", "TPOT"),
			func(s *Series) doc.Series { return s.TPOT }),
		drawn(runs, "e2e", cdf("E2E distribution", "To the last token.", "E2E"), e2e...))
}

// loadSection draws what happened over time, and how late the client sent.
func loadSection(runs []Named) doc.Section {
	line := func(term, title, about, label string, kind doc.Kind, of ...func(*Series) doc.Series) []doc.Plot {
		return drawn(runs, term, doc.Plot{Title: title, Text: about, Kind: kind, XLabel: "time since the start",
			XUnit: "s", YLabel: label}, of...)
	}
	sec := doc.Section{Title: "Over time", Text: []string{"Each run on its own clock, from its start."}}
	arrivals := []func(*Series) doc.Series{func(s *Series) doc.Series { return s.SentPerS }}
	if len(runs) == 1 {
		s := &runs[0].Series
		sec.Text = []string{fmt.Sprintf("In bins of %s s; tokens and hits of %s s.", doc.Number(s.BinS),
			doc.Number(s.CoarseS))}
		due := func(s *Series) doc.Series { return s.DuePerS }
		if arrivals = append([]func(*Series) doc.Series{due}, arrivals...); simulated(runs) {
			arrivals = arrivals[:1]
		}
	}

	sec.Plots = slices.Concat(
		line("arrivals", "Arrivals", "Where due and sent part, the client did not keep to the schedule.",
			"requests per second", doc.Step, arrivals...),
		line("in_flight", "In flight", "Requests sent and not done.", "requests", doc.Line,
			func(s *Series) doc.Series { return s.InFlight }),
		line("tokens over time", "Prompt tokens over time", "Each prompt counts at its first token, which ends its "+
			"prefill.", "tokens per second", doc.Step, func(s *Series) doc.Series { return s.PromptPerS }),
		line("tokens over time", "Output tokens over time", "Each token counts when it came.", "tokens per second",
			doc.Step, func(s *Series) doc.Series { return s.OutputPerS }),
		line("hit ratio over time", "Hit ratio over time", "By token, over the time of sending.",
			"share of the prompt tokens", doc.Line, func(s *Series) doc.Series { return s.Hits },
			func(s *Series) doc.Series { return s.allowedHits() }),
		drawn(runs, "send_lag", cdf("Send lag distribution", "How late the client sent.", "sent − due"),
			func(s *Series) doc.Series { return s.Lag }))
	if len(runs) == 1 {
		sec.Plots = append(sec.Plots, defined("send_lag", lagOverTime(&runs[0].Summary))...)
	}
	if len(sec.Plots) == 0 {
		return doc.Section{}
	}
	return sec
}

// allowedHits is what the workload allows beside what was measured, which says little alone.
func (s *Series) allowedHits() doc.Series {
	if len(s.Hits.X) == 0 {
		return doc.Series{}
	}
	return s.HitsAllowed
}

// lagOverTime is a scatter of the send lag. Its Y axis is logarithmic, with what is too small for it at its foot: one
// stall must not flatten all else.
func lagOverTime(s *Summary) doc.Plot {
	lag := overTime(s, "Send lag over time", "sent − due", s.Series.LagMax, s.Series.LagPoints)
	lag.Text += " Lags under a microsecond are drawn at one."
	for i := range lag.Series {
		line := &lag.Series[i]
		line.Y = slices.Clone(line.Y)
		for j := range line.Y {
			line.Y[j] = max(line.Y[j], minDrawnMS)
		}
	}
	return lag
}

func lengthSection(s *Summary) doc.Section {
	p := &s.Series
	bars := func(title string, series ...doc.Series) doc.Plot {
		return doc.Plot{Title: title, Kind: doc.Bars, LogX: true, XLabel: "length", XUnit: "tokens",
			YLabel: "requests", Series: series,
			Text: "Eight buckets to each doubling. Successful requests."}
	}
	outputs := []doc.Series{p.Output}
	if s.Tokens.OutputMiss.SumAbs > 0 {
		outputs = append(outputs, p.Wanted)
	}
	return doc.Section{Title: "Lengths",
		Plots: defined("lengths", bars("Prompt lengths", p.Input), bars("Output lengths", outputs...))}
}

// errorSection has the errors by class, and what the servers say about them where they do.
func errorSection(s *Summary) doc.Section {
	if len(s.Errors) == 0 {
		return doc.Section{}
	}
	t := doc.Table{Caption: "Share of the requests that ended",
		Head: []string{"error", "requests", "share"}, HeadTerms: []string{"", termOf("errors"), termOf("errors")}}
	said := slices.ContainsFunc(s.Errors, func(e ErrorCount) bool { return e.Says != "" })
	if said {
		t.Head = append(t.Head, "the server says")
	}
	for _, e := range s.Errors {
		row := []string{textpage.Plain(e.Class), doc.Brief(e.Count), doc.Percent(e.Share)}
		if said {
			row = append(row, textpage.Plain(e.Says))
		}
		t.Rows = append(t.Rows, row)
	}
	return doc.Section{Title: "Errors", Tables: []doc.Table{t}}
}
