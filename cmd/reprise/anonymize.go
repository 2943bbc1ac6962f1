package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/synth"
	"reprise/trace"
)

// anonymizeFlags are the flags of anonymize.
type anonymizeFlags struct {
	flags.Tier
	out    string
	card   bool
	asJSON bool
}

func anonymizeCommand() *cobra.Command {
	var f anonymizeFlags
	cmd := &cobra.Command{
		Use:   "anonymize TRACE -o OUTPUT",
		Short: "Turn a trace into one that you can share, or print a privacy card",
		Long: `Anonymize turns an internal trace into one that you can share. It writes a privacy
card, NAME.privacy.json, beside it; --card prints the card of any file in words.

Tier partner is for a partner under contract. Lengths become buckets that several
users share, times are redrawn within a second, block ids are shared between users
only where several have the block, and much is dropped. The effect on totals and on
the hit ratio is printed.

Tier public can be published. NAME.model.parquet holds a differentially private model
of noisy counts, and the trace is drawn from it; reprise synth NAME.model.parquet draws
more. It needs some hundred thousand requests at ε=1 with users, and a declared capture
window (reprise import --capture-begin T --capture-end T). It is refused with exit code
3 if the noise would change the totals by more than 10 %. Every release and attempt
counts in the source's ledger.

The unit of privacy is a user, or a session of the source. A source without either
needs --unit request, which protects requests and not people. Blocks that link the
requests of a conversation are kept, for their reuse; in a source without sessions they
reveal conversations, and reprise audit fails such a release: use --drop-own-blocks.

Block ids are made under a random key that is never stored, so the ids of two releases
cannot be joined.

reprise import --tier does all of this in one step.`,
		Example: `  reprise import gateway.jsonl --map time=ts --map user=user --map input_tokens=usage.prompt_tokens --map output_tokens=usage.completion_tokens -o house.parquet
  reprise anonymize house.parquet --tier partner -o partner.parquet
  reprise anonymize --card partner.parquet`,
		Args: flags.Wants(1, 1, "which trace?"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	fl := cmd.Flags()
	everyday, _ := flags.Sections(fl, flags.ResultsFlags)
	everyday.OutputVar(&f.out, "`file` for the trace; - is stdout")
	everyday.BoolVar(&f.card, "card", false, "print the privacy card of a file, and exit")
	everyday.BoolVar(&f.asJSON, "json", false, "with --card: print JSON")
	everyday.Bool("quiet", false, "no progress")
	f.Register(fl, anonymize.Partner, "partner or public")
	return cmd
}

func (f *anonymizeFlags) run(cmd *cobra.Command, path string) error {
	switch {
	case f.card && cmd.Flags().Changed("tier"):
		return cli.Usagef("--card takes no --tier: it prints the card of a file")
	case f.asJSON && !f.card:
		return cli.Usagef("--json needs --card")
	}
	if err := f.Check(cmd); err != nil {
		return err
	}
	if err := cli.KeepInputs([]string{path, f.Public.Ledger}, outputsOf(&f.Tier, f.out)...); err != nil {
		return err
	}
	if f.card {
		return f.printCard(cmd, path)
	}
	if f.Name != anonymize.Partner && f.Name != anonymize.Public {
		return cli.Usagef("--tier %s: want %s or %s", f.Name, anonymize.Partner, anonymize.Public)
	}
	writes := outputsOf(&f.Tier, f.out)
	if f.Name == anonymize.Public {
		writes = append(writes, cmp.Or(f.Public.Ledger, path)) // by default the ledger is beside the trace
	}
	f.Confined = confine(cmd, []string{path}, writes)
	t, err := cli.OpenTrace(cmd, path)
	if err != nil {
		return err
	}
	defer t.Close()
	return release(cmd, &f.Tier, path, t, f.out)
}

// outputs are the files that are written for a trace.
func outputsOf(f *flags.Tier, out string) []string {
	list := []string{out, cardBeside(out)}
	if f.Name == anonymize.Public {
		list = append(list, modelBeside(out))
	}
	return list
}

// release writes the trace of a tier of one of tier internal. path is where that
// is, empty where it is in no file.
func release(cmd *cobra.Command, f *flags.Tier, path string, t *trace.Trace, out string) error {
	if f.Name == anonymize.Public {
		return publish(cmd, &f.Public, path, t, out)
	}
	return releasePartner(cmd, f.PartnerPolicy, t, out)
}

// publishable refuses an output beside which nothing can stand.
func publishable(out string) error {
	if modelBeside(out) == "" {
		return cli.Usagef("--tier %s writes two files: give -o public.parquet, and the model is public.model.parquet", anonymize.Public)
	}
	return nil
}

// publish writes a public model, and a trace that is drawn from it.
func publish(cmd *cobra.Command, f *flags.Public, path string, t *trace.Trace, out string) error {
	if err := publishable(out); err != nil {
		return err
	}
	m, err := fitPublic(cmd, f, path, t)
	if err != nil {
		return err
	}
	err = trace.WriteFile(modelBeside(out), m.Meta().Mode(), func(w io.Writer) error {
		err := writeCarded(cmd, out, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
			// As many rows are drawn as the model was fitted to, by a noisy count.
			bar := cli.NewProgress(cmd)
			bar.Start("synth", "requests", 0)
			defer bar.End()
			drawn, err := m.Generate(cmd.Context(), synth.Options{Seed: 1, Progress: bar.Set})
			if err != nil {
				return trace.Meta{}, err
			}
			bar.Start("write", "requests", drawn.Rows())
			_, err = trace.Copy(anonymize.Enforce(anonymize.Public, dst), bar.Watch(cmd, drawn.Reader()))
			return drawn.Meta(), err
		})
		if err != nil {
			return err
		}
		return m.Write(w)
	})
	if err != nil {
		return err
	}
	card, err := anonymize.ParseCard(m.Meta().Card, m.Meta().CardHash)
	if err == nil {
		cli.Notef(cmd, "tier public: the model is %s, the card %s; the rows of %s are drawn from the model", modelBeside(out), cardBeside(out), out)
		sayRisks(cmd, card)
	}
	return err
}

// releasePartner writes the partner's trace of one of tier internal.
func releasePartner(cmd *cobra.Command, p anonymize.PartnerPolicy, t *trace.Trace, out string) error {
	bar := cli.NewProgress(cmd)
	p.Progress = bar.Step
	var card anonymize.Card
	err := writeCarded(cmd, out, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		var err error
		src := anonymize.Source{Meta: t.Meta, Open: func() (trace.Reader[trace.Request], error) { return t.Reader() }}
		if card, err = anonymize.Release(cmd.Context(), p, src, dst); err != nil {
			return trace.Meta{}, err
		}
		card.Tool = tool()
		return card.Meta(t.Meta)
	})
	bar.End()
	switch {
	case errors.Is(err, anonymize.ErrNoUnit): // which a flag can mend
		return cli.Exit(cli.Usage, fmt.Errorf("%w; --unit request does that", err))
	case err != nil:
		return err
	}
	done, c := card.Partner, card.Change
	cli.Notef(cmd, "tier partner, counted as user: %s, named by %.1f %% of the requests; k_share %d, k_class %d", done.Unit, 100*done.Coverage, done.KShare, done.KClass)
	cli.Notef(cmd, "%d classes of lengths; %.2f %% of the requests came out with the lengths of another class, %.2f %% were left out", done.Classes, 100*done.MergedShare, 100*done.SuppressedShare)
	cli.Notef(cmd, "requests %d, before %d; input tokens %+.2f %%, output tokens %+.2f %%", c.After.Requests, c.Before.Requests, 100*c.Input(), 100*c.Output())
	if before, after := c.Before.HitRatio(), c.After.HitRatio(); before != nil && after != nil {
		cli.Notef(cmd, "hit ratio by block %.4f, before %.4f; %d blocks of prompts were cut off by a shorter length", *after, *before, c.CutBlocks)
	}
	if done.LinksKept != nil {
		cli.Notef(cmd, "links between turns: %.2f %% kept with k_link %d; %.2f %% of the requests are linked to an earlier one by blocks of their own", 100**done.LinksKept, done.LinkK, 100*done.OwnBlocks)
	}
	sayRisks(cmd, card)
	return nil
}

func sayRisks(cmd *cobra.Command, card anonymize.Card) {
	for _, r := range card.Risks {
		cli.Notef(cmd, "risk: %s", r)
	}
}
