package report

import (
	"bytes"
	"io"
	"strings"

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
	writeDiagnoses(b, s.Diagnoses, line)
}

// writeDiagnoses writes what the figures hint at.
func writeDiagnoses(b *bytes.Buffer, all []Diagnosis, line func(mark, words string)) {
	if len(all) == 0 {
		return
	}
	b.WriteString("\nWhat the figures hint at\n")
	for _, d := range all {
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
	defined, missing := peerNotes(p)
	b.WriteByte('\n')
	for _, notes := range [][]string{defined, missing} {
		for _, note := range notes {
			line("  - ", note)
		}
	}
}

var latencyHead = []string{"", "n", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"}

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
			c.WidthMax = max(17, TextWidth-taken(head, rows)) // the name of a row: what the figures leave
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

// taken is how wide a table is without what is in its first column: the frame
// around that takes 4 columns, each further one 3 and its widest cell.
func taken(head []string, rows [][]string) int {
	out := 4
	for i := 1; i < len(head); i++ {
		wide := text.StringWidth(head[i])
		for _, row := range rows {
			wide = max(wide, text.StringWidth(row[i]))
		}
		out += 3 + wide
	}
	return out
}

func cells(row []string) table.Row {
	out := make(table.Row, len(row))
	for i := range row {
		out[i] = row[i]
	}
	return out
}
