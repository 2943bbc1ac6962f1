package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"reprise/trace/doc"
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

// bothOrigins draws a latency from both of its origins, which in a simulation are one.
func bothOrigins(s *Summary, sent, due doc.Series, name string) []doc.Series {
	if s.Run.Simulated != "" {
		sent.Name = name
		return []doc.Series{sent}
	}
	return []doc.Series{sent, due}
}

// defined gives plots the definition that they share.
func defined(term string, plots ...doc.Plot) []doc.Plot {
	for i := range plots {
		plots[i].Term = termOf(term)
	}
	return doc.Drawn(plots...)
}

func ttftSection(s *Summary) doc.Section {
	p, sent, due := &s.Series, &s.Latency.FromSent.TTFT, &s.Latency.FromDue.TTFT
	says := spread(sent, "Counted from when they were sent, half of the requests had their first token within",
		"TTFT from sent")
	note := "Where the curve from schedule lies to the right, requests waited in the client before they were sent."
	if s.Run.Simulated != "" {
		note = ""
	}
	return doc.Section{Title: "Time to first token", Text: append(says, sayOrigins(s, "TTFT", sent, due)...),
		Plots: defined("ttft", cdf("TTFT distribution", note, "TTFT",
			bothOrigins(s, p.TTFTSent, p.TTFTDue, "TTFT")...)),
	}
}

func itlSection(s *Summary) doc.Section {
	p := &s.Series
	gaps, about := []doc.Series{p.ITLChunk},
		"All gaps between token events, of all requests; each event carried one token. "
	if per := s.Tokens.PerEvent; per == nil || *per != 1 {
		gaps, about = append(gaps, p.ITLToken), "All gaps of all requests, by event and by token. "
	}
	itl := defined("itl_chunk", gapCDF("ITL distribution", strings.TrimSpace(about), gaps...))
	tpot := defined("tpot", cdf("TPOT distribution", "One value for each request.", "TPOT", p.TPOT))
	says := spread(&s.Latency.ITLChunk, "Half of the gaps between token events took no more than", "chunk ITL")
	if per := s.Tokens.PerEvent; per != nil && *per > 1.01 && s.Latency.ITLToken.P50 != nil {
		says = append(says, fmt.Sprintf("An event carried %s tokens on average, so a gap is not the time of a token: "+
			"per token the median is %s ms (tokens per event, token-normalised ITL).",
			doc.Number(*per), doc.Number(*s.Latency.ITLToken.P50)))
	}
	says = append(says, spread(&s.Latency.TPOT,
		"Averaged over each request, half of the requests took for a token no more than", "TPOT")...)
	return doc.Section{Title: "Between tokens", Text: says, Plots: append(itl, tpot...)}
}

func e2eSection(s *Summary) doc.Section {
	p, sent, due := &s.Series, &s.Latency.FromSent.E2E, &s.Latency.FromDue.E2E
	says := spread(sent, "Counted from when they were sent, half of the requests had their last token within",
		"E2E from sent")
	return doc.Section{Title: "End to end", Text: append(says, sayOrigins(s, "E2E", sent, due)...),
		Plots: defined("e2e",
			cdf("E2E distribution", "To the last token.", "E2E", bothOrigins(s, p.E2ESent, p.E2EDue, "E2E")...))}
}

func loadSection(s *Summary) doc.Section {
	p := &s.Series
	over := func(title, about, label string, kind doc.Kind, series ...doc.Series) doc.Plot {
		return doc.Plot{Title: title, Text: about, Kind: kind, XLabel: "time since the start", XUnit: "s",
			YLabel: label, Series: series}
	}
	bins := fmt.Sprintf("In bins of %s s.", doc.Number(p.BinS))
	coarse := fmt.Sprintf("In bins of %s s.", doc.Number(p.CoarseS))
	arrivals := over("Arrivals", bins+" Where the two part, the client did not keep to the schedule.",
		"requests per second", doc.Step, p.DuePerS, p.SentPerS)
	if s.Run.Simulated != "" {
		arrivals.Text, arrivals.Series = bins, []doc.Series{p.DuePerS}
	}
	// The Y axis of the lag is logarithmic, with what is too small for it at its foot:
	// one stall must not flatten all else.
	lag := overTime(s, "Send lag over time", "sent − due", p.LagMax, p.LagPoints)
	lag.Text += " What is under a microsecond is drawn at one."
	for i := range lag.Series {
		line := &lag.Series[i]
		line.Y = slices.Clone(line.Y)
		for j := range line.Y {
			line.Y[j] = max(line.Y[j], minDrawnMS)
		}
	}
	sec := doc.Section{Title: "Load and send lag", Text: sayLag(s), Plots: slices.Concat(
		defined("arrivals", arrivals),
		defined("in_flight", over("In flight", "Requests sent and not done, at the end of each bin of "+
			doc.Number(p.BinS)+" s.", "requests", doc.Line, p.InFlight)),
		defined("tokens over time",
			over("Prompt tokens over time", coarse+" Each prompt counts at its first token, which ends its prefill.",
				"tokens per second", doc.Step, p.PromptPerS),
			over("Output tokens over time", coarse+" Each token counts when it came.", "tokens per second",
				doc.Step, p.OutputPerS)),
		defined("send_lag",
			cdf("Send lag distribution", "How late the client sent.", "sent − due", p.Lag),
			lag))}
	if s.Run.Simulated != "" {
		sec.Title = "Load"
	}
	return sec
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
	var says []string
	prompts, misses := s.Tokens.PromptError, s.Tokens.OutputMiss
	if n := s.PromptEstimates(); n > 0 {
		says = append(says, fmt.Sprintf("The server did not count the prompts of %s. They count as the workload "+
			"asks, which is an estimate, and are not compared (prompt error).", doc.Many(n, "request")))
	}
	if n := s.OutputEstimates(); n > 0 {
		says = append(says, fmt.Sprintf("The server did not count the outputs of %s. A tokenizer did, by the text "+
			"that came, which is an estimate (output miss).", doc.Many(n, "request")))
	}
	switch {
	case prompts.Compared > 0 && prompts.SumAbs == 0:
		says = append(says, fmt.Sprintf("The server's count of the prompt is the wanted one for all of %s "+
			"(prompt error).", doc.Many(prompts.Compared, "request")))
	case prompts.Compared > 0:
		says = append(says, fmt.Sprintf("The server's count of the prompt is the wanted one for %s of %s; the others "+
			"differ by %s in all, by at most %d (prompt error).",
			doc.Brief(prompts.Compared-prompts.More-prompts.Fewer), doc.Many(prompts.Compared, "request"),
			doc.Many(prompts.SumAbs, "token"), prompts.MaxAbs))
	}
	switch {
	case misses.Compared > 0 && misses.SumAbs == 0:
		says = append(says, fmt.Sprintf("The output has the wanted length for all of %s (output miss).",
			doc.Many(misses.Compared, "request")))
	case misses.Compared > 0:
		says = append(says, fmt.Sprintf("The output has the wanted length for %s of %s; %s %s shorter and %s longer, "+
			"by %s in all (output miss).",
			doc.Brief(misses.Compared-misses.More-misses.Fewer), doc.Many(misses.Compared, "request"),
			doc.Many(misses.Fewer, "output"), doc.Was(misses.Fewer), doc.Brief(misses.More),
			doc.Many(misses.SumAbs, "token")))
	}
	return doc.Section{Title: "Lengths", Text: says,
		Plots: defined("lengths", bars("Prompt lengths", p.Input), bars("Output lengths", outputs...))}
}

func cacheSection(s *Summary) doc.Section {
	sec := doc.Section{Title: "Prefix cache", Text: sayCache(s)}
	if len(s.Series.Hits.X) > 0 { // what a workload allows says little alone
		sec.Plots = defined("hit ratio over time",
			doc.Plot{Title: "Hit ratio over time",
				Text: fmt.Sprintf("By token, of the requests that were sent in each %s s.",
					doc.Number(s.Series.CoarseS)), Kind: doc.Line,
				XLabel: "time since the start", XUnit: "s", YLabel: "share of the prompt tokens",
				Series: []doc.Series{s.Series.Hits, s.Series.HitsAllowed}})
	}
	return sec
}

func errorSection(s *Summary) doc.Section {
	if len(s.Errors) == 0 {
		return doc.Section{}
	}
	head, rows := errorTable(s)
	terms := []string{"", termOf("errors"), termOf("errors"), ""}
	return doc.Section{Title: "Errors",
		Tables: []doc.Table{{Caption: "Share of the requests that ended", Head: head, Rows: rows,
			HeadTerms: terms[:len(head)]}}}
}

// Sentences that say what the numbers say, each with the figures that it rests
// on. What was not measured is not spoken of.

// spread says half, nearly all, and on how many that rests.
func spread(st *Stat, before, name string) []string {
	if st.P50 == nil {
		return nil
	}
	out := fmt.Sprintf("%s %s ms", before, doc.Number(*st.P50))
	if st.P99 != nil {
		out += fmt.Sprintf(", and 99 %% within %s ms (p50 and p99 of %s over %s).", doc.Number(*st.P99), name,
			doc.Many(st.Count, "value"))
	} else {
		out += fmt.Sprintf(" (p50 of %s); %s are too few for a p99, the largest is %s ms.", name,
			doc.Many(st.Count, "value"), doc.Number(*st.Max))
	}
	return []string{out}
}

// sayOrigins compares a latency under both origins, at p99 or else the maximum.
// In a simulation they are the same.
func sayOrigins(s *Summary, name string, sent, due *Stat) []string {
	if s.Run.Simulated != "" {
		return nil
	}
	at, a, b := "p99", sent.P99, due.P99
	if a == nil || b == nil {
		at, a, b = "maximum", sent.Max, due.Max
	}
	if a == nil || b == nil {
		return nil
	}
	if more := *b - *a; more > 0.01**a {
		return []string{fmt.Sprintf("Counted from when they were due, the %s of %s is %s ms, which is %s ms more: "+
			"requests had to wait before they were sent, and figures from sent hide it.",
			at, name, doc.Number(*b), doc.Number(more))}
	}
	return []string{fmt.Sprintf("Counted from when they were due, the %s of %s is %s ms, within 1 %% of the figure "+
		"from sent: waiting in the client does not colour it.", at, name, doc.Number(*b))}
}

func sayLag(s *Summary) []string {
	says := spread(&s.Latency.SendLag, "Half of the requests were sent later than due by no more than", "send lag")
	if d := s.LagDriftMS; d != nil {
		says = append(says, fmt.Sprintf("From the first to the last quarter of the run the median lag changed by %s "+
			"ms (lag drift).", doc.Number(*d)))
	}
	if d := s.Run.Drift; d != nil {
		later := "later"
		if d.MeanNS < 0 {
			later = "sooner"
		}
		says = append(says, fmt.Sprintf("A turn waits for the turns before it: %s %s due %s ms %s than recorded on "+
			"average, and %s ms later at most (drift).",
			doc.Many(d.Turns, "later turn"), doc.Was(d.Turns), doc.Number(math.Abs(d.MeanNS)/1e6), later,
			doc.Number(float64(d.MaxNS)/1e6)))
	}
	if m := s.InFlight.Mean; m != nil {
		says = append(says, fmt.Sprintf("%s requests were in flight on average, and %s at most (in flight).",
			doc.Number(*m), doc.Brief(int64(s.InFlight.Max))))
	}
	return says
}

func sayCache(s *Summary) []string {
	c := &s.Cache
	var says []string
	switch {
	case c.Measured != nil && c.Expected != nil:
		says = append(says, fmt.Sprintf("The server found %s of the prompt tokens in its cache; the workload allows "+
			"%s %s with blocks of %d tokens, a difference of %s (measured and expected ratio over %s).",
			doc.Percent(*c.Measured), doc.Percent(*c.Expected), expectedFromWords[c.ExpectedFrom], *c.Block,
			doc.PercentagePoints(*c.Difference), doc.Many(c.Rows, "request")))
	case c.Measured != nil:
		says = append(says, fmt.Sprintf("The server found %s of the prompt tokens in its cache (measured ratio over "+
			"%s); what the workload allows is not known.", doc.Percent(*c.Measured), doc.Many(c.Rows, "request")))
	case c.Expected != nil:
		says = append(says, fmt.Sprintf("The workload allows %s of the prompt tokens to be found in a cache with "+
			"blocks of %d tokens, %s (expected ratio over %s); the server did not say what it found.",
			doc.Percent(*c.Expected), *c.Block, expectedFromWords[c.ExpectedFrom], doc.Many(c.Rows, "request")))
	}
	if c.RoundingLoss != nil && *c.RoundingLoss > 0 {
		says = append(says, fmt.Sprintf("Rounding to full blocks loses %s of the prompt tokens (rounding loss).",
			doc.Percent(*c.RoundingLoss)))
	}
	return says
}
