package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/page"
	"reprise/trace/textpage"
)

// WriteText writes the summary for people, the answer first: whether it can be trusted,
// whether it keeps to its contract, the latencies, throughput and causes, in
// [textpage.AnswerLines] lines unless reasons and warnings take more. With details it writes every table. It writes
// once, and has no colours.
func WriteText(w io.Writer, s Summary, o textpage.Options) error {
	p := textpage.New(o)
	if o.Details {
		writeDetails(p, &s)
	} else {
		writeAnswer(p, &s, cmp.Or(o.Lines, textpage.AnswerLines), o.Rest)
	}
	_, err := p.WriteTo(w)
	return err
}

// writeAnswer writes what a person wants to know first. Reasons of the verdict and warnings are
// whole, however many there are. The figures have so many lines: those of the load, and then likely
// causes, take the room that is left. The details have all of them.
func writeAnswer(p *textpage.Page, s *Summary, lines int, rest string) {
	writeVerdict(p, s)
	if s.Contract != nil {
		p.Line("", contractLine(s))
	}
	p.Line("", scenarioLine(s.Run.Scenario))
	for _, w := range s.Warnings {
		if w.Code == WarnPreset { // without it, nobody would doubt the figures
			p.Line("warning: ", w.Text)
		}
	}
	lines += p.Lines() - 1 // which are of reasons, and take nothing from the figures
	p.Blank()
	p.Line("", sayRequests(s))
	if s.Peer != nil {
		p.Line("", peerLine(s.Peer))
		p.Blank()
		head, rows := peerSpreads(s.Peer)
		p.Columns(head, rows[:min(len(rows), 5)])
		p.Blank()
	} else if s.Requests.Succeeded > 0 {
		p.Blank()
		p.Columns([]string{"Latency in ms", "mean", "p50", "p95", "p99", "max"}, answerLatencies(s))
		p.Blank()
	}
	before := p.Lines()
	writeGroups(p, s.Groups)
	p.Blank()
	lines += p.Lines() - before
	fact := func(name, says string) {
		one := textpage.New(textpage.Options{Width: p.Width()})
		if one.Line(name, says); p.Lines()+one.Lines() < lines-2 {
			p.Append(one)
		}
	}
	fact("Load          ", fmt.Sprintf("%s, %s in flight on average, %s at most", schedule(&s.Run),
		numberOrDash(s.InFlight.Mean), page.Count(int64(s.InFlight.Max))))
	if g := s.Goodput; g != nil {
		fact("Goodput       ", fmt.Sprintf("%s, %s of the requests met %s", unit(g.FromDue.PerS, "requests/s"),
			page.OrDash(g.FromDue.Share, page.Percent), g.SLO))
	}
	if c := &s.Cache; c.Measured != nil {
		says := page.Percent(*c.Measured) + " of the prompt tokens were hits"
		if c.Expected != nil {
			says += ", " + page.Percent(*c.Expected) + " expected"
		}
		fact("Prefix cache  ", says)
	}
	if how, where := sessionLines(s); how != "" {
		fact("Sessions      ", how)
		fact("Session time  ", where)
	}
	foot := answerFoot(p.Width(), s, rest)
	for _, d := range s.Diagnoses {
		cause := textpage.New(textpage.Options{Width: p.Width()})
		cause.Line("Likely cause  ", d.Text)
		if d.Code != leadClient && p.Lines()+cause.Lines()+1+foot.Lines() <= lines {
			// the verdict says so of the client
			p.Append(cause)
		}
	}
	p.Blank()
	p.Append(foot)
}

// answerFoot has the warnings, but for those of few samples, of which a dash tells, and where more
// is.
func answerFoot(width int, s *Summary, rest string) *textpage.Page {
	foot := textpage.New(textpage.Options{Width: width})
	few := int64(0)
	for _, w := range s.Warnings {
		switch w.Code {
		case WarnPreset: // is above
		case warnFewSamples:
			few++
		default:
			foot.Line("warning: ", w.Text)
		}
	}
	var more []string
	if few > 0 {
		more = append(more, page.Many(few, "more warning")+".")
	}
	if tier := trace.TierNote("report", s.Run.Tier); tier != "" {
		more = append(more, tier)
	}
	if rest != "" {
		more = append(more, rest)
	}
	foot.Line("", strings.Join(more, " "))
	return foot
}

// writeVerdict writes whether the run can be trusted, and by which limits where they are looser
// than usual.
func writeVerdict(p *textpage.Page, s *Summary) {
	p.Line("", verdictLine(s))
	for _, r := range s.Verdict.Reasons {
		p.Line("  - ", r.Text)
	}
	p.Line("", loosenedLine(s))
}

// sayRequests says how many requests there were, how they ended and how fast they came.
func sayRequests(s *Summary) string {
	r, t := &s.Requests, &s.Throughput
	says := fmt.Sprintf("%s of %s succeeded in %s", page.Count(r.Succeeded), page.Many(r.Rows, "request"),
		unit(s.DurationS, "s"))
	for _, other := range []struct {
		n    int64
		what string
	}{{r.Failed, "failed"}, {r.Cancelled, "cancelled"}, {r.NotSent, "not sent"}} {
		if other.n > 0 {
			says += fmt.Sprintf(", %s %s", page.Count(other.n), other.what)
		}
	}
	if len(s.Errors) > 0 {
		var classes []string
		for _, e := range s.Errors {
			classes = append(classes, fmt.Sprintf("%s %s", textpage.Plain(e.Class), page.Count(e.Count)))
		}
		says += " (" + strings.Join(classes, ", ") + ")"
	}
	return says + fmt.Sprintf(": %s, %s in and %s out.", unit(t.RequestsPerS, "requests/s"),
		unit(t.PromptTokensPerS, "tokens/s")+estimated(s.PromptEstimates()),
		unit(t.OutputTokensPerS, "tokens/s")+estimated(s.OutputEstimates()))
}

// uncached says how fast prompt tokens came that the cache did not have.
func uncached(t *Throughput) string {
	if t.UncachedPerS == nil {
		return ""
	}
	return ", " + unit(t.UncachedPerS, "tokens/s") + " of them not cached"
}

// estimated marks a figure that rests on n estimates.
func estimated(n int64) string {
	if n > 0 {
		return " (estimated)"
	}
	return ""
}

// answerLatencies are the latencies of the answer: those of the server and, where a
// schedule was kept, those that its users would have seen.
func answerLatencies(s *Summary) [][]string {
	l := &s.Latency
	list := []metric{{label: "TTFT", stat: &l.FromSent.TTFT}, {label: "ITL", stat: &l.ITLToken},
		{label: "TPOT", stat: &l.TPOT}, {label: "E2E", stat: &l.FromSent.E2E}}
	if s.Run.Timing != result.ClosedLoop || s.Run.Sessions != nil { // in which turns have a schedule
		list = append(list, metric{label: "E2E from schedule", stat: &l.FromDue.E2E},
			metric{label: "Send lag", stat: &l.SendLag})
	}
	var rows [][]string
	for _, m := range list {
		if m.stat.Count > 0 {
			rows = append(rows, []string{m.label, page.OrDash(m.stat.Mean, page.Short),
				page.OrDash(m.stat.P50, page.Short),
				page.OrDash(m.stat.P95, page.Short), page.OrDash(m.stat.P99, page.Short),
				page.OrDash(m.stat.Max, page.Short)})
		}
	}
	return rows
}

// writeDetails writes all tables.
func writeDetails(p *textpage.Page, s *Summary) {
	writeVerdict(p, s)
	if s.Contract != nil {
		p.Line("", contractLine(s))
	}
	if r := s.Run.Scenario; r != nil {
		p.Line("", scenarioStamp(r)+".")
		for _, item := range scenarioItems(r) {
			p.Line("  - ", item)
		}
	}
	if tier := trace.TierNote("report", s.Run.Tier); tier != "" {
		p.Line("", tier)
	}
	if s.Run.Note != "" {
		p.Line("note: ", s.Run.Note)
	}
	for _, row := range environmentRows(&s.Run) {
		p.Line(strings.ToLower(row[0])+": ", row[1])
	}
	p.Table(contractTitle(s), contractHead, contractRows(s))
	if s.Peer != nil {
		writePeer(p, s.Peer)
	} else {
		writeOwn(p, s)
	}
	p.Table("Retries at the next endpoint", endpointRetryHead, endpointRetryRows(s))
	head, rows := errorTable(s)
	p.Table("Errors", head, rows)
	p.Table(validityChecks, checkHead, checkRows(s))
	if len(s.Warnings) > 0 {
		p.Blank()
	}
	for _, warning := range s.Warnings {
		if s.Peer != nil && warning.Code == warnFewSamples {
			continue // a peer fills what it has
		}
		p.Line("warning: ", warning.Text)
	}
}

// writeOwn writes the tables under our own definitions.
func writeOwn(p *textpage.Page, s *Summary) {
	p.Facts("Run", overview(s))
	p.Table("Latency in ms", latencyHead, latencyRows(s))
	if s.Requests.Succeeded > 0 { // how to read the table
		p.Line("  ", "From sent is what the server took; from schedule adds what a request waited in the client. – "+
			"is too few values.")
		if per := s.Tokens.PerEvent; per != nil && *per == 1 {
			p.Line("  ", "Every event carried one token, so that chunk ITL and token ITL are the same.")
		}
		var tails []string
		for _, m := range s.Latency.metrics() {
			if r := m.stat.TailRatio; r != nil && m.stat != &s.Latency.SendLag {
				tails = append(tails, m.label+" "+page.Number(*r))
			}
		}
		if len(tails) > 0 {
			p.Line("  ", "Tail ratio, p99 ÷ p50: "+strings.Join(tails, ", ")+".")
		}
	}
	if says := saySteady(s.Steady); len(says) > 0 {
		p.Blank()
		p.Line("", says[0])
		p.Table("Steady state, latency in ms", latencyHead, steadyRows(s.Steady))
	}
	p.Facts("Servers", serverRows(s))
	writeGroups(p, s.grouped())
	p.Facts("Sessions", sessionFacts(s))
	p.Table("How long sessions took", sessionTimeHead, sessionTimeRows(s))
	p.Table("What their time went to", pathHead, pathRows(s))
	p.Table("What sessions had", spreadHead, spreadRows(s))
	if len(s.Diagnoses) > 0 {
		p.Blank()
		p.Line("", "Possible causes")
	}
	for _, d := range s.Diagnoses {
		p.Line("  - ", d.Text)
		p.Line("    To confirm: ", d.Confirm+".")
	}
}

// writeGroups writes a table for each column by which requests are told apart.
func writeGroups(p *textpage.Page, all []Grouping) {
	for _, of := range all {
		t := of.table(shownGroups)
		p.Table(t.Caption, t.Head, t.Rows)
	}
}

// writePeer writes the tables under a peer's definitions.
func writePeer(p *textpage.Page, peer *Peer) {
	p.Blank()
	p.Line("", peerLine(peer))
	p.Table("Run", peerFigureHead, peerFigures(peer))
	head, rows := peerSpreads(peer)
	p.Table("Distributions", head, rows)
	p.Blank()
	for _, m := range peer.Metrics {
		if m.Missing == "" {
			p.Line("  - ", fmt.Sprintf("%s: %s (%s)", m.Name, m.Definition, m.Formula))
		}
	}
	for _, m := range peer.Metrics {
		if m.Missing != "" {
			p.Line("  - ", fmt.Sprintf("%s: not in the recording: %s", m.Name, m.Missing))
		}
	}
}

// overview is what was asked of the server and what it did: name, figure, note.
func overview(s *Summary) [][]string {
	r, t, tok := &s.Requests, &s.Throughput, &s.Tokens
	rows := [][]string{
		{"Requests", page.Brief(r.Rows), fmt.Sprintf("%s succeeded, %s failed, %s cancelled, %s not sent",
			page.Brief(r.Succeeded), page.Brief(r.Failed), page.Brief(r.Cancelled), page.Brief(r.NotSent))},
		{"Duration", unit(s.DurationS, "s"), "first due to last done; the rates are over it"},
		{"Offered", unit(t.OfferedPerS, "requests/s"), schedule(&s.Run)},
		{"Throughput", unit(t.RequestsPerS, "requests/s"), "successful requests, the drain at the end included"},
		{"Prompt tokens", unit(t.PromptTokensPerS, "tokens/s"),
			page.Many(tok.Prompt, "token") + estimateNote(s.PromptEstimates(), r.Succeeded) + uncached(t)},
		{"Output tokens", unit(t.OutputTokensPerS, "tokens/s"),
			fmt.Sprintf("%s, %s per event", page.Many(tok.Output, "token"), numberOrDash(tok.PerEvent)) +
				estimateNote(s.OutputEstimates(), r.Succeeded)},
	}
	if g := s.Goodput; g != nil {
		note := func(of Good) string { return fmt.Sprintf("%s met %s", page.OrDash(of.Share, page.Percent), g.SLO) }
		rows = append(rows, []string{"Goodput from sent", unit(g.FromSent.PerS, "requests/s"), note(g.FromSent)},
			[]string{"Goodput from schedule", unit(g.FromDue.PerS, "requests/s"), note(g.FromDue)})
	}
	limit := "no limit"
	if n := s.InFlight.Limit; n != nil {
		limit = fmt.Sprintf("limit %s, %s held back", page.Brief(int64(*n)), page.Brief(s.InFlight.HeldBack))
	}
	if r.WarmUp+r.CoolDown > 0 {
		rows = append(rows, []string{"Not measured", page.Many(r.WarmUp+r.CoolDown, "request"),
			fmt.Sprintf("%s to warm up and %s to cool down, sent as well", page.Brief(r.WarmUp),
				page.Brief(r.CoolDown))})
	}
	if n := s.Run.Beyond; n > 0 {
		rows = append(rows, []string{"Beyond", page.Many(n, "request"),
			"not sent: due after the duration that was asked for"})
	}
	if d := s.Run.Drift; d != nil { // how far a causal run moved later turns
		milli := func(ns int64) string { return page.Number(float64(ns) / 1e6) }
		p99 := "–"
		if d.P99NS != nil {
			p99 = milli(*d.P99NS)
		}
		rows = append(rows, []string{"Drift of turns", page.Number(d.MeanNS/1e6) + " ms on average",
			fmt.Sprintf("due − recorded of %s: p50 %s, p99 %s, at most %s ms", page.Many(d.Turns, "later turn"),
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
				"output tokens, of " + page.Many(int64(e.GPUs), divisor) + hint})
	}
	c, hits, expected := &s.Cache, "not reported", "what to expect is not known"
	if c.Measured != nil {
		hits = page.Percent(*c.Measured) + " measured"
	}
	if c.Expected != nil {
		expected = fmt.Sprintf("%s expected %s with blocks of %s tokens, %s lost to block granularity",
			page.Percent(*c.Expected), expectedFromWords[c.ExpectedFrom], page.Brief(*c.Block),
			page.OrDash(c.RoundingLoss, page.Percent))
	}
	return append(rows,
		[]string{"In flight", unit(s.InFlight.Mean, "on average"),
			fmt.Sprintf("at most %s, %s", page.Brief(int64(s.InFlight.Max)), limit)},
		[]string{"Prompt error", page.Brief(tok.PromptError.SumAbs) + " tokens", difference(tok.PromptError)},
		[]string{"Output miss", page.Brief(tok.OutputMiss.SumAbs) + " tokens", difference(tok.OutputMiss)},
		[]string{"Prefix cache", hits, expected})
}

// retryRows say how much was sent again, and whether the answers were the same.
func retryRows(s *Summary) [][]string {
	var rows [][]string
	if d := s.Run.Determinism; d != nil {
		rows = append(rows, []string{"Determinism", fmt.Sprintf("%s differ", page.Brief(d.Differed)),
			fmt.Sprintf("of %s sent twice at temperature 0, one at a time; %s sampled",
				page.Many(d.Compared, "request"), page.Brief(d.Rows))})
	}
	r := s.Retries
	if r == nil {
		return rows
	}
	return append(rows, []string{"Retried", page.Many(r.Retried, "request"),
		fmt.Sprintf("%s in %s; %s asked for a later try by Retry-After; latencies include the retries",
			page.Brief(r.Succeeded)+" succeeded", page.Many(r.Attempts, "further attempt"),
			page.Many(r.AskedLater, "answer"))})
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
			fmt.Sprintf("%s before the run, of a cache of %s; %s failed", page.Many(c.Tokens, "token"),
				page.Brief(c.CapacityTokens), page.Brief(c.Failed))})
	}
	return rows
}

func latencyRows(s *Summary) [][]string {
	var rows [][]string
	for _, m := range s.Latency.metrics() {
		rows = append(rows, statRow(m.label, m.stat))
	}
	return rows
}
