package arrival

import (
	"cmp"
	"slices"
)

// A draw is among at least atLeast bins, where others are near enough.
const (
	atLeast = 3
	tooFar  = 6
)

// A placed class knows which bins it is of.
type placed struct {
	*class
	level, contrast int
}

// far says how unlike the bins of two classes are. Contrast says least of how a
// bin is split; the level is what tells the scales of time apart.
func (p placed) far(q placed) int {
	apart := func(a, b int) int { return max(a-b, b-a) }
	return 3*apart(p.level, q.level) + apart(p.contrast, q.contrast) + 2*apart(p.busy, q.busy)
}

func (e *empirical) total() int64 { return e.upTo[len(e.upTo)-1] }

// pool adds to each class of fewer bins than atLeast those of the nearest
// classes, until they are enough. A bin that is alone in its class would
// otherwise be split, each time, as it was in the source: with the coarse shape
// to lead there, the source's own course would come back. To ask for more blurs
// the bursts.
func (c *Cascade) pool() {
	var all []placed
	for level := range c.splits {
		for contrast, classes := range c.splits[level] {
			for i := range classes {
				all = append(all, placed{&classes[i], level, contrast})
			}
		}
	}
	pooled := make([]empirical, len(all))
	for i, p := range all {
		pooled[i] = p.empirical
		if p.total() >= atLeast {
			continue
		}
		near := slices.DeleteFunc(slices.Clone(all), func(q placed) bool { return q.class == p.class || p.far(q) > tooFar })
		slices.SortStableFunc(near, func(q, r placed) int { return cmp.Compare(p.far(q), p.far(r)) })
		e := &empirical{vals: slices.Clone(p.vals), upTo: slices.Clone(p.upTo)}
		for len(near) > 0 && e.total() < atLeast {
			for j, v := range near[0].vals {
				e.add(v, near[0].count(j))
			}
			near = near[1:]
		}
		pooled[i] = *e
	}
	for i, p := range all {
		p.empirical = pooled[i]
	}
}
