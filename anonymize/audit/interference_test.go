package audit

import (
	"testing"

	"reprise/anonymize"
)

// Cards of one release differ in who made them, and in nothing else.
func TestSameCard(t *testing.T) {
	text := func(c anonymize.Card) string {
		doc, _, err := c.JSON()
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	c := anonymize.Card{Tier: anonymize.Partner, Tool: "reprise 1", Partner: &anonymize.PartnerCard{KShare: 5}}
	other := c
	other.Tool, other.Confined = "reprise 2", &anonymize.Confinement{Network: "seccomp"}
	if !sameCard(text(c), text(other)) {
		t.Error("another version makes another release")
	}
	other.Partner = &anonymize.PartnerCard{KShare: 6}
	if sameCard(text(c), text(other)) || sameCard("", text(c)) {
		t.Error("another k_share makes no other release")
	}
}
