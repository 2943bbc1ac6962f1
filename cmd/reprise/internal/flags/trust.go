package flags

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/replay/report"
	"reprise/trace/quantity"
)

// Trust is --trust: the limits beyond which a run is not trusted.
type Trust struct {
	// Limits are the defaults with what was given. A negative one is off.
	Limits report.Limits

	keys  []limit           // those that the command takes
	given map[string]string // the flag that set each key
}

// A limit is a key of --trust, of a share or of a duration.
type limit struct {
	key, what string
	share     func(*report.Limits) *float64
	duration  func(*report.Limits) *time.Duration
}

// limits are the keys of --trust.
var limits = []limit{
	{key: "max-lag", what: "p99 send lag", duration: func(l *report.Limits) *time.Duration { return &l.LagP99 }},
	{key: "max-lag-p50", what: "median send lag", duration: func(l *report.Limits) *time.Duration { return &l.LagP50 }},
	{key: "max-lag-p999", what: "p99.9 send lag", duration: func(l *report.Limits) *time.Duration { return &l.LagP999 }},
	{key: "max-lag-drift", what: "growth of the median", duration: func(l *report.Limits) *time.Duration { return &l.LagDrift }},
	{key: "max-errors", what: "failures, skipped turns", share: func(l *report.Limits) *float64 { return &l.Errors }},
	{key: "max-refused", what: "HTTP 429 and 503", share: func(l *report.Limits) *float64 { return &l.Refused }},
	{key: "max-connect-failures", what: "no connection", share: func(l *report.Limits) *float64 { return &l.Connect }},
	{key: "max-held-back", what: "held by --max-in-flight", share: func(l *report.Limits) *float64 { return &l.HeldBack }},
	{key: "max-cpu", what: "of the client's cores", share: func(l *report.Limits) *float64 { return &l.CPU }},
	{key: "max-gc-pause", what: "longest GC pause", duration: func(l *report.Limits) *time.Duration { return &l.GCPause }},
	{key: "max-stall", what: "longest client stall", duration: func(l *report.Limits) *time.Duration { return &l.Stall }},
	{key: "max-stall-ttft", what: "client stalls in TTFT", share: func(l *report.Limits) *float64 { return &l.StallTTFT }},
	{key: "max-stall-gap", what: "stalls in gaps, at p99", share: func(l *report.Limits) *float64 { return &l.StallGap }},
	{key: "max-prompt-error", what: "prompt tokens off, by the server", share: func(l *report.Limits) *float64 { return &l.Prompt }},
	{key: "max-output-error", what: "forced output tokens off", share: func(l *report.Limits) *float64 { return &l.Output }},
	{key: "max-extra-hits", what: "cache hits beyond expected", share: func(l *report.Limits) *float64 { return &l.ExtraHits }},
	{key: "max-clock-jump", what: "jump of the wall clock", duration: func(l *report.Limits) *time.Duration { return &l.ClockJump }},
}

// trustOff switches a limit off.
const trustOff = "off"

// Register adds --trust with these keys, or with all when none is named, and the
// hidden flag of each.
func (t *Trust) Register(cmd *cobra.Command, keys ...string) {
	*t = Trust{Limits: report.DefaultLimits(), given: map[string]string{}}
	fl := cmd.Flags()
	var usage strings.Builder
	usage.WriteString("`limits` beyond which a run is untrustworthy, such as max-lag=1s,max-errors=5%; off removes a limit\nkeys and defaults:")
	for _, l := range limits {
		if len(keys) > 0 && !slices.Contains(keys, l.key) {
			continue
		}
		t.keys = append(t.keys, l)
		fmt.Fprintf(&usage, "\n  %-26s %s", l.key+"="+l.text(&t.Limits), l.what)
	}
	everyday, _ := Sections(fl, JudgementFlags)
	everyday.Var((*trustValue)(t), "trust", usage.String())
	// The spelling from before there was --trust: --max-lag 1s is --trust max-lag=1s.
	for _, l := range t.keys {
		fl.Var(&oldLimit{t, l}, l.key, "the same as --trust "+l.key+"=…")
		fl.Lookup(l.key).Hidden = true
	}
}

// set sets a limit from the value of a flag.
func (t *Trust) set(l limit, value, flag string) error {
	if by, ok := t.given[l.key]; ok && by != flag {
		return fmt.Errorf("%s is given by --trust and by --%s; give it once", l.key, l.key)
	}
	if err := l.set(&t.Limits, value); err != nil {
		return err
	}
	t.given[l.key] = flag
	return nil
}

// trustValue is the value of --trust itself.
type trustValue Trust

// Set implements [pflag.Value]. Several --trust add up.
func (v *trustValue) Set(s string) error {
	t := (*Trust)(v)
	for _, pair := range strings.Split(s, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok {
			return errors.New("want KEY=LIMIT, such as max-lag=100ms, separated by commas")
		}
		i := slices.IndexFunc(t.keys, func(l limit) bool { return l.key == key })
		if i < 0 {
			return fmt.Errorf("there is no limit %q; there are %s", key, strings.Join(t.names(), ", "))
		}
		if t.given[key] == "trust" {
			return fmt.Errorf("%s is given twice", key)
		}
		if err := t.set(t.keys[i], value, "trust"); err != nil {
			return err
		}
		if share := t.keys[i].share; share != nil && *share(&t.Limits) > 1 {
			return fmt.Errorf("%s: want at most 100%%; a percentage has its sign, as in 5%%", key)
		}
	}
	return nil
}

func (t *Trust) names() (names []string) {
	for _, l := range t.keys {
		names = append(names, l.key)
	}
	return names
}

// String implements [pflag.Value]: what was given, in the order of the keys.
func (v *trustValue) String() string {
	var given []string
	for _, l := range v.keys {
		if v.given[l.key] == "trust" {
			given = append(given, l.key+"="+l.text(&v.Limits))
		}
	}
	return strings.Join(given, ",")
}

// Type implements [pflag.Value].
func (v *trustValue) Type() string { return "limits" }

// set reads a limit: a duration, or a share as a percentage or a number. Below 0
// is off.
func (l limit) set(to *report.Limits, s string) error {
	off := s == trustOff || len(s) > 1 && s[0] == '-' && s[1] >= '0' && s[1] <= '9'
	if l.duration != nil {
		d, err := quantity.Latency(s)
		if off {
			d, err = -1, nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l.key, &quantity.Error{Text: s, Want: "a time with its unit", Examples: [3]string{"100ms", "1s", trustOff}})
		}
		*l.duration(to) = d
		return nil
	}
	share, err := quantity.Share(s)
	if off {
		share, err = -1, nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.key, &quantity.Error{Text: s, Want: "a share", Examples: [3]string{"1%", "0.01", trustOff}})
	}
	*l.share(to) = share
	return nil
}

// text writes a limit as set reads it, a share as a percentage where that is exact.
func (l limit) text(from *report.Limits) string {
	if l.duration != nil {
		if d := *l.duration(from); d >= 0 {
			return d.String()
		}
		return trustOff
	}
	share := *l.share(from)
	if share < 0 {
		return trustOff
	}
	percent := strconv.FormatFloat(share*100, 'g', 6, 64)
	if back, err := strconv.ParseFloat(percent, 64); err == nil && back/100 == share {
		return percent + "%"
	}
	return strconv.FormatFloat(share, 'g', -1, 64)
}
