package profile

import (
	"fmt"

	"reprise/trace/doc"
	"reprise/trace/fleet"
)

// memory is the unit that cache sizes are drawn in: GiB where the memory of a
// token is known, and otherwise tokens.
func (h *sheet) memory() (unit string, of func(*CurvePoint) *float64) {
	if h.KVBytesPerToken != nil {
		return "GiB", func(p *CurvePoint) *float64 { return p.CapacityGiB }
	}
	return "tokens", func(p *CurvePoint) *float64 {
		if p.CapacityTokens == nil {
			return nil
		}
		return new(float64(*p.CapacityTokens))
	}
}

// cacheSize draws the hit ratio of an LRU cache of every size.
func (h *sheet) cacheSize() doc.Section {
	if h.Reuse == nil {
		return doc.Section{}
	}
	byToken := func(p *CurvePoint) *float64 { return p.HitRatioByToken }
	byBlock := func(p *CurvePoint) *float64 { return &p.HitRatio }
	plot := func(title string, of func(*CurvePoint) *float64) doc.Plot {
		unit, at := h.memory()
		curve := func(name string, list []CurvePoint) doc.Series {
			s := doc.Series{Name: name}
			for i := range list {
				x, y := at(&list[i]), of(&list[i])
				if x != nil && y != nil {
					s.X, s.Y = append(s.X, *x), append(s.Y, 100**y)
				}
			}
			return s
		}
		about := "The whole trace begins with an empty cache."
		series := []doc.Series{curve("whole trace", h.Reuse.LRUCurveDense)}
		if steady := curve("steady state", h.Reuse.Steady.LRUCurve); len(steady.X) > 1 {
			about += " The steady state is drawn between round capacities."
			series = append(series, steady)
		}
		if g := h.ReuseWithGenerated; g != nil {
			series = append(series, curve("whole trace, generated KV too", g.LRUCurveDense))
		}
		return doc.Plot{Title: title, XLabel: "capacity", XUnit: unit, YLabel: "hit ratio", YUnit: "%", LogX: true,
			Series: series, Text: about}
	}
	return doc.Section{Title: "Cache size", Text: h.sayCacheSize(),
		Plots: doc.Drawn(plot("Hit ratio of an LRU cache, by token", byToken),
			plot("Hit ratio of an LRU cache, by block", byBlock))}
}

// cacheTable lists the hit ratios at round capacities, in GiB where these are known. It goes on with the section of the
// plots, below them.
func (h *sheet) cacheTable() doc.Section {
	if h.Reuse == nil || len(h.Reuse.LRUCurve) == 0 {
		return doc.Section{}
	}
	var section doc.Section
	for _, r := range reuseSets(h.Summary) {
		t := doc.Table{Caption: "Hit ratio of an LRU cache at round sizes, " + r.name}
		gib := len(r.LRUCurve) > 0 && r.LRUCurve[0].CapacityGiB != nil
		if gib {
			t.Head = append(t.Head, "GiB")
		}
		t.Head = append(t.Head, "tokens", "blocks", "by token", "by block", "by token, steady", "by block, steady")
		if r.Sampling != nil {
			t.Head = append(t.Head, "error ±")
		}
		for range t.Head {
			t.Align = append(t.Align, doc.Right)
		}
		for i, p := range r.LRUCurve {
			if gib && p.CapacityGiB != nil && !isRound(*p.CapacityGiB) {
				continue
			}
			var row []string
			if gib {
				row = append(row, doc.OrDash(p.CapacityGiB, doc.Number))
			}
			tokens, blocks := missing, "without limit"
			if p.CapacityTokens != nil {
				tokens = doc.Count(*p.CapacityTokens)
			}
			if p.CapacityBlocks != nil {
				blocks = doc.Count(*p.CapacityBlocks)
			}
			row = append(row, tokens, blocks, doc.OrDash(p.HitRatioByToken, doc.Percent),
				doc.Percent(p.HitRatio), missing, missing)
			if i < len(r.Steady.LRUCurve) {
				steady := r.Steady.LRUCurve[i]
				row[len(row)-2], row[len(row)-1] = doc.OrDash(steady.HitRatioByToken, doc.Percent),
					doc.Percent(steady.HitRatio)
			}
			if r.Sampling != nil {
				row = append(row, doc.OrDash(p.Error, doc.Percent))
			}
			t.Rows = append(t.Rows, row)
		}
		section.Tables = append(section.Tables, t)
	}
	return section
}

// sayCacheSize says how large a cache must be for half and for nine tenths of
// what can be had.
func (h *sheet) sayCacheSize() []string {
	all := h.Reuse.HitRatios.ByToken
	if all == nil || *all == 0 {
		return nil
	}
	reach := func(part float64) string {
		for i := range h.Reuse.LRUCurveDense {
			p := &h.Reuse.LRUCurveDense[i]
			if p.HitRatioByToken != nil && *p.HitRatioByToken >= part**all {
				blocks := doc.Many(*p.CapacityBlocks, "block")
				switch {
				case p.CapacityTokens == nil:
					return blocks
				case p.CapacityGiB != nil:
					return fmt.Sprintf("%s GiB (%s, %s tokens)", figure(*p.CapacityGiB), blocks,
						compact(*p.CapacityTokens))
				}
				return fmt.Sprintf("%s tokens (%s)", compact(*p.CapacityTokens), blocks)
			}
		}
		return ""
	}
	half, most := reach(0.5), reach(0.9)
	if half == "" || most == "" {
		return nil
	}
	return []string{fmt.Sprintf("One LRU cache reaches half of the %s that a cache without limit would find with %s, "+
		"and nine tenths of it with %s (by token, whole trace).",
		doc.Percent(*all), half, most)}
}

func (h *sheet) workingSet() doc.Section {
	w := h.WorkingSet
	if w == nil {
		return doc.Section{}
	}
	t := doc.Table{Caption: "Distinct blocks of prompts in a window of time",
		Head: []string{"window", "windows", "mean blocks", "max blocks", "mean tokens", "max tokens"}}
	if w.Total.GiB != nil {
		t.Head = append(t.Head, "mean GiB", "max GiB")
	}
	line := func(name, windows string, mean, most *WorkingSetSize) {
		row := []string{name, windows}
		for _, of := range []func(*WorkingSetSize) *float64{
			func(s *WorkingSetSize) *float64 {
				return &s.Blocks
			}, func(s *WorkingSetSize) *float64 { return &s.Tokens }, func(s *WorkingSetSize) *float64 { return s.GiB },
		} {
			for _, s := range []*WorkingSetSize{mean, most} {
				cell := missing
				if s != nil {
					cell = doc.OrDash(of(s), figure)
				}
				row = append(row, cell)
			}
		}
		t.Rows = append(t.Rows, row[:len(t.Head)])
	}
	section := doc.Section{Title: "Working set"}
	for _, one := range w.Windows {
		if one.Mean == nil || one.Max == nil {
			continue
		}
		line(lasting(one.WindowS), doc.Count(one.Windows), one.Mean, one.Max)
		memory := compact(int64(one.Max.Tokens)) + " tokens"
		if one.Max.GiB != nil {
			memory = figure(*one.Max.GiB) + " GiB"
		}
		// The last one, which is of the longest window, stands.
		section.Text = []string{
			fmt.Sprintf("The prompts of %s carry %s distinct blocks on average and %s (%s) at most: a cache of so "+
				"many misses little that comes again within that time (working set, window of %s).",
				lasting(one.WindowS), figure(one.Mean.Blocks), figure(one.Max.Blocks), memory, lasting(one.WindowS))}
	}
	line("whole trace", missing, nil, &w.Total)
	section.Tables = []doc.Table{t}
	return section
}

// routing compares routers over each number of replicas.
func (h *sheet) routing() doc.Section {
	if h.Routing == nil {
		return doc.Section{}
	}
	t := doc.Table{
		Caption: "Hit ratios over replicas, " + replicaMemory(h.Routing),
		Head: []string{"replicas", "router", "by block", "by token", "server, by token", "of one cache",
			"most requests / mean", "most prompt tokens / mean", "most prefill / mean"},
		Align: []doc.Align{doc.Right, doc.Left},
	}
	var says []string
	for i := range h.Routing.Fleets {
		f := &h.Routing.Fleets[i]
		if len(f.Routers) == 0 {
			continue // one cache is in the waterfall
		}
		line := func(router string, r *fleet.Result, last ...string) {
			t.Rows = append(t.Rows, append([]string{doc.Count(int64(f.Replicas)), router,
				doc.OrDash(r.HitRatio, doc.Percent),
				doc.OrDash(r.HitRatioByToken, doc.Percent), doc.OrDash(r.ServerHitRatio, doc.Percent)}, last...))
		}
		line("one cache", &f.OneCache, missing, missing, missing, missing)
		for j := range f.Routers {
			r := &f.Routers[j]
			line(r.Router, r, doc.OrDash(r.ShareOfOneCache, doc.Percent), doc.OrDash(r.RequestImbalance, fixed2),
				doc.OrDash(r.SentImbalance, fixed2), doc.OrDash(r.PrefillImbalance, fixed2))
		}
		if said := sayFleet(f, h.Routing.SessionOrigin); said != "" {
			says = append(says, said)
		}
	}
	if t.Rows == nil {
		return doc.Section{}
	}
	return doc.Section{Title: "Routing over replicas", Text: says, Tables: []doc.Table{t}}
}

// sayFleet says what the routers keep, and what the best of them costs in load.
func sayFleet(f *fleet.Fleet, origin string) string {
	kept := func(router string) *fleet.Result {
		for i := range f.Routers {
			if f.Routers[i].Router == router && f.Routers[i].ShareOfOneCache != nil {
				return &f.Routers[i]
			}
		}
		return nil
	}
	blind, weighted := kept(fleet.RoundRobin), kept(fleet.PrefixWeighted)
	if blind == nil || weighted == nil {
		return ""
	}
	said := fmt.Sprintf("Over %d replicas, round-robin keeps %s of the hit tokens of one cache, prefix routing "+
		"weighted by load %s", f.Replicas,
		doc.Percent(*blind.ShareOfOneCache), doc.Percent(*weighted.ShareOfOneCache))
	if f.SessionShare != nil {
		sessions := "sessions"
		if origin == originInferred {
			sessions = "inferred sessions"
		}
		said += fmt.Sprintf(", affinity by %s %s", sessions, doc.Percent(*f.SessionShare))
	}
	if pure := kept(fleet.Prefix); pure != nil && pure.SentImbalance != nil {
		said += fmt.Sprintf("; prefix routing without a weight keeps %s and sends one replica %s times the mean of "+
			"the prompt tokens",
			doc.Percent(*pure.ShareOfOneCache), fixed2(*pure.SentImbalance))
	}
	return said + " (of one cache, most prompt tokens / mean)."
}
