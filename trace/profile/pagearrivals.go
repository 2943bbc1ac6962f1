package profile

import (
	"fmt"

	"reprise/trace/page"
)

func (h *sheet) arrivals() page.Section {
	if h.Arrivals.InterArrival == nil {
		return page.Section{}
	}
	bins := h.binWords()
	rate := func(of func(*TimeBin) int64) func(*TimeBin) *float64 {
		return func(b *TimeBin) *float64 { return h.binRate(b, of(b)) }
	}
	return page.Section{Title: "Arrivals", Text: h.sayArrivals(),
		Tables: append(statsTable("Time from each request to the next", lasting, namedStats{"gap", h.Arrivals.InterArrival}), h.idcTable()...),
		Plots: page.Drawn(
			overTimePlot("Requests over time", bins, "requests", "1/s", h.series("requests", rate(func(b *TimeBin) int64 { return b.Requests }))),
			h.idcPlot(),
			overTimePlot("Prompt tokens over time", bins, "prompt tokens", "1/s", h.series("prompt tokens", rate(func(b *TimeBin) int64 { return b.InputTokens }))),
			overTimePlot("Output tokens over time", "Of the requests that arrive in each bin. "+bins, "output tokens", "1/s", h.series("output tokens", rate(func(b *TimeBin) int64 { return b.OutputTokens }))),
			h.histogram("Time between requests", MetricInterArrival, "gaps", "gap", "s", second),
			cumulative("Distribution of the time between requests", "The share of gaps that are at most so long.", "gap", "s", h.cdf("gaps", MetricInterArrival, "", second))),
	}
}

// minBin is the part of a bin that the last one must reach for its rate to
// count: that of a few milliseconds says nothing.
const minBin = 0.5

func (h *sheet) binWords() string {
	if h.OverTime == nil {
		return ""
	}
	text := "In bins of " + lasting(h.OverTime.BinS) + "."
	if bins := h.OverTime.Bins; len(bins) > 0 && h.stub(&bins[len(bins)-1]) {
		text += " The last one is cut short by the end of the trace and has no rate."
	}
	return text
}

func (h *sheet) stub(b *TimeBin) bool { return b.EndS-b.StartS < minBin*h.OverTime.BinS }

// binRate is how many a second there are in a bin, unless it is cut short.
func (h *sheet) binRate(b *TimeBin, n int64) *float64 {
	if h.stub(b) {
		return nil
	}
	rate := float64(n) / (b.EndS - b.StartS)
	return &rate
}

func (h *sheet) idcTable() []page.Table {
	t := page.Table{Caption: "Index of dispersion for counts: 1 for a Poisson process", Head: []string{"window", "windows", "IDC"},
		Align: []page.Align{page.Right, page.Right, page.Right}}
	if h.Arrivals.Clock != nil {
		t.Head, t.Align = append(t.Head, "of"), append(t.Align, page.Left)
	}
	add := func(list []IDC, what string) {
		for _, one := range list {
			if one.IDC == nil {
				continue
			}
			row := []string{lasting(one.WindowS), page.Count(one.Windows), fixed2(*one.IDC), what}
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
	return []page.Table{t}
}

func (h *sheet) idcPlot() page.Plot {
	traffic, artefacts, ticks := page.Series{Name: "IDC"}, page.Series{Name: "artefact of the clock's ticks"}, page.Series{Name: "by whole ticks"}
	poisson := page.Series{Name: "Poisson process"}
	add := func(s *page.Series, one IDC) {
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
	return page.Plot{Title: "Dispersion of counts", Text: "Variance over mean of the requests in a window. A line that rises with the window shows bursts and trends that last longer than it.",
		XLabel: "window", XUnit: "s", YLabel: "IDC", LogX: true, LogY: true, Series: []page.Series{traffic, ticks, artefacts, poisson}}
}

func (h *sheet) sayArrivals() []string {
	var says []string
	if h.warned("made_up_times") {
		says = append(says, "The source has no times: all that stands here describes the arrivals that were made up at import.")
	}
	if h.Rate != nil {
		says = append(says, h.sayRate())
	}
	if said := h.sayIDC(); said != "" {
		says = append(says, said)
	}
	return says
}

func (h *sheet) sayRate() string {
	said := often(*h.Rate) + " arrive on average"
	if h.OverTime == nil {
		return said + " (rate)."
	}
	highest := 0.0
	for i := range h.OverTime.Bins {
		b := &h.OverTime.Bins[i]
		if rate := h.binRate(b, b.Requests); rate != nil {
			highest = max(highest, *rate)
		}
	}
	if highest == 0 || len(h.OverTime.Bins) < 2 {
		return said + " (rate)."
	}
	return fmt.Sprintf("%s; in the busiest bin of %s it is %s, %s times the average (rate, requests over time).",
		said, lasting(h.OverTime.BinS), often(highest), figure(highest / *h.Rate))
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
		return fmt.Sprintf("Over windows of %s the counts are %s those of a Poisson process (IDC %s).", lasting(first.WindowS), near, figure(*first.IDC))
	case near == far:
		return fmt.Sprintf("Over windows of %s and of %s alike the counts are %s those of a Poisson process (IDC %s and %s).",
			lasting(first.WindowS), lasting(last.WindowS), near, figure(*first.IDC), figure(*last.IDC))
	}
	return fmt.Sprintf("Over windows of %s the counts are %s those of a Poisson process (IDC %s), over windows of %s %s them (IDC %s).",
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
