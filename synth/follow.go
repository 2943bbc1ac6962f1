package synth

import (
	"math/rand/v2"
	"slices"
)

// A request follows the turn before it of its session, or, as one of several at once, the last request of the session
// where that came much sooner before. Where it has none it follows the one that it builds on, such as a sample of the
// same prompt, if that came shortly before, or is sent again after a pause that many have, as retries are; and where
// requests on a template come in clumps, such as the parts of a document or the jobs of an hour, each follows the one
// before. It is timed from that one, wherever that comes. All that follow each other are a burst, which moves as one; a
// burst begins with its head.

const (
	followsAmong = 2    // for each of k: of so many requests before it a request follows one of no session of its own
	movesAmong   = 10   // for each of k: a head moves as far as the one of so many before it that it builds on
	clumpedTimes = 10   // how much sooner than on average, or than the turn before, the next request comes in a clump
	clumpedShare = .4   // at least so many come so soon where requests come in clumps; by chance one of ten does
	clockSlack   = 7    // gaps on a clock are as long as their median up to one part of so many
	pausesAlike  = 1000 // pauses are alike up to one part of so many
	pausesPart   = 50   // one of so many prompts that are sent again has a pause that many have
)

// followed returns for each place which it follows, none for a head.
func followed(places []place, templates []template, times []int64, k int) []int32 {
	among, soon := clumps(places, templates, times, k)
	retried, sent := oftenPaused(places, times, k), timesSent(places)
	last := make([]int32, len(templates))
	for t := range last {
		last[t] = none
	}

	follows := make([]int32, len(places))
	first := make([]int32, len(places))  // by place: the first of its session,
	newest := make([]int32, len(places)) // by that: the last one so far
	for i := range places {
		p, up := &places[i], places[i].upward(true)
		first[i], newest[i], follows[i] = int32(i), int32(i), none
		switch t := p.template; {
		case up != none:
			follows[i], first[i] = up, first[up]
			if last := &newest[first[i]]; (times[i]-times[*last])*clumpedTimes < times[i]-times[up] {
				follows[i] = *last
			}
			newest[first[i]] = int32(i)
		case p.parent != none:
			if i-int(p.parent) <= inClump(sent[i], len(places), k) || retried[i] {
				follows[i] = p.parent
			}
		case t != none && last[t] != none && (i-int(last[t]) <= among[t] || times[i]-times[last[t]] < soon[t]):
			follows[i] = last[t]
		}
		if p.template != none {
			last[p.template] = int32(i)
		}
	}
	return follows
}

// inClump is how near to each other, in places, some of all requests are where that is no chance.
func inClump(requests, of, k int) int { return min(followsAmong*k, of/clumpedTimes/requests) }

// timesSent counts how often the whole prompt of each place is sent.
func timesSent(places []place) []int {
	first, sent := make([]int32, len(places)), make([]int, len(places))
	for i := range places {
		if first[i] = int32(i); places[i].class == repeats {
			first[i] = first[places[i].parent]
		}
		sent[first[i]]++
	}
	for i, f := range first {
		sent[i] = sent[f]
	}
	return sent
}

// clumps returns for each template how near its requests are to each other in a clump: by the requests of all templates
// between two of them, and by time. Either is 0 where it tells of no clump, both for a template that all share.
func clumps(places []place, templates []template, times []int64, k int) (among []int, soon []int64) {
	on := make([][]int64, len(templates))
	for i := range places {
		if t := places[i].template; t != none && !templates[t].shared {
			on[t] = append(on[t], times[i])
		}
	}

	among, soon = make([]int, len(templates)), make([]int64, len(templates))
	for t, at := range on {
		if len(at) < 2 {
			continue
		}
		among[t] = inClump(len(at), len(places), k)
		within, sooner := (at[len(at)-1]-at[0])/int64(len(at)-1)/clumpedTimes, 0
		for i := 1; i < len(at); i++ {
			if at[i]-at[i-1] < within {
				sooner++
			}
		}
		if len(at) >= 2*k && float64(sooner) >= clumpedShare*float64(len(at)) {
			soon[t] = within
		}
	}
	return among, soon
}

// oftenPaused tells of each place whether it repeats a prompt after a pause that many repeats have.
func oftenPaused(places []place, times []int64, k int) []bool {
	var pauses []dealt
	for i := range places {
		if p := &places[i]; p.class == repeats {
			pauses = append(pauses, dealt{key: times[i] - times[p.parent], place: int32(i)})
		}
	}
	slices.SortFunc(pauses, dealt.compare)

	often := make([]bool, len(places))
	least, from, to := max(4*k, len(pauses)/pausesPart), 0, 0
	for _, d := range pauses {
		for pauses[from].key < d.key-d.key/pausesAlike {
			from++
		}
		for to < len(pauses) && pauses[to].key <= d.key+d.key/pausesAlike {
			to++
		}
		often[d.place] = to-from >= least
	}
	return often
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

// groupHeads finds the places that follow none, and which of them take each other's times: by head, its group. Where k
// heads or more on one template come by a clock, such as jobs at full hours, they are a group, and still come by it.
// All other heads are group 0.
func groupHeads(
	places []place, templates []template, follows []int32, times []int64, k int,
) (heads []int32, group []int) {
	on := make([][]int64, len(templates))
	for i, up := range follows {
		if up != none {
			continue
		}
		heads = append(heads, int32(i))
		if t := places[i].template; t != none {
			on[t] = append(on[t], times[i])
		}
	}

	clocked := make([]bool, len(templates))
	for t, at := range on {
		clocked[t] = len(at) >= k && byClock(at)
	}
	group = make([]int, len(heads))
	for head, i := range heads {
		if t := places[i].template; t != none && clocked[t] {
			group[head] = 1 + int(t)
		}
	}
	return heads, group
}

// byClock tells whether most gaps between times are about as long as their median; by chance one of ten is.
func byClock(times []int64) bool {
	gaps := gapsBetween(times)[1:]
	slices.Sort(gaps)
	median, alike := gaps[len(gaps)/2], 0
	for _, gap := range gaps {
		if max(gap-median, median-gap) <= median/clockSlack {
			alike++
		}
	}
	return median > 0 && 2*alike > len(gaps)
}

// blurredHeads are blurred times of heads. The ones that come by a clock are blurred by themselves: chats between two
// full hours do not move the hours.
func blurredHeads(heads []int32, group []int, times []int64, k int, r *rand.Rand) []int64 {
	out := make([]int64, len(heads))
	for _, clocked := range [...]bool{false, true} {
		var of []int
		var at []int64
		for head, g := range group {
			if g > 0 == clocked {
				of, at = append(of, head), append(at, times[heads[head]])
			}
		}
		for i, at := range upTo(blurred(gapsBetween(at), k, r)) {
			out[of[i]] = at
		}
	}
	return out
}

// movesWith tells for each head with which other one it moves, by number of the head: the one of the burst that
// it builds on, or is near to, where that came not long before, or itself. So the time between the two hardly changes.
func movesWith(places []place, follows, near, heads []int32, k int) []int32 {
	burst := make([]int32, len(places)) // by place: the number of its head
	with := make([]int32, len(heads))
	next := int32(0)
	for i, up := range follows {
		if up != none {
			burst[i] = burst[up]
			continue
		}
		burst[i], with[next] = next, next
		for _, up := range [...]int32{near[i], places[i].parent} {
			if up != none && i-int(up) <= movesAmong*k {
				with[next] = with[burst[up]]
			}
		}
		next++
	}
	return with
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
// comes before what it builds on, or is near to; its gap to that then is what it was. What would come after the last of
// all comes as long before.
func timed(places []place, follows, near []int32, times, gaps, heads []int64) []int64 {
	out := make([]int64, len(places))
	last := slices.Max(times)
	for i := range places {
		if up := follows[i]; up != none {
			out[i] = out[up] + gaps[i]
		} else {
			out[i], heads = heads[0], heads[1:]
		}
		for _, up := range [...]int32{places[i].parent, places[i].after, near[i]} {
			if up != none && out[i] < out[up] {
				out[i] = out[up] + times[i] - times[up]
			}
		}
		if beyond := out[i] - last; beyond > 0 {
			out[i] = max(0, last-beyond)
			for _, up := range [...]int32{follows[i], places[i].parent, places[i].after, near[i]} {
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
