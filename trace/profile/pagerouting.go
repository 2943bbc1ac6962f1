package profile

import (
	"fmt"

	"reprise/trace/fleet"
	"reprise/trace/page"
)

// routing compares routers over each number of replicas.
func (h *sheet) routing() page.Section {
	if h.Routing == nil {
		return page.Section{}
	}
	t := page.Table{
		Caption: "Hit ratios over replicas, " + replicaMemory(h.Routing),
		Head:    []string{"replicas", "router", "by block", "by token", "server, by token", "of one cache", "most requests / mean", "most prompt tokens / mean", "most prefill / mean"},
		Align:   []page.Align{page.Right, page.Left},
	}
	var says []string
	for i := range h.Routing.Fleets {
		f := &h.Routing.Fleets[i]
		if len(f.Routers) == 0 {
			continue // one cache is in the waterfall
		}
		line := func(router string, r *fleet.Result, last ...string) {
			t.Rows = append(t.Rows, append([]string{page.Count(int64(f.Replicas)), router, page.OrDash(r.HitRatio, page.Percent),
				page.OrDash(r.HitRatioByToken, page.Percent), page.OrDash(r.ServerHitRatio, page.Percent)}, last...))
		}
		line("one cache", &f.OneCache, missing, missing, missing, missing)
		for j := range f.Routers {
			r := &f.Routers[j]
			line(r.Router, r, page.OrDash(r.ShareOfOneCache, page.Percent), page.OrDash(r.RequestImbalance, fixed2),
				page.OrDash(r.SentImbalance, fixed2), page.OrDash(r.PrefillImbalance, fixed2))
		}
		if said := sayFleet(f, h.Routing.SessionOrigin); said != "" {
			says = append(says, said)
		}
	}
	if t.Rows == nil {
		return page.Section{}
	}
	return page.Section{Title: "Routing over replicas", Text: says, Tables: []page.Table{t}}
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
	said := fmt.Sprintf("Over %d replicas, round-robin keeps %s of the hit tokens of one cache, prefix routing weighted by load %s", f.Replicas,
		page.Percent(*blind.ShareOfOneCache), page.Percent(*weighted.ShareOfOneCache))
	if f.SessionShare != nil {
		sessions := "sessions"
		if origin == originInferred {
			sessions = "inferred sessions"
		}
		said += fmt.Sprintf(", affinity by %s %s", sessions, page.Percent(*f.SessionShare))
	}
	if pure := kept(fleet.Prefix); pure != nil && pure.SentImbalance != nil {
		said += fmt.Sprintf("; prefix routing without a weight keeps %s and sends one replica %s times the mean of the prompt tokens",
			page.Percent(*pure.ShareOfOneCache), fixed2(*pure.SentImbalance))
	}
	return said + " (of one cache, most prompt tokens / mean)."
}
