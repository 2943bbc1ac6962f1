package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Schema names the layout of a [Result].
const Schema = "audit/1"

// A Status says how a check ended.
type Status string

// How a check ends.
const (
	Pass         Status = "pass"         // no way in was found
	Fail         Status = "fail"         // a way in was found
	Inconclusive Status = "inconclusive" // the check could not have found one
	Skipped      Status = "skipped"      // it was not run: what it needs is not there, or it is for other tiers
)

// Needs says what a check cannot do without, beside the output.
type Needs uint8

// What checks need.
const (
	NeedsTrace    Needs = 1 << iota // the output is a trace, or a workload
	NeedsBefore                     // rows of tier internal: the source log, or a trace made of it
	NeedsLog                        // the source log itself
	NeedsCanaries                   // what was planted in the source
)

// A Check is one way to try to break an output.
type Check struct {
	Name  string // as --only spells it
	About string // a sentence
	Needs Needs
	Run   func(ctx context.Context, c *Case) Finding
}

// Figures are what a check measured, by snake-case names with their units.
type Figures map[string]any

// A Finding is what became of a check.
type Finding struct {
	Check   string  `json:"check"` // set by [Run]
	Status  Status  `json:"status"`
	Why     string  `json:"why"`
	Figures Figures `json:"figures,omitempty"`
	Seed    string  `json:"seed,omitempty"` // decimal, of what the check drew

	broken bool // an error ended the check
}

// A Result is what all checks found of one output.
type Result struct {
	Schema     string    `json:"schema"`
	Version    string    `json:"version"`               // of the tool that judged
	Kind       string    `json:"kind"`                  // of the output, see [Output]
	Tier       string    `json:"tier,omitempty"`        // as the output says
	Digest     string    `json:"digest,omitempty"`      // of its rows, counted anew for a trace
	FileSHA256 string    `json:"file_sha256"`           // hex
	CardSHA256 string    `json:"card_sha256,omitempty"` // hex, as the output says
	Findings   []Finding `json:"findings"`
}

// Failed reports whether a check failed.
func (r *Result) Failed() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Status == Fail })
}

// Unsettled names a check without which nobody should release the output, though
// none failed: one that an error ended, and non-interference where the source was
// not that of the output. It is empty when there is none. Other checks that are
// inconclusive had nothing to find: no block to guess at, or few rows.
func (r *Result) Unsettled() string {
	for _, f := range r.Findings {
		if f.broken || f.Check == nonInterference && f.Status == Inconclusive {
			return f.Check
		}
	}
	return ""
}

// Count is how many findings have a status.
func (r *Result) Count(s Status) int {
	n := 0
	for _, f := range r.Findings {
		if f.Status == s {
			n++
		}
	}
	return n
}

// Run runs the checks whose names are in only, or all when it is empty. It fails
// for an unknown name, for a file that cannot be read, and when ctx ends.
func Run(ctx context.Context, c *Case, only []string) (Result, error) {
	checks, err := chosen(only)
	if err != nil {
		return Result{}, err
	}
	r := Result{Schema: Schema, Version: c.Version, Kind: c.Output.Kind, Tier: c.Output.Tier(), CardSHA256: c.Output.Meta["card_sha256"]}
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
		f := Finding{Status: Skipped, Why: c.lacks(check.Needs)}
		if f.Why == "" {
			f = check.Run(ctx, c)
		}
		f.Check, f.Why = check.Name, c.withoutPaths(f.Why)
		r.Findings = append(r.Findings, f)
	}
	return r, ctx.Err()
}

// chosen are the checks of those names, in the order of [Checks].
func chosen(only []string) ([]Check, error) {
	all := Checks()
	if len(only) == 0 {
		return all, nil
	}
	for _, name := range only {
		if !slices.ContainsFunc(all, func(c Check) bool { return c.Name == name }) {
			return nil, fmt.Errorf("%w: want some of %s", ErrNoCheck, strings.Join(Names(), ", "))
		}
	}
	return slices.DeleteFunc(all, func(c Check) bool { return !slices.Contains(only, c.Name) }), nil
}

// ErrNoCheck is of a name that no check has.
var ErrNoCheck = errors.New("there is no check of that name")

// Names lists the names of the checks.
func Names() []string {
	var out []string
	for _, c := range Checks() {
		out = append(out, c.Name)
	}
	return out
}

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

// Findings of a check's Run.
func passed(fig Figures, format string, args ...any) Finding {
	return Finding{Status: Pass, Why: fmt.Sprintf(format, args...), Figures: fig}
}

func failed(fig Figures, format string, args ...any) Finding {
	return Finding{Status: Fail, Why: fmt.Sprintf(format, args...), Figures: fig}
}

func inconclusive(fig Figures, format string, args ...any) Finding {
	return Finding{Status: Inconclusive, Why: fmt.Sprintf(format, args...), Figures: fig}
}

func skipped(format string, args ...any) Finding {
	return Finding{Status: Skipped, Why: fmt.Sprintf(format, args...)}
}

// broken is the finding of a check that an error ended.
func broken(err error) Finding {
	f := inconclusive(nil, "it could not be run to its end: %v", err)
	f.broken = true
	return f
}
