package report

import (
	"fmt"
	"strings"
	"time"

	"reprise/replay/result"
	"reprise/trace/page"
)

// partRows say which part of the workload was sent, how often, and what was sent
// before it to prime the server's cache.
func partRows(p *result.Selection) [][]string {
	if p == nil {
		return nil
	}
	notes := []string{"of " + page.Many(p.OfRows, "row")}
	if p.FromNS > 0 || p.ToNS > 0 {
		end := "the end"
		if p.ToNS > 0 {
			end = time.Duration(p.ToNS).String()
		}
		notes = append(notes, fmt.Sprintf("the window from %v to %s", time.Duration(p.FromNS), end))
	}
	if s := p.Sample; s != nil {
		notes = append(notes, fmt.Sprintf("%s of %s", page.Brief(s.Sessions), page.Many(s.OfSessions, "session")))
	}
	if p.MaxRequests > 0 {
		notes = append(notes, "the first of them")
	}
	if l := p.Loop; l != nil {
		times := "again and again"
		if l.Rounds > 0 {
			times = page.Many(l.Rounds, "round")
		}
		if l.Same {
			times += " of the same prompts"
		}
		notes = append(notes, times)
	}
	rows := [][]string{{"Part", page.Many(p.Rows, "row"), strings.Join(notes, ", ")}}
	if c := p.Prime; c != nil {
		rows = append(rows, []string{"Primed", page.Many(c.Prompts, "prompt"),
			fmt.Sprintf("%s before the run, of a cache of %s; %s failed", page.Many(c.Tokens, "token"), page.Brief(c.CapacityTokens), page.Brief(c.Failed))})
	}
	return rows
}
