package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/trace"
)

// publicFlags are the flags of --tier public, of synth fit, anonymize and import.
type publicFlags struct {
	tier, unit          string // flags of the command, which may have other values for other tiers
	budget              dp.Budget
	ledger              string
	maxInput, maxOutput int32
	understood          bool
}

// publicNames are the flags that [publicFlags.register] adds.
var publicNames = []string{"epsilon", "delta", "ledger", "max-input", "max-output", "i-understand"}

func (f *publicFlags) register(fl *pflag.FlagSet) {
	fl.Float64Var(&f.budget.Epsilon, "epsilon", 1, "for --tier public: privacy budget ε")
	fl.Float64Var(&f.budget.Delta, "delta", 1e-6, "for --tier public: δ, far below one over the number of users")
	fl.StringVar(&f.ledger, "ledger", "", "for --tier public: `file` that adds up the releases of a source; by default TRACE.ledger.jsonl")
	fl.Int32Var(&f.maxInput, "max-input", 131072, "for --tier public: public limit of input tokens, such as the context window")
	fl.Int32Var(&f.maxOutput, "max-output", 16384, "for --tier public: public limit of output tokens")
	fl.BoolVar(&f.understood, "i-understand", false, "for --tier public: allow an ε above 10, for this release or for all of the source")
}

// add adds all flags of a command that has no other tier to give.
func (f *publicFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.tier, "tier", "", "public makes a differentially private model; by default the tier is that of the trace")
	fl.StringVar(&f.unit, "unit", "", "for --tier public: what is protected, user, session or request; by default users, else sessions of the source")
	f.register(fl)
}

// refuse refuses flags that only tier public has.
func (f *publicFlags) refuse(fl *pflag.FlagSet) error {
	for _, name := range publicNames {
		if fl.Changed(name) {
			return usagef("--%s is for --tier public", name)
		}
	}
	return nil
}

// check refuses what does not go together.
func (f *publicFlags) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	if f.tier == "" {
		if given("unit") {
			return usagef("--unit is for --tier public")
		}
		return f.refuse(cmd.Flags())
	}
	switch {
	case f.tier != synth.TierPublic:
		return usagef("--tier public is the only one that a fit can give; without it the model has that of the trace")
	case given("k-swap"):
		return usagef("--tier public keeps no tuples, so there is no --k-swap")
	case !(f.budget.Epsilon > 0) || !(f.budget.Delta > 0 && f.budget.Delta < 0.01):
		return usagef("--epsilon must be above 0, and --delta between 0 and 0.01")
	case !slices.Contains([]string{"", synth.UnitUser, synth.UnitSession, synth.UnitRequest}, f.unit):
		return usagef("--unit is user, session or request")
	}
	return nil
}

// fit makes the model, when the budget allows it, and enters what it cost in the
// ledger before anything is written.
func (f *publicFlags) fit(cmd *cobra.Command, path string, t *trace.Trace) (*synth.Model, error) {
	switch err := synth.Publishable(t.Meta); {
	case errors.Is(err, synth.ErrNoCapture):
		return nil, &exitError{exitUsage, inFile(path, err)}
	case err != nil:
		return nil, inFile(path, err)
	}
	ledger, err := f.afford(cmd, path, t)
	if err != nil {
		return nil, err
	}
	if err := f.choose(t); err != nil {
		return nil, err
	}
	src, err := t.Reader()
	if err != nil {
		return nil, err
	}
	bar := newProgress(cmd)
	bar.start("fit", "requests", src.Rows())
	m, r, spent, err := synth.FitPublic(cmd.Context(), src, t.Meta, synth.PublicOptions{Budget: f.budget, Unit: f.unit,
		MaxInput: f.maxInput, MaxOutput: f.maxOutput, Progress: bar.set})
	bar.end()
	if spent {
		if err := f.enter(ledger, t.Meta.Digest, m, r); err != nil {
			return nil, err
		}
	}
	var noisy *synth.TooNoisy
	if errors.As(err, &noisy) {
		return nil, &exitError{exitCheck, fmt.Errorf("%w; the ledger counts the attempt", inFile(path, err))}
	}
	if errors.Is(err, synth.ErrNoUnit) {
		return nil, usagef("%v; say --unit request if that is meant", err)
	}
	if err != nil {
		return nil, inFile(path, err)
	}
	f.say(cmd, r)
	return m, nil
}

// enter puts what a fit cost into the ledger, and the card into the model, if
// there is one. What was measured before an error counts as well.
func (f *publicFlags) enter(ledger dp.Ledger, source string, m *synth.Model, r *synth.Release) error {
	entry := dp.Release{Source: source, Release: "refused", Time: time.Now().UTC().Truncate(time.Second), Budget: f.budget}
	if r != nil {
		entry.Mechanism = r.Mechanism
		if r.Selection == nil { // else ρ is not all that it cost
			entry.Rho = r.Rho
		}
	}
	if m != nil {
		total, err := ledger.Spent(source, entry)
		if err != nil {
			return err
		}
		r.Ledger = &total
		card := anonymize.PublicCard(r.Statement, m.Meta())
		card.Tool = tool()
		text, _, err := card.JSON()
		if err != nil {
			return err
		}
		if err := m.SetCard(text); err != nil {
			return err
		}
		entry.Release = m.Meta().Digest
	}
	return ledger.Add(entry)
}

// afford opens the ledger and holds the budget against what was spent.
func (f *publicFlags) afford(cmd *cobra.Command, path string, t *trace.Trace) (dp.Ledger, error) {
	ledger := dp.Ledger{Path: f.ledger}
	switch {
	case ledger.Path == "" && (path == standard || path == ""):
		return ledger, usagef("say where the ledger of the source is: --ledger FILE")
	case ledger.Path == "":
		ledger.Path = strings.TrimSuffix(path, ".parquet") + ".ledger.jsonl"
	}
	if t.Meta.Digest == "" {
		return ledger, inFile(path, errors.New("it has no digest, so a ledger cannot tell it from other sources; write it anew, with reprise slice or import"))
	}
	spent, err := ledger.Spent(t.Meta.Digest)
	if err != nil {
		return ledger, err
	}
	total := spent.Epsilon + f.budget.Epsilon
	switch {
	case total > synth.MaxEpsilon && !f.understood:
		return ledger, usagef("ε would be %.3g, with %.3g of %d releases or attempts before in %s; above %d it hardly protects, and only --i-understand allows it",
			total, spent.Epsilon, spent.Releases, ledger.Path, synth.MaxEpsilon)
	case total > synth.WarnEpsilon:
		notef(cmd, "warning: an ε of %.3g, all releases of the source together, protects little; 1 is usual", total)
	}
	return ledger, nil
}

// choose finds the unit of privacy where none was asked for.
func (f *publicFlags) choose(t *trace.Trace) error {
	if f.unit != "" {
		return nil
	}
	src, err := t.Reader()
	if err != nil {
		return err
	}
	if f.unit, err = synth.ChooseUnit(src, t.Meta); errors.Is(err, synth.ErrNoUnit) {
		return usagef("%v; say --unit request if that is meant", err)
	}
	return err
}

// say tells what was left out and how good the model is predicted to be. It
// goes to whoever holds the trace, and has exact counts.
func (f *publicFlags) say(cmd *cobra.Command, r *synth.Release) {
	e := r.Exact
	notef(cmd, "protects %s", r.Protects)
	if r.Unit == synth.UnitRequest {
		notef(cmd, "WARNING: ONE REQUEST IS PROTECTED, NOT A PERSON, since the source names nobody")
	}
	if e.Unnamed > 0 {
		notef(cmd, "%.1f %% of the requests name no %s: they count as one %s's", 100*float64(e.Unnamed)/float64(max(1, e.Requests)), r.Unit, r.Unit)
	}
	notef(cmd, "ε=%g, δ=%g by %s; %d units of %d requests, of which %.1f %% were left out as more than %d of a unit",
		r.Budget.Epsilon, r.Budget.Delta, r.Mechanism, e.Units, e.Requests, 100*float64(e.NotSampled)/float64(max(1, e.Requests)), r.Contribution.Records)
	for _, name := range []string{"input", "output"} {
		notef(cmd, "%s lengths: %.1f %% more were left out as more than %d of a unit in one cell", name,
			100*float64(e.NotCounted[name])/float64(max(1, e.Requests)), r.Contribution.PerCell)
	}
	notef(cmd, "predicted errors at most: total input %.1f %%, total output %.1f %%, 99th percentiles %.1f %% and %.1f %%",
		100*r.Predicted.InputTotal, 100*r.Predicted.OutputTotal, 100*r.Predicted.InputP99, 100*r.Predicted.OutputP99)
}
