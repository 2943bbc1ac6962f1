package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/anonymize/audit"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/trace"
	"reprise/trace/objectstore"
)

// auditFlags are the flags of audit.
type auditFlags struct {
	importFlags // by which the source was imported, but for its output and tier

	sources  []string
	internal string
	canaries string
	guesses  []string
	only     []string
	result   string
	json     bool
	html     string
	release  bool
	auditSeed
}

// auditSeed keeps its name apart from the seed of an import.
type auditSeed struct{ draws uint64 }

func auditCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit OUTPUT [OTHER…]",
		Short: "Attack an output before you share it",
		Long: `Audit runs checks that try to break a file before you share it: a trace, a workload, a
model, histograms, results, a page or JSON. The exit code is 3 if a check fails.` + flags.ListsBegin + `

Anyone who has the file can run it. Checks that need the source are then skipped, and say so.
--internal takes the internal trace that a release was made from, or --source the log, with the
flags of its import. Other outputs of the same source are read together with the first.
--release makes a file of tier partner or public readable to everybody if the source was at
hand and no check failed. docs/audit.md says more.

Checks:
` + strings.TrimSuffix(cli.HelpList(audit.Checks(), 17, func(c audit.Check) (string, string) {
			return c.Name, c.About
		}), "\n"),
		Example: `  reprise audit partner.parquet
  reprise audit partner.parquet --internal house.parquet --html partner.html --release
  reprise audit march.parquet april.parquet --only composition
  reprise audit partner.parquet --source gateway.jsonl --map time=ts --map user=user --map input_tokens=usage.prompt_tokens --map output_tokens=usage.completion_tokens --capture-begin 2026-05-01T00:00:00Z --capture-end 2026-05-08T00:00:00Z
  reprise audit partner.parquet --internal house.parquet --only times,linkage --json -o partner.audit.json`,
		Args: flags.Wants(1, 100, "which output?"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.audit(cmd, args[0], args[1:]) },
	}
	fl := cmd.Flags()
	flags.Borrow(fl, f.importFlags.register, importsOfAudit...)
	for _, name := range importsOfAudit {
		flag := fl.Lookup(name)
		flag.Usage = "import of --source: " + flag.Usage
	}
	known, _ := flags.Sections(fl, "What is known of the source")
	checks, checksRest := flags.Sections(fl, "Checks")
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	known.StringArrayVar(&f.sources, "source", nil, "`log` that the output was made from; repeatable")
	known.StringVar(&f.internal, "internal", "", "internal `trace` that the output was made from")
	known.StringVar(&f.canaries, "canaries", "", "`file` with strings that were planted in the source, one a line")
	known.StringArrayVar(&f.guesses, "guess", nil,
		"text `file` that an outsider may know, such as a system prompt; repeatable")
	checks.StringSliceVar(&f.only, "only", nil, "`names` of the checks to run; by default all")
	results.OutputVar(&f.result, "`file` for the findings, as JSON; by default they are printed")
	results.BoolVar(&f.json, "json", false, "print JSON")
	flags.Details(fl)
	results.FileVar(&f.html, "html",
		"write an HTML `page` with the findings, the source's fields and the remaining risks")
	checks.BoolVar(&f.release, "release", false, "make the output readable to everybody (0644) if no check failed")
	checksRest.Seed(&f.draws, "audit-seed", 1, "")
	results.Bool("quiet", false, flags.QuietUsage)
	return cmd
}

// importsOfAudit are the flags of import that say how a log is read and cut.
var importsOfAudit = []string{"format", "map", "max-bad", "time-unit", "time-format", "delimiter", "decimal", "tz",
	"allow-long-span", "capture-begin", "capture-end", "block-size", "source-block-size",
	"tokenizer", "template", "arrivals", "service", "think", "seed", "keep-model", "rows", "lengths", "cached-in-input",
	"pool-start", "pool-span"}

// audit judges the file at path, also together with others.
func (f *auditFlags) audit(cmd *cobra.Command, path string, others []string) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	for _, out := range []string{f.result, f.html} {
		if err := cli.KeepInputs(slices.Concat([]string{path, f.internal, f.canaries}, others, f.sources),
			out); err != nil {
			return err
		}
	}
	c, closing, err := f.open(cmd, path, others)
	defer closing()
	if err != nil {
		return err
	}
	defer c.Close()
	if f.release { // not what no audit can clear
		switch tier := c.Output.Tier(); {
		case tier != anonymize.Partner && tier != anonymize.Public:
			return cli.Usagef("--release is for tier %s and %s, and the output says %q", anonymize.Partner,
				anonymize.Public, tier)
		case len(f.only) > 0:
			return cli.Usagef("--release wants all checks: leave out --only")
		case c.Output.Trace != nil && c.Internal == nil && c.Log == nil:
			return cli.Usagef("--release wants the source of a trace: give --internal or --source")
		}
	}
	bar := cli.NewProgress(cmd)
	c.Progress = func(check string) { bar.Start("check "+check, "rounds", 0) }
	r, err := audit.Run(cmd.Context(), c, f.only)
	bar.End()
	if errors.Is(err, audit.ErrNoCheck) {
		return cli.Exit(cli.Usage, fmt.Errorf("--only: %w", err))
	}
	if err != nil {
		return err
	}
	mode := trace.TierMode(cmp.Or(c.Output.Tier(), anonymize.Internal))
	if c.Internal != nil || c.Log != nil {
		mode = trace.TierMode(anonymize.Internal) // findings have figures of the source
	}
	if f.result != "" {
		write := func(w io.Writer) error { return cli.WriteJSON(w, r) }
		if err := cli.WriteOutputMode(cmd, f.result, mode, write); err != nil {
			return err
		}
	}
	page, err := audit.Page(cmd.Context(), c, &r)
	if err != nil {
		return err
	}
	if f.html != "" {
		if err := cli.WriteOutputMode(cmd, f.html, mode, page.Write); err != nil {
			return err
		}
	}
	if f.json {
		err = cli.WriteJSON(cmd.OutOrStdout(), r)
	} else if f.result != cli.Standard {
		err = page.WriteText(cmd.OutOrStdout(),
			cli.TextOptions(cmd, "Every check with its figures: --details. Page: --html FILE."))
	}
	switch {
	case err != nil:
		return err
	case r.Failed():
		return cli.Exit(cli.Check, fmt.Errorf("%d of %d checks that ran failed: do not share the output",
			r.Count(audit.Fail), len(r.Findings)-r.Count(audit.Skipped)))
	case !f.release:
		return nil
	}
	if check := r.Unsettled(); check != "" {
		return cli.Exit(cli.Check, fmt.Errorf("the check %s was inconclusive: the file keeps mode 0600", check))
	}
	if err := trace.Share(path); err != nil {
		return err
	}
	cli.Warnf(cmd, "everybody on this machine may read %s now", path)
	return nil
}

// check refuses what has no meaning together.
func (f *auditFlags) check(cmd *cobra.Command) error {
	if len(f.sources) > 0 && f.internal != "" {
		return cli.Usagef("--source and --internal cannot be used together: both name what the output was made from")
	}
	if f.json && f.result == cli.Standard {
		return cli.Usagef("--json and -o - both write to stdout: give -o FILE")
	}
	if len(f.sources) > 0 {
		return nil
	}
	return flags.Refuse(cmd, "says how --source is imported", importsOfAudit...)
}

// open opens all that is judged and judged by. closing is to be called also after
// an error.
func (f *auditFlags) open(cmd *cobra.Command, path string, others []string) (c *audit.Case, closing func(), err error) {
	var open []io.Closer
	closing = func() {
		for _, c := range open {
			c.Close()
		}
	}
	c = &audit.Case{Seed: f.draws, Version: cli.Version}
	if c.Output, err = audit.OpenOutput(path); err != nil {
		return nil, closing, err
	}
	open = append(open, c.Output)
	for _, other := range others {
		o, err := audit.OpenOutput(other)
		if err != nil {
			return nil, closing, err
		}
		open, c.Others = append(open, o), append(c.Others, o)
	}
	if f.internal != "" {
		if c.Internal, err = trace.Open(f.internal); err != nil {
			return nil, closing, err
		}
		open = append(open, c.Internal)
		if t := c.Internal.Meta.Tier; t != anonymize.Internal {
			return nil, closing, cli.Usagef("--internal: the trace is of tier %q, not %s", t, anonymize.Internal)
		}
	}
	if f.canaries != "" {
		file, err := objectstore.Open(f.canaries)
		if err != nil {
			return nil, closing, err
		}
		open = append(open, file)
		if c.Canaries, err = audit.Planted(file); err != nil {
			return nil, closing, cli.Usagef("--canaries: %v", err)
		}
	}
	for _, name := range f.guesses {
		b, err := objectstore.ReadFile(name)
		if err != nil {
			return nil, closing, err
		}
		c.Guesses = append(c.Guesses, string(b))
	}
	c.Paths = append([]string{f.internal}, others...)
	if len(f.sources) > 0 {
		c.Log, err = f.log(cmd, c)
	}
	return c, closing, err
}

// log is the source log, by the flags of its import.
func (f *auditFlags) log(cmd *cobra.Command, c *audit.Case) (*audit.Log, error) {
	for _, name := range f.sources {
		if name == cli.Standard {
			return nil, cli.Usagef("--source: stdin cannot be read twice; give a file")
		}
	}
	files, err := logFiles(cmd, f.sources)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		c.Paths = append(c.Paths, file.Name)
	}
	f.tier.Tier = anonymize.Internal
	first, err := f.importFlags.Open(files, nil)
	if err != nil {
		return nil, err
	}
	policy, err := f.policy(first.Info())
	if err := errors.Join(err, f.Capture.Check(first.Info(), false), first.Close()); err != nil {
		return nil, err
	}
	return &audit.Log{Policy: policy, Open: func() (*audit.Opened, error) {
		src, err := f.importFlags.Open(files, nil)
		if err != nil {
			return nil, err
		}
		entries, timing, err := f.timed(src)
		if err != nil {
			return nil, errors.Join(err, src.Close())
		}
		return &audit.Opened{Entries: entries, Close: src.Close,
			Meta: func(card anonymize.Card) (trace.Meta, error) {
				return flags.ImportedMeta(card, src.Info(), f.Capture.Declared, timing)
			}}, nil
	}}, nil
}
