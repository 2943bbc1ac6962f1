package report

import (
	"math"
	"strings"
	"time"

	"reprise/trace/doc"
)

// A Limit is one of the [Limits]: of a share, or of a time.
type Limit struct {
	Key  string // in --trust, such as max-lag
	Name string // in a sentence, such as "send lag p99"
	What string // in the usage of --trust

	Share    func(*Limits) *float64       // nil of a time
	Duration func(*Limits) *time.Duration // nil of a share
}

// limitList has every field of [Limits].
var limitList = []Limit{
	{Key: "max-lag", Name: "send lag p99", What: "p99 send lag",
		Duration: func(l *Limits) *time.Duration { return &l.LagP99 }},
	{Key: "max-lag-p50", Name: "send lag p50", What: "median send lag",
		Duration: func(l *Limits) *time.Duration { return &l.LagP50 }},
	{Key: "max-lag-p999", Name: "send lag p99.9", What: "p99.9 send lag",
		Duration: func(l *Limits) *time.Duration { return &l.LagP999 }},
	{Key: "max-lag-drift", Name: "drift of the send lag", What: "growth of the median",
		Duration: func(l *Limits) *time.Duration { return &l.LagDrift }},
	{Key: "max-errors", Name: "errors", What: "failures, skipped turns",
		Share: func(l *Limits) *float64 { return &l.Errors }},
	{Key: "max-refused", Name: "refusals", What: "HTTP 429 and 503",
		Share: func(l *Limits) *float64 { return &l.Refused }},
	{Key: "max-connect-failures", Name: "failed connections", What: "no connection",
		Share: func(l *Limits) *float64 { return &l.Connect }},
	{Key: "max-held-back", Name: "requests held back", What: "held by --max-in-flight",
		Share: func(l *Limits) *float64 { return &l.HeldBack }},
	{Key: "max-cpu", Name: "client CPU", What: "of the client's cores",
		Share: func(l *Limits) *float64 { return &l.CPU }},
	{Key: "max-gc-pause", Name: "GC pause", What: "longest GC pause",
		Duration: func(l *Limits) *time.Duration { return &l.GCPause }},
	{Key: "max-stall", Name: "client stall", What: "longest client stall",
		Duration: func(l *Limits) *time.Duration { return &l.Stall }},
	{Key: "max-stall-ttft", Name: "client stalls in TTFT", What: "client stalls in TTFT",
		Share: func(l *Limits) *float64 { return &l.StallTTFT }},
	{Key: "max-stall-gap", Name: "client stalls in token gaps", What: "stalls in gaps, at p99",
		Share: func(l *Limits) *float64 { return &l.StallGap }},
	{Key: "max-prompt-error", Name: "prompt tokens", What: "prompt tokens off",
		Share: func(l *Limits) *float64 { return &l.Prompt }},
	{Key: "max-output-error", Name: "output tokens", What: "forced lengths off",
		Share: func(l *Limits) *float64 { return &l.Output }},
	{Key: "max-extra-hits", Name: "extra cache hits", What: "unexpected cache hits",
		Share: func(l *Limits) *float64 { return &l.ExtraHits }},
	{Key: "max-impossible-counts", Name: "impossible counts", What: "impossible counts",
		Share: func(l *Limits) *float64 { return &l.Impossible }},
	{Key: "max-clock-jump", Name: "jump of the wall clock", What: "jump of the wall clock",
		Duration: func(l *Limits) *time.Duration { return &l.ClockJump }},
}

// LimitList are all limits, in the order in which they are written about.
func LimitList() []Limit { return limitList }

// value is the limit in its unit, ms or a share; below 0 it is off.
func (l *Limit) value(of *Limits) (v float64, unit string) {
	if l.Duration != nil {
		return ms(*l.Duration(of)), "ms"
	}
	return *l.Share(of), "share"
}

// Changed are the limits that are not their defaults, by their keys in --trust: a share, or a time in ms; null is off.
func (l Limits) Changed() map[string]*float64 {
	usual, out := DefaultLimits(), map[string]*float64{}
	for _, limit := range limitList {
		was, _ := limit.value(&usual)
		if is, _ := limit.value(&l); l != (Limits{}) && is != was && max(is, was) >= 0 {
			if out[limit.Key] = nil; is >= 0 {
				out[limit.Key] = &is
			}
		}
	}
	return out
}

// LimitsOf are the limits with so many changed.
func LimitsOf(changed map[string]*float64) Limits {
	l := DefaultLimits()
	for _, limit := range limitList {
		v, ok := changed[limit.Key]
		if !ok {
			continue
		}
		switch {
		case limit.Duration != nil && v == nil:
			*limit.Duration(&l) = -1
		case limit.Duration != nil:
			*limit.Duration(&l) = time.Duration(math.Round(*v * 1e6))
		case v == nil:
			*limit.Share(&l) = -1
		default:
			*limit.Share(&l) = *v
		}
	}
	return l
}

// A LoosenedLimit allows more than its default.
type LoosenedLimit struct {
	Key     string   `json:"limit"` // in --trust
	Name    string   `json:"name"`  // in a sentence
	Default float64  `json:"default"`
	Set     *float64 `json:"set"`  // null is off
	Unit    string   `json:"unit"` // of both: ms or share
}

// LoosenedLimits are the limits of a verdict that allow more than their defaults. A verdict
// by them says less, so they are said wherever one is.
type LoosenedLimits []LoosenedLimit

// Loosened are the limits that allow more than [DefaultLimits]. A tighter one is none of them.
func (l Limits) Loosened() LoosenedLimits {
	if l == (Limits{}) { // which stand for the defaults
		return LoosenedLimits{}
	}
	usual, out := DefaultLimits(), LoosenedLimits{}
	for _, limit := range limitList {
		was, unit := limit.value(&usual)
		is, _ := limit.value(&l)
		if was < 0 || is >= 0 && is <= was {
			continue
		}
		loosened := LoosenedLimit{Key: limit.Key, Name: limit.Name, Default: was, Unit: unit}
		if is >= 0 {
			loosened.Set = &is
		}
		out = append(out, loosened)
	}
	return out
}

// String is the sentence about them, such as "2 limits were loosened: send lag p99 1 h (default
// 100 ms), output tokens off (default 2 %)."; empty without any.
func (l LoosenedLimits) String() string {
	if len(l) == 0 {
		return ""
	}
	var parts []string
	for _, limit := range l {
		set := "off"
		if limit.Set != nil {
			set = ofLimit(*limit.Set, limit.Unit)
		}
		parts = append(parts, limit.Name+" "+set+" (default "+ofLimit(limit.Default, limit.Unit)+")")
	}
	n := int64(len(l))
	return doc.Many(n, "limit") + " " + doc.Was(n) + " loosened: " + strings.Join(parts, ", ") + "."
}

// Beside is what was found by these limits, with the sentence about them behind it.
func (l LoosenedLimits) Beside(found string) string {
	if len(l) == 0 {
		return found
	}
	return strings.TrimSuffix(found, ".") + ". " + l.String()
}

// ofLimit prints a limit: a share in percent, a time in the largest unit of which it has one.
func ofLimit(v float64, unit string) string {
	if unit == "share" {
		return doc.Percent(v)
	}
	for _, u := range []struct {
		name string
		ms   float64
	}{{"h", 3.6e6}, {"min", 6e4}, {"s", 1e3}} {
		if v >= u.ms {
			return doc.Number(v/u.ms) + " " + u.name
		}
	}
	return doc.Number(v) + " ms"
}
