package arrival

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A bucket is one row of a histogram: Count values from Lo to Hi, both included.
type bucket struct{ Lo, Hi, Count int64 }

// maxBuckets bounds a histogram that is typed.
const maxBuckets = 1 << 16

var errBuckets = errors.New("histogram: want buckets in ascending order that do not overlap, within the range of the " +
	"values, with counts from 0 that are not all 0")

// newEmpirical makes a distribution of buckets, with values up to most.
func newEmpirical(buckets []bucket, most int64) (*empirical, error) {
	e := new(empirical)
	next := int64(0)
	for _, b := range buckets {
		if b.Lo < next || b.Hi < b.Lo || b.Hi > most || b.Count < 0 ||
			b.Count > 0 && !e.add(split{b.Lo, b.Hi}, b.Count) {
			return nil, errBuckets
		}
		next = b.Hi + 1
	}
	if len(e.vals) == 0 {
		return nil, errBuckets
	}
	return e, nil
}

// parseBuckets reads LO-HI=COUNT,... where HI may be left out when it is LO.
func parseBuckets(s string) ([]bucket, bool) {
	if strings.Count(s, ",") >= maxBuckets {
		return nil, false
	}
	var buckets []bucket
	ok := true
	integer := func(s string) int64 {
		v, err := strconv.ParseInt(s, 10, 64)
		ok = ok && err == nil
		return v
	}
	for field := range strings.SplitSeq(s, ",") {
		values, count, _ := strings.Cut(field, "=")
		lo, hi, isRange := strings.Cut(values, "-")
		b := bucket{Lo: integer(lo), Count: integer(count)}
		if b.Hi = b.Lo; isRange {
			b.Hi = integer(hi)
		}
		buckets = append(buckets, b)
	}
	return buckets, ok
}

// String is what parseBuckets reads.
func (e *empirical) String() string {
	var b strings.Builder
	for i, v := range e.vals {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(v.left, 10))
		if v.right > v.left {
			b.WriteString("-" + strconv.FormatInt(v.right, 10))
		}
		b.WriteString("=" + strconv.FormatInt(e.count(i), 10))
	}
	return b.String()
}

// An empirical is a histogram to draw from.
type empirical struct {
	vals []split // or buckets
	upTo []int64 // cumulative counts of vals
}

// add appends a value, and says whether the total is still within bounds.
func (e *empirical) add(s split, count int64) bool {
	if n := len(e.upTo); n > 0 {
		count += e.upTo[n-1]
	}
	e.vals, e.upTo = append(e.vals, s), append(e.upTo, count)
	return count > 0 && count <= maxCount
}

func (e *empirical) count(i int) int64 {
	if i == 0 {
		return e.upTo[0]
	}
	return e.upTo[i] - e.upTo[i-1]
}

// draw picks one of the values by its count.
func (e *empirical) draw(r *rand.Rand) split {
	if len(e.vals) == 1 {
		return e.vals[0]
	}
	u := r.Int64N(e.upTo[len(e.upTo)-1])
	i, found := slices.BinarySearch(e.upTo, u)
	if found {
		i++
	}
	return e.vals[i]
}

// within picks a bucket, and a value in it.
func (e *empirical) within(r *rand.Rand) int64 {
	b := e.draw(r)
	if b.left == b.right {
		return b.left
	}
	return b.left + r.Int64N(b.right-b.left+1)
}

// Bounds of a cascade, which keep sums within an int64.
const (
	maxLevels = 40
	maxSpan   = 1 << 58 // nanoseconds: nine years
	maxCount  = 1 << 40 // arrivals; rows count bins and gaps, which are no more
)

// A split is a bin that was cut into left and right arrivals; left is the half
// beside the busier neighbour. For gaps it is the bucket from left to right
// nanoseconds, both included.
type split struct{ left, right int64 }
