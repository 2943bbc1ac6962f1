package bench

import (
	"errors"
	"math"
	"slices"
	"strconv"
)

// DefaultRates and DefaultConcurrencies are the levels of a sweep that names none.
var (
	DefaultRates         = []float64{1, 2, 5, 8, 10, 15, 20, 25, 30, 35, 40, 50}
	DefaultConcurrencies = []float64{1, 2, 4, 8, 16, 32}
)

// A Ladder says which loads a sweep measures: those of Loads in ascending order, or,
// without them, those that an adaptive search wants. That doubles the load from From
// until a level does not hold, and then halves what lies between until it is within
// Resolution of the load.
type Ladder struct {
	Loads      []float64
	From       float64
	To         float64 // of an adaptive search: it does not go beyond, nor below From; 0 is open
	Resolution float64 // such as 0.05
	Whole      bool    // loads are whole numbers, as requests in flight are
	Past       bool    // goes on after saturation, to the end of Loads
}

// Bounds of what an adaptive search tries.
const (
	leastLoad = 1.0 / 64
	mostLoad  = 1 << 16
)

// check refuses a ladder that has no meaning.
func (l *Ladder) check() error {
	for i, load := range l.Loads {
		switch {
		case !(load > 0 && load <= mostLoad):
			return errors.New("a load must be above 0 and at most 65536")
		case l.Whole && load != math.Trunc(load):
			return errors.New("requests in flight must be a whole number")
		case i > 0 && load <= l.Loads[i-1]:
			return errors.New("loads must be in ascending order, since the sweep stops at saturation")
		}
	}
	if !(l.Resolution >= 0 && l.Resolution < 1) {
		return errors.New("a resolution must be a share below 1")
	}
	if len(l.Loads) == 0 && l.To != 0 && !(l.To > l.From && l.To <= mostLoad) {
		return errors.New("a range of loads goes up to 65536")
	}
	if len(l.Loads) == 0 && l.Whole && (l.From != math.Trunc(l.From) || l.To != math.Trunc(l.To)) {
		return errors.New("requests in flight must be a whole number")
	}
	if len(l.Loads) == 0 && !(l.From > 0 && l.From <= mostLoad && l.Resolution > 0 && l.Resolution < 1) {
		return errors.New("an adaptive sweep needs a first load above 0 and a resolution between 0 and 1")
	}
	return nil
}

// nextLoad is the load to measure after some levels, 0 at the end of the ladder. It ends
// at a level that was limited by the client, since every later one would be.
func (l *Ladder) nextLoad(levels []Level) float64 {
	switch n := len(levels); {
	case n > 0 && levels[n-1].Outcome == outcomeUntrusted:
		return 0
	case len(l.Loads) == 0: // the search is adaptive, see below
	case n == len(l.Loads) || n > 0 && levels[n-1].Outcome == outcomeSaturated && !l.Past:
		return 0
	default:
		return l.Loads[n]
	}
	lo, hi := bracket(levels)
	next := l.From
	switch {
	case len(levels) == 0:
	case hi == nil && l.To > 0 && lo.Load >= l.To || lo == nil && l.To > 0 && hi.Load <= l.From:
		return 0
	case hi == nil && l.To > 0:
		next = min(2*lo.Load, l.To)
	case hi == nil:
		next = 2 * lo.Load
	case lo == nil && hi.Load <= leastLoad || lo == nil && l.Whole && hi.Load <= 1:
		return 0
	case lo == nil:
		next = hi.Load / 2
	case hi.Load/lo.Load <= 1+l.Resolution || l.Whole && hi.Load-lo.Load <= 1:
		return 0
	default:
		next = (lo.Load + hi.Load) / 2
	}
	if next > mostLoad {
		return 0
	}
	return l.round(next)
}

// round cuts a load to four digits, so that it can be said and typed again.
func (l *Ladder) round(load float64) float64 {
	if l.Whole {
		return math.Floor(load)
	}
	out, err := strconv.ParseFloat(strconv.FormatFloat(load, 'g', 4, 64), 64)
	if err != nil {
		return load
	}
	return out
}

// bracket is the first level that does not hold, and the last below it that does; nil
// where there is none. A level that cannot be judged says neither, but is stepped
// over in a search: as if it held.
func bracket(levels []Level) (lo, hi *Level) {
	for _, l := range byLoad(levels) {
		switch l.Outcome {
		case outcomeFails, outcomeSaturated:
			return lo, l
		case outcomeHolds, outcomeUnjudged:
			lo = l
		}
	}
	return lo, nil
}

// holding is the highest level that holds below the first that does not, and that one; nil where
// there is none.
func holding(levels []Level) (held, hi *Level) {
	for _, l := range byLoad(levels) {
		switch l.Outcome {
		case outcomeFails, outcomeSaturated:
			return held, l
		case outcomeHolds:
			held = l
		}
	}
	return held, nil
}

// byLoad are levels in ascending order of load, and of measuring where that is equal.
func byLoad(levels []Level) []*Level {
	out := make([]*Level, len(levels))
	for i := range levels {
		out[i] = &levels[i]
	}
	slices.SortStableFunc(out, func(a, b *Level) int {
		switch {
		case a.Load < b.Load:
			return -1
		case a.Load > b.Load:
			return 1
		}
		return 0
	})
	return out
}

// candidates are the loads to confirm, from the estimate down: halfway to the last
// level that held, that level again, and 5, 10 and 20 % less.
func (l *Ladder) candidates(estimate, lo float64) []float64 {
	var out []float64
	for _, load := range []float64{estimate, (estimate + lo) / 2, lo, 0.95 * lo, 0.9 * lo, 0.8 * lo} {
		load = l.round(load)
		if load > 0 && (len(out) == 0 || load < out[len(out)-1]) {
			out = append(out, load)
		}
	}
	return out
}

// finest is the resolution below which chance decides more than load.
const finest = 0.01

// between is the load halfway from one that holds to one that fails; none when they
// are within the resolution.
func (l *Ladder) between(holds, fails float64) []float64 {
	mid := l.round((holds + fails) / 2)
	if fails/holds <= 1+max(l.Resolution, finest) || mid <= holds || mid >= fails {
		return nil
	}
	return []float64{mid}
}
