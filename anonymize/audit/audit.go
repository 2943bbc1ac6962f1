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
			return Result{}, fmt.Errorf("%w: want some of %s", ErrNoCheck, strings.Join(names, ", "))
		}
	}
	if len(only) > 0 {
		checks = slices.DeleteFunc(checks, func(check Check) bool { return !slices.Contains(only, check.Name) })
	}
	var err error
	r := Result{Schema: resultSchema, Version: c.Version, Kind: c.Output.Kind, Tier: c.Output.Tier(), CardSHA256: c.Output.Meta["card_sha256"]}
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
			f.Why = "it needs the source log (--source) or a trace of tier internal (--internal)"
		case n&NeedsCanaries != 0 && len(c.Canaries) == 0:
			f.Why = "it needs what was planted in the source (--canaries)"
		default:
			f = check.Run(ctx, c)
		}
		f.Check, f.Why = check.Name, c.withoutPaths(f.Why)
		r.Findings = append(r.Findings, f)
	}
	return r, ctx.Err()
}

// ErrNoCheck is the error for a name that no check has.
var ErrNoCheck = errors.New("there is no check of that name")

// Checks lists all checks, in the order in which they run.
func Checks() []Check {
	return []Check{
		{"card", "the output names its tier and carries its privacy card, which matches its hash", 0, card},
		{nonInterference, "with everything that the source names renamed, the output made anew is the same to the last bit", NeedsTrace | NeedsBefore, interference},
		{"injection", "somebody who had accounts while the traffic was recorded cannot confirm a guess at what others sent", NeedsTrace | NeedsBefore, injection},
		{"times", "instants of the source do not come out of a release to a partner", NeedsTrace | NeedsBefore, times},
		{"rules", "every row of a release to a partner is as its card says", NeedsTrace, rules},
		{"ids", "ids are numbers in the order of first appearance, and none that can be computed of a known text", NeedsTrace, ids},
		{"container", "a Parquet file repeats no values in bounds, filters or dictionaries, where readers of its columns do not look", 0, container},
		{"free-text", "no string of the output is another than closed words, labels and the tool's own", 0, freeText},
		{"canaries", "no string that was planted in the source is in the output, in whatever encoding", NeedsCanaries, canaries},
		{"numbers", "no number that was planted in the source is among the values of the output", NeedsCanaries, numeric},
		{"linkage", "requests and sessions of a release hide among others, and synthetic ones are not near to real ones", NeedsTrace, linkage},
		{"noise", "one user more or less cannot be told from the noisy counts of a public release beyond the ε that is claimed", 0, noise},
	}
}
