package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/synth"
	"reprise/synth/fidelity"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/objectstore"
)

// fitFlags say how a model is fitted, and where it is written.
type fitFlags struct {
	out    string
	kSwap  int
	strict bool
	public flags.Release // of a model with noise; without a tier there is none
}

func synthFitCommand() *cobra.Command {
	var f fitFlags
	cmd := &cobra.Command{
		Use:   "fit TRACE|HISTOGRAMS",
		Short: "Fit a model to a trace, or to the histograms of its profile",
		Long: `Fit makes a model file of a trace: for each request, in order, which earlier one it
builds on, its lengths, and the gap before it. Fit once and generate often: a model and a
seed always give the same workload. A model of an earlier version is fitted again.

Sizes, outputs and gaps are each exchanged among at least --k-swap similar requests, and
sessions move as a whole, with as many turns as they have. This is not differential
privacy: every value still occurred. The model has the privacy tier of the trace. Of a
trace that takes more than 1.1 GB, a sample of whole prefix trees is fitted.

With --tier partner (ε=8) and --tier public (ε=1) the model is differentially private:
each user or session adds a weight of 1 in all to each of some 20 noisy tables, in cells
that do not depend on the data, and reprise synth draws fresh sessions from them. No row
is one of the trace. A model needs a declared capture window (reprise import
--capture-begin T --capture-end T), and is refused with exit code 3 where its predicted
errors are too large: some 10,000 sessions are enough at ε=1, some 2,000 at ε=8. All
releases and attempts of a trace add up in a ledger:

  reprise synth fit t.parquet --tier public --epsilon 1 -o m.parquet

Histograms of reprise profile --histograms make a model too: without noise, with the
trace's tier, and with each quantity drawn independently.`,
		Example: `  reprise synth fit t.parquet -o m.parquet
  reprise profile t.parquet --histograms h.parquet
  reprise synth fit h.parquet -o m.parquet
  reprise synth fit t.parquet --k-swap 20 -o m.parquet`,
		Args: flags.Wants(1, 1, "which trace?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			defer cli.LimitMemory(largeMemory)()
			if err := f.check(cmd, args[0]); err != nil {
				return err
			}
			if f.public.Tier != "" {
				return writeSessions(cmd, &f.public, args[0], f.out)
			}
			return f.fit(cmd, args[0])
		},
	}
	results, _ := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	_, modelRest := flags.Sections(cmd.Flags(), "Model")
	results.ParquetVar(&f.out, "`file` for the model; - is stdout")
	modelRest.IntVar(&f.kSwap, "k-swap", synth.DefaultKSwap,
		"swap values among at least this many similar requests; 1 swaps none")
	modelRest.BoolVar(&f.strict, "strict", false, strictHelp)
	f.public.Register(cmd.Flags(), "",
		"partner and public make differentially private models; by default the trace's tier")
	results.Bool("json", false, "print the summary as JSON")
	results.Bool("quiet", false, flags.QuietUsage)
	return cmd
}

// check refuses flags that go against each other, and a trace that is not there.
func (f *fitFlags) check(cmd *cobra.Command, path string) error {
	switch {
	case f.out == "" && cli.MissingFile(path) != nil:
		return cli.MissingFile(path)
	case f.out == "":
		return cli.Usagef("name a file for the model: -o FILE.parquet, or -o - for stdout")
	case f.out == cli.Standard && cli.IsTerminal(cmd.OutOrStdout()):
		return cli.Usagef("a model is binary: redirect stdout, or give -o FILE.parquet")
	case f.kSwap < 1:
		return cli.Usagef("--k-swap must be 1 or more")
	case f.public.Tier != "" && !f.public.Drawn():
		return cli.Usagef("--tier: want partner or public; without the flag, the model has the trace's tier")
	case f.public.Tier != "" && cmd.Flags().Changed("k-swap"):
		return cli.Usagef("--k-swap cannot be used with --tier %s, which keeps no rows to swap", f.public.Tier)
	case f.public.Tier != "" && f.strict:
		return cli.Usagef("--strict cannot be used with --tier %s: a release that is measured against its "+
			"trace tells of it what its noise hides", f.public.Tier)
	}

	if err := f.public.Check(cmd); err != nil {
		return err
	}
	return jsonOrFile(cmd, f.out)
}

// fit writes a model without noise of the trace or the histograms at a path.
func (f *fitFlags) fit(cmd *cobra.Command, path string) error {
	m, checks, err := fitInput(cmd, path, f.kSwap)
	if err != nil {
		return err
	}
	if err := cli.WriteOutputMode(cmd, f.out, m.Meta().Mode(),
		func(w io.Writer) error { return m.Write(w) }); err != nil {
		return err
	}

	var notes []string
	off := strictly(f.strict, checks, "a workload of it", &notes)
	return errors.Join(sayModel(cmd, f.out, m.Meta(), int64(m.Requests()), "request", m.KSwap(), notes), off)
}

// fitInput fits a model to whatever the file holds, with what was measured of it.
func fitInput(cmd *cobra.Command, path string, kSwap int) (*synth.Model, []fidelity.Check, error) {
	in, size, err := cli.OpenInput(cmd, path)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	m, err := synth.FitHistograms(in, size)
	switch {
	case err == nil && cmd.Flags().Changed("k-swap"):
		return nil, nil, cli.Usagef("%s holds histograms, which have no requests to swap", path)
	case err == nil && cmd.Flags().Changed("strict"):
		return nil, nil, cli.Usagef("--strict measures the model against its trace, and %s holds histograms", path)
	case !errors.Is(err, synth.ErrNotHistograms):
		return m, nil, cli.InFile(path, err)
	}
	t, err := cli.TraceIn(path, in, size)
	if err != nil {
		return nil, nil, err
	}
	defer t.Close()
	best, err := fitJudged(cmd, path, t, 1, kSwap)
	return best.Model, best.Checks, err
}

// fitTrace fits a model.
func fitTrace(cmd *cobra.Command, bar *cli.Progress, path string, t *trace.Trace, kSwap int) (*synth.Model, error) {
	src, err := t.Reader()
	if err != nil {
		return nil, err
	}
	bar.Start("survey", "requests", src.Rows())
	opts := synth.FitOptions{KSwap: kSwap, Progress: bar.Set, Swaps: func(tried, of int) {
		if tried == 0 {
			bar.Start("swap", "swaps", int64(of))
		}
		bar.Set(int64(tried))
	}}
	if opts.Trees, err = synth.SurveyTrees(cmd.Context(), src, t.Meta, opts); err != nil {
		return nil, cli.InFile(path, err)
	}
	if src, err = t.Reader(); err != nil {
		return nil, err
	}
	bar.Start("fit", "requests", src.Rows())
	m, err := synth.Fit(cmd.Context(), src, t.Meta, opts)
	if err != nil {
		return nil, cli.InFile(path, err)
	}
	return m, nil
}

// sayModel prints what model was written to path, and of how many of what it is.
func sayModel(cmd *cobra.Command, path string, meta trace.Meta, n int64, of string, kSwap int, notes []string) error {
	if cli.On(cmd, "json") {
		said := struct {
			File     string   `json:"file"`
			Tier     string   `json:"tier"`
			Requests int64    `json:"requests,omitempty"`
			Sessions int64    `json:"sessions,omitempty"`
			KSwap    int      `json:"k_swap,omitempty"`
			Digest   string   `json:"digest"`
			Notes    []string `json:"notes"`
		}{path, meta.Tier, n, 0, kSwap, meta.Digest, append([]string{}, notes...)}
		if of == "session" {
			said.Requests, said.Sessions = 0, n
		}
		return cli.WriteJSON(cmd.OutOrStdout(), said)
	}
	messages := []string{fmt.Sprintf("%s: a model of %s; reprise synth makes workloads of it",
		outputName(path), doc.Many(n, of)), trace.TierWords(meta.Tier)}
	for _, n := range notes {
		if !strings.HasPrefix(n, "warning: ") {
			n = "note: " + n
		}
		messages = append(messages, n)
	}
	cli.Answer(cmd, "--json prints them", messages...)
	return nil
}

// leastReleased is how many requests a trace must have for a release with an ε to be tried. None of fewer has ever
// been within the limits: 0 of 20 of 370 requests at an ε of 8, each a unit by itself, and 0 of 8 of 2,000 at an ε of 1.
// Only the owner of the trace learns that it has fewer.
func leastReleased(epsilon float64) int64 {
	if epsilon > 8 {
		return 100
	}
	return int64(max(370, 2000/epsilon))
}

// beginNoisy checks that a trace can be measured with noise, chooses the unit of privacy,
// and refuses a release that the budget does not allow. It enters nothing: a release costs
// what its noise shows, and there is none yet.
func beginNoisy(cmd *cobra.Command, f *flags.Release, path string,
	t *trace.Trace) (ledger dp.Ledger, entry dp.Release, err error) {
	ledger = ledgerOf(cmd, f.Ledger, path)
	switch err := synth.Publishable(t.Meta); {
	case errors.Is(err, synth.ErrNoCapture):
		return ledger, entry, cli.Exit(cli.Usage, cli.InFile(path, err))
	case err != nil:
		return ledger, entry, cli.InFile(path, err)
	case objectstore.IsURL(f.Ledger):
		return ledger, entry, cli.Usagef("--ledger %s: no object can be added to while others do: name a file, on a "+
			"file system that all who release the trace share", f.Ledger)
	case f.Ledger == "" && objectstore.IsURL(path):
		return ledger, entry, cli.Usagef("%s is in a store, where no ledger can be kept beside it: name the file in "+
			"which all who release this trace count: --ledger FILE", path)
	case f.Ledger == "" && (path == cli.Standard || path == ""):
		return ledger, entry, cli.Usagef("name the ledger of the source: --ledger FILE")
	case t.Meta.Digest == "":
		return ledger, entry, cli.InFile(path,
			errors.New("it has no digest, so a ledger cannot tell it from other sources: rewrite it with reprise "+
				"slice or import"))
	}
	if keys, _ := anonymize.SharedKeys(t.Meta); f.Ledger == "" && len(keys) > 0 {
		return ledger, entry, cli.Usagef("%s was recorded with --key-file: other captures with that key have the "+
			"same users, so what their releases cost adds up. Name one ledger for all of them: --ledger FILE", path)
	}
	src, err := t.Reader()
	if err != nil {
		return ledger, entry, err
	}
	requests := src.Rows()
	if f.Unit == "" {
		f.Unit, err = synth.ChooseUnit(src, t.Meta)
		switch {
		case errors.Is(err, synth.ErrNoUnit) && f.Tier == anonymize.Partner && t.Meta.BlockSize > 0:
			f.Unit = synth.UnitSession // of requests that share the begin of their prompts
		case errors.Is(err, synth.ErrNoUnit):
			why := "use --unit request to protect requests instead"
			if t.Meta.BlockSize > 0 {
				why = "use --unit session to protect requests whose prompts share a beginning together, or --unit " +
					"request"
			}
			return ledger, entry, cli.Usagef("%v; %s", err, why)
		case err != nil:
			return ledger, entry, err
		}
	}
	if entry, err = countRelease(f, t); err != nil {
		return ledger, entry, cli.InFile(path, err)
	}
	before, err := ledger.Before(&entry.Source)
	if err != nil {
		return ledger, entry, err
	}
	if err := afford(ledger, &entry, before, f.Understood); err != nil {
		return ledger, entry, err
	}
	if requests < leastReleased(entry.Epsilon) {
		return ledger, entry, cli.Exit(cli.Check, cli.InFile(path, fmt.Errorf("it has %s, and a release needs some "+
			"thousand sessions: nothing was measured, and no ε is spent. Collect a longer log; reprise synth makes a "+
			"workload of this one for use inside your organisation", doc.Many(requests, "request"))))
	}
	return ledger, entry, nil
}
