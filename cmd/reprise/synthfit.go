package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/synth"
	"reprise/trace"
)

func synthFitCommand() *cobra.Command {
	var out string
	var kSwap int
	var public flags.Public
	cmd := &cobra.Command{
		Use:   "fit TRACE|HISTOGRAMS",
		Short: "Fit a model to a trace, or to the histograms of its profile",
		Long: `Fit makes a model file of a trace: the reuse and lengths of each request, in order, and
the arrivals of its users. Fit once and generate often: a model and a seed always give
the same workload.

Values are swapped among at least --k-swap similar requests, within windows of 2,000.
This is not differential privacy: every value still occurred. The model has the privacy
tier of the trace.

With --tier public the model can be published. It is differentially private: noisy
counts of at most 8 requests of each user, in cells that do not depend on the data. It
needs some hundred thousand requests at ε=1 with users, and a declared capture window
(reprise import --capture-begin T --capture-end T). It is refused with exit code 3 if
the predicted error of its total tokens or 99th percentiles is above 10 %. All releases
and attempts of a trace add up in a ledger:

  reprise synth fit t.parquet --tier public --epsilon 1 -o m.parquet

Histograms of reprise profile --histograms make a model too: without noise, with the
trace's tier, and with each quantity drawn independently.`,
		Example: `  reprise synth fit t.parquet -o m.parquet
  reprise profile t.parquet --histograms h.parquet
  reprise synth fit h.parquet -o m.parquet
  reprise synth fit t.parquet --k-swap 20 -o m.parquet`,
		Args: flags.Wants(1, 1, "which trace?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case out == "" && cli.MissingFile(args[0]) != nil:
				return cli.MissingFile(args[0])
			case out == "":
				return cli.Usagef("name a file for the model: -o FILE.parquet, or -o - for stdout")
			case out == cli.Standard && cli.IsTerminal(cmd.OutOrStdout()):
				return cli.Usagef("a model is binary: redirect stdout, or give -o FILE.parquet")
			case kSwap < 1:
				return cli.Usagef("--k-swap must be 1 or more")
			}
			if err := public.Check(cmd); err != nil {
				return err
			}
			m, err := fitInput(cmd, args[0], kSwap, &public)
			if err != nil {
				return err
			}
			noteFew(cmd, m)
			return cli.WriteOutputMode(cmd, out, m.Meta().Mode(), func(w io.Writer) error { return m.Write(w) })
		},
	}
	results, _ := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	_, modelRest := flags.Sections(cmd.Flags(), "Model")
	results.OutputVar(&out, "`file` for the model; - is stdout")
	modelRest.IntVar(&kSwap, "k-swap", synth.DefaultKSwap, "swap values among at least this many similar requests; 1 swaps none")
	public.RegisterWithTier(cmd)
	results.Bool("quiet", false, "no progress")
	return cmd
}

// fitInput fits a model to whatever the file holds.
func fitInput(cmd *cobra.Command, path string, kSwap int, public *flags.Public) (*synth.Model, error) {
	in, size, err := cli.OpenInput(cmd, path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	m, err := synth.FitHistograms(in, size)
	switch {
	case err == nil && (public.Tier != "" || cmd.Flags().Changed("k-swap")):
		return nil, cli.Usagef("%s holds histograms, which have the tier of their trace and no tuples to swap", path)
	case !errors.Is(err, synth.ErrNotHistograms):
		return m, cli.InFile(path, err)
	}
	t, err := cli.TraceIn(path, in, size)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if public.Tier != "" {
		return fitPublic(cmd, public, path, t)
	}
	return fitTrace(cmd, path, t, kSwap)
}

// fitTrace fits a model and says what it costs.
func fitTrace(cmd *cobra.Command, path string, t *trace.Trace, kSwap int) (*synth.Model, error) {
	src, err := t.Reader()
	if err != nil {
		return nil, err
	}
	bar := cli.NewProgress(cmd)
	bar.Start("fit", "requests", src.Rows())
	defer bar.End()
	m, err := synth.Fit(cmd.Context(), src, t.Meta, synth.FitOptions{KSwap: kSwap, Progress: bar.Set})
	if err != nil {
		return nil, cli.InFile(path, err)
	}
	if kSwap == 1 {
		cli.Notef(cmd, "the tuples are not swapped: each request's lengths and reuse are those of the trace")
	}
	return m, nil
}

// noteFew says when a model was fitted to too little.
func noteFew(cmd *cobra.Command, m *synth.Model) {
	if few := m.Few(); few != "" {
		cli.Notef(cmd, "note: %s; reprise fidelity says how close it comes, and synth --mirror keeps the rows as they are", few)
	}
}

// fitPublic makes the model of --tier public, when the budget allows it, and enters what it cost in the
// ledger before anything is written.
func fitPublic(cmd *cobra.Command, f *flags.Public, path string, t *trace.Trace) (*synth.Model, error) {
	switch err := synth.Publishable(t.Meta); {
	case errors.Is(err, synth.ErrNoCapture):
		return nil, cli.Exit(cli.Usage, cli.InFile(path, err))
	case err != nil:
		return nil, cli.InFile(path, err)
	}
	ledger, err := affordBudget(cmd, f, path, t)
	if err != nil {
		return nil, err
	}
	src, err := t.Reader()
	if err != nil {
		return nil, err
	}
	if f.Unit == "" {
		f.Unit, err = synth.ChooseUnit(src, t.Meta)
		switch {
		case errors.Is(err, synth.ErrNoUnit):
			return nil, cli.Usagef("%v; use --unit request to protect requests instead", err)
		case err != nil:
			return nil, err
		}
		if src, err = t.Reader(); err != nil {
			return nil, err
		}
	}
	bar := cli.NewProgress(cmd)
	bar.Start("fit", "requests", src.Rows())
	m, r, spent, err := synth.FitPublic(cmd.Context(), src, t.Meta, synth.PublicOptions{Budget: f.Budget, Unit: f.Unit,
		MaxInput: f.MaxInput, MaxOutput: f.MaxOutput, Progress: bar.Set})
	bar.End()
	if spent {
		if err := enterLedger(ledger, f.Budget, t.Meta.Digest, m, r); err != nil {
			return nil, err
		}
	}
	var noisy *synth.TooNoisy
	if errors.As(err, &noisy) {
		return nil, cli.Exit(cli.Check, fmt.Errorf("%w; the ledger counts the attempt", cli.InFile(path, err)))
	}
	if errors.Is(err, synth.ErrNoUnit) {
		return nil, cli.Usagef("%v; use --unit request to protect requests instead", err)
	}
	if err != nil {
		return nil, cli.InFile(path, err)
	}
	notePublic(cmd, r)
	return m, nil
}

// enterLedger puts what a fit cost into the ledger, and the card into the model, if
// there is one. What was measured before an error counts as well.
func enterLedger(ledger dp.Ledger, budget dp.Budget, source string, m *synth.Model, r *synth.Release) error {
	entry := dp.Release{Source: source, Release: "refused", Time: time.Now().UTC().Truncate(time.Second), Budget: budget}
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

// affordBudget opens the ledger and holds the budget against what was spent.
func affordBudget(cmd *cobra.Command, f *flags.Public, path string, t *trace.Trace) (dp.Ledger, error) {
	ledger := dp.Ledger{Path: f.Ledger}
	switch {
	case ledger.Path == "" && (path == cli.Standard || path == ""):
		return ledger, cli.Usagef("name the ledger of the source: --ledger FILE")
	case ledger.Path == "":
		ledger.Path = strings.TrimSuffix(path, ".parquet") + ".ledger.jsonl"
	}
	if t.Meta.Digest == "" {
		return ledger, cli.InFile(path, errors.New("it has no digest, so a ledger cannot tell it from other sources: rewrite it with reprise slice or import"))
	}
	spent, err := ledger.Spent(t.Meta.Digest)
	if err != nil {
		return ledger, err
	}
	total := spent.Epsilon + f.Budget.Epsilon
	switch {
	case total > synth.MaxEpsilon && !f.Understood:
		return ledger, cli.Usagef("ε would be %.3g, with %.3g of %d releases or attempts before in %s; above %d it protects little: --i-understand allows it",
			total, spent.Epsilon, spent.Releases, ledger.Path, synth.MaxEpsilon)
	case total > synth.WarnEpsilon:
		cli.Notef(cmd, "warning: an ε of %.3g, all releases of the source together, protects little; 1 is usual", total)
	}
	return ledger, nil
}

// notePublic tells what was left out and how good the model is predicted to be. It
// goes to whoever holds the trace, and has exact counts.
func notePublic(cmd *cobra.Command, r *synth.Release) {
	e := r.Exact
	cli.Notef(cmd, "protects %s", r.Protects)
	if r.Unit == synth.UnitRequest {
		cli.Notef(cmd, "WARNING: ONE REQUEST IS PROTECTED, NOT A PERSON, since the source names nobody")
	}
	if e.Unnamed > 0 {
		cli.Notef(cmd, "%.1f %% of the requests name no %s: they count as one %s's", 100*float64(e.Unnamed)/float64(max(1, e.Requests)), r.Unit, r.Unit)
	}
	cli.Notef(cmd, "ε=%g, δ=%g by %s; %d units of %d requests, of which %.1f %% were left out as more than %d of a unit",
		r.Budget.Epsilon, r.Budget.Delta, r.Mechanism, e.Units, e.Requests, 100*float64(e.NotSampled)/float64(max(1, e.Requests)), r.Contribution.Records)
	for _, name := range []string{"input", "output"} {
		cli.Notef(cmd, "%s lengths: %.1f %% more were left out as more than %d of a unit in one cell", name,
			100*float64(e.NotCounted[name])/float64(max(1, e.Requests)), r.Contribution.PerCell)
	}
	cli.Notef(cmd, "predicted errors at most: total input %.1f %%, total output %.1f %%, 99th percentiles %.1f %% and %.1f %%",
		100*r.Predicted.InputTotal, 100*r.Predicted.OutputTotal, 100*r.Predicted.InputP99, 100*r.Predicted.OutputP99)
}
