package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reprise/replay/bench"
	"reprise/replay/report"
	"reprise/replay/simserver"
)

// predictFlags are the flags of capacity predict.
type predictFlags struct {
	r         simserver.Roofline
	params    string
	bandwidth string
	flops     string
	kv        string
	asJSON    bool
}

func predictCommand() *cobra.Command {
	var f predictFlags
	cmd := &cobra.Command{
		Use:   "predict [RESULTS]",
		Short: "Say what memory bandwidth and arithmetic allow, beside what was measured",
		Long: `Predict computes a floor for the time of an output token, and with --flops and
--prompt-tokens for the time to the first: decoding reads all weights once a step, for
the whole batch, and the KV of each sequence. --efficiency is the share of the peaks
that is reached; with 1 the floor is that of the data sheet.

Given results it sets the medians measured beside the floor, and says which regime the
ratio speaks for and which measurement would confirm it. Without --batch the mean of
requests in flight is taken for it, without --prompt-tokens the mean prompt.`,
		Example: `  reprise capacity predict --params 8B --bytes-per-param 2 --bandwidth 600GB
  reprise capacity predict r.parquet --params 0.5B --bandwidth 300GB --flops 121T --efficiency 0.7`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.params, "params", "", "parameters that a token reads, such as 8B; of a mixture of experts the active ones")
	fl.Float64Var(&f.r.BytesPerParam, "bytes-per-param", 2, "bytes of a parameter: 2 of BF16, 1 of FP8, 0.5 of INT4")
	fl.StringVar(&f.bandwidth, "bandwidth", "", "bytes per second of a GPU's memory, such as 3.35TB")
	fl.StringVar(&f.flops, "flops", "", "operations per second of a GPU at that precision, such as 989T; empty leaves compute out")
	fl.IntVar(&f.r.GPUs, "gpus", 1, "GPUs that share each layer (tensor parallel)")
	fl.Float64Var(&f.r.Efficiency, "efficiency", 1, "share of the peaks that is reached")
	fl.StringVar(&f.kv, "kv-bytes-per-token", "0", "bytes of KV of a token in all layers, such as 320KB")
	fl.Float64Var(&f.r.Context, "context-tokens", 0, "tokens of a sequence, on average")
	fl.Float64Var(&f.r.Batch, "batch", 1, "sequences that decode together")
	fl.Float64Var(&f.r.Prompt, "prompt-tokens", 0, "tokens of a prompt, for the time to the first token")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

func (f *predictFlags) run(cmd *cobra.Command, args []string) error {
	for _, q := range []struct {
		flag, text string
		into       *float64
	}{{"params", f.params, &f.r.Params}, {"bandwidth", f.bandwidth, &f.r.Bandwidth}, {"flops", f.flops, &f.r.FLOPS}, {"kv-bytes-per-token", f.kv, &f.r.KVPerToken}} {
		if q.text == "" && q.flag == "flops" {
			continue
		}
		v, ok := magnitude(q.text)
		if !ok {
			return usagef("--%s: want a number, such as 8B, 600GB or 989T", q.flag)
		}
		*q.into = v
	}
	var s *report.Summary
	if len(args) > 0 {
		named, err := resultsNamed(args)
		if err != nil {
			return err
		}
		got, err := bench.Summarise(named[0], report.Options{})
		if err != nil {
			return err
		}
		s = &got
		f.take(cmd, s)
	}
	p, err := f.r.Predict()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	c := bench.Comparison{Prediction: p, Hints: []bench.Hint{}}
	if s != nil {
		c = bench.Compare(p, s)
	}
	if f.asJSON {
		err = writeJSON(cmd.OutOrStdout(), c)
	} else {
		err = c.WriteText(cmd.OutOrStdout())
	}
	if err == nil && s != nil {
		err = untrusted(s.Verdict)
	}
	return err
}

// take takes from results what the flags do not say.
func (f *predictFlags) take(cmd *cobra.Command, s *report.Summary) {
	if m := s.InFlight.Mean; m != nil && !cmd.Flags().Changed("batch") {
		f.r.Batch = max(*m, 1)
	}
	if n := s.Requests.Succeeded; n > 0 && !cmd.Flags().Changed("prompt-tokens") {
		f.r.Prompt = float64(s.Tokens.Prompt) / float64(n)
	}
}

// magnitude reads a number with a decimal suffix: K, M, G or B, T, and with it bytes
// per second or none.
func magnitude(s string) (float64, bool) {
	s = strings.TrimSuffix(strings.TrimSpace(s), "/s")
	for _, unit := range []struct {
		suffix string
		of     float64
	}{{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"B", 1e9}, {"T", 1e12}, {"", 1}} {
		if digits, ok := strings.CutSuffix(s, unit.suffix); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
			return v * unit.of, err == nil
		}
	}
	return 0, false
}
