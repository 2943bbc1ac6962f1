package profile

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"reprise/trace/fleet"
	"reprise/trace/page"
)

// replicaMemory says how much a replica holds, in the units that are known.
func replicaMemory(s *fleet.Summary) string {
	if s.ReplicaBlocks == nil {
		return "caches without limit"
	}
	text := page.Count(*s.ReplicaBlocks) + " blocks"
	if s.ReplicaTokens != nil {
		text += ", " + page.Count(*s.ReplicaTokens) + " tokens"
	}
	if s.ReplicaGiB != nil {
		text += ", " + number(*s.ReplicaGiB) + " GiB"
	}
	return text + " each"
}

func writeRouting(b *strings.Builder, s *fleet.Summary) {
	if s == nil {
		return
	}
	var rows []table.Row
	for i := range s.Fleets {
		f := &s.Fleets[i]
		if len(f.Routers) == 0 {
			continue // one cache is in the waterfall
		}
		rows = append(rows, table.Row{fmt.Sprintf("one cache, of %d", f.Replicas),
			page.OrDash(f.OneCache.HitRatio, ratio4), page.OrDash(f.OneCache.HitRatioByToken, ratio4), "", "", ""})
		for j := range f.Routers {
			r := &f.Routers[j]
			rows = append(rows, table.Row{fmt.Sprintf("%d, %s", f.Replicas, r.Router), page.OrDash(r.HitRatio, ratio4),
				page.OrDash(r.HitRatioByToken, ratio4), page.OrDash(r.ShareOfOneCache, page.Percent),
				page.OrDash(r.SentImbalance, fixed2), page.OrDash(r.PrefillImbalance, fixed2)})
		}
	}
	if len(rows) == 0 {
		return
	}
	draw(b, "Routing over replicas, "+replicaMemory(s),
		table.Row{"replicas, router", "by block", "by token", "of one cache", "sent max/mean", "prefill max/mean"}, rows)
	for _, f := range s.Fleets {
		if f.SessionShare == nil || f.PrefixShare == nil {
			continue
		}
		origin := "sessions"
		if s.SessionOrigin == originInferred {
			origin = "inferred sessions"
		}
		fmt.Fprintf(b, "%d replicas: %s keep %s of the hit tokens of one cache, prefix routing %s\n",
			f.Replicas, origin, page.Percent(*f.SessionShare), page.Percent(*f.PrefixShare))
	}
}

// writeWaterfalls prints one over all requests, and one over those with recorded
// cached tokens; only the latter where these are all. What every number of
// replicas begins with is printed once.
func writeWaterfalls(b *strings.Builder, s *Summary) {
	all, recorded := byRows(s.Waterfalls)
	if len(recorded) == 0 || recorded[0].Requests < all[0].Requests {
		writeWaterfall(b, s, "requests with blocks", all)
	}
	writeWaterfall(b, s, "requests with recorded cached tokens", recorded)
}

func writeWaterfall(b *strings.Builder, s *Summary, of string, list []fleet.Waterfall) {
	var rows, last []table.Row
	for i, w := range list {
		for _, step := range w.Steps {
			row := table.Row{stepName(s, &w, &step), missing, page.OrDash(step.CostPoints, points)}
			if step.HitRatio != nil {
				row[1] = points(100 * *step.HitRatio)
			}
			switch {
			case step.Step == fleet.StepRecorded:
				last = []table.Row{row}
			case i == 0 || step.Step != fleet.StepCeiling && step.Step != fleet.StepRounding:
				rows = append(rows, row)
			}
		}
	}
	rows = append(rows, last...)
	if len(rows) <= 2 {
		return // what is printed of the server's blocks says it all
	}
	title := fmt.Sprintf("Where reuse goes, in points of %s prompt tokens: %s %s", page.Count(list[0].PromptTokens), page.Count(list[0].Requests), of)
	draw(b, title, table.Row{"step", "left", "cost"}, rows)
}

func stepName(s *Summary, w *fleet.Waterfall, step *fleet.Step) string {
	switch step.Step {
	case fleet.StepCeiling:
		return "a cache without limit"
	case fleet.StepRounding:
		return fmt.Sprintf("full blocks of %d, not the last token", s.Server.BlockSizeTokens)
	case fleet.StepCapacity:
		return fmt.Sprintf("one LRU cache of %s blocks", page.Count(int64(w.Replicas)*(*s.Routing.ReplicaBlocks)))
	case fleet.StepRouting:
		return fmt.Sprintf("  over %d replicas, %s", w.Replicas, step.Router)
	}
	return "recorded cached tokens"
}

// byRows parts the waterfalls over all requests from those over the recorded.
func byRows(list []fleet.Waterfall) (all, recorded []fleet.Waterfall) {
	for _, w := range list {
		if w.Rows == "recorded" {
			recorded = append(recorded, w)
		} else {
			all = append(all, w)
		}
	}
	return all, recorded
}
