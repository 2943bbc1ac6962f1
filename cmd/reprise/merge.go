package main

import (
	"context"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/importshard"
	"reprise/cmd/reprise/internal/machines"
	"reprise/replay/shard"
	"reprise/trace"
	"reprise/trace/page"
	"reprise/trace/recording"
)

func mergeCommand() *cobra.Command {
	var out string
	var finish, incomplete, asJSON bool
	var shards importshard.Merge
	cmd := &cobra.Command{
		Use:   "merge PARTS... -o FILE",
		Short: "Join the shards of a replay, or the parts of a recording",
		Long: `Merge looks at what its inputs are: files, or folders of them.

The results of the shards of a replay (replay --shard) become one results file, with the
server metrics beside it. A report of it is that of one run with the same rows, to the last
digit. A shard that is missing, there twice, unfinished or of another load is named and
refused. --incomplete takes what there is.

The *.part.parquet files that reprise record wrote become one trace, with --finish. It is
sorted by arrival, has reuse categories, and has dense ids in place of keyed ones. Its times
count from the begin of the recording, which becomes the declared capture window. Journals
are read too, of a recorder that was killed or is still running. Parts of several recordings
can be merged if they have the same tokenizer, chat template and block size. Recordings share
prefixes, users and sessions if they had one --key-file.

The shards of an import (import --shard) become, with --finish, the trace that one process
would have made.`,
		Example: `  reprise merge shards/ -o r.parquet
  reprise merge --finish traces/ -o t.parquet`,
		Args: flags.Wants(1, math.MaxInt, "which shards, or which parts? Name the folder that has them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !finish && shard.IsResults(args[0]):
				return machines.MergeResults(cmd, args, out, incomplete, asJSON)
			case incomplete:
				return cli.Usagef("--incomplete is for the shards of a replay")
			case !finish:
				return cli.Usagef("%s has no results of a run. The parts of a recording and the shards of an import are merged with --finish", args[0])
			}
			switch imported, err := shards.Takes(args); {
			case err != nil:
				return err
			case imported:
				return finishShards(cmd, &shards, args, out, asJSON)
			}
			if err := cli.CheckBeside(cmd, out, cardBeside(out)); err != nil {
				return err
			}
			set, err := recording.Open(args)
			if err != nil {
				return err
			}
			return finishParts(cmd, set, out, asJSON)
		},
	}
	results, _ := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	results.OutputVar(&out, "`file` for the results or the trace; - is stdout, for a trace")
	results.BoolVar(&finish, "finish", false, "the parts of a recording, or the shards of an import, are complete: turn them into a trace")
	results.BoolVar(&incomplete, "incomplete", false, "merge shards though some are missing or unfinished; the results say so, and no report trusts them")
	results.BoolVar(&asJSON, "json", false, "print the summary as JSON")
	shards.Register(cmd.Flags())
	return cmd
}

// finishParts makes a trace of parts and says of what.
func finishParts(cmd *cobra.Command, set *recording.Set, out string, asJSON bool) error {
	meta := set.Meta()
	bar := cli.NewProgress(cmd)
	policy := anonymize.Policy{Tier: anonymize.Internal, Progress: bar.Step}
	var card anonymize.Card
	err := writeCarded(cmd, out, func(dst trace.Writer[trace.Request]) (m trace.Meta, err error) {
		m, card, err = mergeParts(cmd.Context(), policy, set, dst)
		return m, err
	})
	bar.End()
	if err != nil {
		return err
	}
	files, journals := set.Files()
	t := card.Totals
	if asJSON {
		return cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"files": len(files), "journals": journals, "captures": set.Captures(),
			"requests": t.Requests, "failed": t.Failed, "input_tokens": t.InputTokens, "output_tokens": t.OutputTokens,
			"distinct_blocks": told(t.Blocks), "sessions": told(t.Sessions), "users": told(t.Users), "counts": meta.Counts})
	}
	cli.Notef(cmd, "%s from %s: %d input and %d output tokens, %d distinct blocks of %d", page.Many(t.Requests, "request"),
		page.Many(int64(len(files)), "file"), t.InputTokens, t.OutputTokens, t.Blocks, card.BlockSize)
	if says := captureWords(meta.Window()); says != "" {
		cli.Notef(cmd, "%s", says)
	}
	if journals > 0 {
		cli.Notef(cmd, "note: %s: the recorder was killed or still runs; what came in its last second may be missing", page.Many(int64(journals), "journal"))
	}
	switch n, keys := len(set.Captures()), len(set.Keys()); {
	case n > 1 && keys == 1:
		cli.Notef(cmd, "note: %d recordings with one key: users, sessions and prefixes go on from one to the next; a gap between them has no requests", n)
	case n > 1 && keys == n:
		cli.Notef(cmd, "note: %d recordings, each with a key of its own: no prefix and no session is shared between two of them (record --key-file would); a gap between them has no requests", n)
	case n > 1:
		cli.Notef(cmd, "note: %d recordings with %d keys: users, sessions and prefixes are shared only between those with one key; a gap between them has no requests", n, keys)
	}
	if meta.Share < 1 {
		cli.Notef(cmd, "note: %s of the sessions were recorded: rates and reuse are those of the sample", page.Percent(meta.Share))
	}
	if lost := meta.Counts.Lost(); lost > 0 {
		cli.Notef(cmd, "warning: %s passed and %s not recorded", page.Many(lost, "request"), page.Was(lost))
	}
	for _, says := range countWords(card) {
		cli.Notef(cmd, "%s", says)
	}
	cli.Notef(cmd, "tier %s: pseudonymous, for use inside your organisation", card.Tier)
	return nil
}

// mergeParts writes the rows of a trace of parts, and returns its metadata and its card.
func mergeParts(ctx context.Context, policy anonymize.Policy, set *recording.Set, dst trace.Writer[trace.Request]) (trace.Meta, anonymize.Card, error) {
	meta, src := set.Meta(), set.Reader()
	defer src.Close()
	card, err := anonymize.MergeRecorded(ctx, policy, meta, src, dst)
	if err != nil {
		return trace.Meta{}, card, err
	}
	card.Tool = tool()
	m := trace.Meta{SourceFormat: "record", Keys: meta.Keys, TimeUnit: "ns", Capture: meta.Window(), Tier: card.Tier, Unit: card.Unit,
		Tokenizer: card.Tokenizer, Template: card.Template, Sessions: "source"}
	for _, c := range set.Captures() {
		m.Captures = strings.TrimPrefix(m.Captures+","+c.CaptureID, ",")
	}
	if card.Totals.InferredSessions {
		m.Sessions = "inferred"
	} else if card.Totals.Sessions == 0 {
		m.Sessions = ""
	}
	if card.Totals.Blocks > 0 {
		m.BlockSize, m.Convention = card.BlockSize, trace.PartialTail
	}
	if m.Card, m.CardHash, err = card.JSON(); err == nil && card.Breakers != nil {
		m.Breakers, err = card.Breakers.JSON()
	}
	return m, card, err
}
