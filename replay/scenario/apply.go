package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reprise/replay/result"
	"reprise/trace/quantity"
)

// Settings are those of a replay, by the names of its flags.
type Settings interface {
	// Lookup returns the value of a setting, the one that it has by itself, and whether
	// somebody gave one. It is not ok for a name that no setting has.
	Lookup(name string) (value, byItself string, given, ok bool)
	// Set fills a setting in. It refuses a value that cannot be read.
	Set(name, value string) error
}

// Apply holds settings against the rules, in the order in which they stand: what is unset is
// filled in. It returns what the results say of the scenario, with the rules that are
// broken. An error is a fault of the scenario itself: a setting that there is not, or a
// value that it does not take.
func (s *Scenario) Apply(to Settings) (*result.Scenario, error) {
	about := s.about
	for i := range s.Rules {
		r := &s.Rules[i]
		broken, filled, err := r.apply(to)
		switch {
		case err != nil:
			return nil, fmt.Errorf("scenario %s: %w", s.Version, err)
		case broken != nil:
			about.Broken = append(about.Broken, *broken)
		case filled != "":
			about.Filled = append(about.Filled, r.Setting+"="+filled)
		}
	}
	return &about, nil
}

func (r *Rule) apply(to Settings) (broken *result.BrokenRule, filled string, err error) {
	if field, ok := strings.CutPrefix(r.Setting, bodyField); ok {
		return r.applyBody(to, field), "", nil
	}
	value, byItself, given, ok := to.Lookup(r.Setting)
	if !ok {
		return nil, "", fmt.Errorf("replay has no setting %s", quantity.Quote(r.Setting))
	}
	fill := r.Is + r.Default // one of them at most
	if !given && fill != "" && !same(value, fill) {
		if err := to.Set(r.Setting, fill); err != nil {
			return nil, "", err
		}
		value, filled = fill, fill
	}
	want := ""
	switch {
	case r.Given && !given:
		return r.broken("not given", "it given"), "", nil
	case r.Is != "" && !same(value, r.Is):
		want = r.Is
	case r.Unset && given && !same(value, byItself):
		want = "it unset"
	case r.OneOf != nil && !slices.ContainsFunc(r.OneOf, func(one string) bool { return same(one, value) }):
		want = strings.Join(r.OneOf, " or ")
	case r.Least != "" && below(value, r.Least):
		want = "at least " + r.Least
	default:
		return nil, filled, nil
	}
	return r.broken(shown(value), want), "", nil
}

func shown(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// broken is this rule, not kept.
func (r *Rule) broken(given, want string) *result.BrokenRule {
	if r.Why != "" {
		want += " (" + r.Why + ")"
	}
	return &result.BrokenRule{Rule: r.Setting, Given: given, Want: want}
}

// applyBody holds a field of --extra-body to be unset. Its value is not told: bodies may
// hold secrets.
func (r *Rule) applyBody(to Settings, field string) *result.BrokenRule {
	body, _, _, _ := to.Lookup("extra-body")
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(body), &fields) != nil { // which is refused elsewhere
		return nil
	}
	if _, set := fields[field]; !set {
		return nil
	}
	return r.broken("set by --extra-body", "it unset")
}

// same tells whether two values mean the same: 10s and 10000ms, 0..1 and 0.0..1.0.
func same(a, b string) bool {
	x, y := strings.Split(a, ".."), strings.Split(b, "..")
	return slices.EqualFunc(x, y, func(a, b string) bool {
		if a = strings.TrimSpace(a); a == strings.TrimSpace(b) {
			return true
		}
		v, ok := number(a)
		w, ok2 := number(b)
		return ok && ok2 && v == w
	})
}

// below tells whether a value is a number, or a duration, and less than another.
func below(value, least string) bool {
	v, ok := number(value)
	w, ok2 := number(least)
	return !ok || !ok2 || v < w
}

// number is a number, or a duration in seconds.
func number(text string) (float64, bool) {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v, true
	}
	d, err := quantity.Duration(text)
	return d.Seconds(), err == nil
}
