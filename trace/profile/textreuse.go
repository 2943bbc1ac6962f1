package profile

import (
	"fmt"
	"math"
	"strings"

	"reprise/trace/fleet"
	"reprise/trace/page"
	"reprise/trace/textpage"
)

// writeCurve prints the curve at round capacities: in GiB where the memory of a
// token is known, and in blocks and tokens where not.
func writeCurve(p *textpage.Page, r namedReuse) {
	head := []string{"blocks", "tokens"}
	if inMemory(r.LRUCurve) {
		head = []string{"GiB", "blocks", "tokens"}
	}
	size := len(head)
	var rows [][]string
	for i, point := range r.LRUCurve {
		row := []string{"∞", "", ""}[:size]
		if point.CapacityGiB != nil {
			if !isRound(*point.CapacityGiB) {
				continue
			}
			row[0] = page.Count(int64(*point.CapacityGiB))
		}
		if point.CapacityBlocks != nil {
			row[size-2] = page.Count(*point.CapacityBlocks)
		}
		if point.CapacityTokens != nil {
			row[size-1] = page.Count(*point.CapacityTokens)
		}
		row = append(row, page.Number(point.HitRatio),
			page.OrDash(point.HitRatioByToken, page.Number), missing, missing)
		if i < len(r.Steady.LRUCurve) {
			steady := r.Steady.LRUCurve[i]
			row[size+2], row[size+3] = page.Number(steady.HitRatio), page.OrDash(steady.HitRatioByToken, page.Number)
		}
		if r.Sampling != nil {
			row = append(row, page.OrDash(point.Error, page.Number))
		}
		rows = append(rows, row)
	}
	head = append(head, "by block", "by token", "steady by block", "steady by token")
	if r.Sampling != nil {
		head = append(head, "error ±")
	}
	p.Table("Hit ratio by capacity of an LRU cache, "+r.name, head, rows)
}

func writeOverTime(p *textpage.Page, s *Summary) {
	if s.OverTime == nil || len(s.OverTime.Bins) < 2 {
		return
	}
	bins := s.OverTime.Bins
	p.Blank()
	p.Line("", fmt.Sprintf("Over time, in %d bins of %s s, each line from 0 to its greatest value", len(bins),
		page.Number(s.OverTime.BinS)))
	bars := []rune("▁▂▃▄▅▆▇█")
	// line draws values from 0 up to the greatest as bars, and a dot where there is none.
	line := func(name, unit string, format func(float64) string, of func(*TimeBin) *float64) {
		var values []*float64
		highest := math.Inf(-1)
		for i := range bins {
			v := of(&bins[i])
			values = append(values, v)
			if v != nil {
				highest = max(highest, *v)
			}
		}
		if highest < 0 {
			return
		}
		var drawn strings.Builder
		for _, v := range values {
			switch {
			case v == nil:
				drawn.WriteRune('·')
			case highest == 0:
				drawn.WriteRune(bars[0])
			default:
				drawn.WriteRune(bars[min(int(*v/highest*float64(len(bars))), len(bars)-1)])
			}
		}
		p.Line("", fmt.Sprintf("%-12s %s %s%s", name, drawn.String(), format(highest), unit))
	}
	line("requests/s", "", page.Number, func(t *TimeBin) *float64 { return perSecond(t.Requests, t) })
	line("input", "/s", page.Number, func(t *TimeBin) *float64 { return perSecond(t.InputTokens, t) })
	line("hit by token", "", page.Number, func(t *TimeBin) *float64 { return t.HitRatioByToken })
}

// perSecond is a rate over a bin; one of no length has none.
func perSecond(n int64, t *TimeBin) *float64 {
	if !(t.EndS > t.StartS) {
		return nil
	}
	rate := float64(n) / (t.EndS - t.StartS)
	return &rate
}

// writeCategories prints the categories with the hit ratio of each.
func writeCategories(p *textpage.Page, s *Summary) {
	if len(s.Categories) == 0 {
		return
	}
	ratios := map[string]GroupReuse{}
	if s.ByCategory != nil {
		for _, g := range s.ByCategory.Groups {
			ratios[g.Name] = g
		}
	}
	var rows [][]string
	for _, c := range s.Categories {
		g := ratios[c.Category]
		rows = append(rows, []string{c.Category, page.Count(c.Requests), page.OrDash(c.RequestShare, page.Percent),
			page.OrDash(c.InputShare, page.Percent), page.Count(c.HitBlocks), page.OrDash(c.HitShare, page.Percent),
			page.OrDash(g.Whole.HitRatioByToken, page.Number), page.OrDash(g.Steady.HitRatioByToken, page.Number)})
	}
	p.Table("Reuse categories", []string{"category", "requests", "share", "of tokens", "hit blocks", "of hits",
		"by token", "steady"}, rows)
}

// writeGroups prints a breakdown that tells at least two groups apart.
func writeGroups(p *textpage.Page, kind string, g *GroupedReuse) {
	if g == nil || len(g.Groups) == 1 && g.Unnamed == nil {
		return
	}
	var total int64
	list := g.Groups[:len(g.Groups):len(g.Groups)]
	for _, more := range []*GroupReuse{g.Rest, g.Unnamed} {
		if more != nil {
			list = append(list, *more)
		}
	}
	for _, one := range list {
		total += one.Whole.Requests
	}
	var rows [][]string
	for i, one := range list {
		name := short(one.Name, 24)
		if i >= len(g.Groups) {
			name = "no " + kind
			if i == len(g.Groups) && g.Rest != nil {
				name = fmt.Sprintf("%s others", page.Count(g.Distinct-int64(len(g.Groups))))
			}
		}
		w := &one.Whole
		rows = append(rows, []string{name, page.Count(w.Requests), page.OrDash(share(w.Requests, total), page.Percent),
			page.Count(w.InputTokens),
			page.OrDash(w.HitRatio, page.Number), page.OrDash(w.HitRatioByToken, page.Number),
			page.OrDash(one.Steady.HitRatioByToken, page.Number)})
	}
	title := fmt.Sprintf("Reuse by %s, of %s in all", kind, page.Count(g.Distinct))
	p.Table(title, []string{kind, "requests", "share", "input tokens", "by block", "by token", "steady"}, rows)
}

// textPrefixes is how many prefixes of each list are printed.
const textPrefixes = 5

func writePrefixes(p *textpage.Page, s *Summary) {
	if s.Prefixes == nil {
		return
	}
	for _, list := range []struct {
		by       string
		prefixes []Prefix
	}{{"how many requests begin with them", s.Prefixes.ByRequests},
		{"tokens that no shorter prefix saves", s.Prefixes.BySaved}} {
		var rows [][]string
		for _, one := range list.prefixes[:min(len(list.prefixes), textPrefixes)] {
			rows = append(rows, []string{page.Count(one.LastBlock), page.Count(one.DepthBlocks),
				page.Count(one.DepthTokens), page.Count(one.Requests),
				page.Count(one.SavedTokens), page.Count(one.OwnSavedTokens), page.OrDash(one.OwnShare, page.Percent)})
		}
		p.Table("Top prefixes by "+list.by, []string{"last block", "blocks", "tokens", "requests", "saved tokens",
			"its own", "of all hits"}, rows)
	}
}

func writeWorkingSet(p *textpage.Page, w *WorkingSets) {
	if w == nil {
		return
	}
	head := []string{"window", "windows", "mean blocks", "max blocks", "mean tokens", "max tokens"}
	size := func(v *WorkingSetSize) string { return page.Fixed(v.Tokens, 0) }
	if w.Total.GiB != nil {
		head[4], head[5] = "mean GiB", "max GiB"
		size = func(v *WorkingSetSize) string { return page.Number(*v.GiB) }
	}
	var rows [][]string
	line := func(name, windows string, mean, most *WorkingSetSize) {
		row := []string{name, windows, missing, page.Fixed(most.Blocks, 0), missing, size(most)}
		if mean != nil {
			row[2], row[4] = page.Number(mean.Blocks), size(mean)
		}
		rows = append(rows, row)
	}
	for _, one := range w.Windows {
		if one.Windows > 0 {
			line(page.Number(one.WindowS/60)+" min", page.Count(one.Windows), one.Mean, one.Max)
		}
	}
	line("whole trace", "", nil, &w.Total)
	p.Table("Working set: distinct blocks of prompts in a window of time", head, rows)
}

func writeRouting(p *textpage.Page, s *fleet.Summary) {
	if s == nil {
		return
	}
	var rows [][]string
	for i := range s.Fleets {
		f := &s.Fleets[i]
		if len(f.Routers) == 0 {
			continue // one cache is in the waterfall
		}
		rows = append(rows, []string{fmt.Sprintf("one cache, of %d", f.Replicas),
			page.OrDash(f.OneCache.HitRatio, page.Number), page.OrDash(f.OneCache.HitRatioByToken,
				page.Number), "", "", ""})
		for j := range f.Routers {
			r := &f.Routers[j]
			rows = append(rows, []string{fmt.Sprintf("%d, %s", f.Replicas, r.Router),
				page.OrDash(r.HitRatio, page.Number),
				page.OrDash(r.HitRatioByToken, page.Number), page.OrDash(r.ShareOfOneCache, page.Percent),
				page.OrDash(r.SentImbalance, page.Number), page.OrDash(r.PrefillImbalance, page.Number)})
		}
	}
	if len(rows) == 0 {
		return
	}
	p.Table("Routing over replicas, "+replicaMemory(s),
		[]string{"replicas, router", "by block", "by token", "of one cache", "sent max/mean", "prefill max/mean"}, rows)
	for _, f := range s.Fleets {
		if f.SessionShare == nil || f.PrefixShare == nil {
			continue
		}
		origin := "sessions"
		if s.SessionOrigin == originInferred {
			origin = "inferred sessions"
		}
		p.Line("", fmt.Sprintf("%d replicas: %s keep %s of the hit tokens of one cache, prefix routing %s",
			f.Replicas, origin, page.Percent(*f.SessionShare), page.Percent(*f.PrefixShare)))
	}
}

// writeWaterfall prints the waterfalls over some requests, one for each number of
// replicas. Their common first steps are printed once.
func writeWaterfall(p *textpage.Page, s *Summary, of string, list []fleet.Waterfall) {
	var rows, last [][]string
	for i, w := range list {
		for _, step := range w.Steps {
			row := []string{stepName(s, &w, &step), missing, page.OrDash(step.CostPoints, points)}
			if step.HitRatio != nil {
				row[1] = points(100 * *step.HitRatio)
			}
			switch {
			case step.Step == fleet.StepRecorded:
				last = [][]string{row}
			case i == 0 || step.Step != fleet.StepCeiling && step.Step != fleet.StepRounding:
				rows = append(rows, row)
			}
		}
	}
	rows = append(rows, last...)
	if len(rows) <= 2 {
		return // what is printed of the server's blocks says it all
	}
	title := fmt.Sprintf("Where reuse goes, in points of %s prompt tokens: %s %s", page.Count(list[0].PromptTokens),
		page.Count(list[0].Requests), of)
	p.Table(title, []string{"step", "left", "cost"}, rows)
}
