package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"reprise/trace/page"
)

// overTime draws how the hit ratio grows and changes.
func (h *sheet) overTime() page.Section {
	if h.Reuse == nil {
		return page.Section{}
	}
	series := []page.Series{
		inPercent(h.series("by token", func(b *TimeBin) *float64 { return b.HitRatioByToken })),
		inPercent(h.series("by block", func(b *TimeBin) *float64 { return b.HitRatio })),
		inPercent(h.series("server, by token", func(b *TimeBin) *float64 { return b.ServerHitRatio })),
	}
	about := "Of a cache without limit that is empty at the start."
	if h.OverTime != nil {
		about += " In bins of " + lasting(h.OverTime.BinS) + "."
	}
	s := page.Section{Title: "Reuse over time", Plots: page.Drawn(overTimePlot("Hit ratio over time", about, "hit ratio", "%", series...))}
	if len(s.Plots) > 0 {
		s.Text = h.sayOverTime()
	}
	return s
}

func inPercent(s page.Series) page.Series {
	for i := range s.Y {
		s.Y[i] *= 100
	}
	return s
}

func (h *sheet) sayOverTime() []string {
	var seen []float64
	for i := range h.OverTime.Bins {
		if r := h.OverTime.Bins[i].HitRatioByToken; r != nil {
			seen = append(seen, *r)
		}
	}
	if len(seen) == 0 {
		return nil
	}
	half := seen[len(seen)/2:]
	return []string{fmt.Sprintf("The hit ratio begins at %s in the first bin of %s; in the second half of the bins it lies between %s and %s (by token, over time).",
		page.Percent(seen[0]), lasting(h.OverTime.BinS), page.Percent(slices.Min(half)), page.Percent(slices.Max(half)))}
}

// groups says who reuses: by category always, by model and by client where there
// is more than one. Without blocks it says who asks.
func (h *sheet) groups() page.Section {
	s := page.Section{Title: "Reuse by category, model and client"}
	if h.Reuse == nil {
		s.Title = "Requests by model and client"
	}
	for _, one := range []struct {
		kind string
		*GroupedReuse
		listed bool
	}{{"category", h.ByCategory, true}, {"model", h.ByModel, false}, {"client", h.ByClient, false}} {
		g := one.GroupedReuse
		if g == nil || len(g.Groups) == 0 || !one.listed && len(g.Groups) == 1 && g.Unnamed == nil {
			continue
		}
		s.Tables = append(s.Tables, groupTable(one.kind, g, h.Reuse != nil))
		if said := sayGroups(one.kind, g); said != "" {
			s.Text = append(s.Text, said)
		}
	}
	return s
}

// rows are the groups, with the rest and those without a name, and the sum of
// what they have.
func (g *GroupedReuse) rows(kind string) (list []GroupReuse, requests, input, hit int64) {
	list = slices.Clone(g.Groups)
	for i := range list {
		list[i].Name = short(list[i].Name, 48)
	}
	if g.Rest != nil {
		rest := *g.Rest
		rest.Name = page.Count(g.Distinct-int64(len(g.Groups))) + " others"
		list = append(list, rest)
	}
	if g.Unnamed != nil {
		unnamed := *g.Unnamed
		unnamed.Name = "no " + kind
		list = append(list, unnamed)
	}
	for i := range list {
		requests += list[i].Whole.Requests
		input += list[i].Whole.InputTokens
		hit += list[i].Whole.HitTokens
	}
	return list, requests, input, hit
}

func groupTable(kind string, g *GroupedReuse, blocks bool) page.Table {
	list, requests, _, hit := g.rows(kind)
	t := page.Table{
		Caption: fmt.Sprintf("By %s, of %s in all", kind, page.Count(g.Distinct)),
		Head:    []string{kind, "requests", "share", "prompt tokens, mean", "output tokens, mean", "share of hit tokens", "by block", "by token", "by token, steady"},
		Align:   []page.Align{page.Left},
	}
	for i := range list {
		w := &list[i].Whole
		t.Rows = append(t.Rows, []string{list[i].Name, page.Count(w.Requests), page.OrDash(share(w.Requests, requests), page.Percent),
			page.OrDash(share(w.InputTokens, w.Requests), figure), page.OrDash(share(w.OutputTokens, w.Requests), figure),
			page.OrDash(share(w.HitTokens, hit), page.Percent), page.OrDash(w.HitRatio, page.Percent), page.OrDash(w.HitRatioByToken, page.Percent),
			page.OrDash(list[i].Steady.HitRatioByToken, page.Percent)})
	}
	if !blocks {
		const without = 5 // columns
		t.Head = t.Head[:without]
		for i := range t.Rows {
			t.Rows[i] = t.Rows[i][:without]
		}
	}
	return t
}

// sayGroups names the group that brings most of the reuse, or without any most
// of the requests.
func sayGroups(kind string, g *GroupedReuse) string {
	_, requests, input, hit := g.rows(kind)
	if hit == 0 {
		first := &g.Groups[0]
		return fmt.Sprintf("Most requests, %s, are of %s %s (share, by %s).", page.Percent(ratio(first.Whole.Requests, requests)), kind, short(first.Name, 48), kind)
	}
	most := slices.MaxFunc(g.Groups, func(a, b GroupReuse) int { return cmp.Compare(a.Whole.HitTokens, b.Whole.HitTokens) })
	return fmt.Sprintf("%s %s brings the most reuse: %s of all hit tokens, with %s of the requests and %s of the prompt tokens (by %s).",
		strings.ToUpper(kind[:1])+kind[1:], short(most.Name, 48), page.Percent(ratio(most.Whole.HitTokens, hit)), page.Percent(ratio(most.Whole.Requests, requests)), page.Percent(ratio(most.Whole.InputTokens, input)), kind)
}

// distances says how soon blocks come again, in time and in other blocks.
func (h *sheet) distances() page.Section {
	s := page.Section{Title: "Reuse time and distance", Plots: page.Drawn(
		h.histogram("Time since the last touch", MetricReuseTime, "hit blocks", "reuse time", "s", second),
		h.histogram("Distance since the last touch", MetricReuseDistance, "hit blocks", "reuse distance", "blocks", 1),
		h.byCategory("Reuse time by category", "How long the KV of a block must be kept for a hit.", MetricReuseTime, "reuse time", "s", second),
		h.byCategory("Reuse distance by category", "How many blocks an LRU cache must hold for a hit.", MetricReuseDistance, "reuse distance", "blocks", 1))}
	if half := h.quantile(MetricReuseTime, 0.5); !math.IsNaN(half) {
		s.Text = append(s.Text, fmt.Sprintf("Half of the hit blocks had been touched no longer than %s before, and nine tenths no longer than %s (p50 and p90 of reuse time).",
			lasting(half/second), lasting(h.quantile(MetricReuseTime, 0.9)/second)))
	}
	if half := h.quantile(MetricReuseDistance, 0.5); !math.IsNaN(half) {
		s.Text = append(s.Text, fmt.Sprintf("An LRU cache of %s blocks would have held half of them, one of %s nine tenths (p50 and p90 of reuse distance).",
			figure(half), figure(h.quantile(MetricReuseDistance, 0.9))))
	}
	return s
}
