package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/anonymize"
	"reprise/trace"
)

// tierFlags say by which rules a trace of a tier beyond internal is made.
type tierFlags struct {
	tier string
	anonymize.PartnerPolicy
}

func (f *tierFlags) register(fl *pflag.FlagSet, tier string) {
	fl.StringVar(&f.tier, "tier", tier, "release tier of the trace: internal or partner")
	fl.StringVar(&f.Unit, "unit", "", "for --tier partner: who is counted, user, session or request; by default users, else sessions of the source")
	fl.IntVar(&f.KShare, "k-share", 5, "for --tier partner: users that must have a block for its id to be the same for all")
	fl.IntVar(&f.KClass, "k-class", 11, "for --tier partner: users that must have a pair of lengths, or a name")
	fl.IntVar(&f.LinkK, "k-link", 0, "for --tier partner: users whose sessions must have the same lengths for turns to stay linked, 0 or 1 for all; as --k-class by default")
	fl.IntVar(&f.PerOctave, "length-buckets", 2, "for --tier partner: buckets of lengths in an octave")
	fl.DurationVar(&f.Quantum, "time-quantum", time.Second, "for --tier partner: bins within which times are drawn anew")
	fl.Float64Var(&f.Suppressed, "max-suppressed", 0.05, "for --tier partner: share of the requests that may be left out")
}

// check refuses flags that have no meaning for the tier.
func (f *tierFlags) check(fl *pflag.FlagSet) error {
	if f.tier == anonymize.Partner {
		if fl.Changed("k-link") && f.LinkK == 0 {
			f.LinkK = 1
		}
		return nil
	}
	for _, name := range []string{"unit", "k-share", "k-class", "k-link", "length-buckets", "time-quantum", "max-suppressed"} {
		if fl.Changed(name) {
			return usagef("--%s is for --tier %s", name, anonymize.Partner)
		}
	}
	return nil
}

func anonymizeCommand() *cobra.Command {
	var f tierFlags
	var out string
	var asCard bool
	cmd := &cobra.Command{
		Use:   "anonymize TRACE",
		Short: "Make a trace that may leave the house, or print a privacy card",
		Long: `Anonymize makes a trace of tier partner of one of tier internal. Lengths come out
as buckets that several users share, times are drawn anew within a second, block
ids are the same for two users only where several have the block, and much is
dropped: the privacy card in the file says what became of each column, and --card
prints it. reprise import --tier partner does the same in one go.

What the release did to the totals and to the hit ratio is printed.`,
		Example: `  reprise import gateway.jsonl --map time=ts --map user=user --map input_tokens=usage.prompt_tokens --map output_tokens=usage.completion_tokens -o house.parquet
  reprise anonymize house.parquet --tier partner -o partner.parquet
  reprise anonymize --card partner.parquet`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd.Flags()); err != nil {
				return err
			}
			if err := keepsInputs(args, out); err != nil {
				return err
			}
			t, err := openTrace(cmd, args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			switch {
			case asCard && cmd.Flags().Changed("tier"):
				return usagef("--card prints the card of a file: it takes no --tier")
			case asCard:
				return writeOutput(cmd, out, func(w io.Writer) error { return printCard(w, t.Meta) })
			case f.tier != anonymize.Partner:
				return usagef("--tier %s: want %s", f.tier, anonymize.Partner)
			}
			return f.release(cmd, t, out)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&out, "output", "o", "", "trace to write, - for stdout")
	fl.BoolVar(&asCard, "card", false, "print the privacy card of the file and do nothing else")
	fl.Bool("quiet", false, "no progress")
	f.register(fl, anonymize.Partner)
	return cmd
}

func printCard(w io.Writer, m trace.Meta) error {
	if m.Card == "" {
		return errors.New("the file has no privacy card")
	}
	card, err := anonymize.ParseCard(m.Card, m.CardHash)
	if err != nil {
		return err
	}
	return card.WriteText(w)
}

// release writes the partner's trace of one of tier internal.
func (f *tierFlags) release(cmd *cobra.Command, t *trace.Trace, out string) error {
	bar := newProgress(cmd)
	step := ""
	p := f.PartnerPolicy
	p.Progress = func(now string, done int64) {
		if now != step {
			step = now
			bar.start(step, "requests", 0)
		}
		bar.set(done)
	}
	var card anonymize.Card
	err := writeTrace(cmd, out, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		var err error
		src := anonymize.Source{Meta: t.Meta, Open: func() (trace.Reader[trace.Request], error) { return t.Reader() }}
		if card, err = anonymize.Release(cmd.Context(), p, src, dst); err != nil {
			return trace.Meta{}, err
		}
		return card.Meta(t.Meta)
	})
	bar.end()
	if err == nil {
		sayRelease(cmd, card)
	}
	return usageOfUnit(err)
}

// usageOfUnit makes a missing unit an error of usage, which a flag can mend.
func usageOfUnit(err error) error {
	if errors.Is(err, anonymize.ErrNoUnit) {
		return &exitError{exitUsage, fmt.Errorf("%w; --unit request does that", err)}
	}
	return err
}

// sayRelease tells what became of the totals.
func sayRelease(cmd *cobra.Command, card anonymize.Card) {
	p, c := card.Partner, card.Change
	notef(cmd, "tier partner, counted as user: %s, named by %.1f %% of the requests; k_share %d, k_class %d", p.Unit, 100*p.Coverage, p.KShare, p.KClass)
	notef(cmd, "%d classes of lengths; %.2f %% of the requests came out with the lengths of another class, %.2f %% were left out", p.Classes, 100*p.MergedShare, 100*p.SuppressedShare)
	notef(cmd, "requests %d, before %d; input tokens %+.2f %%, output tokens %+.2f %%", c.After.Requests, c.Before.Requests, 100*c.Input(), 100*c.Output())
	if before, after := c.Before.HitRatio(), c.After.HitRatio(); before != nil && after != nil {
		notef(cmd, "hit ratio by block %.4f, before %.4f; %d blocks of prompts were cut off by a shorter length", *after, *before, c.CutBlocks)
	}
	if p.LinksKept != nil {
		notef(cmd, "links between turns: %.2f %% kept with k_link %d; %.2f %% of the requests are linked to an earlier one by blocks of their own", 100**p.LinksKept, p.LinkK, 100*p.OwnBlocks)
	}
	for _, r := range card.Risks {
		notef(cmd, "risk: %s", r)
	}
}
