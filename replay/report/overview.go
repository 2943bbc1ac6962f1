package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/replay/result"
	"reprise/trace/doc"
)

// firstFacts are the facts of the first screen, in its order.
var firstFacts = []string{"Throughput", "Errors", "Output", "Goodput", "Prefix cache hits", "Prompts", "Sessions",
	"Session time", "In flight, mean"}

// keyFigures are the facts that are asked for first, of those that the run has.
func keyFigures(s *Summary) (out []doc.Fact) {
	g := factGroup{doc.Group{Facts: runFacts(s)}}
	how, where := sessionLines(s)
	value, note, _ := strings.Cut(how, "; ")
	g.define("sessions", "Sessions", value, note)
	g.define("sessions.critical_path", "Session time", where, "")

	all := g.Facts
	for _, label := range firstFacts {
		i := slices.IndexFunc(all, func(f doc.Fact) bool { return f.Label == label })
		if i >= 0 && all[i].Value != noFigure {
			out = append(out, all[i])
		}
	}
	return out
}

// A factGroup collects the facts that a run gives; what it does not say is left out.
type factGroup struct{ doc.Group }

func (g *factGroup) add(label, value, note string) { g.define("", label, value, note) }

// define adds a fact with the name of its definition.
func (g *factGroup) define(term, label, value, note string) {
	if value != "" {
		g.Facts = append(g.Facts, doc.Fact{Label: label, Value: value, Note: note, Term: termOf(term)})
	}
}

// table has the facts in a row each.
func (g *factGroup) table(caption string) doc.Table {
	t := doc.Table{Caption: caption, Head: []string{"", "figure", "note"},
		Align: []doc.Align{doc.Left, doc.Right, doc.Left}}
	for _, f := range g.Facts {
		t.Rows, t.RowTerms = append(t.Rows, []string{f.Label, f.Value, f.Note}), append(t.RowTerms, f.Term)
	}
	return t
}

// offered says what the rate of requests is to be held against.
func (s *Summary) offered() string {
	rate := s.Throughput.OfferedPerS
	if s.Run.Timing == result.ClosedLoop {
		return "as fast as the server answered"
	}
	out := "of " + numberOrDash(rate) + " offered"
	if rate != nil && s.DurationS != nil {
		const long = 0.15 // of the run, from which on the rate says more of its end than of the server
		if rest := *s.DurationS - float64(s.Requests.Rows-1) / *rate; rest > long**s.DurationS {
			out += fmt.Sprintf("; the last %s s only received", doc.Number(rest))
		}
	}
	return out
}

// runFacts are what was asked of the server and what it did.
func runFacts(s *Summary) []doc.Fact {
	var g factGroup
	r, t, tok := &s.Requests, &s.Throughput, &s.Tokens
	g.define("rows", "Requests", doc.Brief(r.Rows), fmt.Sprintf("%s succeeded, %s failed, %s cancelled, %s not sent",
		doc.Brief(r.Succeeded), doc.Brief(r.Failed), doc.Brief(r.Cancelled), doc.Brief(r.NotSent)))
	g.define("error_share", "Errors", doc.OrDash(r.ErrorShare, doc.Percent), sayEnds(s))
	g.define("duration", "Duration", unit(s.DurationS, "s"), "first due to last done; the rates are over it")
	g.define("offered_requests", "Offered", unit(t.OfferedPerS, "req/s"), schedule(&s.Run))
	offered := s.offered()
	g.define("requests", "Throughput", unit(t.RequestsPerS, "req/s"), offered)

	uncached, perEvent := "", ""
	if t.UncachedPerS != nil {
		uncached = ", " + unit(t.UncachedPerS, "tok/s") + " not cached"
	}
	if tok.PerEvent != nil && doc.Number(*tok.PerEvent) != "1" {
		perEvent = ", " + doc.Number(*tok.PerEvent) + " tokens an event"
	}
	g.define("prompt_tokens", "Prompts", unit(t.PromptTokensPerS, "tok/s"),
		doc.Brief(tok.Prompt)+" in all"+estimateNote(s.PromptEstimates(), r.Succeeded)+uncached)
	g.define("output_tokens", "Output", unit(t.OutputTokensPerS, "tok/s"), doc.Brief(tok.Output)+" in all"+
		perEvent+outputsForced(&s.Run)+estimateNote(s.OutputEstimates(), r.Succeeded)+atLimit(s))
	if goals := s.Goodput; goals != nil {
		met := func(label string, of Good) {
			g.define("goodput", label, unit(of.PerS, "req/s"), fmt.Sprintf("%s met %s",
				doc.OrDash(of.Share, doc.Percent), strings.ReplaceAll(goals.SLO.String(), ",", ", ")))
		}
		met("Goodput", goals.FromDue)
		met("Goodput from sent", goals.FromSent)
	}
	if n := r.WarmUp + r.CoolDown; n > 0 {
		g.define("warm_up", "Not measured", doc.Many(n, "request"), fmt.Sprintf(
			"%s to warm up and %s to cool down, sent as well", doc.Brief(r.WarmUp), doc.Brief(r.CoolDown)))
	}
	if n := s.Run.Beyond; n > 0 {
		g.define("beyond", "Beyond", doc.Many(n, "request"), "not sent: due after the duration that was asked for")
	}
	g.drift(s.Run.Drift)
	g.retries(s)
	g.part(s.Run.Selection)
	if before := s.Run.Cache; before != nil {
		did, note := cacheBefore(before)
		g.add("Cache state at start", did, note)
	}
	if e := s.Efficiency; e != nil { // what the users and the owner get
		divisor, hint := "GPU", ""
		if e.GPUsFrom == gpusInstances {
			divisor, hint = "instance", "; --gpus gives the number of GPUs"
		}
		g.define("tokens_per_s_per_user", "Per user", unit(e.PerUser, "tok/s"), "once tokens come: 1 ÷ mean TPOT")
		g.define("output_tokens_per_s_per_gpu", "Per "+divisor, unit(e.PerGPU, "tok/s"),
			"output tokens, of "+doc.Many(int64(e.GPUs), divisor)+hint)
	}

	limit := ", no limit"
	if n := s.InFlight.Limit; n != nil {
		limit = fmt.Sprintf(", limit %s, %s held back", doc.Brief(int64(*n)), doc.Brief(s.InFlight.HeldBack))
	} else if s.Run.Timing == result.ClosedLoop {
		limit = "" // it is the load
	}
	most := "at most " + doc.Brief(int64(s.InFlight.Max))
	if s.InFlight.Max == 0 { // a journal has no end that says it
		most = "the most is not known"
	}
	g.define("in_flight", "In flight, mean", doc.OrDash(s.InFlight.Mean, doc.Number), most+limit)
	g.define("prompt_error", "Prompt error", doc.Brief(tok.PromptError.SumAbs)+" tokens", difference(tok.PromptError))
	g.define("output_miss", "Output miss", doc.Brief(tok.OutputMiss.SumAbs)+" tokens", difference(tok.OutputMiss))
	c := &s.Cache
	g.define("measured_ratio", "Prefix cache hits", doc.OrDash(c.Measured, doc.Percent), "of prompt tokens; "+
		doc.OrDash(c.Expected, doc.Percent)+" expected")
	if c.Expected != nil {
		g.define("expected_ratio", "Expected hits", doc.Percent(*c.Expected), fmt.Sprintf(
			"%s with blocks of %s tokens, %s lost to block granularity", expectedFromWords[c.ExpectedFrom],
			doc.Brief(*c.Block), doc.OrDash(c.RoundingLoss, doc.Percent)))
	}
	return g.Facts
}

// outputsForced says whether a real server was to keep to lengths, where the run tells what it asked for.
func outputsForced(run *result.Run) string {
	switch forced := string(run.Sampling["ignore_eos"]); {
	case run.Simulated != "" || run.Sampling == nil:
		return ""
	case forced == "true":
		return ", lengths forced"
	}
	return ", lengths not forced"
}

// atLimit says how many answers that a server could end by itself went on to their limit.
func atLimit(s *Summary) string {
	if s.Tokens.AtLimit == 0 || s.Run.Simulated != "" || string(s.Run.Sampling["ignore_eos"]) == "true" {
		return ""
	}
	return fmt.Sprintf("; %s of %s answers ended at their limit", doc.Brief(s.Tokens.AtLimit),
		doc.Brief(s.Requests.Succeeded))
}

// drift says how far a causal run moved later turns.
func (g *factGroup) drift(d *result.Drift) {
	if d == nil {
		return
	}
	milli := func(ns int64) string { return doc.Number(float64(ns) / 1e6) }
	p99 := "–"
	if d.P99NS != nil {
		p99 = milli(*d.P99NS)
	}
	g.define("run.drift", "Drift of turns", doc.Number(d.MeanNS/1e6)+" ms on average", fmt.Sprintf(
		"due − recorded of %s: p50 %s, p99 %s, at most %s ms", doc.Many(d.Turns, "later turn"),
		milli(d.P50NS), p99, milli(d.MaxNS)))
}

// retries say how much was sent again, and whether the answers were the same.
func (g *factGroup) retries(s *Summary) {
	if d := s.Run.Determinism; d != nil {
		g.define("determinism", "Determinism", fmt.Sprintf("%s differ", doc.Brief(d.Differed)),
			fmt.Sprintf("of %s sent twice at temperature 0, one at a time; %s sampled",
				doc.Many(d.Compared, "request"), doc.Brief(d.Rows)))
	}
	if r := s.Retries; r != nil {
		g.define("retried", "Retried", doc.Many(r.Retried, "request"),
			fmt.Sprintf("%s in %s; %s asked for a later try by Retry-After; latencies include the retries",
				doc.Brief(r.Succeeded)+" succeeded", doc.Many(r.Attempts, "further attempt"),
				doc.Many(r.AskedLater, "answer")))
	}
}

// part says which part of the workload was sent, how often, and what was sent before it to prime the server's cache.
func (g *factGroup) part(p *result.Selection) {
	if p == nil {
		return
	}
	var notes []string
	if p.OfRows != nil {
		notes = append(notes, "of "+doc.Many(*p.OfRows, "row"))
	}
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
	if p.Turns > 0 {
		notes = append(notes, fmt.Sprintf("up to turn %d of each conversation", p.Turns))
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
	g.define("run.selection", "Part", doc.Many(p.Rows, "row"), strings.Join(notes, ", "))
	if c := p.Prime; c != nil {
		g.define("run.selection", "Primed", doc.Many(c.Prompts, "prompt"),
			fmt.Sprintf("%s before the run, of a cache of %s; %s failed", doc.Many(c.Tokens, "token"),
				doc.Brief(c.CapacityTokens), doc.Brief(c.Failed)))
	}
}
