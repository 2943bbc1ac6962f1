package profile

import (
	"fmt"

	"reprise/trace/page"
)

// sessions says who comes back, and after how long.
func (h *sheet) sessions() page.Section {
	s := page.Section{Title: "Sessions", Text: h.saySessions()}
	if g := h.Sessions; g != nil {
		s.Tables = append(s.Tables, h.sessionTable())
		s.Tables = append(s.Tables, statsTable("Requests of a session", figure, namedStats{"turns", g.Turns})...)
	}
	s.Tables = append(s.Tables, statsTable("Time between turns", lasting, namedStats{"turn gap", turnGap(h.Summary.Sessions)},
		namedStats{"think time", h.Think}, namedStats{"tool time", h.Tool})...)
	s.Plots = page.Drawn(
		h.histogram("Turns of a session", MetricTurns, "sessions", "turns", "requests", 1),
		h.histogram("Turn gap", MetricTurnGap, "gaps", "from arrival to arrival", "s", second),
		h.histogram("Think time", MetricThink, "turns", "think time", "s", second),
		h.histogram("Tool time", MetricTool, "turns", "tool time", "s", second))
	return s
}

// sessionTable says how many requests have an identifier, and from where.
func (h *sheet) sessionTable() page.Table {
	n := &h.SessionShares
	t := page.Table{Caption: "Requests by where their session comes from", Head: []string{"session", "requests", "share"}}
	line := func(name string, requests int64) {
		if requests > 0 {
			t.Rows = append(t.Rows, []string{name, page.Count(requests), page.OrDash(share(requests, h.Requests), page.Percent)})
		}
	}
	line("from an identifier in the source", n.Source)
	line("inferred from shared prefixes", n.Inferred)
	line("of unknown origin", n.Unknown)
	line("none", n.Without)
	return t
}

func (h *sheet) saySessions() []string {
	g := h.Sessions
	if g == nil || g.Turns == nil {
		return nil
	}
	origin := ""
	switch g.Origin {
	case originSource:
		origin = ", as the source's identifiers say"
	case originInferred:
		origin = ", inferred from shared prefixes since the source names none: " + g.Rule
	}
	says := []string{fmt.Sprintf("%s of the requests belong to %s%s; a session has %s turns on average and %s at most (share with a session, turns).",
		page.Percent(ratio(g.Requests, h.Requests)), page.Many(g.Sessions, "session"), origin, figure(g.Turns.Mean), figure(g.Turns.Max))}
	if gap := g.TurnGap; gap != nil {
		says = append(says, fmt.Sprintf("Half of the next turns arrive within %s of the one before, and nine tenths within %s (p50 and p90 of turn gap).", lasting(gap.P50), lasting(gap.P90)))
	}
	if h.Think != nil {
		said := fmt.Sprintf("People take %s between an answer and their next turn in half of the cases, or less (p50 of think time over %s).", lasting(h.Think.P50), page.Many(h.Think.Count, "turn"))
		if h.warned("made_up_times") {
			said = fmt.Sprintf("The think times, half of which are at most %s, were made up at import (p50 of think time).", lasting(h.Think.P50))
		}
		says = append(says, said)
	}
	return says
}
