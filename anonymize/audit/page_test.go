package audit

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/trace/doc"
	"reprise/trace/doc/pagetest"
)

func auditPage(t *testing.T, c *Case, only ...string) (*doc.Document, string) {
	t.Helper()
	r, err := Run(t.Context(), c, only)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Page(t.Context(), c, &r)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return p, b.String()
}

func sectionOf(t *testing.T, p *doc.Document, title string) doc.Section {
	t.Helper()
	i := slices.IndexFunc(p.Sections, func(s doc.Section) bool { return s.Title == title })
	if i < 0 {
		t.Fatalf("there is no section %q", title)
	}
	return p.Sections[i]
}

// The page of a release says what became of every field, shows rows, the checks
// and the risks, and what the release cost where the source is at hand.
func TestPageOfRelease(t *testing.T) {
	src := linkHouse(t)
	c := drawnCase(t, src, anonymize.UnitUser, nil)
	p, html := auditPage(t, c, "card", "times")
	pagetest.FirstScreen(t, "audit", p, "No check failed", "✓ passed")
	if len(p.Verdict) > 0 || !strings.Contains(html, "sessions drawn from noisy counts, none of them real; for a partner under contract") {
		t.Errorf("the verdict is %+v", p.Verdict)
	}
	card, err := anonymize.ParseCard(c.Output.Meta["card"], c.Output.Meta["card_sha256"])
	if err != nil {
		t.Fatal(err)
	}
	fields := sectionOf(t, p, "What was done with each column").Tables[0].Rows
	for i, rule := range card.Columns {
		if fields[i][0] != rule.Column || (fields[i][1] == "dropped") != (rule.Rule == "dropped") {
			t.Errorf("%v stands for %+v", fields[i], rule)
		}
	}
	rows := sectionOf(t, p, "Rows as released").Tables[0]
	if len(rows.Rows) != shownRows || slices.Contains(rows.Head, "user") || !slices.Contains(rows.Head, "input") {
		t.Errorf("%d rows of %v", len(rows.Rows), rows.Head)
	}
	change := sectionOf(t, p, "Before and after").Tables[0].Rows
	if change[0][0] != "Requests" || change[len(change)-1][0] != "Turns linked to one before" {
		t.Errorf("the change is %v", change)
	}
	questions := sectionOf(t, p, "The three questions").Tables[0].Rows
	for i, c := range criteria {
		if questions[i][0] != c.name || len(questions[i][2]) < 5 || strings.Contains(questions[i][2], "Inference:") {
			t.Errorf("%v", questions[i])
		}
	}
	if n := len(sectionOf(t, p, "What risks are left").Notes); n != len(card.Risks) {
		t.Errorf("%d risks are left of %d", n, len(card.Risks))
	}
}
