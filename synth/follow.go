package synth

import "slices"

// A request follows the turn before it of its session, or, as one of several at once, the last request of the session
// where that came much sooner before. Where it has none it follows the one that it builds on, such
// as a sample of the same prompt, if that came shortly before; and where requests on a template come in clumps, such as
// the parts of a document or the jobs of an hour, each follows the one before. It is timed from that one, wherever that
// comes. All that follow each other are a burst, which moves as one; a burst begins with its head.

const (
	followsAmong = 2  // for each of k: of so many requests before it a request follows one of no session of its own
	clumpedTimes = 10 // how much sooner than by chance, or than the turn before it, the next request comes in a clump
)

// followed returns for each place which it follows, none for a head.
func followed(places []place, templates []template, times []int64, k int) []int32 {
	onTemplate := make([]int, len(templates))
	for i := range places {
		if t := places[i].template; t != none {
			onTemplate[t]++
		}
	}
	last := make([]int32, len(templates))
	for t := range last {
		last[t] = none
	}

	follows := make([]int32, len(places))
	first := make([]int32, len(places))  // by place: the first of its session,
	newest := make([]int32, len(places)) // by that: the last one so far
	for i := range places {
		p, soon := &places[i], followsAmong*k
		first[i], newest[i] = int32(i), int32(i)
		if follows[i] = p.upward(true); follows[i] == none {
			follows[i] = p.parent
		} else {
			soon = len(places)
			first[i] = first[follows[i]]
			if last := &newest[first[i]]; (times[i]-times[*last])*clumpedTimes < times[i]-times[follows[i]] {
				follows[i] = *last
			}
			newest[first[i]] = int32(i)
		}
		if t := p.template; t != none && !templates[t].shared {
			if follows[i] == none {
				follows[i], soon = last[t], min(soon, len(places)/clumpedTimes/onTemplate[t])
			}
			last[t] = int32(i)
		}
		if i-int(follows[i]) > soon {
			follows[i] = none
		}
	}
	return follows
}

// upward is the place above p in the tree of its session, or none.
func (p *place) upward(sourced bool) int32 {
	if sourced && p.join != byParent {
		return p.after
	}
	return p.parent
}

// subtrees counts each place and all below it in the trees of sessions.
func subtrees(places []place, sourced bool) []int32 {
	under := make([]int32, len(places))
	for i := len(places) - 1; i >= 0; i-- {
		under[i]++
		if up := places[i].upward(sourced); up != none {
			under[up] += under[i]
		}
	}
	return under
}

// mostTurns are those of the longest session.
func mostTurns(places []place, sourced bool) int {
	most := int32(0)
	for i, turns := range subtrees(places, sourced) {
		if places[i].upward(sourced) == none {
			most = max(most, turns)
		}
	}
	return int(most)
}

// headsOf are the places that follow none.
func headsOf(follows []int32) []int32 {
	var heads []int32
	for i, up := range follows {
		if up == none {
			heads = append(heads, int32(i))
		}
	}
	return heads
}

// burstSizes counts the requests of each burst, by its head.
func burstSizes(follows []int32) []int64 {
	requests := make([]int64, len(follows))
	for i := len(follows) - 1; i >= 0; i-- {
		requests[i]++
		if up := follows[i]; up != none {
			requests[up] += requests[i]
		}
	}
	return requests
}

// instants are the times of some places.
func instants(places []int32, times []int64) []int64 {
	out := make([]int64, len(places))
	for i, p := range places {
		out[i] = times[p]
	}
	return out
}

// gapsTo are how long places come after those that they follow.
func gapsTo(follows []int32, times []int64) []int64 {
	gaps := make([]int64, len(follows))
	for i, up := range follows {
		if up != none {
			gaps[i] = times[i] - times[up]
		}
	}
	return gaps
}

// timed returns when each place comes if its heads come at other times, and what follows after gaps of its own. None
// comes before what it builds on; its gap to that then is what it was. What would come after the last of all comes as
// long before.
func timed(places []place, follows []int32, times, gaps, heads []int64) []int64 {
	out := make([]int64, len(places))
	last := slices.Max(times)
	for i := range places {
		if up := follows[i]; up != none {
			out[i] = out[up] + gaps[i]
		} else {
			out[i], heads = heads[0], heads[1:]
		}
		for _, up := range [...]int32{places[i].parent, places[i].after} {
			if up != none && out[i] < out[up] {
				out[i] = out[up] + times[i] - times[up]
			}
		}
		if beyond := out[i] - last; beyond > 0 {
			out[i] = max(0, last-beyond)
			for _, up := range [...]int32{follows[i], places[i].parent, places[i].after} {
				if up != none {
					out[i] = max(out[i], out[up])
				}
			}
		}
	}
	return out
}

// byTime is the order of places by other times.
func byTime(times []int64) []dealt {
	order := make([]dealt, len(times))
	for i, at := range times {
		order[i] = dealt{key: at, place: int32(i)}
	}
	slices.SortFunc(order, dealt.compare)
	return order
}
