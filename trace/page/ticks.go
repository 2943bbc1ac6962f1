package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A scale maps values of an axis to places between two edges of a drawing. It
// chooses the same marks as the script of the page does.
type scale struct {
	lo, hi   float64 // values
	from, to float64 // places
	log      bool
	timed    bool   // seconds that are read as h:mm:ss
	unit     string // of the labels: "%" or nothing
}

func (s *scale) at(v float64) float64 {
	lo, hi := s.lo, s.hi
	if s.log {
		v, lo, hi = math.Log10(v), math.Log10(lo), math.Log10(hi)
	}
	if !(hi > lo) { // values whose logarithms a float64 does not tell apart
		return (s.from + s.to) / 2
	}
	return s.from + (v-lo)/(hi-lo)*(s.to-s.from)
}

// A tick is a line of the grid; its label may be empty.
type tick struct {
	at    float64
	label string
}

// ticks are about so many.
func (s *scale) ticks(count float64) []tick {
	var out []tick
	write := func(v float64) string {
		if s.timed {
			return clock(v)
		}
		return brief(v) + s.unit
	}
	if s.log {
		for _, m := range logSteps(s.lo, s.hi, count) {
			t := tick{at: s.at(m.value)}
			if m.shown {
				t.label = write(m.value)
			}
			out = append(out, t)
		}
		return out
	}
	for _, v := range steps(s.lo, s.hi, count, s.timed) {
		out = append(out, tick{s.at(v), write(v)})
	}
	return out
}

var clockSteps = []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400}

// steps are multiples of a round number, about count of them and never more than 60.
func steps(lo, hi, count float64, timed bool) []float64 {
	rough := (hi - lo) / max(2, count)
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	marks := []float64{1, 2, 2.5, 5, 10}
	if power == 1 { // counts have no halves
		marks = []float64{1, 2, 5, 10}
	}
	step := 10 * power
	for _, m := range marks {
		if m*power >= rough*0.9 {
			step = m * power
			break
		}
	}
	if timed && step >= 1 {
		step = 86400 * math.Ceil(rough/86400)
		for _, s := range clockSteps {
			if s >= rough {
				step = s
				break
			}
		}
	}
	var out []float64
	first := math.Ceil(lo/step - 1e-9)
	for i := 0.0; i < 60 && (first+i)*step <= hi+step*1e-9; i++ {
		out = append(out, (first+i)*step)
	}
	return out
}

// A gridMark is a multiple that a logarithmic axis may have a line at.
type gridMark struct {
	value float64
	shown bool // has a label
}

// logLabels are the multiples of a power of ten that have labels, from few to many,
// and how many decades for each label that is asked for they may have: within the
// first they are at ease, within the second there is room for them.
var logLabels = []struct {
	digits     string
	ease, room float64
}{
	{"1", math.Inf(1), math.Inf(1)}, {"125", 1. / 3, 2. / 3}, {"12357", 1. / 6, 1. / 4}, {"123456789", 1. / 9, 1. / 9},
}

// fewLabels of an axis do not tell how it runs.
const fewLabels = 4

// logSteps are the multiples 1 to 9 of every power of ten within the range, with
// labels on about count of them. Where those would be fewer than fewLabels, closer
// ones are taken as far as there is room; within a decade, where that does not
// help, ordinary steps serve better.
func logSteps(lo, hi, count float64) []gridMark {
	span := math.Log10(hi) - math.Log10(lo)
	var best []gridMark
	shown := 0
	for _, l := range logLabels {
		if span > l.room*count || shown >= fewLabels && span > l.ease*count {
			break
		}
		best, shown = logMarks(lo, hi, count, l.digits)
	}
	if shown >= fewLabels || shown >= 2 && span > 1 {
		return best
	}
	plain := steps(lo, hi, count, false)
	if len(plain) < fewLabels {
		plain = steps(lo, hi, 2*count, false)
	}
	if len(plain) <= shown {
		return best
	}
	best = nil
	for _, v := range plain {
		best = append(best, gridMark{v, true})
	}
	return best
}

// logMarks are the multiples with labels on those that begin with one of the digits.
func logMarks(lo, hi, count float64, digits string) (out []gridMark, shown int) {
	from, to := math.Log10(lo), math.Log10(hi)
	every := int(max(1, math.Ceil((to-from)/count)))
	most := 9
	if to-from > 8 {
		most = 1
	}
	for e := int(math.Floor(from)); e <= int(math.Ceil(to)); e++ {
		if most == 1 && e%every != 0 {
			continue
		}
		for m := 1; m <= most; m++ {
			v := float64(m) * math.Pow(10, float64(e))
			if v < lo*(1-1e-9) || v > hi*(1+1e-9) {
				continue
			}
			has := strings.Contains(digits, strconv.Itoa(m)) && (m > 1 || e%every == 0)
			if has {
				shown++
			}
			out = append(out, gridMark{v, has})
		}
	}
	return out, shown
}

// brief writes the label of a tick: 250, 1.5k, 20M.
func brief(v float64) string {
	size := math.Abs(v)
	trim := func(v float64) string {
		return strings.Replace(strconv.FormatFloat(roundTo(v, 10), 'f', -1, 64), "-", "−", 1)
	}
	if size != 0 && (size >= 1e15 || size < 1e-4) {
		return strings.NewReplacer("e-0", "e−", "e-", "e−", "e+0", "e", "e+", "e").Replace(strconv.FormatFloat(roundTo(v, 3), 'e', -1, 64))
	}
	for _, s := range []struct {
		size   float64
		letter string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if size >= s.size {
			return trim(v/s.size) + s.letter
		}
	}
	return trim(v)
}

// roundTo keeps so many significant digits.
func roundTo(v float64, digits int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// clock writes seconds as m:ss, h:mm:ss or days.
func clock(s float64) string {
	sign := ""
	if s < 0 {
		sign, s = "−", -s
	}
	whole := int64(s + 1e-9)
	day, h, m, sec := whole/86400, whole/3600%24, whole/60%60, whole%60
	rest := ""
	if f := s - float64(whole); f > 1e-3 {
		rest = strings.TrimPrefix(strconv.FormatFloat(f, 'f', 2, 64), "0")
	}
	switch {
	case day > 0 && whole%86400 == 0:
		return fmt.Sprintf("%s%d d", sign, day)
	case day > 0:
		return fmt.Sprintf("%s%d d %02d:%02d", sign, day, h, m)
	case h > 0:
		return fmt.Sprintf("%s%d:%02d:%02d%s", sign, h, m, sec, rest)
	}
	return fmt.Sprintf("%s%d:%02d%s", sign, m, sec, rest)
}
