package report

import (
	"bytes"
	"io"
	"strings"

	"reprise/trace"
	"reprise/trace/textpage"
)

// WriteMarkdown writes the summary as GitHub's Markdown, for a comment on a pull
// request: the verdict, the main figures and latencies, and the warnings; what they
// rest on is folded away.
func WriteMarkdown(w io.Writer, s Summary) error {
	var b bytes.Buffer
	b.WriteString("### " + inMarkdown(title(&s)) + "\n\n")
	b.WriteString("**" + inMarkdown(verdictLine(&s)) + "**\n")
	if len(s.Verdict.Reasons) > 0 {
		b.WriteByte('\n')
	}
	for _, r := range s.Verdict.Reasons {
		b.WriteString("- " + inMarkdown(r.Text) + "\n")
	}
	if says := loosenedLine(&s); says != "" {
		b.WriteString("\n**" + inMarkdown(says) + "**\n")
	}
	if s.Contract != nil {
		b.WriteString("\n**" + inMarkdown(contractLine(&s)) + "**\n")
	}
	for _, note := range []string{trace.TierNote("report", s.Run.Tier), s.Run.Note} {
		if note != "" {
			b.WriteString("\n" + inMarkdown(note) + "\n")
		}
	}
	markdownTable(&b, contractTitle(&s), contractHead, contractRows(&s))
	if s.Peer != nil {
		b.WriteString("\n" + inMarkdown(peerLine(s.Peer)) + "\n")
		markdownTable(&b, "Run", peerFigureHead, peerFigures(s.Peer))
		head, rows := peerSpreads(s.Peer)
		markdownTable(&b, "Distributions", head, rows)
	} else {
		markdownTable(&b, "Latency in ms", latencyHead, latencyRows(&s))
		markdownTable(&b, "Run", []string{"", "figure", "note"}, overview(&s))
		markdownTable(&b, "Servers", []string{"", "figure", "note"}, serverRows(&s))
		markdownTable(&b, "Sessions", []string{"", "figure", "note"}, sessionFacts(&s))
		markdownTable(&b, "How long sessions took", sessionTimeHead, sessionTimeRows(&s))
		markdownTable(&b, "What their time went to", pathHead, pathRows(&s))
	}
	for i, of := range s.grouped() {
		t, write := of.table(shownGroups), folded
		if i < len(s.Groups) {
			write = markdownTable
		}
		write(&b, t.Caption, t.Head, t.Rows)
	}
	if len(s.Errors) > 0 {
		head, rows := errorTable(&s)
		markdownTable(&b, "Errors", head, rows)
	}
	if len(s.Warnings) > 0 {
		b.WriteString("\n**Warnings**\n\n")
		for _, warning := range s.Warnings {
			b.WriteString("- " + inMarkdown(warning.Text) + "\n")
		}
	}
	folded(&b, validityChecks, checkHead, checkRows(&s))
	folded(&b, "Where it was measured", []string{"", ""}, append(environmentRows(&s.Run), provenanceRows(&s)...))
	_, err := w.Write(b.Bytes())
	return err
}

// title names the run.
func title(s *Summary) string {
	out := "Replay"
	if s.Run.Simulated != "" {
		out = "Simulation"
	}
	if s.Run.Read != nil {
		out = textpage.Plain(s.Run.Read.Tool) + "'s run"
	}
	if s.Run.Model != "" {
		out += " of " + s.Run.Model
	}
	return out
}

// provenanceRows say what was sent, and by what.
func provenanceRows(s *Summary) [][]string {
	var rows [][]string
	maker, version := madeBy(&s.Run)
	for _, row := range [][]string{
		{"Workload", textpage.Plain(s.Run.Workload)}, {"Seed", textpage.Plain(s.Run.Seed)}, {"Schedule",
			schedule(&s.Run)},
		{"Started", ToSecond(s.Run.Started)}, {maker, textpage.Plain(version)},
	} {
		if row[1] != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

// markdownTable writes a table under its title. Columns of figures are to the right.
func markdownTable(b *bytes.Buffer, name string, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	if name != "" {
		b.WriteString("\n**" + inMarkdown(name) + "**\n")
	}
	b.WriteByte('\n')
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + inMarkdown(c) + " ")
		}
		b.WriteString("|\n")
	}
	line(head)
	for i, h := range head {
		rule := "---:"
		if i == 0 || h == "note" || h == "" {
			rule = ":---"
		}
		b.WriteString("| " + rule + " ")
	}
	b.WriteString("|\n")
	for _, row := range rows {
		line(row)
	}
}

// folded writes a table that opens on a click.
func folded(b *bytes.Buffer, name string, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	b.WriteString("\n<details><summary>" + inMarkdown(name) + "</summary>\n")
	markdownTable(b, "", head, rows)
	b.WriteString("\n</details>\n")
}

// markdownSigns are what GitHub would take for more than text: @ calls a person, and #
// links to an issue. <= begins no tag, and contracts are full of it.
var markdownSigns = strings.NewReplacer("<=", "<=", "&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "&#64;", "#", "&#35;",
	"|", `\|`, `\`, `\\`, "`", "\\`",
	"*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "~", `\~`)

// inMarkdown makes a text mean nothing but itself.
func inMarkdown(s string) string { return markdownSigns.Replace(textpage.Plain(s)) }
