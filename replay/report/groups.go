package report

import (
	"cmp"
	"errors"
	"slices"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/sample"
)

// maxNames bounds the error classes and the categories that a file may have:
// both come from closed lists, and a file with more is not one of ours.
const maxNames = 64

var errNames = errors.New("report: more than 64 error classes or categories: these are not results of a replay")

// Input lengths from which the buckets of the length table begin.
var lengthBuckets = [...]int64{0, 128, 512, 2048, 8192, 32768, 131072}

// groups tell requests apart by what the workload says about them.
type groups struct {
	categories, classes map[string]*group
	buckets             [len(lengthBuckets)]*group
	turns               placeGroups
	exact               int   // values of a metric that a group keeps exactly
	block               int64 // of the expected reuse, see [reuse]
	made                []*group
}

// A group is a part of the results that gets a line of its own.
type group struct {
	rows, succeeded int64
	ttft, tpot, e2e sample.Values // the last two of successful requests, as the first
	cache           reuse
}

// groupExact is how many values of a metric a group keeps exactly: there may be
// many of them.
const groupExact = 1 << 17

func (gs *groups) newGroup() *group {
	g := &group{ttft: sample.Values{Limit: gs.exact}, tpot: sample.Values{Limit: gs.exact},
		e2e: sample.Values{Limit: gs.exact}, cache: reuse{block: gs.block, sumsOnly: true}}
	gs.made = append(gs.made, g)
	return g
}

// Turns, and depths in a tree, from which their groups begin.
var placeBuckets = [...]int64{0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 256}

// placeGroups are requests by their place in a session.
type placeGroups [len(placeBuckets)]*group

// of counts a request in the group of its place.
func (ps *placeGroups) of(place int32, newGroup func() *group) *group {
	i, begins := slices.BinarySearch(placeBuckets[:], int64(max(place, 0)))
	if !begins {
		i--
	}
	if ps[i] == nil {
		ps[i] = newGroup()
	}
	ps[i].rows++
	return ps[i]
}

// summary lists the groups that hold requests, nil when all are in the first.
func (ps *placeGroups) summary(zeros bool) (out []PlaceGroup) {
	for i, g := range ps {
		if g == nil {
			continue
		}
		p := PlaceGroup{Lo: placeBuckets[i], Group: g.summary(), Cache: g.cache.summary(zeros)}
		if i+1 < len(placeBuckets) {
			p.Hi = trace.Ptr(placeBuckets[i+1])
		}
		out = append(out, p)
	}
	if len(out) == 1 && out[0].Lo == 0 {
		return nil
	}
	return out
}

// groupsOf counts a result in its groups: by category, length of prompt, class and, where
// there is one, turn. Classes beyond maxNames are one.
func (gs *groups) groupsOf(r *result.Result, into []*group) []*group {
	i, begins := slices.BinarySearch(lengthBuckets[:], int64(InputTokens(r)))
	if !begins { // within the bucket before
		i--
	}
	if gs.categories[r.Category] == nil {
		gs.categories[r.Category] = gs.newGroup()
	}
	name := r.Class
	if gs.classes[name] == nil && len(gs.classes) >= maxNames {
		name = "(others)"
	}
	if gs.classes[name] == nil {
		gs.classes[name] = gs.newGroup()
	}
	for _, g := range []*group{gs.categories[r.Category], gs.buckets[i], gs.classes[name]} {
		g.rows++
		into = append(into, g)
	}
	if r.Turn != nil && r.Session != nil {
		into = append(into, gs.turns.of(*r.Turn, gs.newGroup))
	}
	return into
}

func (g *group) summary() Group {
	ttft, _ := StatOf(&g.ttft)
	tpot, _ := StatOf(&g.tpot)
	e2e, _ := StatOf(&g.e2e)
	return Group{Rows: g.rows, Succeeded: g.succeeded, TTFTCount: ttft.Count, TTFTP50: ttft.P50, TTFTP99: ttft.P99,
		TPOTP50: tpot.P50, TPOTP99: tpot.P99, E2EP50: e2e.P50, E2EP99: e2e.P99}
}

// byCategory lists the categories in their order of precedence, then any
// others by name.
func (gs *groups) byCategory(zeros bool) []Category {
	out := []Category{}
	for name, g := range gs.categories {
		out = append(out, Category{name, g.summary(), g.cache.summary(zeros)})
	}
	place := func(name string) int {
		if i := slices.Index(trace.Categories(), name); i >= 0 {
			return i
		}
		return len(trace.Categories())
	}
	slices.SortFunc(out, func(a, b Category) int {
		return cmp.Or(cmp.Compare(place(a.Category), place(b.Category)), cmp.Compare(a.Category, b.Category))
	})
	return out
}

func (gs *groups) byLength(zeros bool) []LengthBucket {
	out := []LengthBucket{}
	for i, g := range gs.buckets {
		if g.rows == 0 {
			continue
		}
		b := LengthBucket{Lo: lengthBuckets[i], Group: g.summary(), Cache: g.cache.summary(zeros)}
		if i+1 < len(lengthBuckets) {
			b.Hi = trace.Ptr(lengthBuckets[i+1])
		}
		out = append(out, b)
	}
	return out
}
