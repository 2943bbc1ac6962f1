package report

import (
	"bytes"
	"fmt"
	"io"
	"reprise/replay/result"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/trace"
	"reprise/trace/page"
)

// TextWidth is the widest line of WriteText, in columns.
const TextWidth = 100

// WriteText writes the summary for people: the verdict, then tables of at most
// 100 columns, then the warnings. It writes once, and has no colours.
func WriteText(w io.Writer, s Summary) error {
	var b bytes.Buffer
	line := liner(&b)
	line("", verdictLine(&s))
	for _, r := range s.Verdict.Reasons {
		line("  - ", r.Text)
	}
	if s.Contract != nil {
		line("", contractLine(&s))
	}
	if tier := trace.TierNote("report", s.Run.Tier); tier != "" {
		line("", tier)
	}
	if s.Run.Note != "" {
		line("note: ", s.Run.Note)
	}
	for _, row := range environmentRows(&s.Run) {
		line(strings.ToLower(row[0])+": ", row[1])
	}
	Grid(&b, contractTitle(&s), contractHead, contractRows(&s))
	Grid(&b, "Checklist of the method", nil, checklistRows(s.Checklist))
	if s.Peer != nil {
		writePeer(&b, s.Peer, line)
	} else {
		writeOwn(&b, &s, line)
	}
	if len(s.ByEndpoint) > 1 {
		Grid(&b, "By endpoint, TTFT from sent", endpointHead, endpointRows(&s))
	}
	Grid(&b, "Retries at the next endpoint", endpointRetryHead, endpointRetryRows(&s))
	for _, h := range s.ByHeader {
		Grid(&b, "By "+Plain(h.Header)+" of the response, TTFT from sent", servedHead, servedRows(&h))
	}
	if len(s.Errors) > 0 {
		Grid(&b, "Errors", errorHead, errorRows(&s))
	}
	Grid(&b, "What the verdict rests on", checkHead, checkRows(&s))
	if len(s.Warnings) > 0 {
		b.WriteByte('\n')
	}
	for _, warning := range s.Warnings {
		if s.Peer != nil && warning.Code == warnFewSamples {
			continue // a peer fills what it has
		}
		line("warning: ", warning.Text)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// liner writes words after a mark, wrapped to the width of the text.
func liner(b *bytes.Buffer) func(mark, words string) {
	return func(mark, words string) {
		for _, part := range strings.Split(text.WrapSoft(Plain(words), TextWidth-len(mark)), "\n") {
			b.WriteString(mark + strings.TrimRight(part, " ") + "\n")
			mark = strings.Repeat(" ", len(mark))
		}
	}
}

// writeOwn writes the tables under our own definitions.
func writeOwn(b *bytes.Buffer, s *Summary, line func(mark, words string)) {
	Grid(b, "Run", nil, overview(s))
	Grid(b, "Latency in ms", latencyHead, latencyRows(s))
	for _, says := range readLatency(s) {
		line("  ", says)
	}
	if says := saySteady(s.Steady); len(says) > 0 {
		b.WriteByte('\n')
		line("", says[0])
		Grid(b, "Steady state, latency in ms", latencyHead, steadyRows(s.Steady))
	}
	Grid(b, "Servers", nil, serverRows(s))
	if len(s.ByCategory) > 1 {
		Grid(b, "By reuse category, TTFT from sent", categoryHead, categoryRows(s))
	}
	if len(s.ByInputLength) > 1 {
		Grid(b, "By prompt length, TTFT from sent", lengthHead, lengthRows(s))
	}
	if len(s.ByClass) > 0 {
		Grid(b, "By class, TTFT from sent", classHead, classRows(s))
	}
	if len(s.Diagnoses) > 0 {
		b.WriteString("\nWhat the figures hint at\n")
	}
	for _, d := range s.Diagnoses {
		line("  - ", d.Text)
		line("    To confirm: ", d.Confirm+".")
	}
}

// readLatency says how to read the table of latencies.
func readLatency(s *Summary) []string {
	if s.Requests.Succeeded == 0 {
		return nil
	}
	says := []string{"From sent is what the server took; from due adds what a request waited in the client. – is too few values."}
	if per := s.Tokens.PerEvent; per != nil && *per == 1 {
		says = append(says, "Every event carried one token, so that chunk ITL and token ITL are the same.")
	}
	var tails []string
	for _, m := range s.Latency.metrics() {
		if r := m.stat.TailRatio; r != nil && m.stat != &s.Latency.SendLag {
			tails = append(tails, m.label+" "+page.Number(*r))
		}
	}
	if len(tails) > 0 {
		says = append(says, "Tail ratio, p99 ÷ p50: "+strings.Join(tails, ", ")+".")
	}
	return says
}

// writePeer writes the tables under a peer's definitions.
func writePeer(b *bytes.Buffer, p *Peer, line func(mark, words string)) {
	b.WriteByte('\n')
	line("", peerLine(p))
	Grid(b, "Run", peerFigureHead, peerFigures(p))
	head, rows := peerSpreads(p)
	Grid(b, "Distributions", head, rows)
	b.WriteByte('\n')
	for _, m := range p.Metrics {
		if m.Missing == "" {
			line("  - ", fmt.Sprintf("%s: %s (%s)", m.Name, m.Definition, m.Formula))
		}
	}
	for _, m := range p.Metrics {
		if m.Missing != "" {
			line("  - ", fmt.Sprintf("%s: not in the recording: %s", m.Name, m.Missing))
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
	if d := s.Run.Drift; d != nil { // how far a causal run moved later turns
		milli := func(ns int64) string { return page.Number(float64(ns) / 1e6) }
		p99 := "–"
		if d.P99NS != nil {
			p99 = milli(*d.P99NS)
		}
		rows = append(rows, []string{"Drift of turns", page.Number(d.MeanNS/1e6) + " ms on average",
			fmt.Sprintf("due − recorded of %s: p50 %s, p99 %s, at most %s ms", page.Many(d.Turns, "later turn"), milli(d.P50NS), p99, milli(d.MaxNS))})
	}
	rows = append(append(rows, retryRows(s)...), partRows(s.Run.Selection)...)
	if before := s.Run.Cache; before != nil {
		did, note := cacheBefore(before)
		rows = append(rows, []string{"Caches before", did, note})
	}
	if p := s.Run.Profiled; p != nil {
		note := Plain(p.Error)
		if note == "" {
			note = "while the servers' profilers ran, which costs them time"
		}
		figure := "not profiled"
		if p.FromNS != nil {
			figure = "profiled"
		}
		rows = append(rows, []string{"Servers", figure, note})
	}
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

// retryRows say how much was sent again, and whether the answers were the same.
func retryRows(s *Summary) [][]string {
	var rows [][]string
	if d := s.Run.Determinism; d != nil {
		rows = append(rows, []string{"Determinism", fmt.Sprintf("%s differ", page.Brief(d.Differed)),
			fmt.Sprintf("of %s sent twice at temperature 0, one at a time; %s sampled", page.Many(d.Compared, "request"), page.Brief(d.Rows))})
	}
	r := s.Retries
	if r == nil {
		return rows
	}
	return append(rows, []string{"Retried", page.Many(r.Retried, "request"),
		fmt.Sprintf("%s in %s; %s asked for a later try by Retry-After; latencies include the retries",
			page.Brief(r.Succeeded)+" succeeded", page.Many(r.Attempts, "further attempt"), page.Many(r.AskedLater, "answer"))})
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

func latencyRows(s *Summary) [][]string {
	var rows [][]string
	for _, m := range s.Latency.metrics() {
		rows = append(rows, statRow(m.label, m.stat))
	}
	return rows
}

// Grid renders a table under its title. Without a head its columns are text.
func Grid(b *bytes.Buffer, title string, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	var t table.Table
	t.SetStyle(style)
	columns := []table.ColumnConfig{}
	for i := range rows[0] {
		c := table.ColumnConfig{Number: i + 1, WidthMax: 50, WidthMaxEnforcer: text.WrapSoft, Align: text.AlignLeft}
		if i > 0 && (head != nil || i == 1) {
			c.Align, c.AlignHeader = text.AlignRight, text.AlignRight
		}
		if i == 0 && head != nil {
			// The name of a row has what the figures leave: the frame around takes 4
			// columns, each further one 3 and its widest cell.
			taken := 4
			for j := 1; j < len(head); j++ {
				wide := text.StringWidth(head[j])
				for _, row := range rows {
					wide = max(wide, text.StringWidth(row[j]))
				}
				taken += 3 + wide
			}
			c.WidthMax = max(17, TextWidth-taken)
		}
		columns = append(columns, c)
	}
	t.SetColumnConfigs(columns)
	if head != nil {
		t.AppendHeader(cells(head))
	}
	for _, row := range rows {
		t.AppendRow(cells(row))
	}
	b.WriteString("\n" + title + "\n" + t.Render() + "\n")
}

func cells(row []string) table.Row {
	out := make(table.Row, len(row))
	for i := range row {
		out[i] = row[i]
	}
	return out
}
