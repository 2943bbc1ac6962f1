package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Needs says what a check cannot do without, beside the output.
type Needs uint8

// What checks need.
const (
	NeedsTrace    Needs = 1 << iota // the output is a trace, or a workload
	NeedsBefore                     // rows of tier internal: the source log, or a trace made of it
	NeedsCanaries                   // what was planted in the source
)

// A Check is one way to try to break an output.
type Check struct {
	Name  string // as --only spells it
	About string // a sentence
	Needs Needs
	Run   func(ctx context.Context, c *Case) Finding
}

const noSource = "it needs the source log (--source) or a trace of tier internal (--internal)"

// Run runs the checks whose names are in only, or all when it is empty. It fails
// for an unknown name, for a file that cannot be read, and when ctx ends.
func Run(ctx context.Context, c *Case, only []string) (Result, error) {
	checks := Checks()
	var names []string
	for _, check := range checks {
		names = append(names, check.Name)
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			return Result{}, fmt.Errorf("%w: want one or more of %s", ErrNoCheck, strings.Join(names, ", "))
		}
	}
	if len(only) > 0 {
		checks = slices.DeleteFunc(checks, func(check Check) bool { return !slices.Contains(only, check.Name) })
	}
	var err error
	r := Result{Schema: resultSchema, Version: c.Version, Kind: c.Output.Kind, Tier: c.Output.Tier(),
		CardSHA256: c.Output.Meta["card_sha256"]}
	if r.Digest, r.FileSHA256, err = c.Output.digests(ctx); err != nil {
		return r, err
	}
	for _, check := range checks {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if c.Progress != nil {
			c.Progress(check.Name)
		}
		f := Finding{Status: Skipped}
		switch n := check.Needs; {
		case n&NeedsTrace != 0 && c.Output.Trace == nil:
			f.Why = "the output is no trace"
		case n&NeedsBefore != 0 && c.Log == nil && c.Internal == nil:
			f.Why = noSource
		case n&NeedsCanaries != 0 && len(c.Canaries) == 0:
			f.Why = "it needs the list of planted canaries (--canaries)"
		default:
			f = check.Run(ctx, c)
		}
		f.Check, f.Why = check.Name, c.withoutPaths(f.Why)
		r.Findings = append(r.Findings, f)
	}
	return r, ctx.Err()
}

// ErrNoCheck is the error for a name that no check has.
var ErrNoCheck = errors.New("unknown check")

// Checks lists all checks, in the order in which they run.
func Checks() []Check {
	return []Check{
		{"card", "the file names its tier and has a matching privacy card", 0, card},
		{"times", "no time of a release equals a time of the source, or is close to one", NeedsTrace | NeedsBefore,
			times},
		{"ids", "block ids are numbered by first appearance and cannot be computed from a known text", NeedsTrace, ids},
		{"container", "a Parquet file repeats no values in bounds, filters or dictionaries", 0, container},
		{"free-text", "every string is a closed word, a label or the tool's own", 0, freeText},
		{"canaries", "no planted string is in the output, in any encoding", NeedsCanaries, canaries},
		{"numbers", "no planted number is among the values of the output", NeedsCanaries, numeric},
		{"linkage", "a release does not show who was in its source; its rows are no closer to real ones than " +
			"people are to each other", NeedsTrace, linkage},
		{"composition", "several outputs of one source together stay within the limits of each", 0, composition},
	}
}
