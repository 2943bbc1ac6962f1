package synth

import (
	"math"
	"slices"
)

// nearTimes is how often lengths are near beside by chance: half of them or more are not near by that.
const nearTimes = 2

// findNear finds what opens a prompt, or branches, and is nearer in length to the one before it than to those that it
// exchanges sizes with, such as the keys of a text that is written or a window that moves. The one before it is the
// turn before, what it builds on, or the last on its template. What comes by a clock takes the time of any other.
func (s *swapper) findNear() {
	s.near = slices.Repeat([]int32{none}, len(s.places))
	last := slices.Repeat([]int32{none}, len(s.templates))
	for i := range s.places {
		p := &s.places[i]
		before := p.upward(p.join == byPlace)
		if t := p.template; t != none && !s.templates[t].shared {
			if before == none {
				before = last[t]
			}
			last[t] = int32(i)
		}
		if p.class == branches || p.class == opens && !p.wholeTemplate() {
			s.near[i] = before
		}
	}
	heads, group := groupHeads(s.places, s.templates, followed(s.places, s.templates, s.times, s.k), s.times, s.k)
	for head, of := range group {
		if of > 0 {
			s.near[heads[head]] = none
		}
	}

	narrow := func(i int32) [2]int32 { return [2]int32{s.places[i].template, int32(s.places[i].class)} }
	all := func(i int32) [2]int32 { return [2]int32{none, int32(s.places[i].class)} }
	for _, g := range grouped(len(s.places), 2*s.k, narrow, all) {
		s.keepNear(g)
	}
}

// keepNear keeps of a group that exchanges sizes what is nearer than by chance.
func (s *swapper) keepNear(g []int32) {
	apart := func(i, j int32) int32 {
		return max(s.shapes[i].tokens-s.shapes[j].tokens, s.shapes[j].tokens-s.shapes[i].tokens)
	}
	var pairs, chance []int32
	for a, i := range g {
		if up := s.near[i]; up != none {
			pairs = append(pairs, apart(i, up))
			chance = append(chance, apart(i, g[(a+len(g)/2)%len(g)]), apart(i, g[(a+len(g)/3)%len(g)]))
		}
	}
	most := nearerThan(pairs, chance)
	for _, i := range g {
		if up := s.near[i]; up != none && apart(i, up) > most {
			s.near[i] = none
		}
	}
}

// nearerThan is the distance up to which most pairs are more than by chance, or -1 where so many may be chance.
func nearerThan(pairs, chance []int32) int32 {
	slices.Sort(pairs)
	slices.Sort(chance)
	best, most, at := 1/math.Sqrt(float64(len(pairs))), int32(-1), 0
	for i, d := range pairs {
		for at < len(chance) && chance[at] <= d {
			at++
		}
		if more := float64(i+1)/float64(len(pairs)) - nearTimes*float64(at)/float64(len(chance)); more > best {
			best, most = more, d
		}
	}
	return most
}
