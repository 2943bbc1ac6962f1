package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/synth/fidelity"
	"reprise/trace"
)

// fidelityFlags are the flags of fidelity.
type fidelityFlags struct {
	out, html string
	limits    []string
	from      float64
	warmUp    time.Duration
}

func fidelityCommand() *cobra.Command {
	var f fidelityFlags
	limits, small := fidelity.DefaultThresholds(math.MaxInt64), fidelity.DefaultThresholds(0)
	cmd := &cobra.Command{
		Use:   "fidelity TRACE WORKLOAD",
		Short: "Measure how close a workload is to a trace, and gate on it",
		Long: `Fidelity measures how close a workload is to a trace: the hit ratio of an LRU prefix
cache at every size and behind routers, lengths and correlations, arrivals and token rates
across time scales, queues, reuse categories, sessions, and whether it repeats details
of the trace. The exit code is 3 if a check exceeds its limit.

A check whose measure the trace lacks, such as reuse without prefix blocks, does not
apply. One whose measure only the workload lacks fails. Mirrors and slices repeat the
lengths of their trace: compare them with --max copies=off.

Checks and their limits, which --max changes. Of fewer than 5,000 requests a figure tells
less, by one over the root of their number: limits change to the ones in brackets, of 100.
` + cli.HelpList(fidelity.MeasureNames(), 24, func(name string) (string, string) {
			limit, ok := limits[name]
			switch {
			case !ok:
				return name, ""
			case limit != small[name]:
				return name, fmt.Sprintf("%g (%g)", limit, small[name])
			}
			return name, fmt.Sprintf("%g", limit)
		}) + `
docs/fidelity.md defines every measure.`,
		Example: `  reprise fidelity t.parquet w.parquet --max copies=off --html f.html
  reprise fidelity t.parquet w.parquet --max copies=off --max mrc_mae=0.01 --from 0.5 --json | jq .checks`,
		Args: flags.Wants(2, 2, "which trace, and which workload?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, args[0], args[1])
		},
	}
	fl := cmd.Flags()
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	judgement, judgementRest := flags.Sections(fl, flags.JudgementFlags)
	results.OutputVar(&f.out, "`file` to write, instead of stdout")
	results.Bool("json", false, "print JSON")
	flags.Details(cmd.Flags())
	results.FileVar(&f.html, "html", "write a self-contained HTML `page` with the curves of both")
	judgement.StringArrayVar(&f.limits, "max", nil,
		"limit of a measure, as `NAME=LIMIT` or NAME=off; copies is all measures of copies; repeatable")
	judgementRest.ShareVar(&f.from, "from", 0,
		"count only requests after this share of the duration; earlier ones only fill caches and sessions")
	judgementRest.DurationVar(&f.warmUp, "warm-up", 0,
		"count only requests this long after the first arrival; with --from, the later of the two")
	results.Bool("quiet", false, flags.QuietUsage)
	return cmd
}

func (f *fidelityFlags) run(cmd *cobra.Command, ref, cand string) error {
	defer cli.LimitMemory(largeMemory)()
	if _, err := f.thresholds(0); err != nil {
		return err
	}
	switch {
	case !(f.from >= 0 && f.from < 1):
		return cli.Usagef("--from: want a share from 0 to below 1")
	case f.warmUp < 0:
		return cli.Usagef("--warm-up: want a time from 0 up")
	case ref == cli.Standard && cand == cli.Standard:
		return cli.Usagef("only one of the two can come from stdin")
	}
	result, err := f.compare(cmd, ref, cand)
	if err != nil {
		return err
	}
	limits, err := f.thresholds(result.Reference.Requests)
	if err != nil {
		return err
	}
	checks := result.Gate(limits)
	err = cli.Finding{Tier: result.Tier, Page: result.Page(checks), JSON: result.Judged(checks), HTML: f.html,
		Out:  f.out,
		Rest: "All measures: --details. Curves, and what each measure is: --html FILE."}.Write(cmd)
	if err != nil {
		return err
	}
	if failed := fidelity.Failures(checks); len(failed) > 0 {
		names := make([]string, len(failed))
		for i, c := range failed {
			names[i] = c.Name
		}
		more := ""
		if n := len(names) - 3; n > 1 {
			names, more = names[:3], fmt.Sprintf(" and %d more", n)
		}
		return cli.Exit(cli.Check, fmt.Errorf("the candidate is not faithful by %s%s", strings.Join(names, ", "), more))
	}
	return nil
}

// thresholds are those for a reference of so many requests, with --max.
func (f *fidelityFlags) thresholds(requests int64) (fidelity.Thresholds, error) {
	limits := fidelity.DefaultThresholds(requests)
	for _, s := range f.limits {
		if err := limits.Set(s); err != nil {
			return nil, cli.Usagef("--max: %v", err)
		}
	}
	return limits, nil
}

// compare reads both traces and measures them.
func (f *fidelityFlags) compare(cmd *cobra.Command, ref, cand string) (none fidelity.Report, err error) {
	a, err := cli.OpenTrace(cmd, ref)
	if err != nil {
		return none, err
	}
	defer a.Close()
	b, err := cli.OpenTrace(cmd, cand)
	if err != nil {
		return none, err
	}
	defer b.Close()
	opts := fidelity.Options{From: f.from, WarmUp: f.warmUp}
	if opts.BlockSize, err = fidelity.CommonBlockSize(a.Meta, b.Meta); err != nil {
		return none, err
	}
	bar := cli.NewProgress(cmd, fidelitySteps...)
	defer bar.End()
	left, err := signatureOf(cmd, bar, "reference", a, opts)
	if err != nil {
		return none, err
	}
	right, err := signatureOf(cmd, bar, "candidate", b, opts)
	if err != nil {
		return none, err
	}
	bar.Start("compare", "requests", 0)
	return fidelity.Compare(left, right)
}

// fidelitySteps take about so long beside each other, by the same traces as those of synth.
var fidelitySteps = []cli.Step{{Name: "reference", Part: 5}, {Name: "candidate", Part: 5}, {Name: "compare", Part: 11}}

// signatureOf reads a whole trace into a signature.
func signatureOf(cmd *cobra.Command, bar *cli.Progress, step string, t *trace.Trace,
	opts fidelity.Options) (*fidelity.Signature, error) {
	s := fidelity.NewSignature(t.Meta, opts)
	if err := feed(cmd, bar, step, t, s); err != nil {
		return nil, err
	}
	s.End()
	return s, nil
}
