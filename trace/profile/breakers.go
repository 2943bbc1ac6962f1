package profile

import (
	"fmt"
	"strings"

	"reprise/trace/breaker"
	"reprise/trace/page"
)

// breakers are the places at which near-identical prompts part.
func (h *sheet) breakers() page.Section {
	b := h.Breakers
	if b == nil || len(b.List) == 0 {
		return page.Section{}
	}
	t := page.Table{
		Caption: fmt.Sprintf("Where near-identical prompts part, of %s", page.Many(b.Requests, "prompt")),
		Head: []string{"at token", "message", "role", "model", "requests", "tokens that differ", "tokens lost",
			"of prompt tokens"},
		Align: []page.Align{page.Right, page.Right, page.Left, page.Left},
	}
	for i := range b.List {
		one := &b.List[i]
		t.Rows = append(t.Rows, []string{one.Span(), page.Count(int64(one.Message)), one.Role,
			short(strings.TrimSpace(one.Model+" "+one.Adapter), 48),
			page.Count(one.Requests), page.Count(one.Width), page.Count(one.Lost),
			page.OrDash(share(one.Lost, b.PromptTokens), page.Percent)})
	}
	said := fmt.Sprintf("A prefix cache loses %s of %s prompt tokens, %s", compact(b.LostTokens),
		compact(b.PromptTokens), page.OrDash(b.LostShare, page.Percent))
	if b.LostPerDay != nil {
		said += fmt.Sprintf(" or %s a day at this rate", compact(int64(*b.LostPerDay)))
	}
	says := []string{
		said + ", because they stand behind a difference: an earlier prompt has them too (tokens lost).",
		fmt.Sprintf("Most is lost at %s: %s (at token).", b.List[0].Place(), b.List[0].Advice()),
	}
	if b.Found > len(b.List) {
		says = append(says, fmt.Sprintf("These are the %d of %s places that lose most (places).", len(b.List),
			page.Count(int64(b.Found))))
	}
	if len(b.List) > 1 {
		says = append(says, "Of two places in one prompt, the later one pays only when the earlier one is mended too.")
	}
	says = append(says, fmt.Sprintf("Found at import in the first %s tokens of prompts; places that fewer than %d "+
		"requests show are left out.", page.Count(breaker.SearchTokens), breaker.MinRequests))
	return page.Section{Title: "Prefix breakers", Text: says, Tables: []page.Table{t}}
}
