package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/synth"
	"reprise/trace"
	"reprise/trace/page"
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
3 if the noise would change the totals by more than 10 %.

Every release and attempt counts in a ledger, beside the trace and in one of the user,
which copies and slices of the trace are known in. A second partner release of the same
rows with other flags is refused with exit code 3: the two show more than each.

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
	everyday.BoolVar(&f.asJSON, "json", false, "print the privacy card as JSON")
	flags.Details(fl)
	everyday.Bool("quiet", false, "no progress")
	f.Register(fl, anonymize.Partner, "partner or public")
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
	if err := cli.CheckBeside(cmd, f.out, writes...); err != nil {
		return err
	}
	f.Confined = confine(cmd, []string{path}, append(writes, ledgerOf(cmd, f.Public.Ledger, path).Files...))
	t, err := cli.OpenTrace(cmd, path)
	if err != nil {
		return err
	}
	defer t.Close()
	return releaseTrace(cmd, &f.Tier, path, t, f.out, f.asJSON)
}

// outputs are the files that are written for a trace.
func outputsOf(f *flags.Tier, out string) []string {
	list := []string{out, cardBeside(out)}
	if f.Name == anonymize.Public {
		list = append(list, modelBeside(out))
	}
	return list
}

// releaseTrace writes the trace of a tier of one of tier internal. path is where that
// is, empty where it is in no file. It says what was done, or prints the privacy card.
func releaseTrace(cmd *cobra.Command, f *flags.Tier, path string, t *trace.Trace, out string, asJSON bool) error {
	var card anonymize.Card
	var says []string
	var err error
	if f.Name == anonymize.Public {
		card, says, err = publish(cmd, &f.Public, path, t, out)
	} else {
		card, says, err = releasePartner(cmd, f, path, t, out)
	}
	if err != nil {
		return err
	}
	if asJSON {
		text, _, err := card.JSON()
		if err != nil {
			return err
		}
		_, err = io.WriteString(cmd.OutOrStdout(), text+"\n")
		return err
	}
	for _, r := range card.Risks {
		says = append(says, "risk: "+r)
	}
	cli.Answer(cmd, "--details prints them, and --card the privacy card", says...)
	return nil
}

// publishable refuses an output beside which nothing can stand.
func publishable(out string) error {
	if modelBeside(out) == "" {
		return cli.Usagef("--tier %s writes two files: give -o public.parquet, and the model is public.model.parquet", anonymize.Public)
	}
	return nil
}

// publish writes a public model, and a trace that is drawn from it.
func publish(cmd *cobra.Command, f *flags.Public, path string, t *trace.Trace, out string) (card anonymize.Card, says []string, err error) {
	if err := publishable(out); err != nil {
		return card, nil, err
	}
	m, notes, err := fitPublic(cmd, f, path, t)
	if err != nil {
		return card, nil, err
	}
	var requests int64
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
			requests = drawn.Rows()
			bar.Start("write", "requests", requests)
			_, err = trace.Copy(anonymize.Enforce(anonymize.Public, dst), bar.Watch(cmd, drawn.Reader()))
			return drawn.Meta(), err
		})
		if err != nil {
			return err
		}
		return m.Write(w)
	})
	if err != nil {
		return card, nil, err
	}
	card, err = anonymize.ParseCard(m.Meta().Card, m.Meta().CardHash)
	says = append(says, fmt.Sprintf("%s: tier public, %s drawn from the model %s; the privacy card is %s", out, page.Many(requests, "request"), modelBeside(out), cardBeside(out)))
	return card, append(says, notes...), err
}

// releasePartner writes the partner's trace of one of tier internal, where the ledger knows of no
// release of the same rows in other cells.
func releasePartner(cmd *cobra.Command, f *flags.Tier, path string, t *trace.Trace, out string) (card anonymize.Card, says []string, err error) {
	entry, err := countRelease(anonymize.Partner, t)
	if err != nil {
		return card, nil, err
	}
	bar := cli.NewProgress(cmd)
	p := f.PartnerPolicy
	p.Progress = bar.Step
	var counted []string
	err = writeCarded(cmd, out, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		var err error
		src := anonymize.Source{Meta: t.Meta, Open: func() (trace.Reader[trace.Request], error) { return t.Reader() }}
		if card, err = anonymize.Release(cmd.Context(), p, src, dst); err != nil {
			return trace.Meta{}, err
		}
		if w, ok := dst.(*trace.RequestWriter); ok {
			entry.Release = w.Digest()
		}
		if counted, err = enterPartner(ledgerOf(cmd, f.Public.Ledger, path), &entry, card.Partner, f); err != nil {
			return trace.Meta{}, err
		}
		card.Tool = tool()
		return card.Meta(t.Meta)
	})
	bar.End()
	switch {
	case errors.Is(err, anonymize.ErrNoUnit): // which a flag can mend
		return card, nil, cli.Exit(cli.Usage, fmt.Errorf("%w; --unit request does that", err))
	case err != nil:
		return card, nil, err
	}
	done, c := card.Partner, card.Change
	says = append(says, fmt.Sprintf("%s: tier partner, %s of %s; input tokens %s, output tokens %s", outputName(out), page.Count(c.After.Requests), page.Many(c.Before.Requests, "request"), signedPercent(c.Input()), signedPercent(c.Output())),
		fmt.Sprintf("counted as user: %s, named by %s of the requests; k_share %d, k_class %d", done.Unit, page.Percent(done.Coverage), done.KShare, done.KClass),
		fmt.Sprintf("%s classes of lengths; %s of the requests came out with the lengths of another class, %s were left out", page.Count(int64(done.Classes)), page.Percent(done.MergedShare), page.Percent(done.SuppressedShare)))
	if before, after := c.Before.HitRatio(), c.After.HitRatio(); before != nil && after != nil {
		says = append(says, fmt.Sprintf("hit ratio by block %s, before %s; %s of prompts cut off by a shorter length", page.Percent(*after), page.Percent(*before), page.Many(c.CutBlocks, "block")))
	}
	if done.LinksKept != nil {
		says = append(says, fmt.Sprintf("links between turns: %s kept with k_link %d; %s of the requests are linked to an earlier one by blocks of their own", page.Percent(*done.LinksKept), done.LinkK, page.Percent(done.OwnBlocks)))
	}
	return card, append(says, counted...), nil
}

// enterPartner enters a release of rows. A second one in another grid is refused: what is in
// one cell of both may be of fewer than either promises. Blocks and links are no part of the
// grid: of two releases in one grid the one that keeps more shows all.
func enterPartner(ledger dp.Ledger, entry *dp.Release, done *anonymize.PartnerCard, f *flags.Tier) (says []string, err error) {
	entry.Mechanism = "k-anonymity"
	entry.Grid = fmt.Sprintf("--unit %s --k-class %d --length-buckets %d --time-quantum %v --max-suppressed %g",
		done.Unit, done.KClass, done.PerOctave, time.Duration(done.QuantumNS), f.Suppressed)
	var before []dp.Release
	decide := func(list []dp.Release) error {
		before = list
		for _, r := range before {
			if r.Grid == "" || r.Grid == entry.Grid && r.Digest == entry.Digest || entry.Apart(&r.Source) || f.Public.Understood {
				continue
			}
			rows := "the same rows"
			if r.Digest != entry.Digest {
				rows = "rows of " + entry.Meets(&r.Source)
			}
			return cli.Exit(cli.Check, fmt.Errorf("%s were released to a partner before, in other cells: what is in one cell of both releases may be of fewer than %d. "+
				"Make this one of the same trace with the flags of that one:\n  %s\nIf nobody has that release, delete it and add --i-understand", rows, done.KClass, r.Grid))
		}
		return nil
	}
	if len(ledger.Files) == 0 {
		return ledgerWords(ledger, entry, nil, nil), nil
	}
	unwritten, err := ledger.Enter(entry, decide)
	if err != nil {
		return nil, err
	}
	if spent := dp.Spent(before); spent.Releases > 0 {
		says = append(says, fmt.Sprintf("warning: the ledger has a public release or attempt of this source, ε = %.3g: no ε says what it shows together with rows", spent.Epsilon))
	}
	return append(says, ledgerWords(ledger, entry, before, unwritten)...), nil
}
