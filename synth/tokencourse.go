package synth

import "slices"

// coursePart is how many times k places, on average, the shortest part of the order has
// whose tokens are kept, as the arrivals keep the counts of parts of the time.
const coursePart = 5

// A courseEnergy says how far the tokens of parts of the order are from those of the
// trace: the sum of squared differences, over parts and over pairs of these, pairs of
// pairs and so on up to half of the order. So neither a part of a minute nor the slow course of an hour
// goes astray. 1 is what sizes in any order have.
type courseEnergy struct {
	part int         // places in the shortest part
	more [][]float64 // by level and part: tokens more than in the trace
	unit float64
}

// newCourseEnergy is that of a trace with so many tokens at each place, of which none is dealt yet.
func newCourseEnergy(tokens []int64, k int) courseEnergy {
	e := courseEnergy{part: max(1, coursePart*k)}
	for n := len(tokens) / e.part; n > 1; n = (n + 1) / 2 {
		e.more = append(e.more, make([]float64, n))
	}
	mean, square := 0.0, 0.0
	for i, n := range tokens {
		e.move(int32(i), -n)
		mean += float64(n) / float64(len(tokens))
		square += float64(n) * float64(n) / float64(len(tokens))
	}
	e.unit = 1 / max(1, (square-mean*mean)*float64(len(tokens)*len(e.more)))
	return e
}

// index is the shortest part that a place is in. The last has the rest as well.
func (e *courseEnergy) index(place int32) int { return min(int(place)/e.part, len(e.more[0])-1) }

// move lets a place have so many tokens more, and returns what that adds to the energy.
func (e *courseEnergy) move(place int32, tokens int64) float64 {
	if len(e.more) == 0 {
		return 0
	}
	cost, by, at := 0.0, float64(tokens), e.index(place)
	for _, level := range e.more {
		cost += by * (by + 2*level[at])
		level[at] += by
		at /= 2
	}
	return cost * e.unit
}

func (e *courseEnergy) clone() courseEnergy {
	out := *e
	out.more = make([][]float64, len(e.more))
	for l := range e.more {
		out.more[l] = slices.Clone(e.more[l])
	}
	return out
}

// Of which tokens the course is kept.
const (
	coursePrompts = iota // all of prompts
	courseBrought        // those that requests bring
	courseOutputs
	courses
)

// coursesOf are the energies of the tokens of places.
func coursesOf(places []place, shapes []shape, block, k int) (of [courses]courseEnergy) {
	var tokens [courses][]int64
	for i := range places {
		tokens[coursePrompts] = append(tokens[coursePrompts], int64(shapes[i].tokens))
		tokens[courseBrought] = append(tokens[courseBrought], places[i].size.tokens(block))
		tokens[courseOutputs] = append(tokens[courseOutputs], places[i].knownOutput())
	}
	for c := range of {
		of[c] = newCourseEnergy(tokens[c], k)
	}
	return of
}
