package synth

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// orderCopies orders the copies of a sample, of one user, and gives each of their requests the arrival of its place
// among those of all. Each copy has the requests of the sample at their times, but whole trees and sessions are moved,
// so that copies of one do not come together. In a workload as long as the trace any are left out, or come twice, where
// the sample has too many or too few; a longer one begins again.
func (g *generator) orderCopies(user int, populations []population) {
	m := g.model
	type slot struct {
		key        int64
		population int32
	}
	var slots []slot
	times, first := upTo(m.placeGaps()), m.units()
	moves := m.moves(first, times)
	var heads []int32
	size, left, shift := make([]int, len(m.places)), make([]int, len(m.places)), make([]int64, len(m.places))
	for p, of := range first {
		if size[of]++; of == int32(p) {
			heads = append(heads, of)
		}
	}
	for i := user * m.copies(); i < (user+1)*m.copies(); i++ {
		r, order := g.stream("places", i), make([]dealt, 0, g.counts[i])
		for pass := int64(0); len(order) < cap(order); pass++ {
			begin, most := pass*m.span, cap(order)-len(order)
			copy(left, size)
			if g.span == m.span {
				begin = 0
				for _, h := range r.Perm(len(heads)) {
					left[heads[h]] = min(left[heads[h]], most)
					most -= left[heads[h]]
				}
			}
			for p, of := range first {
				if of == int32(p) {
					shift[p] = moves[p].draw(r) - times[p]
				}
				if left[of] > 0 && len(order) < cap(order) {
					left[of]--
					order = append(order, dealt{begin + times[p] + shift[of], pass, int32(p)})
				}
			}
		}
		slices.SortFunc(order, dealt.compare)
		for _, d := range order {
			slots = append(slots, slot{d.key, int32(i)})
		}
		g.orders[i], populations[i].times = order, make([]int64, 0, len(order))
	}
	slices.SortFunc(slots, func(a, b slot) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.population, b.population))
	})
	for rank, at := range g.times(user, int64(len(slots))) {
		p := &populations[slots[rank].population]
		p.times = append(p.times, at)
	}
}

// units are the first places of what a sample has whole, for each place: sessions, and all that follow a template which
// only one population has.
func (m *Model) units() []int32 {
	last := slices.Repeat([]int32{none}, len(m.templates))
	follows := slices.Repeat([]int32{none}, len(m.places))
	for i := range m.places {
		t, own := m.places[i].template, int32(none)
		for ; t != none && !m.templates[t].several(); t = m.templates[t].up {
			own = t
		}
		if own != none {
			follows[i], last[own] = last[own], int32(i)
		}
	}
	return firstOf(m.places, follows)
}

const (
	movedUnits = 24 // a unit of a sample moves among so many before and after it on the same template, or
	movedPart  = 64 // one in so many of all these: so that its copies are no burst
	burstLeast = 5  // units that come much sooner after each other than by chance are a burst, where there are so many
)

// A move is between which times a unit may be moved. It is mirrored where its template was first and last used: about
// a gap before and after those of the sample.
type move struct{ from, to, first, last int64 }

// draw draws a time.
func (m *move) draw(r *rand.Rand) int64 {
	at := m.from + r.Int64N(m.to-m.from+1)
	at = m.first + max(at-m.first, m.first-at)
	return max(m.first, m.last-max(at-m.last, m.last-at))
}

// moves are those of the first places of units. A template is used when the trace used it; of a burst on one the
// sample has a part, and each moves up to the one before it, so that the copies together are the burst.
func (m *Model) moves(first []int32, times []int64) []move {
	on := make([][]int32, len(m.templates)+1) // by template that several populations have, and without one
	for i, f := range first {
		if f == int32(i) {
			t := m.places[i].template
			for ; t != none && !m.templates[t].several(); t = m.templates[t].up {
			}
			on[t+1] = append(on[t+1], f)
		}
	}

	out := make([]move, len(m.places))
	for t, units := range on {
		n := len(units)
		reach, soon, begun := min(max(movedUnits, n/movedPart), n-1), m.span/int64(max(1, n))/clumpedTimes, 0
		for j, p := range units {
			first, last := times[units[0]], times[units[n-1]]
			v := move{from: 2*first - times[units[max(0, reach-j)]], to: 2*last - times[units[n-1-max(0, j+reach-n+1)]]}
			if j >= reach {
				v.from = times[units[j-reach]]
			}
			if j+reach < n {
				v.to = times[units[j+reach]]
			}
			v.first = max(0, first-(times[units[reach]]-first)/int64(max(1, reach)))
			v.last = min(m.span, last+(last-times[units[n-1-reach]])/int64(max(1, reach)))
			out[p] = v
			if j > 0 && times[p]-times[units[j-1]] > soon {
				begun = j
			}
			if t == 0 || m.templates[t-1].shared || j+1 < n && times[units[j+1]]-times[p] <= soon ||
				j+1-begun < burstLeast {
				continue
			}
			for k := begun; k <= j; k++ {
				out[units[k]].from, out[units[k]].to = times[units[max(begun, k-1)]], times[units[k]]
			}
		}
	}
	return out
}

// placeGaps are the gaps before places; those of a model that was made before it had them are equal.
func (m *Model) placeGaps() []int64 {
	if m.gaps != nil {
		return m.gaps
	}
	return slices.Repeat([]int64{m.span / int64(len(m.places))}, len(m.places))
}
