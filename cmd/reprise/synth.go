package main

import (
	"github.com/spf13/cobra"

	"reprise/synth"
	"reprise/trace"
)

// unsharedBlock is the block size given to a trace without blocks, so that its
// prompts are told apart.
const unsharedBlock = 512

func synthCommand() *cobra.Command {
	var out string
	var mirror bool
	var seed uint64
	var text textFlags
	cmd := &cobra.Command{
		Use:   "synth --mirror TRACE",
		Short: "Make a workload that shares prefixes as a trace does",
		Long: `Synth makes a workload from a trace. With --mirror it keeps every row, with its
time, lengths and category, and renames blocks, sessions and users by a
permutation that the seed selects. Replay makes the prompts from the seed, of
exactly the lengths asked for, and they share prefixes exactly as the blocks say.
They are words without meaning unless --text or --corpus says otherwise.

A mirror is as private as its trace: it inherits the tier.`,
		Example: `  reprise synth --mirror t.parquet -o w.parquet
  reprise synth --mirror t.parquet --share-tails --text words -o w.parquet`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !mirror {
				return usagef("only --mirror is available yet: fitting a model and generating from it is not")
			}
			t, err := openTrace(cmd, args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			if err := text.describe(cmd, &t.Meta, false); err != nil {
				return err
			}
			return writeTrace(cmd, out, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
				return mirrorTrace(t, seed, dst)
			})
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "workload to write, - for stdout")
	cmd.Flags().BoolVar(&mirror, "mirror", false, "keep every row under fresh ids")
	text.register(cmd)
	cmd.Flags().Uint64Var(&seed, "seed", 1, "seed of the ids and of the prompts")
	return cmd
}

// mirrorTrace writes the mirror of t to dst. A trace without blocks gets blocks
// that nothing shares.
func mirrorTrace(t *trace.Trace, seed uint64, dst trace.Writer[trace.Request]) (trace.Meta, error) {
	meta := t.Meta
	rows, err := t.Reader()
	if err != nil {
		return meta, err
	}
	ids, err := synth.Count(rows)
	if err != nil {
		return meta, err
	}
	if rows, err = t.Reader(); err != nil {
		return meta, err
	}
	m := synth.NewMirror(seed, ids)
	src := m.Reader(rows)
	if meta.BlockSize == 0 {
		meta.BlockSize, meta.Convention = unsharedBlock, trace.PartialTail
		src = &synth.Unshared{Src: src, BlockSize: unsharedBlock, Next: ids.Blocks}
	}
	_, err = trace.Copy(dst, src)
	return m.Meta(meta), err
}
