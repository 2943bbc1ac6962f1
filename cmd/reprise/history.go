package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/bench"
	"reprise/replay/history"
	"reprise/trace"
)

// historyFlags are the flags of history.
type historyFlags struct {
	judge     flags.Judge
	metrics   []string
	minChange float64
	alpha     float64
	gate      bool
	bisect    string
}

func historyCommand() *cobra.Command {
	var f historyFlags
	cmd := &cobra.Command{
		Use:   "history DIR",
		Short: "Find when a metric changed over many runs",
		Long: `History lists the results below a directory, newest first, and finds when a metric
changed. Runs with the same workload, load, engine, hardware, deployment and client
machine are a series. A change below 2 % is not reported (--min-change). Of a hundred
histories without a change, at most one has a change found in it (--alpha), whatever the
number of metrics and series. A series needs 10 trusted runs
for one metric and 12 for four. Untrusted runs are listed, not judged.

Runs are named by commit if the replay had --note commit=NAME.

The exit code is 0. With --gate it is 3 if the last change of a metric, in the series of
the newest run, was for the worse, and 4 if that run cannot be trusted or nothing can be
judged.

--bisect GOOD..BAD has the exit codes of git bisect run: 0 if the newest run is like
those of commit GOOD, 3 if like those of BAD, 125 if it cannot be judged, 128 after a
failure. GOOD and BAD need three trusted runs each.`,
		Example: `  reprise history runs
  reprise history runs --metric p99_ttft --html history.html
  reprise history runs --gate
  reprise history runs --metric p99_ttft --bisect v1.2..v1.3`,
		Args: flags.Wants(1, 1, "which directory?"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	fl := cmd.Flags()
	judgement, judgementRest := flags.Sections(fl, flags.JudgementFlags)
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	var names []string
	for _, m := range history.DefaultMetrics() {
		names = append(names, m.String())
	}
	judgement.StringArrayVar(&f.metrics, "metric", nil, "`metric` to judge and draw, such as p99_ttft; repeatable, the first is the main one. By default "+strings.Join(names, ", "))
	judgement.BoolVar(&f.gate, "gate", false, "exit with 3 if the last change of a metric was for the worse")
	judgement.StringVar(&f.bisect, "bisect", "", "classify the newest run as commit GOOD or BAD, given as `GOOD..BAD`, with the exit codes of git bisect run")
	judgement.ShareVar(&f.minChange, "min-change", 0.02, "smallest change of a metric to report, as a share of its level before; 0 reports every significant one")
	judgementRest.ShareVar(&f.alpha, "alpha", 0.01, "probability that a change is found in a history without one")
	f.judge.Defaults()
	f.judge.Trust.Register(cmd)
	results.BoolVar(&f.judge.AsJSON, "json", false, "print JSON")
	flags.Details(fl)
	results.FileVar(&f.judge.HTML, "html", "write a self-contained HTML `page`")
	results.Bool("quiet", false, "no progress")
	return cmd
}

// options are what the flags ask for.
func (f *historyFlags) options(cmd *cobra.Command) (o history.Options, err error) {
	for _, name := range f.metrics {
		m, err := bench.ParseMetric(name)
		if err != nil {
			return o, cli.Usagef("--metric %s: %v", name, err)
		}
		if _, known := m.Higher(); !known {
			return o, cli.Usagef("--metric %s: it has no better direction, so a change cannot be judged", name)
		}
		o.Metrics = append(o.Metrics, m)
	}
	switch {
	case !(f.alpha > 0 && f.alpha <= 0.5):
		return o, cli.Usagef("--alpha: want a probability above 0 and up to 50%%")
	case f.minChange < 0 || f.minChange >= 1:
		return o, cli.Usagef("--min-change: want a share from 0 up to 100%%")
	case f.gate && f.bisect != "":
		return o, cli.Usagef("--gate and --bisect cannot be used together: --gate judges the last change of a history, --bisect one commit")
	case f.bisect != "" && len(f.metrics) != 1:
		return o, cli.Usagef("--bisect needs a metric, such as --metric p99_ttft")
	}
	o.Alpha, o.MinChange = f.alpha, f.minChange
	o.Report, err = f.judge.Options()
	progress := cli.NewProgress(cmd)
	progress.Start("reading", "files", 0)
	o.Progress = func(done, _ int) { progress.Set(int64(done)) }
	return o, err
}

func (f *historyFlags) run(cmd *cobra.Command, dir string) error {
	o, err := f.options(cmd)
	if err != nil {
		return err
	}
	good, bad, ok := strings.Cut(f.bisect, "..")
	if f.bisect != "" && (!ok || good == "" || bad == "") {
		return cli.Usagef("--bisect: want GOOD..BAD, such as v1.2..v1.3")
	}
	h, err := history.Read(dir, o)
	if err != nil {
		return err
	}
	if f.judge.HTML != "" {
		if err := trace.WriteFile(f.judge.HTML, 0o644, h.Page().Write); err != nil {
			return err
		}
	}
	if f.bisect != "" {
		return f.side(cmd, h, good, bad)
	}
	rest := "All runs and metrics: --details. Page with plots: --html FILE."
	if f.judge.HTML != "" {
		rest = "Page: " + f.judge.HTML + ". All runs and metrics: --details."
	}
	if f.judge.AsJSON {
		err = cli.WriteJSON(cmd.OutOrStdout(), h)
	} else {
		err = h.WriteText(cmd.OutOrStdout(), cli.TextOptions(cmd, rest))
	}
	if err != nil || !f.gate {
		return err
	}
	newest := h.Newest()
	switch worse := h.Worse(); {
	case newest == nil:
		return cli.Exit(cli.Untrusted, errors.New("no run could be read"))
	case !newest.Trustworthy:
		return cli.Exit(cli.Untrusted, fmt.Errorf("the newest run is not trustworthy: %s", newest.Reasons[0]))
	case !h.Judged():
		return cli.Exit(cli.Untrusted, errors.New("too few trusted runs to judge: --details says how many each metric needs"))
	case len(worse) > 0:
		return cli.Exit(cli.Check, fmt.Errorf("gate failed: %s at %s", worse[0], worse[0].At.Name))
	}
	return nil
}

// Exit codes of git bisect run besides 0 and 1 to 124: a commit that cannot be tested,
// and the end of the search.
const (
	bisectSkip  = 125
	bisectAbort = 128
)

// side prints on which side of two commits the newest run is.
func (f *historyFlags) side(cmd *cobra.Command, h *history.History, good, bad string) error {
	if h.Newest() == nil {
		return cli.Exit(bisectSkip, errors.New("no run could be read"))
	}
	s := h.Side(good, bad)
	if f.judge.AsJSON {
		if err := cli.WriteJSON(cmd.OutOrStdout(), s); err != nil {
			return err
		}
	}
	switch {
	case s.Why != "":
		return cli.Exit(bisectSkip, errors.New(s.String()))
	case s.Bad:
		return cli.Exit(cli.Check, errors.New(s.String()))
	}
	cli.Notef(cmd, "%s", s)
	return nil
}

// bisectCode is the exit code of a command line. git bisect run takes most codes for a
// bad commit, also those of a mistyped flag and of a file that cannot be read: with
// --bisect these end the search.
func bisectCode(args []string, code int) int {
	asked := slices.ContainsFunc(args, func(a string) bool { return a == "--bisect" || strings.HasPrefix(a, "--bisect=") })
	if asked && args[0] == "history" && (code == cli.Usage || code == cli.Failure) {
		return bisectAbort
	}
	return code
}
