package profile

import (
	"fmt"
	"math"

	"reprise/trace/doc"
	"reprise/trace/fleet"
)

const missing = "–"

func fixed2(v float64) string { return doc.Fixed(v, 2) }

// points prints hundredths; what rounds to nothing has no sign.
func points(v float64) string {
	if v > -0.005 && v < 0 {
		v = 0
	}
	return doc.Fixed(v, 2)
}

type namedStats struct {
	name string
	*Stats
}

type namedReuse struct {
	name string
	*ReuseSummary
}

// reuseSets returns the sets of figures that there are.
func reuseSets(s *Summary) []namedReuse {
	var sets []namedReuse
	if s.Reuse != nil {
		sets = append(sets, namedReuse{"prompts known", s.Reuse})
	}
	if s.ReuseWithGenerated != nil {
		sets = append(sets, namedReuse{"generated KV too", s.ReuseWithGenerated})
	}
	return sets
}

// isRound tells whether v is 1, 2 or 5 times a power of 10.
func isRound(v float64) bool {
	for v >= 10 && math.Mod(v, 10) == 0 {
		v /= 10
	}
	return v == 1 || v == 2 || v == 5
}

// short cuts a name to the width of a column.
func short(name string) string {
	const n = 48
	if r := []rune(name); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return name
}

// replicaMemory says how much a replica holds, in the units that are known.
func replicaMemory(s *fleet.Summary) string {
	if s.ReplicaBlocks == nil {
		return "caches without limit"
	}
	text := doc.Count(*s.ReplicaBlocks) + " blocks"
	if s.ReplicaTokens != nil {
		text += ", " + doc.Count(*s.ReplicaTokens) + " tokens"
	}
	if s.ReplicaGiB != nil {
		text += ", " + doc.Number(*s.ReplicaGiB) + " GiB"
	}
	return text + " each"
}

func stepName(s *Summary, w *fleet.Waterfall, step *fleet.Step) string {
	switch step.Step {
	case fleet.StepCeiling:
		return "a cache without limit"
	case fleet.StepRounding:
		return fmt.Sprintf("full blocks of %d, not the last token", s.Server.BlockSizeTokens)
	case fleet.StepCapacity:
		return fmt.Sprintf("one LRU cache of %s blocks", doc.Count(int64(w.Replicas)*(*s.Routing.ReplicaBlocks)))
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
