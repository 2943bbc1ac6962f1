package synth

import (
	"math/rand/v2"

	"reprise/trace/arrival"
)

// courseBlocks is the number of blocks of the rate's course that a workload longer than
// the trace deals in random order.
const courseBlocks = 8

// course returns the parts of the time in which one population arrives: as they were in
// the trace; turned by a phase of its own where there are several populations; beyond
// the trace in blocks that each pass deals in random order.
//
// With shared, the course of the rate above that many nanoseconds is common to all
// populations: each part is the trace's mean rate around it, times what the population's
// own turned course has over its mean.
func course(parts []arrival.Part, r *rand.Rand, users int, span, whole, shared int64) []arrival.Part {
	own := parts
	if users > 1 {
		phase := r.IntN(len(parts))
		own = append(append([]arrival.Part{}, parts[phase:]...), parts[:phase]...)
	}
	switch {
	case shared > 0 && users > 1:
		own = withShared(parts, own, shared)
	case span > whole:
		return arrival.Repeat(dealBlocks(own, r, span), span)
	}
	return arrival.Repeat(own, span)
}

// dealBlocks repeats the blocks of parts until span is over, in another order each time.
func dealBlocks(parts []arrival.Part, r *rand.Rand, span int64) []arrival.Part {
	size := max(1, (len(parts)+courseBlocks-1)/courseBlocks)
	var out []arrival.Part
	for total := int64(0); total < span && len(out) < arrival.MaxParts; {
		for _, b := range r.Perm((len(parts) + size - 1) / size) {
			for _, p := range parts[b*size : min((b+1)*size, len(parts))] {
				out = append(out, p)
				total += p.Width
			}
		}
	}
	return out
}

// withShared gives the turned course of one population the moving mean over so many
// nanoseconds that the trace has. The counts add up to as many.
func withShared(parts, turned []arrival.Part, over int64) []arrival.Part {
	upTo := func(parts []arrival.Part) []int64 {
		sums := make([]int64, len(parts)+1)
		for j, p := range parts {
			sums[j+1] = sums[j] + p.Count
		}
		return sums
	}
	mean, own := upTo(parts), upTo(turned)
	total := mean[len(parts)]
	half := max(1, over/max(1, parts[0].Width)) / 2
	weights := make([]int64, len(parts))
	for j, p := range turned {
		from, to := max(0, j-int(half)), min(len(parts), j+int(half)+1)
		if n := own[to] - own[from]; n > 0 {
			weights[j] = mulDiv(p.Count<<10, mean[to]-mean[from], n)
		}
	}
	out := make([]arrival.Part, len(parts))
	for j, n := range share(total, weights) {
		out[j] = arrival.Part{Width: parts[j].Width, Count: n}
	}
	return out
}
