package report

import (
	"slices"

	"reprise/trace/doc"
)

// A Peer is a recording under another tool's definitions: what that tool would
// have said about the same instants and counts. Package peer makes one.
type Peer struct {
	Definitions string       `json:"definitions"` // the name of the tool
	Source      string       `json:"source"`      // what the definitions were read from
	Metrics     []PeerMetric `json:"metrics"`
}

// A PeerMetric is one figure of a peer, or several of one distribution.
type PeerMetric struct {
	Name       string      `json:"name"` // as the peer prints it
	Unit       string      `json:"unit"`
	Definition string      `json:"definition"`
	Formula    string      `json:"formula"`
	Count      *int64      `json:"count"` // values of the distribution; null for a single figure
	Values     []PeerValue `json:"values"`
	// Missing says why the recording cannot give the figure; empty where it can.
	Missing string `json:"missing,omitempty"`
}

// A PeerValue is a statistic under the name that the peer gives it. Null is
// what the peer leaves out where there is no value.
type PeerValue struct {
	Stat  string   `json:"stat"` // "" for a single figure
	Value *float64 `json:"value"`
}

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
		row := []string{m.Name + ", " + m.Unit, doc.Brief(*m.Count)}
		for range head[2:] {
			row = append(row, "")
		}
		for _, v := range m.Values {
			row[slices.Index(head, v.Stat)] = doc.OrDash(v.Value, doc.Short)
		}
		rows = append(rows, row)
	}
	return head, rows
}

func peerSection(p *Peer) doc.Section {
	if p == nil {
		return doc.Section{}
	}
	head, rows := peerSpreads(p)
	definitions := doc.Table{Caption: "What these names mean there",
		Head:  []string{"name", "unit", "definition", "formula"},
		Align: []doc.Align{doc.Left, doc.Left, doc.Left, doc.Left}}
	for _, m := range p.Metrics {
		text := m.Definition
		if m.Missing != "" {
			text += " Not in the recording: " + m.Missing + "."
		}
		definitions.Rows = append(definitions.Rows, []string{m.Name, m.Unit, text, m.Formula})
	}
	return doc.Section{Title: "Under the definitions of " + p.Definitions, Text: []string{peerLine(p)},
		Tables: []doc.Table{
			{Caption: "Figures of the run", Head: peerFigureHead, Rows: peerFigures(p),
				Align: []doc.Align{doc.Left, doc.Right, doc.Left}},
			{Caption: "Distributions", Head: head, Rows: rows}, definitions,
		}}
}

// peerLine says where the definitions come from.
func peerLine(p *Peer) string {
	return "The same recording, read as " + p.Definitions + " would have: " + p.Source
}
