package report

import (
	"fmt"
	"strings"
	"time"

	"reprise/replay/result"
	"reprise/trace/doc"
)

// uncached says how fast prompt tokens came that the cache did not have.
func uncached(t *Throughput) string {
	if t.UncachedPerS == nil {
		return ""
	}
	return ", " + unit(t.UncachedPerS, "tokens/s") + " of them not cached"
}

// overview is what was asked of the server and what it did: name, figure, note.
func overview(s *Summary) [][]string {
	r, t, tok := &s.Requests, &s.Throughput, &s.Tokens
	rows := [][]string{
		{"Requests", doc.Brief(r.Rows), fmt.Sprintf("%s succeeded, %s failed, %s cancelled, %s not sent",
			doc.Brief(r.Succeeded), doc.Brief(r.Failed), doc.Brief(r.Cancelled), doc.Brief(r.NotSent))},
		{"Duration", unit(s.DurationS, "s"), "first due to last done; the rates are over it"},
		{"Offered", unit(t.OfferedPerS, "requests/s"), schedule(&s.Run)},
		{"Throughput", unit(t.RequestsPerS, "requests/s"), "successful requests, the drain at the end included"},
		{"Prompt tokens", unit(t.PromptTokensPerS, "tokens/s"),
			doc.Many(tok.Prompt, "token") + estimateNote(s.PromptEstimates(), r.Succeeded) + uncached(t)},
		{"Output tokens", unit(t.OutputTokensPerS, "tokens/s"),
			fmt.Sprintf("%s, %s per event", doc.Many(tok.Output, "token"), numberOrDash(tok.PerEvent)) +
				estimateNote(s.OutputEstimates(), r.Succeeded)},
	}
	if g := s.Goodput; g != nil {
		note := func(of Good) string { return fmt.Sprintf("%s met %s", doc.OrDash(of.Share, doc.Percent), g.SLO) }
		rows = append(rows, []string{"Goodput from sent", unit(g.FromSent.PerS, "requests/s"), note(g.FromSent)},
			[]string{"Goodput from schedule", unit(g.FromDue.PerS, "requests/s"), note(g.FromDue)})
	}
	limit := "no limit"
	if n := s.InFlight.Limit; n != nil {
		limit = fmt.Sprintf("limit %s, %s held back", doc.Brief(int64(*n)), doc.Brief(s.InFlight.HeldBack))
	}
	if r.WarmUp+r.CoolDown > 0 {
		rows = append(rows, []string{"Not measured", doc.Many(r.WarmUp+r.CoolDown, "request"),
			fmt.Sprintf("%s to warm up and %s to cool down, sent as well", doc.Brief(r.WarmUp),
				doc.Brief(r.CoolDown))})
	}
	if n := s.Run.Beyond; n > 0 {
		rows = append(rows, []string{"Beyond", doc.Many(n, "request"),
			"not sent: due after the duration that was asked for"})
	}
	if d := s.Run.Drift; d != nil { // how far a causal run moved later turns
		milli := func(ns int64) string { return doc.Number(float64(ns) / 1e6) }
		p99 := "–"
		if d.P99NS != nil {
			p99 = milli(*d.P99NS)
		}
		rows = append(rows, []string{"Drift of turns", doc.Number(d.MeanNS/1e6) + " ms on average",
			fmt.Sprintf("due − recorded of %s: p50 %s, p99 %s, at most %s ms", doc.Many(d.Turns, "later turn"),
				milli(d.P50NS), p99, milli(d.MaxNS))})
	}
	rows = append(append(rows, retryRows(s)...), partRows(s.Run.Selection)...)
	if before := s.Run.Cache; before != nil {
		did, note := cacheBefore(before)
		rows = append(rows, []string{"Cache state at start", did, note})
	}
	if e := s.Efficiency; e != nil { // what the users and the owner get
		divisor, hint := "GPU", ""
		if e.GPUsFrom == gpusInstances {
			divisor, hint = "instance", "; --gpus gives the number of GPUs"
		}
		rows = append(rows, []string{"Per user", unit(e.PerUser, "tokens/s"), "once tokens come: 1 ÷ mean TPOT"},
			[]string{"Per " + divisor, unit(e.PerGPU, "tokens/s"),
				"output tokens, of " + doc.Many(int64(e.GPUs), divisor) + hint})
	}
	c, hits, expected := &s.Cache, "not reported", "what to expect is not known"
	if c.Measured != nil {
		hits = doc.Percent(*c.Measured) + " measured"
	}
	if c.Expected != nil {
		expected = fmt.Sprintf("%s expected %s with blocks of %s tokens, %s lost to block granularity",
			doc.Percent(*c.Expected), expectedFromWords[c.ExpectedFrom], doc.Brief(*c.Block),
			doc.OrDash(c.RoundingLoss, doc.Percent))
	}
	return append(rows,
		[]string{"In flight", unit(s.InFlight.Mean, "on average"),
			fmt.Sprintf("at most %s, %s", doc.Brief(int64(s.InFlight.Max)), limit)},
		[]string{"Prompt error", doc.Brief(tok.PromptError.SumAbs) + " tokens", difference(tok.PromptError)},
		[]string{"Output miss", doc.Brief(tok.OutputMiss.SumAbs) + " tokens", difference(tok.OutputMiss)},
		[]string{"Prefix cache", hits, expected})
}

// retryRows say how much was sent again, and whether the answers were the same.
func retryRows(s *Summary) [][]string {
	var rows [][]string
	if d := s.Run.Determinism; d != nil {
		rows = append(rows, []string{"Determinism", fmt.Sprintf("%s differ", doc.Brief(d.Differed)),
			fmt.Sprintf("of %s sent twice at temperature 0, one at a time; %s sampled",
				doc.Many(d.Compared, "request"), doc.Brief(d.Rows))})
	}
	r := s.Retries
	if r == nil {
		return rows
	}
	return append(rows, []string{"Retried", doc.Many(r.Retried, "request"),
		fmt.Sprintf("%s in %s; %s asked for a later try by Retry-After; latencies include the retries",
			doc.Brief(r.Succeeded)+" succeeded", doc.Many(r.Attempts, "further attempt"),
			doc.Many(r.AskedLater, "answer"))})
}

// partRows say which part of the workload was sent, how often, and what was sent
// before it to prime the server's cache.
func partRows(p *result.Selection) [][]string {
	if p == nil {
		return nil
	}
	notes := []string{"of " + doc.Many(p.OfRows, "row")}
	if p.FromNS > 0 || p.ToNS > 0 {
		end := "the end"
		if p.ToNS > 0 {
			end = time.Duration(p.ToNS).String()
		}
		notes = append(notes, fmt.Sprintf("the window from %v to %s", time.Duration(p.FromNS), end))
	}
	if s := p.Sample; s != nil {
		notes = append(notes, fmt.Sprintf("%s of %s", doc.Brief(s.Sessions), doc.Many(s.OfSessions, "session")))
	}
	if p.MaxRequests > 0 {
		notes = append(notes, "the first of them")
	}
	if l := p.Loop; l != nil {
		times := "again and again"
		if l.Rounds > 0 {
			times = doc.Many(l.Rounds, "round")
		}
		if l.Same {
			times += " of the same prompts"
		}
		notes = append(notes, times)
	}
	rows := [][]string{{"Part", doc.Many(p.Rows, "row"), strings.Join(notes, ", ")}}
	if c := p.Prime; c != nil {
		rows = append(rows, []string{"Primed", doc.Many(c.Prompts, "prompt"),
			fmt.Sprintf("%s before the run, of a cache of %s; %s failed", doc.Many(c.Tokens, "token"),
				doc.Brief(c.CapacityTokens), doc.Brief(c.Failed))})
	}
	return rows
}
