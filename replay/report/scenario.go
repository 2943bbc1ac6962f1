package report

import (
	"fmt"
	"strings"

	"reprise/replay/result"
	"reprise/trace/page"
	"reprise/trace/textpage"
)

// scenarioLine is the stamp of a run in a line, "" for a run that was held to no published
// rules.
func scenarioLine(r *result.Scenario) string {
	if r == nil {
		return ""
	}
	name := "Scenario " + textpage.Plain(r.Version) + ": "
	switch {
	case r.Valid == nil:
		return name + "not stamped, since the run did not finish."
	case *r.Valid:
		return name + "submission valid."
	}
	items := scenarioItems(r)
	return name + "submission NOT valid: " + strings.Join(items, "; ") + "."
}

// scenarioItems are what keeps a run from being valid: broken rules, and those that cannot be
// checked.
func scenarioItems(r *result.Scenario) (items []string) {
	for _, b := range r.Broken {
		items = append(items, textpage.Plain(b.String()))
	}
	for _, u := range r.Unchecked {
		items = append(items, "not checked: "+textpage.Plain(u))
	}
	return items
}

// scenarioNotes are the stamp on a page.
func scenarioNotes(r *result.Scenario) []page.Note {
	if r == nil {
		return nil
	}
	name := "Scenario " + textpage.Plain(r.Version)
	counted := fmt.Sprintf("%s of %s said that a prompt does not fit the context.", page.Brief(r.TooLong), page.Many(r.Answers, "answer"))
	switch {
	case r.Valid == nil:
		return []page.Note{{Level: page.Warn, Word: name + ", not stamped", Text: "the run did not finish."}}
	case *r.Valid:
		return []page.Note{{Level: page.Good, Word: name + ", submission valid", Text: "all rules were kept. " + counted}}
	}
	return []page.Note{{Level: page.Bad, Word: name + ", submission not valid", Text: counted, Items: scenarioItems(r)}}
}
