package report

import (
	"fmt"
	"math"

	"reprise/trace/page"
)

// Sentences that say what the numbers say, each with the figures that it rests
// on. What was not measured is not spoken of.

func sayOverview(s *Summary) []string {
	r, t := &s.Requests, &s.Throughput
	if s.DurationS == nil {
		return nil
	}
	out := fmt.Sprintf("%s of %s succeeded within %s s", page.Brief(r.Succeeded), page.Many(r.Rows, "request"), page.Number(*s.DurationS))
	if t.RequestsPerS != nil {
		out += fmt.Sprintf(": %s requests, %s prompt tokens and %s output tokens per second (duration, throughput)",
			page.Number(*t.RequestsPerS), page.Number(*t.PromptTokensPerS), page.Number(*t.OutputTokensPerS))
	}
	says := []string{out + "."}
	if g := s.Goodput; g != nil && g.FromDue.Share != nil {
		says = append(says, fmt.Sprintf("%s of the requests that ended met %s counted from when they were sent, and %s counted from when they were due (goodput share).",
			page.OrDash(g.FromSent.Share, page.Percent), g.SLO, page.Percent(*g.FromDue.Share)))
	}
	return says
}

// spread says half, nearly all, and on how many that rests.
func spread(st *Stat, before, name string) []string {
	if st.P50 == nil {
		return nil
	}
	out := fmt.Sprintf("%s %s ms", before, page.Number(*st.P50))
	if st.P99 != nil {
		out += fmt.Sprintf(", and 99 %% within %s ms (p50 and p99 of %s over %s).", page.Number(*st.P99), name, page.Many(st.Count, "value"))
	} else {
		out += fmt.Sprintf(" (p50 of %s); %s are too few for a p99, the largest is %s ms.", name, page.Many(st.Count, "value"), page.Number(*st.Max))
	}
	return []string{out}
}

func sayTTFT(s *Summary) []string {
	sent, due := &s.Latency.FromSent.TTFT, &s.Latency.FromDue.TTFT
	says := spread(sent, "Counted from when they were sent, half of the requests had their first token within", "TTFT from sent")
	return append(says, sayOrigins(s, "TTFT", sent, due)...)
}

func sayE2E(s *Summary) []string {
	sent, due := &s.Latency.FromSent.E2E, &s.Latency.FromDue.E2E
	says := spread(sent, "Counted from when they were sent, half of the requests had their last token within", "E2E from sent")
	return append(says, sayOrigins(s, "E2E", sent, due)...)
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
		return []string{fmt.Sprintf("Counted from when they were due, the %s of %s is %s ms, which is %s ms more: requests had to wait before they were sent, and figures from sent hide it.",
			at, name, page.Number(*b), page.Number(more))}
	}
	return []string{fmt.Sprintf("Counted from when they were due, the %s of %s is %s ms, within 1 %% of the figure from sent: waiting in the client does not colour it.", at, name, page.Number(*b))}
}

func sayITL(s *Summary) []string {
	says := spread(&s.Latency.ITLChunk, "Half of the gaps between token events took no more than", "chunk ITL")
	if per := s.Tokens.PerEvent; per != nil && *per > 1.01 && s.Latency.ITLToken.P50 != nil {
		says = append(says, fmt.Sprintf("An event carried %s tokens on average, so a gap is not the time of a token: per token the median is %s ms (tokens per event, token-normalised ITL).",
			page.Number(*per), page.Number(*s.Latency.ITLToken.P50)))
	}
	return append(says, spread(&s.Latency.TPOT, "Averaged over each request, half of the requests took for a token no more than", "TPOT")...)
}

func sayLag(s *Summary) []string {
	says := spread(&s.Latency.SendLag, "Half of the requests were sent later than due by no more than", "send lag")
	if d := s.LagDriftMS; d != nil {
		says = append(says, fmt.Sprintf("From the first to the last quarter of the run the median lag changed by %s ms (lag drift).", page.Number(*d)))
	}
	if d := s.Run.Drift; d != nil {
		later := "later"
		if d.MeanNS < 0 {
			later = "sooner"
		}
		says = append(says, fmt.Sprintf("A turn waits for the turns before it: %s %s due %s ms %s than recorded on average, and %s ms later at most (drift).",
			page.Many(d.Turns, "later turn"), page.Was(d.Turns), page.Number(math.Abs(d.MeanNS)/1e6), later, page.Number(float64(d.MaxNS)/1e6)))
	}
	if m := s.InFlight.Mean; m != nil {
		says = append(says, fmt.Sprintf("%s requests were in flight on average, and %s at most (in flight).", page.Number(*m), page.Brief(int64(s.InFlight.Max))))
	}
	return says
}

func sayTokens(s *Summary) []string {
	var says []string
	p, o := s.Tokens.PromptError, s.Tokens.OutputMiss
	if n := s.PromptEstimates(); n > 0 {
		says = append(says, fmt.Sprintf("The server did not count the prompts of %s. They count as the workload asks, which is an estimate, and are not compared (prompt error).", page.Many(n, "request")))
	}
	if n := s.OutputEstimates(); n > 0 {
		says = append(says, fmt.Sprintf("The server did not count the outputs of %s. A tokenizer did, by the text that came, which is an estimate (output miss).", page.Many(n, "request")))
	}
	switch {
	case p.Compared > 0 && p.SumAbs == 0:
		says = append(says, fmt.Sprintf("The server's count of the prompt is the wanted one for all of %s (prompt error).", page.Many(p.Compared, "request")))
	case p.Compared > 0:
		says = append(says, fmt.Sprintf("The server's count of the prompt is the wanted one for %s of %s; the others differ by %s in all, by at most %d (prompt error).",
			page.Brief(p.Compared-p.More-p.Fewer), page.Many(p.Compared, "request"), page.Many(p.SumAbs, "token"), p.MaxAbs))
	}
	switch {
	case o.Compared > 0 && o.SumAbs == 0:
		says = append(says, fmt.Sprintf("The output has the wanted length for all of %s (output miss).", page.Many(o.Compared, "request")))
	case o.Compared > 0:
		says = append(says, fmt.Sprintf("The output has the wanted length for %s of %s; %s %s shorter and %s longer, by %s in all (output miss).",
			page.Brief(o.Compared-o.More-o.Fewer), page.Many(o.Compared, "request"), page.Many(o.Fewer, "output"), page.Was(o.Fewer), page.Brief(o.More), page.Many(o.SumAbs, "token")))
	}
	return says
}

func sayCache(s *Summary) []string {
	c := &s.Cache
	var says []string
	switch {
	case c.Measured != nil && c.Expected != nil:
		says = append(says, fmt.Sprintf("The server found %s of the prompt tokens in its cache; the workload allows %s %s with blocks of %d tokens, a difference of %s (measured and expected ratio over %s).",
			page.Percent(*c.Measured), page.Percent(*c.Expected), expectedFromWords[c.ExpectedFrom], *c.Block, page.PercentagePoints(*c.Difference), page.Many(c.Rows, "request")))
	case c.Measured != nil:
		says = append(says, fmt.Sprintf("The server found %s of the prompt tokens in its cache (measured ratio over %s); what the workload allows is not known.", page.Percent(*c.Measured), page.Many(c.Rows, "request")))
	case c.Expected != nil:
		says = append(says, fmt.Sprintf("The workload allows %s of the prompt tokens to be found in a cache with blocks of %d tokens, %s (expected ratio over %s); the server did not say what it found.",
			page.Percent(*c.Expected), *c.Block, expectedFromWords[c.ExpectedFrom], page.Many(c.Rows, "request")))
	}
	if c.RoundingLoss != nil && *c.RoundingLoss > 0 {
		says = append(says, fmt.Sprintf("Rounding to full blocks loses %s of the prompt tokens (rounding loss).", page.Percent(*c.RoundingLoss)))
	}
	return says
}
