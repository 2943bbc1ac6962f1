package profile

import (
	"fmt"
	"reprise/trace/breaker"
	"reprise/trace/page"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

func writeBreakers(b *strings.Builder, s *breaker.Summary) {
	if s == nil || len(s.List) == 0 {
		return
	}
	var rows []table.Row
	for i := range s.List {
		one := &s.List[i]
		rows = append(rows, table.Row{one.Span(), fmt.Sprintf("%d, %s", one.Message, one.Role),
			text.Trim(strings.TrimSpace(one.Model+" "+one.Adapter), 20), page.Count(one.Requests),
			page.Count(one.Width), page.Count(one.Lost), page.OrDash(share(one.Lost, s.PromptTokens), page.Percent)})
	}
	draw(b, "Prefix breakers: where near-identical prompts part",
		table.Row{"at token", "message", "model", "requests", "differing", "tokens lost", "of prompts"}, rows)
	say := func(format string, args ...any) {
		for line := range strings.Lines(text.WrapSoft(fmt.Sprintf(format, args...), textWidth)) {
			b.WriteString(strings.TrimRight(line, " \n") + "\n")
		}
	}
	perDay := ""
	if s.LostPerDay != nil {
		perDay = fmt.Sprintf(", %s a day at that rate", page.Fixed(*s.LostPerDay, 0))
	}
	say("A prefix cache loses %s of %s prompt tokens (%s)%s: they stand in an earlier prompt too, but behind a difference.",
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
