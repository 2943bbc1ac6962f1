package report

import (
	"fmt"
	"slices"

	"reprise/trace/page"
)

// The tables of a peer's definitions, for the text and the page.

var peerFigureHead = []string{"", "figure", "unit"}

// peerFigures are the single figures of a peer.
func peerFigures(p *Peer) [][]string {
	var rows [][]string
	for _, m := range p.Metrics {
		if m.Missing == "" && m.Count == nil {
			rows = append(rows, []string{m.Name, numberOrDash(m.Values[0].Value), m.Unit})
		}
	}
	return rows
}

// peerSpreads are the distributions, with a column for every statistic that
// one of them has.
func peerSpreads(p *Peer) (head []string, rows [][]string) {
	head = []string{"", "n"}
	for _, m := range p.Metrics {
		for _, v := range m.Values {
			if m.Count != nil && !slices.Contains(head, v.Stat) {
				head = append(head, v.Stat)
			}
		}
	}
	for _, m := range p.Metrics {
		if m.Missing != "" || m.Count == nil {
			continue
		}
		row := []string{m.Name + ", " + m.Unit, page.Brief(*m.Count)}
		for range head[2:] {
			row = append(row, "")
		}
		for _, v := range m.Values {
			row[slices.Index(head, v.Stat)] = page.OrDash(v.Value, page.Short)
		}
		rows = append(rows, row)
	}
	return head, rows
}

// peerNotes say what the names mean, and what is not there.
func peerNotes(p *Peer) (defined, missing []string) {
	for _, m := range p.Metrics {
		if m.Missing != "" {
			missing = append(missing, fmt.Sprintf("%s: not in the recording: %s", m.Name, m.Missing))
			continue
		}
		defined = append(defined, fmt.Sprintf("%s: %s (%s)", m.Name, m.Definition, m.Formula))
	}
	return defined, missing
}

func peerSection(p *Peer) page.Section {
	if p == nil {
		return page.Section{}
	}
	head, rows := peerSpreads(p)
	definitions := page.Table{Caption: "What these names mean there", Head: []string{"name", "unit", "definition", "formula"},
		Align: []page.Align{page.Left, page.Left, page.Left, page.Left}}
	for _, m := range p.Metrics {
		text := m.Definition
		if m.Missing != "" {
			text += " Not in the recording: " + m.Missing + "."
		}
		definitions.Rows = append(definitions.Rows, []string{m.Name, m.Unit, text, m.Formula})
	}
	return page.Section{Title: "Under the definitions of " + p.Definitions, Text: []string{peerLine(p)}, Tables: []page.Table{
		{Caption: "Figures of the run", Head: peerFigureHead, Rows: peerFigures(p), Align: []page.Align{page.Left, page.Right, page.Left}},
		{Caption: "Distributions", Head: head, Rows: rows}, definitions,
	}}
}

// peerLine says where the definitions come from.
func peerLine(p *Peer) string {
	return "The same recording, read as " + p.Definitions + " would have: " + p.Source
}
