package main

import (
	"io"

	"github.com/spf13/cobra"

	"reprise/datasets"
	"reprise/trace"
)

func exportCommand() *cobra.Command {
	var out, to string
	cmd := &cobra.Command{
		Use:   "export TRACE --to FORMAT",
		Short: "Write a trace in another tool's format",
		Long: `Export writes a trace for other tools and says what their format cannot hold.

Formats:
  mooncake   JSON lines: timestamp (integer ms), input_length, output_length, hash_ids`,
		Example: `  reprise export t.parquet --to mooncake -o t.jsonl`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to != "mooncake" {
				return usagef("--to: want mooncake, the only format so far")
			}
			t, err := openTrace(cmd, args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			rows, err := t.Reader()
			if err != nil {
				return err
			}
			var lost []string
			err = writeOutput(cmd, out, func(w io.Writer) error {
				dst, err := datasets.NewMooncakeWriter(w, t.Meta.BlockSize)
				if err != nil {
					return err
				}
				if _, err := trace.Copy(dst, rows); err != nil {
					return err
				}
				lost = dst.Loss()
				return dst.Close()
			})
			for _, l := range lost {
				notef(cmd, "note: %s", l)
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to write instead of stdout")
	cmd.Flags().StringVar(&to, "to", "", "format to write: mooncake")
	return cmd
}
