package profile

import (
	"fmt"
	"strings"

	"reprise/trace/fleet"
	"reprise/trace/page"
)

// reuse says how much a cache without limit would find.
func (h *sheet) reuse() page.Section {
	if h.Reuse == nil {
		return page.Section{}
	}
	t := page.Table{Caption: "Hit ratios of a cache without limit", Head: []string{"", "whole trace", "steady state"}}
	sets := reuseSets(h.Summary)
	if len(sets) > 1 {
		t.Head = append(t.Head, "whole, generated KV too", "steady, generated KV too")
	}
	line := func(name string, of func(*HitRatios) *float64) {
		row := []string{name}
		for _, r := range sets {
			row = append(row, page.OrDash(of(&r.HitRatios), page.Percent), page.OrDash(of(&r.Steady.HitRatios), page.Percent))
		}
		t.Rows = append(t.Rows, row)
	}
	line("by block", func(r *HitRatios) *float64 { return r.ByBlock })
	line("by token", func(r *HitRatios) *float64 { return r.ByToken })
	line("mean over requests", func(r *HitRatios) *float64 { return r.MeanOverRequests })
	line("full blocks only", func(r *HitRatios) *float64 { return r.FullBlocksOnly })
	return page.Section{Title: "Prefix reuse", Text: h.sayReuse(), Tables: []page.Table{t}}
}

func (h *sheet) sayReuse() []string {
	r := h.Reuse
	if r.HitRatios.ByToken == nil {
		return nil
	}
	said := fmt.Sprintf("A cache without limit, empty at the start, would find %s of the prompt tokens (by token, whole trace)", page.Percent(*r.HitRatios.ByToken))
	if steady := r.Steady.HitRatios.ByToken; steady != nil {
		said += fmt.Sprintf("; of those of the %s from %s on, which find it warm, %s (by token, steady state)",
			page.Many(r.Steady.Requests, "request"), lasting(r.Steady.WarmUpS), page.Percent(*steady))
	}
	says := []string{said + "."}
	if r.TouchedOnceShare != nil {
		says = append(says, fmt.Sprintf("Of %s distinct blocks %s are in one prompt only: memory that a cache spends on them is never repaid (touched once).",
			page.Count(r.UniqueBlocks), page.Percent(*r.TouchedOnceShare)))
	}
	if g := h.GeneratedGain; g != nil && g.Whole.ByToken != nil {
		says = append(says, fmt.Sprintf("A server that also keeps the KV of what it generates finds %s points more (by token, generated KV too).", points(*g.Whole.ByToken)))
	}
	return says
}

// losses are the waterfalls: over all requests, and over those whose cached
// tokens were recorded. Only the latter where these are all.
func (h *sheet) losses() page.Section {
	all, recorded := byRows(h.Waterfalls)
	if len(all) == 0 || h.Server == nil {
		return page.Section{}
	}
	s := page.Section{Title: "Where reuse is lost", Text: h.sayLosses(all, recorded)}
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
func (h *sheet) lossTable(of string, list []fleet.Waterfall) page.Table {
	t := page.Table{
		Caption: fmt.Sprintf("Points of %s prompt tokens, of %s %s", compact(list[0].PromptTokens), page.Count(list[0].Requests), of),
		Head:    []string{"what the prompts meet", "left", "", "lost to it", "tokens lost"},
		Align:   []page.Align{page.Left, page.Right, page.Left, page.Right, page.Right},
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
				row[3], row[4] = points(*step.CostPoints), page.Fixed(*step.CostPoints/100*float64(w.PromptTokens), 0)
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

func (h *sheet) sayLosses(all, recorded []fleet.Waterfall) []string {
	var says []string
	if h.Server.HitRatio != nil && h.Server.RoundingLoss != nil {
		says = append(says, fmt.Sprintf("A server takes full blocks only and computes at least the last token of a prompt: with blocks of %s it could take %s of the prompt tokens; rounding to its blocks loses %s points (server hit ratio, rounding loss).",
			page.Many(int64(h.Server.BlockSizeTokens), "token"), page.Percent(*h.Server.HitRatio), points(100**h.Server.RoundingLoss)))
	}
	for _, w := range all {
		if said := sayWaterfall(h.Summary, &w); said != "" {
			says = append(says, said)
		}
	}
	if len(recorded) > 0 {
		w := recorded[0]
		ceiling, reported := w.Steps[0].HitRatio, w.Steps[len(w.Steps)-1].HitRatio
		if ceiling != nil && reported != nil {
			says = append(says, fmt.Sprintf("The source's server reported %s of the prompt tokens as cached, where a cache without limit would have found %s (recorded cached tokens, over %s).",
				page.Percent(*reported), page.Percent(*ceiling), page.Many(w.Requests, "request")))
		}
	}
	return says
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
			said = append(said, fmt.Sprintf("memory of %s %s", stepMemory(s, w), costs(*step.CostPoints)))
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
		said = append(said, fmt.Sprintf("spreading the cache over %d replicas %s with %s routing and %s with %s routing", w.Replicas,
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

// stepMemory is the memory of all replicas together.
func stepMemory(s *Summary, w *fleet.Waterfall) string {
	if s.Routing.ReplicaGiB != nil {
		return figure(float64(w.Replicas)**s.Routing.ReplicaGiB) + " GiB in all"
	}
	return page.Many(int64(w.Replicas)**s.Routing.ReplicaBlocks, "block") + " in all"
}

func (h *sheet) prefixes() page.Section {
	if h.Prefixes == nil {
		return page.Section{}
	}
	s := page.Section{Title: "Top prefixes", Text: h.sayPrefixes()}
	for _, list := range []struct {
		by       string
		prefixes []Prefix
	}{{"by how many requests begin with them", h.Prefixes.ByRequests}, {"by the tokens that no shorter prefix saves", h.Prefixes.BySaved}} {
		if len(list.prefixes) == 0 {
			continue
		}
		t := page.Table{Caption: "Prefixes " + list.by, Align: []page.Align{page.Right},
			Head: []string{"last block", "blocks", "tokens", "requests", "of requests", "saved tokens", "its own", "of hit tokens"}}
		for _, p := range list.prefixes {
			t.Rows = append(t.Rows, []string{page.Count(p.LastBlock), page.Count(p.DepthBlocks), page.Count(p.DepthTokens), page.Count(p.Requests),
				page.OrDash(p.RequestShare, page.Percent), page.Count(p.SavedTokens), page.Count(p.OwnSavedTokens), page.OrDash(p.OwnShare, page.Percent)})
		}
		s.Tables = append(s.Tables, t)
	}
	return s
}

func (h *sheet) sayPrefixes() []string {
	var says []string
	if list := h.Prefixes.ByRequests; len(list) > 0 {
		says = append(says, fmt.Sprintf("The prefix that most requests begin with is %s long and begins %s of them, %s (requests).",
			page.Many(list[0].DepthTokens, "token"), page.Count(list[0].Requests), page.OrDash(list[0].RequestShare, page.Percent)))
	}
	var saved float64
	for _, p := range h.Prefixes.BySaved {
		if p.OwnShare != nil {
			saved += *p.OwnShare
		}
	}
	if saved > 0 {
		says = append(says, fmt.Sprintf("Those that save most bring %s of all hit tokens together (its own): keeping them in the cache for good is worth no more than that.", page.Percent(saved)))
	}
	return says
}
