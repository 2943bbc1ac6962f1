package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"reprise/synth"
	"reprise/trace"
)

func synthFitCommand() *cobra.Command {
	var out string
	var kSwap int
	var public publicFlags
	cmd := &cobra.Command{
		Use:   "fit TRACE|HISTOGRAMS",
		Short: "Fit a model to a trace or to the histograms of its profile, for synth to generate from",
		Long: `Fit makes a model file of a trace: a tuple of reuse and lengths for each request,
in their order, and the arrivals of its users as cascades. Fit once and generate
often: a model and a seed always give the same workload, where two fits of one
trace differ by the randomness of their swapping.

The tuples are swapped among at least --k-swap requests alike, within windows of
2,000. That is no differential privacy, and the file says so: each unit of
reuse still is one that occurred. The model inherits the tier of the trace.

With --tier public the model may be published. It is differentially private: of
the rows nothing is kept but noisy counts, of at most 8 requests of each user,
in cells that no data chose; workloads are drawn from these. It needs many
requests, some hundred thousands at ε=1 with users, and is refused with exit code 3 when
the error of its total tokens or its 99th percentiles is predicted to be above
10 %. The trace must have a declared capture window (reprise import
--capture-begin T --capture-end T): without one its times count from the first
request, which is one person's. All releases of a trace add up in a ledger, attempts included:

  reprise synth fit t.parquet --tier public --epsilon 1 -o m.parquet

Histograms that reprise profile --histograms wrote make a model as well: without
noise, with the tier of the trace, each quantity drawn by itself.`,
		Example: `  reprise synth fit t.parquet -o m.parquet
  reprise profile t.parquet --histograms h.parquet
  reprise synth fit h.parquet -o m.parquet
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
			if err := public.check(cmd); err != nil {
				return err
			}
			m, err := fitInput(cmd, args[0], kSwap, &public)
			if err != nil {
				return err
			}
			noteFew(cmd, m)
			return writeModed(cmd, out, m.Meta().Mode(), func(w io.Writer) error { return m.Write(w) })
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "model to write, - for stdout")
	cmd.Flags().IntVar(&kSwap, "k-swap", synth.DefaultKSwap, "how many requests alike are mixed at least; 1 mixes none")
	public.add(cmd)
	cmd.Flags().Bool("quiet", false, "no progress")
	return cmd
}

// fitInput fits a model to whatever the file holds.
func fitInput(cmd *cobra.Command, path string, kSwap int, public *publicFlags) (*synth.Model, error) {
	in, size, err := openInput(cmd, path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	m, err := synth.FitHistograms(in, size)
	switch {
	case err == nil && (public.tier != "" || cmd.Flags().Changed("k-swap")):
		return nil, usagef("%s holds histograms, which have the tier of their trace and no tuples to swap", path)
	case !errors.Is(err, synth.ErrNotHistograms):
		return m, inFile(path, err)
	}
	t, err := traceOf(path, in, size)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if public.tier != "" {
		return public.fit(cmd, path, t)
	}
	return fitTrace(cmd, path, t, kSwap)
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

// noteFew says when a model was fitted to too little.
func noteFew(cmd *cobra.Command, m *synth.Model) {
	if few := m.Few(); few != "" {
		notef(cmd, "note: %s; reprise fidelity says how close it comes, and synth --mirror keeps the rows as they are", few)
	}
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
