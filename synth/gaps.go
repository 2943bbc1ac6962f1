package synth

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"reprise/trace/arrival"
)

// What becomes of gaps between arrivals, so that the bursts of a trace stay beside the requests that came in
// them, and its instants do not stay.
const (
	gapsTogether = 5  // for each of k: gaps among which they are exchanged
	gapsAlike    = 3  // the longest of k alike is longer than the shortest by at most one part of so many
	gapJitter    = 10 // a gap with none alike changes by at most one part of so many
)

// blurred are gaps between arrivals, each exchanged with one about as long among 5k neighbours, which keep their
// sum. Those with none alike are jittered, by whole units of the source's clock.
//
// It computes with integers: every machine makes the same of the same random numbers.
func blurred(gaps []int64, k int, r *rand.Rand) []int64 {
	unit := commonUnit(gaps)
	out := make([]int64, 0, len(gaps))
	for window := range slices.Chunk(gaps, gapsTogether*k) {
		from, lone := gapsExchanged(window, k, r)
		for _, i := range from {
			out = append(out, window[i])
		}
		now := out[len(out)-len(window):]
		for i := 1; i < len(lone); i += 2 {
			a, b := &now[lone[i-1]], &now[lone[i]]
			most := min(*a, *b) / gapJitter / unit
			by := (r.Int64N(2*most+1) - most) * unit
			*a, *b = *a+by, *b-by
		}
	}
	return out
}

// commonUnit is the longest time that all gaps are multiples of.
func commonUnit(gaps []int64) int64 {
	unit := int64(0)
	for _, gap := range gaps {
		for gap != 0 {
			unit, gap = gap, unit%gap
		}
	}
	return max(1, unit)
}

// gapsExchanged permutes gaps in groups of up to k that are about as long, those that k or more have by themselves. It
// returns whose gap each has then, and those that are in no group.
func gapsExchanged(gaps []int64, k int, r *rand.Rand) (from, lone []int) {
	from = make([]int, len(gaps))
	order := make([]int, len(gaps))
	for i := range order {
		from[i], order[i] = i, i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(gaps[i], gaps[j]) })
	upTo := func(gap int64) int { // how many of the rest are at most as long
		n, _ := slices.BinarySearchFunc(order, gap+1, func(i int, gap int64) int { return cmp.Compare(gaps[i], gap) })
		return n
	}
	for len(order) > 0 {
		least := gaps[order[0]]
		n := upTo(least + least/pausesAlike)
		if n < k {
			n = min(k, upTo(least+least/gapsAlike))
		}
		if n == 1 {
			lone = append(lone, order[0])
		}
		alike := order[:n]
		r.Shuffle(n, func(i, j int) {
			from[alike[i]], from[alike[j]] = from[alike[j]], from[alike[i]]
		})
		order = order[n:]
	}
	return from, lone
}

// gapsBetween are those before each of some instants, and before the first its own.
func gapsBetween(times []int64) []int64 {
	gaps := slices.Clone(times)
	for i := 1; i < len(times); i++ {
		gaps[i] = times[i] - times[i-1]
	}
	return gaps
}

// timesByGaps returns when the places come by the gaps of the model, those of heads blurred once more. Of several ways
// it takes that whose counts vary as those of the trace.
func (m *Model) timesByGaps(r *rand.Rand) []int64 {
	k := max(m.kSwap, DefaultKSwap)
	times := upTo(m.gaps)
	follows := followed(m.places, m.templates, times, k)
	gaps := gapsTo(follows, times)
	heads, group := groupHeads(m.places, m.templates, follows, times, k)
	best, _ := arrival.Nearest(m.arrivals, func() []int64 {
		return timed(m.places, follows, follows, times, gaps, blurredHeads(heads, group, times, k, r))
	}, func(times []int64) []int64 { return slices.Sorted(slices.Values(times)) })
	return best
}

// upTo are the sums of gaps up to each.
func upTo(gaps []int64) []int64 {
	times := slices.Clone(gaps)
	for i := 1; i < len(times); i++ {
		times[i] += times[i-1]
	}
	return times
}
