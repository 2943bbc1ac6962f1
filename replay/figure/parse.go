package figure

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"

	"reprise/trace/quantity"
)

// words are the other spellings of statistics.
var words = map[string]Statistic{
	"mean": Mean, "avg": Mean, "average": Mean, "max": Max, "maximum": Max, "min": Min, "minimum": Min,
	"median": P50, "p999": P999,
}

// digits of a number.
const digits = "0123456789."

// longest is the longest time of a run: 104 days.
const longest = time.Duration(1 << 53)

// parseStatistic reads p95, p99.9, mean, max, min, and other words for these.
func parseStatistic(text string) (Statistic, bool) {
	if s, ok := words[text]; ok {
		return s, true
	}
	number, ok := strings.CutPrefix(text, "p")
	if !ok || strings.Trim(number, digits) != "" {
		return 0, false
	}
	p, err := strconv.ParseFloat(number, 64)
	s := Statistic(math.Round(p * (millionths / 100)))
	if err != nil || math.Abs(float64(s)-p*(millionths/100)) > 1e-6 || s <= 0 || s >= millionths {
		return 0, false
	}
	return s, true
}

// Split takes a name apart: its statistic, which is 0 where it names none, and the rest with underscores between
// its words, in lower case.
func Split(text string) (of Statistic, rest string) {
	parts := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r == ' ' || r == '_' || r == '-' || r == '\t'
	})
	for i := 0; i+1 < len(parts); i++ { // p99_9 is p99.9
		whole, ok := strings.CutPrefix(parts[i], "p")
		if next := parts[i+1]; ok && whole != "" && strings.Trim(whole+next, digits[:10]) == "" {
			parts[i] += "." + next
			parts = slices.Delete(parts, i+1, i+2)
		}
	}
	if n := len(parts); n > 1 && (parts[n-1] == "ms" || parts[n-1] == "s") && parts[n-2] != "per" { // ttft_p95_ms
		parts = parts[:n-1]
	}
	take := func(at int) bool {
		s, ok := parseStatistic(parts[at])
		if ok {
			of, parts = s, slices.Delete(parts, at, at+1)
		}
		return ok
	}
	if bySpelling(strings.Join(parts, "_")) == nil && len(parts) > 1 && !take(0) {
		take(len(parts) - 1)
	}
	return of, strings.Join(parts, "_")
}

func bySpelling(name string) *Subject {
	for _, s := range list {
		if s.Name == name || slices.Contains(s.also, name) {
			return s
		}
	}
	return nil
}

// Find is the subject that has a name, in any spelling and without a statistic; nil for a name that none has.
func Find(text string) *Subject {
	if s, name := Split(text); s == 0 {
		return bySpelling(name)
	}
	return nil
}

// Parse reads a figure that a reader can tell: readable says which. Errors name what there is, and the name
// that is nearest.
func Parse(text string, readable func(Figure) bool) (Figure, error) {
	statistic, name := Split(text)
	s := bySpelling(name)
	f := Figure{s, statistic}
	switch {
	case s == nil:
		return Figure{}, unknown(text, readable)
	case s.Spread && statistic == 0:
		return Figure{}, fmt.Errorf("say which %s: a percentile such as p95_%[1]s, mean or max before it", s.Name)
	case !s.Spread && statistic != 0:
		return Figure{}, fmt.Errorf("%s is one figure, without a percentile or a mean", s.Name)
	case !readable(f):
		return Figure{}, errors.New(f.String() + " cannot be told here: " + want(readable))
	}
	return f, nil
}

// Default is the figure that stands in a list for all statistics of a subject.
func (s *Subject) Default() Figure {
	if s.Spread {
		return Figure{s, P99}
	}
	return Figure{s, 0}
}

// want says what there is: those that a reader can tell with p99 or the mean.
func want(readable func(Figure) bool) string {
	spread, single := Names(func(s *Subject) bool {
		return readable(s.Default()) || s.Spread && readable(Figure{s, Mean})
	})
	out := "want "
	if len(spread) > 0 {
		out += "a percentile, mean or max of " + strings.Join(spread, ", ") + ", such as p95_" + spread[0]
		if len(single) > 0 {
			out += "; or "
		}
	}
	if len(single) > 0 {
		out += "one of " + strings.Join(single, ", ")
	}
	return out
}

func unknown(text string, readable func(Figure) bool) error {
	_, name := Split(text)
	nearest, least := "", 3
	for _, s := range All() {
		if !readable(s.Default()) {
			continue
		}
		for _, spelling := range s.Spellings() {
			if d := levenshtein.ComputeDistance(name, spelling); d < min(least, len(spelling)/2+1) {
				nearest, least = s.Name, d
			}
		}
	}
	says := "no such metric: " + want(readable)
	if nearest != "" {
		says = "no such metric; nearest is " + nearest + ": " + want(readable)
	}
	return errors.New(says)
}

// Example is a value that a figure can be held to, as it is written.
func (f Figure) Example() string {
	switch {
	case f.Unit.IsTime() && f.Sessions:
		return "300s"
	case f.Unit.IsTime():
		return "200ms"
	case f.Unit == Share:
		return "1%"
	case f.Unit == Requests:
		return "100"
	}
	return "2.5"
}

// FormatLimit writes a value as [Figure.ParseLimit] reads it.
func (f Figure) FormatLimit(v float64) string {
	switch f.Unit {
	case Milliseconds:
		return time.Duration(math.Round(v * 1e6)).String()
	case Share:
		return strconv.FormatFloat(math.Round(v*1e9)/1e7, 'f', -1, 64) + "%"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// ParseLimit reads a value that a figure is held to. Times and shares want their unit, because the tools that leave
// it out disagree on it.
func (f Figure) ParseLimit(text string) (v float64, err error) {
	want, ok := "number above zero", false
	switch f.Unit {
	case Milliseconds:
		want = "duration above zero with its unit"
		d, err := quantity.Latency(text)
		v, ok = float64(d)/1e6, err == nil && d > 0 && d <= longest
	case Share:
		want = "percentage"
		number, percent := strings.CutSuffix(text, "%")
		v, err = strconv.ParseFloat(number, 64)
		ok = percent && err == nil && v >= 0 && v <= 100 && (v >= 1e-7 || f.Better != Higher)
		v = math.Round(v*1e7) / 1e9
	case Requests:
		want = "whole number of requests"
		n, err := quantity.Count(text)
		v, ok = float64(n), err == nil && n <= math.MaxInt32
	default:
		v, err = strconv.ParseFloat(text, 64)
		ok = err == nil && v > 0 && v < math.MaxInt32
	}
	if !ok {
		return 0, fmt.Errorf("write the limit as a %s, such as %s", want, f.Example())
	}
	return v, nil
}
