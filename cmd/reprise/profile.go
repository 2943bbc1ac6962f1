package main

import (
	"encoding/json"
	"io"
	"time"

	"github.com/spf13/cobra"

	"reprise/trace"
	"reprise/trace/profile"
)

func profileCommand() *cobra.Command {
	var out, histograms string
	var asJSON bool
	var serverBlock int
	var warmUp time.Duration
	cmd := &cobra.Command{
		Use:   "profile TRACE",
		Short: "Say what a trace is like: lengths, arrivals, prefix reuse, sessions",
		Long: `Profile reads a trace or a workload once and prints its lengths, its arrivals
with their index of dispersion (IDC), the four hit ratios of an unbounded prefix
cache, the hit ratio of an LRU cache of each size, reuse categories and sessions.`,
		Example: `  reprise profile t.parquet
  reprise profile t.parquet --json | jq .reuse
  reprise profile t.parquet --histograms h.parquet`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := openTrace(cmd, args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			p, err := profileOf(cmd, t, profileOptions(serverBlock, warmUp))
			if err != nil {
				return err
			}
			if histograms != "" {
				if err := writeHistograms(histograms, t.Meta, p.Histograms()); err != nil {
					return err
				}
			}
			summary := p.Summary()
			return writeOutput(cmd, out, func(w io.Writer) error {
				if !asJSON {
					return profile.WriteText(w, summary)
				}
				return writeJSON(w, summary)
			})
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to write instead of stdout")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&histograms, "histograms", "", "Parquet `file` for the histograms: metric, category, lo, hi, count")
	cmd.Flags().IntVar(&serverBlock, "server-block-size", profile.DefaultServerBlock, "tokens in a block of the server whose reachable hit ratio is computed")
	cmd.Flags().DurationVar(&warmUp, "warm-up", -1, "when the steady state begins; below 0 is half of the trace")
	cmd.Flags().Bool("quiet", false, "no progress")
	return cmd
}

// profileOptions takes a warm-up below 0 for half of the trace.
func profileOptions(serverBlock int, warmUp time.Duration) profile.ProfilerOptions {
	o := profile.ProfilerOptions{ServerBlock: serverBlock}
	if warmUp >= 0 {
		o.WarmUp = &warmUp
	}
	return o
}

// profileOf reads a whole trace into a Profiler.
func profileOf(cmd *cobra.Command, t *trace.Trace, o profile.ProfilerOptions) (*profile.Profiler, error) {
	src, err := t.Reader()
	if err != nil {
		return nil, err
	}
	bar := newProgress(cmd)
	bar.start("profile", "requests", src.Rows())
	defer bar.end()
	p := profile.NewProfiler(t.Meta, o)
	one := make([]trace.Request, 1)
	err = trace.Each(src, func(row int64, r *trace.Request) error {
		if row%4096 == 0 {
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			bar.set(row)
		}
		one[0] = *r
		_, err := p.Write(one)
		return err
	})
	return p, err
}

// writeHistograms writes histograms with the tier of the trace they are of.
func writeHistograms(path string, meta trace.Meta, rows []profile.HistogramRow) error {
	return trace.WriteFile(path, 0o644, func(w io.Writer) error {
		out := trace.NewRowsWriter[profile.HistogramRow](w, nil)
		if _, err := out.Write(rows); err != nil {
			return err
		}
		out.SetMetadata("reprise.schema", "histograms/1")
		out.SetMetadata("reprise.tier", meta.Tier)
		out.SetMetadata("reprise.source_digest", meta.Digest)
		return out.Close()
	})
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
