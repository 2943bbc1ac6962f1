package profile

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/trace/breaker"
	"reprise/trace/page"
	"reprise/trace/textpage"
)

func writeBreakers(p *textpage.Page, s *breaker.Summary) {
	if s == nil || len(s.List) == 0 {
		return
	}
	var rows [][]string
	for i := range s.List {
		one := &s.List[i]
		rows = append(rows, []string{one.Span(), fmt.Sprintf("%d, %s", one.Message, one.Role),
			text.Trim(strings.TrimSpace(one.Model+" "+one.Adapter), 20), page.Count(one.Requests),
			page.Count(one.Width), page.Count(one.Lost), page.OrDash(share(one.Lost, s.PromptTokens), page.Percent)})
	}
	p.Table("Prefix breakers: where near-identical prompts part",
		[]string{"at token", "message", "model", "requests", "differing", "tokens lost", "of prompts"}, rows)
	say := func(format string, args ...any) { p.Line("", fmt.Sprintf(format, args...)) }
	perDay := ""
	if s.LostPerDay != nil {
		perDay = fmt.Sprintf(", %s a day at that rate", page.Fixed(*s.LostPerDay, 0))
	}
	say("A prefix cache loses %s of %s prompt tokens (%s)%s: they stand in an earlier prompt too, but behind a "+
		"difference.",
		page.Count(s.LostTokens), page.Count(s.PromptTokens), page.OrDash(s.LostShare, page.Percent), perDay)
	say("At %s, %s.", s.List[0].Place(), s.List[0].Advice())
	if s.Found > len(s.List) {
		say("These are the %d of %s places that lose most.", len(s.List), page.Count(int64(s.Found)))
	}
	if len(s.List) > 1 {
		say("Of two places in one prompt, the later one pays only when the earlier one is mended too.")
	}
	say("Found at import in the first %s tokens of %s prompts; places that fewer than %d requests show are left out.",
		page.Count(breaker.SearchTokens), page.Count(s.Requests), breaker.MinRequests)
}

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
	return page.Section{Title: "Prefix breakers", Text: says, Tables: []page.Table{t}}
}
