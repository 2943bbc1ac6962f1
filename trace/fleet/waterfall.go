package fleet

import "reprise/trace"

// The steps of a [Waterfall], in their order.
const (
	StepCeiling  = "ceiling"        // a cache without limit, partial blocks included
	StepRounding = "block-rounding" // full blocks of the server's size, at most all but the last token
	StepCapacity = "capacity"       // one LRU cache with the memory of all replicas
	StepRouting  = "routing"        // the same memory spread over replicas, with a router
	StepRecorded = "recorded"       // cached_tokens, as the source's server reported
)

// A Waterfall says where reuse is lost on the way from what the prompts share to
// what a server reports, by token. The ceiling itself knows prompts in whole
// blocks of the trace: where two part inside one, the start of it is not known.
type Waterfall struct {
	// Rows is all, or recorded: the requests that have cached_tokens, between none
	// and all of their prompt. Every step then counts these alone, though the
	// other requests go through the caches with them.
	Rows         string `json:"rows"`
	Replicas     int    `json:"replicas"`
	Requests     int64  `json:"requests"` // with blocks
	PromptTokens int64  `json:"prompt_tokens"`
	// Steps holds one for each router after that of the capacity: they are
	// alternatives. Without a limit there is no step of the capacity, with one
	// replica none of routing, and without recorded tokens none of these.
	Steps []Step `json:"steps"`
}

// A Step is what is left of the reuse, and what the step cost.
type Step struct {
	Step     string   `json:"step"`
	Router   string   `json:"router,omitempty"`
	HitRatio *float64 `json:"hit_ratio_by_token"` // that is left
	// After is the step that the cost counts from: the one before it that has no
	// router.
	After string `json:"after,omitempty"`
	// CostPoints is in points of prompt tokens, hundredths of all of them; below 0
	// is a gain. Null for the ceiling.
	CostPoints *float64 `json:"cost_points"`
}

// Waterfalls makes one over all requests for each number of replicas, and one over the
// recorded ones where there are any: see [Recorded]. g may be nil. It returns nil without
// blocks.
func Waterfalls(g *Simulation, all, recorded Traffic) []Waterfall {
	if all.Requests == 0 {
		return nil
	}
	groups := []comparison{{replicas: 1}}
	if g != nil {
		groups = g.groups
	}
	var list []Waterfall
	for _, group := range groups {
		list = append(list, waterfall(g, group, "all", &all, func(f *pool) int64 { return f.all.serverTokens }))
		if recorded.Requests == 0 {
			continue
		}
		w := waterfall(g, group, "recorded", &recorded, func(f *pool) int64 { return f.recorded.serverTokens })
		w.step(StepRecorded, "", recorded.CachedTokens)
		list = append(list, w)
	}
	return list
}

func waterfall(g *Simulation, group comparison, rows string, t *Traffic, hit func(*pool) int64) Waterfall {
	w := Waterfall{Rows: rows, Replicas: group.replicas, Requests: t.Requests, PromptTokens: t.PromptTokens}
	w.step(StepCeiling, "", t.HitTokens)
	w.step(StepRounding, "", t.ServerTokens)
	if g == nil {
		return w
	}
	if g.blocks > 0 {
		w.step(StepCapacity, "", hit(group.one))
	}
	for _, f := range g.offered(group) {
		w.step(StepRouting, f.router.name, hit(f))
	}
	return w
}

// step adds what is left after one.
func (w *Waterfall) step(name, router string, left int64) {
	s := Step{Step: name, Router: router, HitRatio: Ratio(left, w.PromptTokens)}
	for i := len(w.Steps) - 1; i >= 0 && s.After == ""; i-- {
		if before := w.Steps[i]; before.Router == "" {
			s.After = before.Step
			if s.HitRatio != nil {
				s.CostPoints = trace.Ptr(100 * (*before.HitRatio - *s.HitRatio))
			}
		}
	}
	w.Steps = append(w.Steps, s)
}
