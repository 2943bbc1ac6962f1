package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"reprise/trace/doc"
	"reprise/trace/fleet"
)

// reuse says how much a cache without limit would find.
func (h *sheet) reuse() doc.Section {
	if h.Reuse == nil {
		return doc.Section{}
	}
	t := doc.Table{Caption: "Hit ratios of a cache without limit", Head: []string{"", "whole trace", "steady state"}}
	sets := reuseSets(h.Summary)
	if len(sets) > 1 {
		t.Head = append(t.Head, "whole, generated KV too", "steady, generated KV too")
	}
	line := func(name string, of func(*HitRatios) *float64) {
		row := []string{name}
		for _, r := range sets {
			row = append(row, doc.OrDash(of(&r.HitRatios), doc.Percent),
				doc.OrDash(of(&r.Steady.HitRatios), doc.Percent))
		}
		t.Rows = append(t.Rows, row)
	}
	line("by block", func(r *HitRatios) *float64 { return r.ByBlock })
	line("by token", func(r *HitRatios) *float64 { return r.ByToken })
	line("mean over requests", func(r *HitRatios) *float64 { return r.MeanOverRequests })
	line("full blocks only", func(r *HitRatios) *float64 { return r.FullBlocksOnly })
	section := doc.Section{Title: "Prefix reuse", Tables: []doc.Table{t}}
	r := h.Reuse
	if r.HitRatios.ByToken == nil {
		return section
	}
	said := fmt.Sprintf("A cache without limit, empty at the start, would find %s of the prompt tokens (by token, "+
		"whole trace)", doc.Percent(*r.HitRatios.ByToken))
	if steady := r.Steady.HitRatios.ByToken; steady != nil {
		said += fmt.Sprintf("; for the %s from %s on, which find it warm, %s (by token, steady state)",
			doc.Many(r.Steady.Requests, "request"), lasting(r.Steady.WarmUpS), doc.Percent(*steady))
	}
	section.Text = append(section.Text, said+".")
	if r.TouchedOnceShare != nil {
		section.Text = append(section.Text,
			fmt.Sprintf("Of %s distinct blocks %s are in one prompt only: memory that a cache spends on them is "+
				"never repaid (touched once).",
				doc.Count(r.UniqueBlocks), doc.Percent(*r.TouchedOnceShare)))
	}
	if g := h.GeneratedGain; g != nil && g.Whole.ByToken != nil {
		section.Text = append(section.Text,
			fmt.Sprintf("A server that also keeps the KV of what it generates finds %s points more (by token, "+
				"generated KV too).", points(*g.Whole.ByToken)))
	}
	if i := h.InferredReuse; i != nil {
		section.Text = append(section.Text,
			fmt.Sprintf("Blocks are inferred from cached tokens, sessions and tools: %s. The least is what the "+
				"server found of earlier requests, the most what a cache without limit finds of the inferred blocks, "+
				"outputs too.", i))
	}
	return section
}

// losses are the waterfalls: over all requests, and over those whose cached
// tokens were recorded. Only the latter where these are all.
func (h *sheet) losses() doc.Section {
	all, recorded := byRows(h.Waterfalls)
	if len(all) == 0 || h.Server == nil {
		return doc.Section{}
	}
	s := doc.Section{Title: "Where reuse is lost"}
	if h.Server.HitRatio != nil && h.Server.RoundingLoss != nil {
		s.Text = append(s.Text, fmt.Sprintf("A server takes full blocks only and computes at least the last token of "+
			"a prompt: with blocks of %s it could take %s of the prompt tokens; rounding to its blocks loses %s "+
			"points (server hit ratio, rounding loss).",
			doc.Many(int64(h.Server.BlockSizeTokens), "token"), doc.Percent(*h.Server.HitRatio),
			points(100**h.Server.RoundingLoss)))
	}
	for _, w := range all {
		if said := sayWaterfall(h.Summary, &w); said != "" {
			s.Text = append(s.Text, said)
		}
	}
	if len(recorded) > 0 {
		w := recorded[0]
		ceiling, reported := w.Steps[0].HitRatio, w.Steps[len(w.Steps)-1].HitRatio
		if ceiling != nil && reported != nil {
			s.Text = append(s.Text, fmt.Sprintf("The source's server reported %s of the prompt tokens as cached, "+
				"where a cache without limit would have found %s (recorded cached tokens, over %s).",
				doc.Percent(*reported), doc.Percent(*ceiling), doc.Many(w.Requests, "request")))
		}
	}
	if len(recorded) == 0 || recorded[0].Requests < all[0].Requests {
		s.Tables = append(s.Tables, h.lossTable("requests with blocks", all))
	}
	if len(recorded) > 0 {
		s.Tables = append(s.Tables, h.lossTable("requests with recorded cached tokens", recorded))
	}
	return s
}

// lossTable has the steps of one waterfall for each number of replicas. What
// all of them begin and end with stands there once.
func (h *sheet) lossTable(of string, list []fleet.Waterfall) doc.Table {
	t := doc.Table{
		Caption: fmt.Sprintf("Points of %s prompt tokens, of %s %s", compact(list[0].PromptTokens),
			doc.Count(list[0].Requests), of),
		Head:  []string{"what the prompts meet", "left", "", "lost to it", "tokens lost"},
		Align: []doc.Align{doc.Left, doc.Right, doc.Left, doc.Right, doc.Right},
	}
	var last [][]string
	for i, w := range list {
		for _, step := range w.Steps {
			row := []string{strings.TrimSpace(stepName(h.Summary, &w, &step)), missing, "", missing, missing}
			if step.Router != "" {
				row[0] = "↳ " + row[0] // one of several
			}
			if ceiling := w.Steps[0].HitRatio; step.HitRatio != nil && ceiling != nil {
				row[1] = points(100 * *step.HitRatio)
				if *ceiling > 0 {
					row[2] = shareBar(*step.HitRatio / *ceiling)
				}
			}
			if step.CostPoints != nil {
				row[3], row[4] = points(*step.CostPoints), doc.Fixed(*step.CostPoints/100*float64(w.PromptTokens), 0)
			}
			switch {
			case step.Step == fleet.StepRecorded:
				last = [][]string{row}
			case i == 0 || step.Step != fleet.StepCeiling && step.Step != fleet.StepRounding:
				t.Rows = append(t.Rows, row)
			}
		}
	}
	t.Rows = append(t.Rows, last...)
	return t
}

// sayWaterfall says what limited memory costs, and what the best and the worst
// router cost beyond it.
func sayWaterfall(s *Summary, w *fleet.Waterfall) string {
	var said []string
	var best, worst *fleet.Step
	for i := range w.Steps {
		step := &w.Steps[i]
		switch {
		case step.CostPoints == nil:
		case step.Step == fleet.StepCapacity:
			memory := "" // of all replicas together
			if s.Routing.ReplicaGiB != nil {
				memory = figure(float64(w.Replicas)**s.Routing.ReplicaGiB) + " GiB"
			} else {
				memory = doc.Many(int64(w.Replicas)**s.Routing.ReplicaBlocks, "block")
			}
			said = append(said, fmt.Sprintf("memory of %s in all %s", memory, costs(*step.CostPoints)))
		case step.Step == fleet.StepRouting:
			if best == nil || *step.CostPoints < *best.CostPoints {
				best = step
			}
			if worst == nil || *step.CostPoints > *worst.CostPoints {
				worst = step
			}
		}
	}
	if best != nil {
		said = append(said, fmt.Sprintf(
			"spreading the cache over %d replicas %s with %s routing and %s with %s routing", w.Replicas,
			costs(*best.CostPoints), best.Router, costs(*worst.CostPoints), worst.Router))
	}
	if said == nil {
		return ""
	}
	return asSentence(strings.Join(said, "; ") + " (lost to it)")
}

// costs says how many points something costs, or gains.
func costs(v float64) string {
	if v < -0.005 {
		return "gains " + points(-v) + " points"
	}
	return "costs " + points(v) + " points"
}

func (h *sheet) prefixes() doc.Section {
	if h.Prefixes == nil {
		return doc.Section{}
	}
	s := doc.Section{Title: "Top prefixes"}
	if list := h.Prefixes.ByRequests; len(list) > 0 {
		s.Text = append(s.Text, fmt.Sprintf(
			"The prefix that most requests begin with is %s long and begins %s of them, %s (requests).",
			doc.Many(list[0].DepthTokens, "token"), doc.Count(list[0].Requests),
			doc.OrDash(list[0].RequestShare, doc.Percent)))
	}
	var saved float64
	for _, p := range h.Prefixes.BySaved {
		if p.OwnShare != nil {
			saved += *p.OwnShare
		}
	}
	if saved > 0 {
		s.Text = append(s.Text, fmt.Sprintf("The prefixes that save most bring %s of all hit tokens together (its "+
			"own): keeping them in the cache for good is worth no more than that.", doc.Percent(saved)))
	}
	for _, list := range []struct {
		by       string
		prefixes []Prefix
	}{{"by how many requests begin with them", h.Prefixes.ByRequests},
		{"by the tokens that no shorter prefix saves", h.Prefixes.BySaved}} {
		if len(list.prefixes) == 0 {
			continue
		}
		t := doc.Table{Caption: "Prefixes " + list.by, Align: []doc.Align{doc.Right},
			Head: []string{"last block", "blocks", "tokens", "requests", "of requests", "saved tokens",
				"its own", "of hit tokens"}}
		for _, p := range list.prefixes {
			t.Rows = append(t.Rows, []string{doc.Count(p.LastBlock), doc.Count(p.DepthBlocks),
				doc.Count(p.DepthTokens), doc.Count(p.Requests),
				doc.OrDash(p.RequestShare, doc.Percent), doc.Count(p.SavedTokens), doc.Count(p.OwnSavedTokens),
				doc.OrDash(p.OwnShare, doc.Percent)})
		}
		s.Tables = append(s.Tables, t)
	}
	return s
}

// overTime draws how the hit ratio grows and changes.
func (h *sheet) overTime() doc.Section {
	if h.Reuse == nil {
		return doc.Section{}
	}
	series := []doc.Series{
		inPercent(h.series("by token", func(b *TimeBin) *float64 { return b.HitRatioByToken })),
		inPercent(h.series("by block", func(b *TimeBin) *float64 { return b.HitRatio })),
		inPercent(h.series("server, by token", func(b *TimeBin) *float64 { return b.ServerHitRatio })),
	}
	about := "Of a cache without limit that is empty at the start."
	if h.OverTime != nil {
		about += " In bins of " + lasting(h.OverTime.BinS) + "."
	}
	s := doc.Section{Title: "Reuse over time",
		Plots: doc.Drawn(overTimePlot("Hit ratio over time", about, "hit ratio", "%", series...))}
	if len(s.Plots) == 0 {
		return s
	}
	var seen []float64
	for i := range h.OverTime.Bins {
		if r := h.OverTime.Bins[i].HitRatioByToken; r != nil {
			seen = append(seen, *r)
		}
	}
	if len(seen) > 0 {
		half := seen[len(seen)/2:]
		s.Text = []string{fmt.Sprintf("The hit ratio begins at %s in the first bin of %s; in the second half of the "+
			"bins it lies between %s and %s (by token, over time).",
			doc.Percent(seen[0]), lasting(h.OverTime.BinS), doc.Percent(slices.Min(half)),
			doc.Percent(slices.Max(half)))}
	}
	return s
}

func inPercent(s doc.Series) doc.Series {
	for i := range s.Y {
		s.Y[i] *= 100
	}
	return s
}

// groupsTitle is that of the section with the categories.
const groupsTitle = "Reuse by category, model and client"

// groups says who reuses: by category always, by model and by client where there
// is more than one. Without blocks it says who asks.
func (h *sheet) groups() doc.Section {
	s := doc.Section{Title: groupsTitle}
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
		table, said := groupTable(one.kind, g, h.Reuse != nil)
		s.Tables, s.Text = append(s.Tables, table), append(s.Text, said)
	}
	return s
}

// rows are the groups, with the rest and those without a name, and the sum of
// what they have.
func (g *GroupedReuse) rows(kind string) (list []GroupReuse, requests, input, hit int64) {
	list = slices.Clone(g.Groups)
	for i := range list {
		list[i].Name = short(list[i].Name)
	}
	if g.Rest != nil {
		rest := *g.Rest
		rest.Name = doc.Count(g.Distinct-int64(len(g.Groups))) + " others"
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

// groupTable lists the groups of one kind. said names the group that brings most of the reuse or, without any reuse,
// most of the requests.
func groupTable(kind string, g *GroupedReuse, blocks bool) (t doc.Table, said string) {
	list, requests, input, hit := g.rows(kind)
	t = doc.Table{
		Caption: fmt.Sprintf("By %s, of %s in all", kind, doc.Count(g.Distinct)),
		Head: []string{kind, "requests", "share", "share of prompt tokens", "prompt tokens, mean",
			"output tokens, mean", "share of hit tokens", "by block", "by token", "by token, steady"},
		Align: []doc.Align{doc.Left},
	}
	for i := range list {
		w := &list[i].Whole
		t.Rows = append(t.Rows, []string{list[i].Name, doc.Count(w.Requests),
			doc.OrDash(share(w.Requests, requests), doc.Percent),
			doc.OrDash(share(w.InputTokens, input), doc.Percent), doc.OrDash(share(w.InputTokens, w.Requests),
				figure), doc.OrDash(share(w.OutputTokens, w.Requests), figure),
			doc.OrDash(share(w.HitTokens, hit), doc.Percent), doc.OrDash(w.HitRatio, doc.Percent),
			doc.OrDash(w.HitRatioByToken, doc.Percent),
			doc.OrDash(list[i].Steady.HitRatioByToken, doc.Percent)})
	}
	if !blocks {
		const without = 6 // columns
		t.Head = t.Head[:without]
		for i := range t.Rows {
			t.Rows[i] = t.Rows[i][:without]
		}
	}
	if hit == 0 {
		first := &g.Groups[0]
		return t, fmt.Sprintf("Most requests, %s, are of %s %s (share, by %s).",
			doc.Percent(ratio(first.Whole.Requests, requests)), kind, short(first.Name), kind)
	}
	most := slices.MaxFunc(g.Groups, func(a, b GroupReuse) int {
		return cmp.Compare(a.Whole.HitTokens, b.Whole.HitTokens)
	})
	return t, fmt.Sprintf("%s %s brings the most reuse: %s of all hit tokens, with %s of the requests and %s of the "+
		"prompt tokens (by %s).",
		strings.ToUpper(kind[:1])+kind[1:], short(most.Name), doc.Percent(ratio(most.Whole.HitTokens, hit)),
		doc.Percent(ratio(most.Whole.Requests, requests)), doc.Percent(ratio(most.Whole.InputTokens, input)), kind)
}

// distances says how soon blocks come again, in time and in other blocks.
func (h *sheet) distances() doc.Section {
	s := doc.Section{Title: "Reuse time and distance", Plots: doc.Drawn(
		h.histogram("Time since the last touch", metricReuseTime, "hit blocks", "reuse time", "s", second),
		h.histogram("Distance since the last touch", MetricReuseDistance, "hit blocks", "reuse distance", "blocks", 1),
		h.byCategory("Reuse time by category", "How long the KV of a block must be kept for a hit.", metricReuseTime,
			"reuse time", "s", second),
		h.byCategory("Reuse distance by category", "How many blocks an LRU cache must hold for a hit.",
			MetricReuseDistance, "reuse distance", "blocks", 1))}
	if half := h.quantile(metricReuseTime, 0.5); !math.IsNaN(half) {
		s.Text = append(s.Text, fmt.Sprintf("Half of the hit blocks had been touched no longer than %s before, and "+
			"nine tenths no longer than %s (p50 and p90 of reuse time).",
			lasting(half/second), lasting(h.quantile(metricReuseTime, 0.9)/second)))
	}
	if half := h.quantile(MetricReuseDistance, 0.5); !math.IsNaN(half) {
		s.Text = append(s.Text, fmt.Sprintf("An LRU cache of %s blocks would have held half of them, one of %s nine "+
			"tenths (p50 and p90 of reuse distance).",
			figure(half), figure(h.quantile(MetricReuseDistance, 0.9))))
	}
	return s
}
