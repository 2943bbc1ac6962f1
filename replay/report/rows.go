package report

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"reprise/replay/result"
	"reprise/trace/page"
)

// The tables that the text and the page share, as rows of strings.

// overview is what was asked of the server and what it did: name, figure, note.
func overview(s *Summary) [][]string {
	r, t, tok := &s.Requests, &s.Throughput, &s.Tokens
	rows := [][]string{
		{"Requests", page.Brief(r.Rows), fmt.Sprintf("%s succeeded, %s failed, %s cancelled, %s not sent",
			page.Brief(r.Succeeded), page.Brief(r.Failed), page.Brief(r.Cancelled), page.Brief(r.NotSent))},
		{"Duration", unit(s.DurationS, "s"), "first due to last done; the rates are over it"},
		{"Offered", unit(t.OfferedPerS, "requests/s"), schedule(&s.Run)},
		{"Throughput", unit(t.RequestsPerS, "requests/s"), "successful requests, the drain at the end included"},
		{"Prompt tokens", unit(t.PromptTokensPerS, "tokens/s"), page.Many(tok.Prompt, "token") + estimateNote(s.PromptEstimates(), r.Succeeded)},
		{"Output tokens", unit(t.OutputTokensPerS, "tokens/s"),
			fmt.Sprintf("%s, %s per event", page.Many(tok.Output, "token"), numberOrDash(tok.PerEvent)) + estimateNote(s.OutputEstimates(), r.Succeeded)},
	}
	if g := s.Goodput; g != nil {
		note := func(of Good) string { return fmt.Sprintf("%s met %s", page.OrDash(of.Share, page.Percent), g.SLO) }
		rows = append(rows, []string{"Goodput from sent", unit(g.FromSent.PerS, "requests/s"), note(g.FromSent)},
			[]string{"Goodput from due", unit(g.FromDue.PerS, "requests/s"), note(g.FromDue)})
	}
	limit := "no limit"
	if n := s.InFlight.Limit; n != nil {
		limit = fmt.Sprintf("limit %s, %s held back", page.Brief(int64(*n)), page.Brief(s.InFlight.HeldBack))
	}
	if r.WarmUp+r.CoolDown > 0 {
		rows = append(rows, []string{"Not measured", page.Many(r.WarmUp+r.CoolDown, "request"),
			fmt.Sprintf("%s to warm up and %s to cool down, sent as well", page.Brief(r.WarmUp), page.Brief(r.CoolDown))})
	}
	if n := s.Run.Beyond; n > 0 {
		rows = append(rows, []string{"Beyond", page.Many(n, "request"), "not sent: due after the duration that was asked for"})
	}
	rows = append(append(rows, driftRows(s)...), retryRows(s)...)
	rows = append(append(rows, partRows(s.Run.Selection)...), beforeRows(&s.Run)...)
	rows = append(rows, efficiencyRows(s.Efficiency)...)
	c, hits, expected := &s.Cache, "not reported", "what to expect is not known"
	if c.Measured != nil {
		hits = page.Percent(*c.Measured) + " measured"
	}
	if c.Expected != nil {
		expected = fmt.Sprintf("%s expected %s with blocks of %s tokens, %s lost to rounding",
			page.Percent(*c.Expected), expectedFromWords[c.ExpectedFrom], page.Brief(*c.Block), page.OrDash(c.RoundingLoss, page.Percent))
	}
	return append(rows,
		[]string{"In flight", unit(s.InFlight.Mean, "on average"), fmt.Sprintf("at most %s, %s", page.Brief(int64(s.InFlight.Max)), limit)},
		[]string{"Prompt error", page.Brief(tok.PromptError.SumAbs) + " tokens", difference(tok.PromptError)},
		[]string{"Output miss", page.Brief(tok.OutputMiss.SumAbs) + " tokens", difference(tok.OutputMiss)},
		[]string{"Prefix cache", hits, expected})
}

// efficiencyRows say what the users and the owner get.
func efficiencyRows(e *Efficiency) [][]string {
	if e == nil {
		return nil
	}
	divisor, hint := "GPU", ""
	if e.GPUsFrom == gpusInstances {
		divisor, hint = "instance", "; --gpus gives the number of GPUs"
	}
	return [][]string{
		{"Per user", unit(e.PerUser, "tokens/s"), "once tokens come: 1 ÷ mean TPOT"},
		{"Per " + divisor, unit(e.PerGPU, "tokens/s"), "output tokens, of " + page.Many(int64(e.GPUs), divisor) + hint},
	}
}

// schedule says what made requests due.
func schedule(r *result.Run) string {
	switch {
	case r.Timing == result.ClosedLoop:
		return fmt.Sprintf("closed loop of %s: the server sets the rate", page.Many(int64(r.Concurrency), "request"))
	case r.Rate != "" && r.Timing == result.Causal:
		return fmt.Sprintf("%s, sessions start by %s", Plain(r.Timing), Plain(r.Rate))
	case r.Rate != "":
		return fmt.Sprintf("%s, %s", Plain(r.Timing), Plain(r.Rate))
	}
	return fmt.Sprintf("%s, speed %s", Plain(r.Timing), page.Number(r.Speed))
}

// driftRows say how far a causal run moved later turns.
func driftRows(s *Summary) [][]string {
	d := s.Run.Drift
	if d == nil {
		return nil
	}
	milli := func(ns int64) string { return page.Number(float64(ns) / 1e6) }
	p99 := "–"
	if d.P99NS != nil {
		p99 = milli(*d.P99NS)
	}
	return [][]string{{"Drift of turns", page.Number(d.MeanNS/1e6) + " ms on average",
		fmt.Sprintf("due − recorded of %s: p50 %s, p99 %s, at most %s ms", page.Many(d.Turns, "later turn"), milli(d.P50NS), p99, milli(d.MaxNS))}}
}

func difference(d Difference) string {
	switch {
	case d.Compared == 0:
		return "nothing to compare"
	case d.SumAbs == 0:
		return fmt.Sprintf("all of %s as wanted", page.Many(d.Compared, "request"))
	}
	return fmt.Sprintf("%s compared: %s longer, %s shorter, by at most %s",
		page.Many(d.Compared, "request"), page.Brief(d.More), page.Brief(d.Fewer), page.Many(d.MaxAbs, "token"))
}

func unit(v *float64, name string) string {
	if v == nil {
		return "–"
	}
	return page.Number(*v) + " " + name
}

func numberOrDash(v *float64) string {
	if v == nil {
		return "–"
	}
	return page.Number(*v)
}

// groupHead stands above the time to the first token of a part.
var groupHead = []string{"requests", "succeeded", "p50, ms", "p99, ms"}

func (g *Group) row() []string {
	return []string{page.Brief(g.Rows), page.Brief(g.Succeeded), page.OrDash(g.TTFTP50, page.Short), page.OrDash(g.TTFTP99, page.Short)}
}

var categoryHead = append(append([]string{"category"}, groupHead...), "hit ratio", "expected", "differ by")

func categoryRows(s *Summary) [][]string {
	var rows [][]string
	for _, c := range s.ByCategory {
		name := Plain(c.Category)
		if name == "" {
			name = "none"
		}
		differs := "–"
		if d := c.Cache.Difference; d != nil {
			differs = page.PercentagePoints(*d)
		}
		rows = append(rows, append(append([]string{name}, c.row()...),
			page.OrDash(c.Cache.Measured, page.Percent), page.OrDash(c.Cache.Expected, page.Percent), differs))
	}
	return rows
}

var lengthHead = append([]string{"prompt tokens"}, groupHead...)

func lengthRows(s *Summary) [][]string {
	var rows [][]string
	for _, b := range s.ByInputLength {
		name := page.Brief(b.Lo) + " and more"
		if b.Hi != nil {
			name = page.Brief(b.Lo) + " to " + page.Brief(*b.Hi-1)
		}
		rows = append(rows, append([]string{name}, b.row()...))
	}
	return rows
}

var classHead = append([]string{"class"}, groupHead...)

func classRows(s *Summary) (rows [][]string) {
	for _, c := range s.ByClass {
		name := Plain(c.Class)
		if name == "" {
			name = "none"
		}
		rows = append(rows, append([]string{name}, c.row()...))
	}
	return rows
}

var errorHead = []string{"error", "requests", "share"}

func errorRows(s *Summary) [][]string {
	var rows [][]string
	for _, e := range s.Errors {
		rows = append(rows, []string{Plain(e.Class), page.Brief(e.Count), page.Percent(e.Share)})
	}
	return rows
}

// verdictLine and tierLine stand at the top of every report.
func verdictLine(s *Summary) string {
	v := &s.Verdict
	switch n := len(v.Reasons); {
	case v.Trustworthy && s.Run.Simulated != "":
		return "Simulated: a model of an engine gave these figures in virtual time. Nothing was sent and no client was measured; the run is complete."
	case s.Run.Simulated != "":
		return "Simulated: a model of an engine gave these figures in virtual time, and nothing was sent. Not trustworthy even so:"
	case v.Trustworthy:
		return "Trustworthy: the client kept to its schedule and the run is complete."
	case n == 1:
		return "Not trustworthy, for one reason:"
	default:
		return fmt.Sprintf("Not trustworthy, for %d reasons:", n)
	}
}

// Plain makes a string from a file safe for a terminal: what does not print,
// escape sequences above all, becomes a question mark.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// partRows say which part of the workload was sent, how often, and what was sent
// before it to prime the server's cache.
func partRows(p *result.Selection) [][]string {
	if p == nil {
		return nil
	}
	notes := []string{"of " + page.Many(p.OfRows, "row")}
	if p.FromNS > 0 || p.ToNS > 0 {
		end := "the end"
		if p.ToNS > 0 {
			end = time.Duration(p.ToNS).String()
		}
		notes = append(notes, fmt.Sprintf("the window from %v to %s", time.Duration(p.FromNS), end))
	}
	if s := p.Sample; s != nil {
		notes = append(notes, fmt.Sprintf("%s of %s", page.Brief(s.Sessions), page.Many(s.OfSessions, "session")))
	}
	if p.MaxRequests > 0 {
		notes = append(notes, "the first of them")
	}
	if l := p.Loop; l != nil {
		times := "again and again"
		if l.Rounds > 0 {
			times = page.Many(l.Rounds, "round")
		}
		if l.Same {
			times += " of the same prompts"
		}
		notes = append(notes, times)
	}
	rows := [][]string{{"Part", page.Many(p.Rows, "row"), strings.Join(notes, ", ")}}
	if c := p.Prime; c != nil {
		rows = append(rows, []string{"Primed", page.Many(c.Prompts, "prompt"),
			fmt.Sprintf("%s before the run, of a cache of %s; %s failed", page.Many(c.Tokens, "token"), page.Brief(c.CapacityTokens), page.Brief(c.Failed))})
	}
	return rows
}
