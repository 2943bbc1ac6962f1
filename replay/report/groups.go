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
	exact               int   // values of a metric that a group keeps exactly
	block               int64 // of the expected reuse, see [reuse]
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
	return &group{ttft: sample.Values{Limit: gs.exact}, tpot: sample.Values{Limit: gs.exact}, e2e: sample.Values{Limit: gs.exact}, cache: reuse{block: gs.block}}
}

// groupsOf counts a result in its groups. Classes beyond maxNames are one.
func (gs *groups) groupsOf(r *result.Result) (category, bucket, class *group) {
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
	category, bucket, class = gs.categories[r.Category], gs.buckets[i], gs.classes[name]
	category.rows++
	bucket.rows++
	class.rows++
	return category, bucket, class
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

func (gs *groups) byLength() []LengthBucket {
	out := []LengthBucket{}
	for i, g := range gs.buckets {
		if g.rows == 0 {
			continue
		}
		b := LengthBucket{Lo: lengthBuckets[i], Group: g.summary()}
		if i+1 < len(lengthBuckets) {
			b.Hi = trace.Ptr(lengthBuckets[i+1])
		}
		out = append(out, b)
	}
	return out
}
