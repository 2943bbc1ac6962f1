package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/synth/release"
	"reprise/trace"
	"reprise/trace/doc"
)

// anonymizeFlags are the flags of anonymize.
type anonymizeFlags struct {
	flags.Release
	out  string
	card bool
}

func anonymizeCommand() *cobra.Command {
	var f anonymizeFlags
	cmd := &cobra.Command{
		Use:   "anonymize TRACE -o OUTPUT",
		Short: "Turn a trace into one that you can share, or print a privacy card",
		Long: `Anonymize draws a trace that you can share from noisy counts of an internal one. No row
of it is a row of the source. It writes a privacy card, NAME.privacy.json, beside it;
--card prints the card of any file in words.

Whole sessions are counted, and fresh ones drawn, so hit ratios, lengths and arrivals
stay close; the change of totals is printed. Tier partner is for a partner under
contract, with ε=8, and takes some thousand sessions. More draws need the model: reprise
synth fit --tier partner. Tier public can be published, with ε=1, and takes some ten
thousand. NAME.model.parquet holds its noisy counts; reprise synth NAME.model.parquet
draws more.

Both need a declared capture window (reprise import --capture-begin T --capture-end T),
and are refused with exit code 3 where the noise would spoil the result. From the noise on
every release and attempt is logged beside the trace and in your user ledger, which
recognises copies and slices of the trace: draw once, and share that. By user,
the logs of other days add up too: --population NAME says whose users they are.

The unit of privacy is a user, or a session of the source. Where the source names
neither, tier partner counts requests whose prompts share a beginning as one session; tier
public needs --unit session for that. Without prefix blocks both need --unit request,
which protects requests and not people.

reprise import --tier does all of this in one step.`,
		Example: `  reprise import gateway.jsonl --map time=ts --map user=user --map input_tokens=usage.prompt_tokens --map output_tokens=usage.completion_tokens --capture-begin 2026-05-01T00:00:00Z --capture-end 2026-05-08T00:00:00Z -o house.parquet
  reprise anonymize house.parquet -o partner.parquet
  reprise anonymize --card partner.parquet`,
		Args: flags.Wants(1, 1, "which trace?"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	fl := cmd.Flags()
	everyday, _ := flags.Sections(fl, flags.ResultsFlags)
	everyday.ParquetVar(&f.out, "`file` for the trace; - is stdout")
	everyday.BoolVar(&f.card, "card", false, "print the privacy card of a file, and exit")
	everyday.Bool("json", false, "print the privacy card as JSON")
	flags.Details(fl)
	everyday.Bool("quiet", false, flags.QuietUsage)
	f.Register(fl, anonymize.Partner, "privacy tier of the trace: partner or public")
	return cmd
}

func (f *anonymizeFlags) run(cmd *cobra.Command, path string) error {
	switch {
	case f.card && cmd.Flags().Changed("tier"):
		return cli.Usagef("--card takes no --tier: it prints the card of a file")
	}
	if !f.card {
		if err := jsonOrFile(cmd, f.out); err != nil {
			return err
		}
	}
	if err := f.Check(cmd); err != nil {
		return err
	}
	if err := cli.KeepInputs([]string{path, f.Ledger}, outputsOf(&f.Release, f.out)...); err != nil {
		return err
	}
	if f.card {
		return f.printCard(cmd, path)
	}
	if !f.Drawn() {
		return cli.Usagef("--tier %s: want %s or %s", f.Tier, anonymize.Partner, anonymize.Public)
	}
	writes := outputsOf(&f.Release, f.out)
	if err := cli.CheckBeside(cmd, f.out, writes...); err != nil {
		return err
	}
	defer cli.LimitMemory(largeMemory)()
	f.Confined = confine(cmd, []string{path}, append(writes, ledgerOf(cmd, f.Ledger, path).All()...))
	t, err := cli.OpenTrace(cmd, path)
	if err != nil {
		return err
	}
	defer t.Close()
	says, card, err := releaseTrace(cmd, &f.Release, path, t, f.out)
	switch {
	case err != nil:
		return err
	case cli.On(cmd, "json"):
		_, err = io.WriteString(cmd.OutOrStdout(), card)
		return err
	}
	cli.Answer(cmd, "--details prints them, and --card the privacy card", says...)
	return nil
}

// outputs are the files that are written for a trace.
func outputsOf(f *flags.Release, out string) []string {
	list := []string{out, cardBeside(out)}
	if f.Tier == anonymize.Public {
		list = append(list, modelBeside(out))
	}
	return list
}

// releaseTrace writes what is drawn from the noisy counts of a trace of tier internal. path
// is where that is, empty where it is in no file. It returns what was done, in words, and the
// privacy card.
func releaseTrace(cmd *cobra.Command, f *flags.Release, path string, t *trace.Trace,
	out string) (says []string, card string, err error) {
	if err := publishable(f, out); err != nil {
		return nil, "", err
	}
	before, err := reuseOf(t)
	if err != nil {
		return nil, "", err
	}
	bar := cli.NewProgress(cmd, releaseSteps...)
	defer bar.End()
	model, notes, paid, err := fitSessions(cmd, bar, f, path, t, outputsOf(f, out)...)
	if err != nil {
		return nil, "", err
	}
	after := &reuseCounter{size: t.Meta.BlockSize}
	rows := func() error {
		return writeCarded(cmd, out, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
			bar.Start("generate", "requests", 0)
			w, err := model.Generate(release.Drawing{Seed: 1})
			if err != nil {
				return trace.Meta{}, err
			}
			bar.Start("write", "requests", w.Rows())
			after.dst = anonymize.Enforce(f.Tier, dst)
			_, err = trace.Copy(after, bar.Watch(cmd, w.Reader()))
			return w.Meta(), err
		})
	}
	first := fmt.Sprintf("%s: tier %s, ", outputName(out), f.Tier)
	from := ""
	if f.Tier == anonymize.Public { // whoever has it may draw more
		from = " from the model " + modelBeside(out)
		err = trace.WriteFile(modelBeside(out), model.Meta().Mode(), func(w io.Writer) error {
			if err := rows(); err != nil {
				return err
			}
			return model.Write(w)
		})
	} else {
		err = rows()
	}
	if err != nil {
		return nil, "", paid(err)
	}
	meta := model.Meta()
	of, err := anonymize.ParseCard(meta.Card, meta.CardHash)
	if err != nil {
		return nil, "", err
	}
	first += fmt.Sprintf("%s drawn%s; the source has %s", doc.Many(after.Requests, "request"), from,
		doc.Count(before.Requests))
	if beside := cardBeside(out); beside != "" {
		first += "; the privacy card is " + beside
	}
	share := func(n, of int64) string { return signedPercent(float64(n-of) / float64(max(1, of))) }
	changed := fmt.Sprintf("input tokens %s, output tokens %s", share(after.InputTokens, before.InputTokens),
		share(after.OutputTokens, before.OutputTokens))
	if a, b := before.HitRatio(), after.HitRatio(); a != nil && b != nil {
		changed += fmt.Sprintf("; hit ratio by block %s, before %s", doc.Percent(*b), doc.Percent(*a))
	}
	says = append([]string{first, changed}, notes...)
	for _, r := range of.Risks {
		says = append(says, "risk: "+r)
	}
	return says, meta.Card, nil
}

// publishable refuses an output beside which no public model can stand.
func publishable(f *flags.Release, out string) error {
	if f.Tier == anonymize.Public && modelBeside(out) == "" {
		return cli.Usagef("--tier %s writes two files: give -o public.parquet, and the model is public.model.parquet",
			anonymize.Public)
	}
	return nil
}

// A reuseCounter counts the rows that pass.
type reuseCounter struct {
	anonymize.Reuse
	size int
	dst  trace.Writer[trace.Request]
}

// Write implements [trace.Writer].
func (c *reuseCounter) Write(rows []trace.Request) (int, error) {
	for i := range rows {
		c.Count(&rows[i], c.size)
	}
	return c.dst.Write(rows)
}

// reuseOf counts the rows of a trace.
func reuseOf(t *trace.Trace) (u anonymize.Reuse, err error) {
	rows, err := t.Reader()
	if err != nil {
		return u, err
	}
	return u, trace.Each(rows, func(_ int64, r *trace.Request) error {
		u.Count(r, t.Meta.BlockSize)
		return nil
	})
}
