package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/calibrate"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/objectstore"
)

// calibrateFlags are the flags of calibrate.
type calibrateFlags struct {
	out    string
	stated calibrate.Stated
}

func calibrateCommand() *cobra.Command {
	var f calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate RESULTS... -o engine.yaml",
		Short: "Fit the engine model to recorded results of a server",
		Long: `Calibrate fits the engine model of reprise simulate to recorded results of one server,
from replay, sweep or another tool (see report). Each request is played again
in virtual time, when it was sent and with its lengths, and the costs are moved until
TTFT, E2E, TPOT and the median gap between tokens of each are as recorded. A directory
stands for all results in it, such as a sweep's.

engine.yaml is taken wherever --preset is: simulate, serve, sweep, compare, bench,
capacity. It holds the costs with 95 % intervals, the results that they are from, and how
far the model is from requests that it was not fitted to. It ends with the loads that are
missing for a good fit, and the sweep that would record them. docs/calibrate.md says more.`,
		Example: `  reprise calibrate levels -o engine.yaml
  reprise calibrate r1.parquet r2.parquet --max-num-seqs 256
  reprise simulate w.parquet --preset engine.yaml`,
		Args: flags.Wants(1, math.MaxInt, "which results?"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	fl := cmd.Flags()
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	server, _ := flags.Sections(fl, "Server")
	results.OutputVar(&f.out, "YAML `file` for the engine; by default only the answer is printed")
	results.Bool("json", false, "print JSON")
	flags.Details(fl)
	results.Bool("quiet", false, flags.QuietUsage)
	server.IntVar(&f.stated.KVTokens, "kv-tokens", 0,
		"KV memory of the server in tokens; 0 is as the server stated, else as the results tell")
	server.IntVar(&f.stated.MaxSeqs, "max-num-seqs", 0,
		"most requests that the server runs at once; 0 is as the results tell")
	server.IntVar(&f.stated.MaxBatchTokens, "max-num-batched-tokens", 0,
		"most tokens that the server computes in a step; 0 is as the results tell")
	server.IntVar(&f.stated.BlockSize, "block-size", 0,
		"KV block size of the server in tokens; 0 is as the server stated, else 16")
	return cmd
}

func (f *calibrateFlags) run(cmd *cobra.Command, args []string) error {
	if f.out != "" && f.out != cli.Standard && !flags.IsEngineFile(f.out) {
		return cli.Usagef("-o: an engine is a .yaml file, by which --preset knows it: such as engine.yaml")
	}
	records, err := readRecords(cmd, args)
	if err != nil {
		return err
	}
	c, err := calibrate.Fit(cmd.Context(), records, f.stated, sayFits(cmd))
	if err != nil {
		return err
	}
	if f.out != "" {
		text, err := c.Marshal()
		if err != nil {
			return err
		}
		err = cli.WriteOutput(cmd, f.out, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
		if err != nil || f.out == cli.Standard {
			return err
		}
	}
	return cli.Finding{Page: c.Document(), JSON: c, Rest: "Every figure: --details."}.Write(cmd)
}

// sayFits says each step of a calibration, and once a fit was made how long the others take, where that is long.
func sayFits(cmd *cobra.Command) func(step string, fits int) {
	begin, each := time.Now(), time.Duration(0)
	return func(step string, fits int) {
		passed := time.Since(begin)
		if each == 0 && passed > time.Second {
			each = passed
		}
		switch left := each * time.Duration(fits); {
		case each == 0 && fits > 1:
			step += fmt.Sprintf("; %d more fits follow, each about as long", fits-1)
		case left >= cli.LogEvery:
			step += fmt.Sprintf(", about %v left", left.Round(time.Second))
		}
		cli.Notef(cmd, "%s", step)
	}
}

// readRecords reads the results of paths. A directory means all results in it.
func readRecords(cmd *cobra.Command, paths []string) ([]*calibrate.Record, error) {
	var files []string
	for _, path := range paths {
		info, err := objectstore.Stat(path)
		if err != nil || !info.IsDir() {
			files = append(files, path)
			continue
		}
		found, _, err := resultsBelow(path)
		switch {
		case err != nil:
			return nil, err
		case len(found) == 0:
			return nil, cli.Usagef("%s is a directory without results: name the files that replay or sweep "+
				"wrote with -o", path)
		}
		files = append(files, found...)
	}
	var records []*calibrate.Record
	var short error // the first run with too few requests
	for _, path := range files {
		r, err := readRecord(path)
		switch {
		case errors.Is(err, calibrate.ErrFew) && len(files) > 1:
			cli.Warnf(cmd, "left out: %v", err)
			short = err
			continue
		case err != nil:
			return nil, err
		}
		if r.Untrusted != "" {
			cli.Warnf(cmd, "%s is not trustworthy: %s", path, r.Untrusted)
		}
		records = append(records, r)
	}
	if len(records) == 0 {
		return nil, short
	}
	return records, nil
}

func readRecord(path string) (*calibrate.Record, error) {
	f, err := cli.OpenResults(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var metrics func() trace.Reader[result.Metric]
	m, err := result.OpenMetrics(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		defer m.Close()
		if m.Started == f.Run.Started {
			metrics = m.Reader
		}
	}
	return calibrate.Read(path, f, metrics)
}

// validateFlags are the flags of validate.
type validateFlags struct {
	limit float64
}

func validateCommand() *cobra.Command {
	var f validateFlags
	cmd := &cobra.Command{
		Use:   "validate engine.yaml RESULTS...",
		Short: "Hold later results against what a calibrated engine predicts",
		Long: `Validate plays the requests of later results to an engine that reprise calibrate fitted,
when they were sent and with their lengths, and prints how far the prediction is from
the measurement: mean, p50, p95 and p99 of TTFT, ITL and E2E, and throughput, by load.

Results of the same load are averaged, and their standard deviation is printed as the
spread. A figure is beyond the limit where its error is above --max-error and above twice
the spread. A percentile with fewer than five values above it in a run is not judged.

The exit code is 3 if a figure is beyond the limit, and 4 if a run is not trustworthy.`,
		Example: `  reprise validate engine.yaml later.parquet
  reprise validate engine.yaml r1.parquet r2.parquet --max-error 20%`,
		Args: flags.Wants(2, math.MaxInt, "which engine and which results?"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	fl := cmd.Flags()
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	judgement, _ := flags.Sections(fl, flags.JudgementFlags)
	judgement.ShareVar(&f.limit, "max-error", 0.15, "largest error of a figure, as a share of the measured one")
	results.Bool("json", false, "print JSON")
	flags.Details(fl)
	results.Bool("quiet", false, flags.QuietUsage)
	return cmd
}

func (f *validateFlags) run(cmd *cobra.Command, args []string) error {
	if !(f.limit > 0) {
		return cli.Usagef("--max-error: want a share above 0, such as 15%%")
	}
	c, err := calibrate.Open(args[0])
	if err != nil {
		return err
	}
	records, err := readRecords(cmd, args[1:])
	if err != nil {
		return err
	}
	v, err := c.Validate(records, f.limit)
	if err != nil {
		return err
	}
	err = cli.Finding{Page: v.Document(), JSON: v, Rest: "Every load: --details."}.Write(cmd)
	switch {
	case err != nil:
		return err
	case v.Untrusted != "":
		return cli.Exit(cli.Untrusted, fmt.Errorf("the results are not trustworthy: %s", v.Untrusted))
	case !v.Holds():
		load, worst := v.Worst()
		return cli.Exit(cli.Check, fmt.Errorf("the engine is off by more than %s: %s at %s by %s",
			doc.Percent(f.limit), worst.Metric, load, doc.Percent(math.Abs(worst.Error()))))
	}
	return nil
}
