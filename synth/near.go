package synth

import "slices"

// nearTimes is how many times as often as by chance a length lies so near to the one before it where it is kept near:
// of those that are as near, half at least are not by chance.
const nearTimes = 2

// nearInLength finds what opens a prompt, or branches, and is nearer in length to the one before it than to those that it
// exchanges sizes with, such as the keys of a text that is written or a window that moves. The one before it is
// the turn before, what it builds on, or the last on its template.
func nearInLength(places []place, templates []template, block, k int) []int32 {
	near, lengths := before(places, templates), promptLengths(places, block)
	type kind struct {
		template int32
		class    class
	}
	narrow := func(i int32) kind { return kind{places[i].template, places[i].class} }
	all := func(i int32) kind { return kind{none, places[i].class} }
	for _, g := range grouped(len(places), 2*k, narrow, all) {
		p, n := &places[g[0]], len(g)
		if p.class != branches && (p.class != opens || p.wholeTemplate()) {
			for _, i := range g {
				near[i] = none
			}
			continue
		}
		var pairs, chance []int64
		for a, i := range g {
			if near[i] != none {
				pairs = append(pairs, distance(lengths[i], lengths[near[i]]))
				chance = append(chance, distance(lengths[i], lengths[g[(a+n/2)%n]]), distance(lengths[i], lengths[g[(a+n/3)%n]]))
			}
		}
		most := nearerThan(pairs, chance)
		for _, i := range g {
			if near[i] != none && distance(lengths[i], lengths[near[i]]) > most {
				near[i] = none
			}
		}
	}
	return near
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// nearerThan is the distance up to which there are most pairs beyond so many times what chance has, or -1.
func nearerThan(pairs, chance []int64) int64 {
	slices.Sort(pairs)
	slices.Sort(chance)
	best, most, at := 0.0, int64(-1), 0
	for i, d := range pairs {
		for at < len(chance) && chance[at] <= d {
			at++
		}
		more := float64(i+1)/float64(len(pairs)) - nearTimes*float64(at)/float64(len(chance))
		if more > best {
			best, most = more, d
		}
	}
	return most
}

// before is the request before each: the turn before, what it builds on, or the last on a template that not all share.
func before(places []place, templates []template) []int32 {
	last := slices.Repeat([]int32{none}, len(templates))
	out := make([]int32, len(places))
	for i := range places {
		p := &places[i]
		out[i] = p.upward(true)
		if out[i] == none {
			out[i] = p.parent
		}
		if t := p.template; t != none && !templates[t].shared {
			if out[i] == none {
				out[i] = last[t]
			}
			last[t] = int32(i)
		}
	}
	return out
}

// promptLengths are the tokens of prompts, with blocks of so many.
func promptLengths(places []place, block int) []int64 {
	out := make([]int64, len(places))
	for i := range places {
		p := &places[i]
		leading := int64(0)
		switch p.class {
		case opens:
			leading = int64(p.trunk)
		case branches:
			leading = int64(p.hit)
		default:
			out[i] = out[p.parent] + int64(p.growth)
			continue
		}
		out[i] = leading*int64(block) + p.size.tokens(block)
	}
	return out
}
