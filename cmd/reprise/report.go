package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"reprise/replay"
	"reprise/replay/report"
	"reprise/trace"
)

// judgeFlags say how results are summarised and judged, for report and replay.
type judgeFlags struct {
	asJSON    bool
	html      string
	slo       string
	maxErrors float64
	maxLag    time.Duration
	block     int
}

func (f *judgeFlags) register(cmd *cobra.Command) {
	d := report.DefaultLimits()
	fl := cmd.Flags()
	fl.BoolVar(&f.asJSON, "json", false, "print the summary as JSON")
	fl.StringVar(&f.html, "html", "", "self-contained page to write")
	fl.StringVar(&f.slo, "slo", "", "what goodput asks of each request, such as ttft:200ms,tpot:50ms,e2e:5s")
	fl.Float64Var(&f.maxErrors, "max-errors", d.Errors, "share of failed requests beyond which the run is not trusted")
	fl.DurationVar(&f.maxLag, "max-lag", d.LagP99, "p99 of the send lag beyond which the run is not trusted")
}

// defaults sets every flag to its default, for a caller that is no command line.
func (f *judgeFlags) defaults() { f.register(new(cobra.Command)) }

func reportCommand() *cobra.Command {
	var f judgeFlags
	cmd := &cobra.Command{
		Use:   "report RESULTS",
		Short: "Say what a replay measured, and whether it can be trusted",
		Long: `Report reads the results of a replay, or the journal of one that is still
running or was killed, and prints a verdict and every metric, each from when a
request was sent and from when it was due.

The exit code is 4 when the run cannot be trusted.`,
		Example: `  reprise report r.parquet --slo ttft:500ms,tpot:50ms --html r.html`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.report(cmd, args[0])
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&f.block, "server-block-size", 0, "tokens in a block of the endpoint's prefix cache; 0 takes the replay's")
	return cmd
}

// report prints the summary of a results file, writes its page, and fails with
// exit code 4 when the run cannot be trusted.
func (f *judgeFlags) report(cmd *cobra.Command, path string) error {
	s, err := f.summarise(path)
	if err != nil {
		return err
	}
	if f.html != "" {
		if err := f.writePage(f.html, s); err != nil {
			return err
		}
	}
	write := report.WriteText
	if f.asJSON {
		write = report.WriteJSON
	}
	if err := write(cmd.OutOrStdout(), s); err != nil {
		return err
	}
	return untrusted(s.Verdict)
}

func (f *judgeFlags) writePage(path string, s report.Summary) error {
	return trace.WriteFile(path, 0o644, report.Page(s).Write)
}

// options are what the flags ask for; replay checks them before it sends.
func (f *judgeFlags) options() (report.Options, error) {
	o := report.Options{ServerBlock: f.block, Limits: report.DefaultLimits()}
	o.Limits.Errors, o.Limits.LagP99 = f.maxErrors, f.maxLag
	if f.slo == "" {
		return o, nil
	}
	var err error
	if o.SLO, err = report.ParseSLO(f.slo); err != nil {
		err = usagef("--slo: %v", err)
	}
	return o, err
}

func (f *judgeFlags) summarise(path string) (report.Summary, error) {
	o, err := f.options()
	if err != nil {
		return report.Summary{}, err
	}
	results, err := replay.OpenResults(path)
	if err != nil {
		return report.Summary{}, err
	}
	defer results.Close()
	return report.Summarise(results.Run, results.Reader(), o)
}

// untrusted is the error of a run that cannot be trusted.
func untrusted(v report.Verdict) error {
	if v.Trustworthy {
		return nil
	}
	return &exitError{exitUntrusted, errors.New("the run is not trustworthy; the report says why")}
}
