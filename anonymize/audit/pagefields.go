package audit

import (
	"fmt"
	"slices"
	"strings"

	"reprise/anonymize"
	"reprise/datasets"
	"reprise/trace/doc"
)

// sourceFields says what became of each field of the source. The fields are those
// that the reader of the format knows; the others are counted in the card.
func (s *sheet) sourceFields() doc.Section {
	section := doc.Section{Title: "What became of each field of the source"}
	from := s.card.SourceFields
	switch {
	case !s.carded || len(s.card.Columns) == 0:
		return doc.Section{}
	case s.r.Tier == anonymize.Public || s.card.Sessions != nil:
		section.Text = []string{"They are not listed: one record may have a field that no other one has, and no " +
			"noise would hide it. No row of this file is of a record: all are drawn from noisy counts, by the " +
			"rules below."}
		return section
	case from == nil:
		section.Text = []string{"No log was read, or its card tells nothing of it: this was made of a trace that " +
			"stood in Parquet already, whose fields are the columns below."}
		return section
	}
	fields, ok := datasets.ReadFields(from.Format, from.Mapped)
	if !ok {
		section.Text = []string{from.Words(),
			"Which fields were read the card does not say in a way that this version knows."}
		return section
	}
	t := doc.Table{Head: []string{"Field of the source", "Fate", "Column", "How, or why"},
		Align: []doc.Align{doc.Left, doc.Left, doc.Left, doc.Left}}
	for _, f := range fields {
		t.Rows = append(t.Rows, s.fieldRow(f))
	}
	if from.Dropped > 0 { // the others have a number and kinds
		words := doc.Many(int64(from.Dropped), "other field")
		if from.More {
			words = "at least " + words
		}
		var kinds []string
		for _, kind := range datasets.FieldKinds() {
			if n := from.Kinds[kind]; n > 0 {
				kinds = append(kinds, fmt.Sprintf("%s %d", kind, n))
			}
		}
		if len(kinds) > 0 {
			words += " (" + strings.Join(kinds, ", ") + ")"
		}
		t.Rows = append(t.Rows, []string{words, droppedFate, "none",
			"No column needs them, so they are dropped. They are counted and not named, since a name " +
				"may tell something."})
	}
	section.Text = []string{
		fmt.Sprintf("The source was read as %s. These are all fields that its reader knows, whether or not they "+
			"occur, so that the list tells nothing of anybody; where a row names several, the first that is there is "+
			"read. What the reader does not know it never gets to see.", from.Format)}
	section.Tables = []doc.Table{t}
	return section
}

// fieldRow is the row of a field: what became of the columns that it feeds.
func (s *sheet) fieldRow(f datasets.SourceField) []string {
	name, how := strings.Join(f.Paths, " or "), sentence(f.How)
	if f.Target != "" {
		name = "the field that --map names for " + f.Target
	}
	var kept, gone, fates, rules []string
	for _, r := range s.card.Columns {
		if !slices.Contains(f.Columns, r.Column) {
			continue
		}
		fate, rule := became(r)
		if fates = append(fates, fate); fate == droppedFate {
			gone = append(gone, r.Column)
			continue
		}
		kept, rules = append(kept, r.Column), append(rules, r.Column+": "+rule)
	}
	switch {
	case len(f.Columns) == 0:
		return []string{name, droppedFate, "none", how}
	case len(kept) == 0:
		return []string{name, droppedFate, strings.Join(gone, ", "), droppedWhy}
	case len(kept) == 1:
		how = strings.TrimSpace(how + " " + strings.TrimPrefix(rules[0], kept[0]+": "))
	case how != "":
		how += " Then by the rules of these columns, which are below."
	default:
		how = strings.Join(rules, " ")
	}
	fate := "changed"
	if f.How == "" && !slices.ContainsFunc(fates, func(one string) bool { return one != fates[0] }) {
		fate = fates[0]
	}
	columns := strings.Join(kept, ", ")
	if len(gone) > 0 {
		columns += "; dropped: " + strings.Join(gone, ", ")
	}
	return []string{name, fate, columns, how}
}

// columns says what became of each column.
func (s *sheet) columns() doc.Section {
	if !s.carded || len(s.card.Columns) == 0 {
		return doc.Section{}
	}
	t := doc.Table{Head: []string{"Column", "Fate", "How, or why"},
		Align: []doc.Align{doc.Left, doc.Left, doc.Left}}
	fates := map[string]int{}
	for _, rule := range s.card.Columns {
		fate, words := became(rule)
		fates[fate]++
		t.Rows = append(t.Rows, []string{rule.Column, fate, words})
	}
	return doc.Section{Title: "What was done with each column",
		Text: []string{fmt.Sprintf("As the privacy card of the file says: of %d columns %d are dropped, %d changed "+
			"and %d as in the source. Prompts, replies and all other text never reach a trace: it has no "+
			"column for them.",
			len(s.card.Columns), fates[droppedFate], fates["changed"], fates["as it was"])},
		Tables: []doc.Table{t}}
}

const (
	droppedFate = "dropped"
	droppedWhy  = "It would help to distinguish requests, and a replay does without."
)

// became says what became of a column, and how or why.
func became(r anonymize.Rule) (fate, words string) {
	switch {
	case r.Rule == droppedFate:
		return droppedFate, droppedWhy
	case r.Rule == "kept", strings.HasPrefix(r.Rule, "exact"):
		return "as it was", sentence(r.Rule)
	}
	return "changed", sentence(r.Rule)
}
