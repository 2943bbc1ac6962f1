package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"reprise/synth"
	"reprise/trace"
)

func synthFitCommand() *cobra.Command {
	var out string
	var kSwap int
	cmd := &cobra.Command{
		Use:   "fit TRACE",
		Short: "Fit a model to a trace, for synth to generate from",
		Long: `Fit makes a model file of a trace: a tuple of reuse and lengths for each request,
in their order, and the arrivals of its users as cascades. Fit once and generate
often: a model and a seed always give the same workload, where two fits of one
trace differ by the randomness of their swapping.

The tuples are swapped among at least --k-swap requests alike, within windows of
2,000. That is no differential privacy, and the file says so: each unit of
reuse still is one that occurred. The model inherits the tier of the trace.`,
		Example: `  reprise synth fit t.parquet -o m.parquet
  reprise synth fit t.parquet --k-swap 20 -o m.parquet`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case out == "":
				return usagef("say where the model goes: -o FILE.parquet, or -o - for stdout")
			case out == standard && isTerminal(cmd.OutOrStdout()):
				return usagef("a model is binary: redirect stdout, or give -o FILE.parquet")
			case kSwap < 1:
				return usagef("--k-swap must be 1 or more")
			}
			t, err := openTrace(cmd, args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			m, err := fitTrace(cmd, args[0], t, kSwap)
			if err != nil {
				return err
			}
			return writeOutput(cmd, out, func(w io.Writer) error { return m.Write(w) })
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "model to write, - for stdout")
	cmd.Flags().IntVar(&kSwap, "k-swap", synth.DefaultKSwap, "how many requests alike are mixed at least; 1 mixes none")
	cmd.Flags().Bool("quiet", false, "no progress")
	return cmd
}

// fitTrace fits a model and says what it costs.
func fitTrace(cmd *cobra.Command, path string, t *trace.Trace, kSwap int) (*synth.Model, error) {
	src, err := t.Reader()
	if err != nil {
		return nil, err
	}
	bar := newProgress(cmd)
	bar.start("fit", "requests", src.Rows())
	defer bar.end()
	m, err := synth.Fit(cmd.Context(), src, t.Meta, synth.FitOptions{KSwap: kSwap, Progress: bar.set})
	if err != nil {
		return nil, inFile(path, err)
	}
	if kSwap == 1 {
		notef(cmd, "the tuples are not swapped: each request's lengths and reuse are those of the trace")
	}
	return m, nil
}

// inFile names the file that an error is of.
func inFile(path string, err error) error {
	if err == nil {
		return nil
	}
	if path == standard {
		path = "stdin"
	}
	return fmt.Errorf("%s: %w", path, err)
}
