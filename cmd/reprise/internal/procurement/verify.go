package procurement

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/bench"
	"reprise/replay/report"
	"reprise/replay/tender"
	"reprise/trace"
	"reprise/trace/objectstore"
	"reprise/trace/textpage"
)

// verifyFlags are the flags of verify.
type verifyFlags struct {
	Command
	seed, submission, out string
	asJSON                bool
}

// Verify is the command verify.
func (c Command) Verify() *cobra.Command {
	f := verifyFlags{Command: c}
	cmd := &cobra.Command{
		Use:   "verify PACK.yaml RESULTS",
		Short: "Hold a submission to its pack, and compute its figures again",
		Long: `Verify holds results to a pack. It makes the workload again from the revealed seed, and
compares it, row by row, with the results; compares the contract, the rules and the
description of the system with what the pack binds; and judges the contract. RESULTS is a
results file, or the journal of a run that did not finish.

With --submission it computes every figure of the submission again from the results, and
names each one that does not match. -o writes a submission: every figure, and the digest of
the rows of the results. Hand it in right after the run; the results may follow.

What it cannot see: whether the results are those of the server that was offered. Be there,
or run it yourself.

The exit code is 3 if something does not match or a clause of the contract fails, and 4 if
the run cannot be trusted or the contract not be judged.`,
		Example: `  reprise verify tender.yaml r.parquet --seed-file tender.seed.yaml -o submission.json
  reprise verify tender.yaml r.parquet --seed-file tender.seed.yaml --submission submission.json`,
		Args: flags.Wants(2, 2, "which pack and which results?"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], args[1]) },
	}
	fl := cmd.Flags()
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	judgement, _ := flags.Sections(fl, flags.JudgementFlags)
	judgement.StringVar(&f.seed, "seed-file", "", "`file` with the revealed seed, which reprise pack wrote")
	judgement.StringVar(&f.submission, "submission", "", "submission `file` whose figures are computed again")
	results.OutputVar(&f.out, "`file` for a submission of these results")
	results.BoolVar(&f.asJSON, "json", false, "print JSON")
	flags.Details(fl)
	return cmd
}

func (f *verifyFlags) run(cmd *cobra.Command, packPath, path string) error {
	if f.seed == "" {
		return cli.Usagef("give the revealed seed: --seed-file %s", filepath.Base(packPath)+" without its ending, and .seed.yaml")
	}
	usage := func(err error) error {
		if err == nil || errors.As(err, new(*fs.PathError)) {
			return err
		}
		return cli.Exit(cli.Usage, err)
	}
	if err := cli.KeepInputs([]string{packPath, path, f.seed, f.submission}, f.out); err != nil {
		return err
	}
	p, err := tender.ReadPack(packPath)
	if err != nil {
		return usage(err)
	}
	c := tender.Case{Pack: p, Dir: objectstore.Dir(packPath)}
	if c.Seed, err = tender.ReadSeed(f.seed); err != nil {
		return usage(err)
	}
	if f.submission != "" {
		if c.Submission, err = tender.ReadSubmission(f.submission); err != nil {
			return usage(err)
		}
	}
	spec := p.Workload.File
	if !p.BuiltIn {
		spec = filepath.Join(c.Dir, filepath.FromSlash(spec))
	}
	c.Workload = func(seed uint64) (trace.Reader[trace.Request], []byte, error) { return f.rows(spec, seed) }
	r, err := cli.OpenResults(path)
	if err != nil {
		return err
	}
	defer r.Close()
	c.Run, c.Results = r.Run, r.Reader
	c.Summarise = func(o report.Options) (report.Summary, error) {
		s, err := bench.Summarise(path, o)
		if err != nil {
			return s, err
		}
		steady, err := report.FindSteady(r.Run, r.Reader, o)
		s.Steady = &steady
		return s, err
	}
	v, err := tender.Verify(c)
	if err != nil {
		return usage(err)
	}
	if f.out != "" {
		s, err := v.Submit(p)
		if err != nil {
			return err
		}
		if err := cli.WriteOutput(cmd, f.out, func(w io.Writer) error { return cli.WriteJSON(w, s) }); err != nil {
			return err
		}
	}
	if f.asJSON {
		err = cli.WriteJSON(cmd.OutOrStdout(), v)
	} else {
		o := cli.TextOptions(cmd, "")
		t := textpage.New(o)
		v.Write(t, o)
		_, err = t.WriteTo(cmd.OutOrStdout())
	}
	switch {
	case err != nil:
		return err
	case !v.Matches:
		return cli.Exit(cli.Check, errors.New("the results or the submission do not match the pack"))
	}
	return f.Kept(v.Summary)
}
