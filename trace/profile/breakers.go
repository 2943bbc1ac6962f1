package profile

import (
	"fmt"
	"strings"

	"reprise/trace/breaker"
	"reprise/trace/doc"
)

// breakers are the places at which near-identical prompts part.
func (h *sheet) breakers() doc.Section {
	b := h.Breakers
	if b == nil || len(b.List) == 0 {
		return doc.Section{}
	}
	t := doc.Table{
		Caption: fmt.Sprintf("Where near-identical prompts part, of %s", doc.Many(b.Requests, "prompt")),
		Head: []string{"at token", "message", "role", "model", "requests", "tokens that differ", "tokens lost",
			"of prompt tokens"},
		Align: []doc.Align{doc.Right, doc.Right, doc.Left, doc.Left},
	}
	for i := range b.List {
		one := &b.List[i]
		t.Rows = append(t.Rows, []string{one.Span(), doc.Count(int64(one.Message)), one.Role,
			short(strings.TrimSpace(one.Model + " " + one.Adapter)),
			doc.Count(one.Requests), doc.Count(one.Width), doc.Count(one.Lost),
			doc.OrDash(share(one.Lost, b.PromptTokens), doc.Percent)})
	}
	said := fmt.Sprintf("A prefix cache loses %s of %s prompt tokens, %s", compact(b.LostTokens),
		compact(b.PromptTokens), doc.OrDash(b.LostShare, doc.Percent))
	if b.LostPerDay != nil {
		said += fmt.Sprintf(" or %s a day at this rate", compact(int64(*b.LostPerDay)))
	}
	says := []string{
		said + ", because they stand behind a difference: an earlier prompt has them too (tokens lost).",
		fmt.Sprintf("Most is lost at %s: %s (at token).", b.List[0].Place(), b.List[0].Advice()),
	}
	if b.Found > len(b.List) {
		says = append(says, fmt.Sprintf("These are the %d of %s places that lose most (places).", len(b.List),
			doc.Count(int64(b.Found))))
	}
	if len(b.List) > 1 {
		says = append(says, "Of two places in one prompt, the later one pays only when the earlier one is mended too.")
	}
	says = append(says, fmt.Sprintf("Found at import in the first %s tokens of prompts; places that fewer than %d "+
		"requests show are left out.", doc.Count(breaker.SearchTokens), breaker.MinRequests))
	return doc.Section{Title: "Prefix breakers", Text: says, Tables: []doc.Table{t}}
}
