package bench

import (
	"fmt"
	"strings"

	"reprise/trace"
	"reprise/trace/page"
)

// Page lays the sweep out for a browser.
func (r *SweepResult) Page() *page.Page {
	p := &page.Page{Title: "Load sweep", Lead: "What a server does at one load after another, up to saturation.", Facts: r.facts(), Notes: r.notes()}
	head, rows := r.table(sweepColumns)
	found := page.Section{Title: "What was found", Text: append(r.Says(), r.remarks()...)}
	levels := page.Section{Title: "Levels", Tables: []page.Table{{Head: head, Rows: rows,
		Caption: "Latencies in ms, from due but where sent is said. Offered, achieved, output tokens and in flight are of the second half of a level, without the drain at its end. A question mark: within chance"}}}
	made := page.Section{Title: "How it was made", Tables: []page.Table{{Head: []string{"", ""}, Align: []page.Align{page.Left, page.Left}}}}
	for _, row := range [][]string{{"command", r.Command}, {"workload", r.Workload}, {"simulated", r.Simulated}} {
		if row[1] != "" {
			made.Tables[0].Rows = append(made.Tables[0].Rows, row)
		}
	}
	p.Sections = append(p.Sections, found, page.Section{Title: "Curves", Plots: r.plots()}, levels, made)
	return p
}

func (r *SweepResult) facts() []page.Fact {
	var out []page.Fact
	for _, f := range []page.Fact{{Label: "Endpoints", Value: strings.Join(r.Endpoints, ", ")}, {Label: "Model", Value: r.Model},
		{Label: "Server", Value: r.Server, Note: "its version"}, {Label: "Tier", Value: r.Tier},
		{Label: "Arrivals", Value: r.Process}, {Label: "Seed", Value: r.Seed}, {Label: "Contract", Value: strings.Join(r.Contract, "; ")},
		{Label: "Started", Value: r.Started}, {Label: "Reprise", Value: r.Version}} {
		if f.Value != "" {
			out = append(out, f)
		}
	}
	return out
}

func (r *SweepResult) notes() []page.Note {
	var out []page.Note
	if l := r.Untrusted(); l != nil {
		out = append(out, page.Note{Level: page.Bad, Text: fmt.Sprintf("The sweep is not trustworthy: at %s the client was the limit. %s", l.Name, l.Why)})
	}
	if r.PresetWarning != "" {
		out = append(out, page.Note{Level: page.Warn, Text: printable(r.PresetWarning)})
	}
	if r.Closed {
		out = append(out, page.Note{Level: page.Warn, Text: closedNote})
	}
	if tier := trace.TierNote("page", r.Tier); tier != "" {
		out = append(out, page.Note{Level: page.Warn, Text: tier})
	}
	if r.Hypothesis != "" {
		out = append(out, page.Note{Level: page.Info, Text: "Hypothesis: " + r.Hypothesis})
	}
	return out
}

// plots are of the levels of the ladder that can be trusted.
func (r *SweepResult) plots() []page.Plot {
	x, unit := "offered rate", "req/s"
	if r.Closed {
		x, unit = "requests in flight", ""
	}
	series := func(name string, of func(l *Level) *float64) page.Series {
		s := page.Series{Name: name}
		for _, l := range r.Ladder() {
			if v := of(l); v != nil && l.Outcome != Untrusted {
				s.X, s.Y = append(s.X, l.Load), append(s.Y, *v)
			}
		}
		return s
	}
	plot := func(title, about, label, yUnit string, log bool, of ...page.Series) page.Plot {
		return page.Plot{Title: title, Text: about, Kind: page.Line, XLabel: x, XUnit: unit, YLabel: label, YUnit: yUnit, LogY: log, Series: of}
	}
	return page.Drawn(
		plot("TTFT", "From due, so that waiting in a queue is in it.", "TTFT", "ms", true,
			series("p50", func(l *Level) *float64 { return l.TTFTDue.P50 }), series("p99", func(l *Level) *float64 { return l.TTFTDue.P99 })),
		plot("Between tokens", "", "TPOT and ITL", "ms", true,
			series("TPOT p50", func(l *Level) *float64 { return l.TPOT.P50 }), series("TPOT p99", func(l *Level) *float64 { return l.TPOT.P99 }),
			series("ITL p99", func(l *Level) *float64 { return l.ITL.P99 })),
		plot("Requests", "Where the two part, the server does not follow.", "requests per second", "", false,
			series("offered", func(l *Level) *float64 { return l.Flow.OfferedPerS }), series("achieved", func(l *Level) *float64 { return l.Flow.AchievedPerS })),
		plot("In flight", "Sent and not over, on average over the second half of a level.", "requests", "", false, series("mean", func(l *Level) *float64 { return l.Flow.InFlight })),
	)
}
