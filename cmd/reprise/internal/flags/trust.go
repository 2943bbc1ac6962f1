package flags

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reprise/replay/bench"
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

// A limit is one that a key of --trust sets.
type limit report.Limit

// trustOff switches a limit off.
const trustOff = "off"

// Register adds --trust with these keys, or with all when none is named, and the
// hidden flag of each.
func (t *Trust) Register(cmd *cobra.Command, keys ...string) {
	*t = Trust{Limits: report.DefaultLimits(), given: map[string]string{}}
	fl := cmd.Flags()
	var usage strings.Builder
	usage.WriteString("`limits` beyond which a run is untrustworthy, such as max-lag=1s,max-errors=5%; off removes a " +
		"limit\nkeys and defaults:")
	for _, known := range report.LimitList() {
		l := limit(known)
		if len(keys) > 0 && !slices.Contains(keys, l.Key) {
			continue
		}
		t.keys = append(t.keys, l)
		fmt.Fprintf(&usage, "\n  %-26s %s", l.Key+"="+l.text(&t.Limits), l.What)
	}
	everyday, _ := Sections(fl, JudgementFlags)
	everyday.Var((*trustValue)(t), "trust", usage.String())
	// The spelling from before there was --trust: --max-lag 1s is --trust max-lag=1s.
	for _, l := range t.keys {
		fl.Var(&oldLimit{t, l}, l.Key, "the same as --trust "+l.Key+"=…")
		fl.Lookup(l.Key).Hidden = true
	}
}

// Keep takes the limits that directories of runs were made with, where no flag gives one and they agree.
func (t *Trust) Keep(of ...bench.Experiment) {
	limits := of[0].Limits()
	if len(t.given) == 0 && !slices.ContainsFunc(of, func(e bench.Experiment) bool { return e.Limits() != limits }) {
		t.Limits = limits
	}
}

// set sets a limit from the value of a flag.
func (t *Trust) set(l limit, value, flag string) error {
	if by, ok := t.given[l.Key]; ok && by != flag {
		return fmt.Errorf("%s is given by --trust and by --%s; give it once", l.Key, l.Key)
	}
	if err := l.set(&t.Limits, value); err != nil {
		return err
	}
	t.given[l.Key] = flag
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
		i := slices.IndexFunc(t.keys, func(l limit) bool { return l.Key == key })
		if i < 0 {
			return fmt.Errorf("there is no limit %q; there are %s", key, strings.Join(t.names(), ", "))
		}
		if t.given[key] == "trust" {
			return fmt.Errorf("%s is given twice", key)
		}
		if err := t.set(t.keys[i], value, "trust"); err != nil {
			return err
		}
		if share := t.keys[i].Share; share != nil && *share(&t.Limits) > 1 {
			return fmt.Errorf("%s: want at most 100%%; a percentage has its sign, as in 5%%", key)
		}
	}
	return nil
}

func (t *Trust) names() (names []string) {
	for _, l := range t.keys {
		names = append(names, l.Key)
	}
	return names
}

// String implements [pflag.Value]: what was given, in the order of the keys.
func (v *trustValue) String() string {
	var given []string
	for _, l := range v.keys {
		if v.given[l.Key] == "trust" {
			given = append(given, l.Key+"="+l.text(&v.Limits))
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
	if l.Duration != nil {
		d, err := quantity.Latency(s)
		if off {
			d, err = -1, nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l.Key, &quantity.Error{Text: s, Want: "a time with its unit",
				Examples: [3]string{"100ms", "1s", trustOff}})
		}
		*l.Duration(to) = d
		return nil
	}
	share, err := quantity.Share(s)
	if off {
		share, err = -1, nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.Key,
			&quantity.Error{Text: s, Want: "a share", Examples: [3]string{"1%", "0.01", trustOff}})
	}
	*l.Share(to) = share
	return nil
}

// text writes a limit as set reads it, a share as a percentage where that is exact.
func (l limit) text(from *report.Limits) string {
	if l.Duration != nil {
		if d := *l.Duration(from); d >= 0 {
			return d.String()
		}
		return trustOff
	}
	share := *l.Share(from)
	if share < 0 {
		return trustOff
	}
	percent := strconv.FormatFloat(share*100, 'g', 6, 64)
	if back, err := strconv.ParseFloat(percent, 64); err == nil && back/100 == share {
		return percent + "%"
	}
	return strconv.FormatFloat(share, 'g', -1, 64)
}
