package main

import (
	"context"
	"errors"
	"fmt"
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
	"reprise/trace/doc"
	"reprise/trace/objectstore"
	"reprise/trace/profile"
	"reprise/trace/recording"
)

func mergeCommand() *cobra.Command {
	var out string
	var finish, incomplete bool
	var shards importshard.Merge
	cmd := &cobra.Command{
		Use:   "merge PARTS... -o FILE",
		Short: "Join the shards of a load or an import, recordings, traces or histograms",
		Long: `Merge looks at what its inputs are: files, or folders of them.

The results of the shards of a replay (replay --shard) become one results file, with the
server metrics beside it. Its report equals a report of one run with the same rows, to the last
digit. A shard that is missing, there twice, unfinished or of another load is named and
refused. --incomplete takes what there is.

The *.part.parquet files that reprise record wrote become one trace, with --finish, whose times
count from the begin of the recording. Journals are read too, of a recorder that was killed or
is still running. Recordings share prefixes, users and sessions if they had one --key-file.

The shards of an import (import --shard) become, with --finish, the trace that one process
would have made.

Traces become one trace, in order of arrival. Traces with a capture window stand where it
says; others all begin at once. Ids of two imports do not relate, so that nothing is shared
between two traces, and sessions, users, blocks and labels are numbered anew.

Histograms (profile --histograms) become one file, by adding counts, which is exact. Traces and
histograms of one source, twice, and of other block sizes, tokenizers or templates are refused.`,
		Example: `  reprise merge shards/ -o r.parquet
  reprise merge --finish traces/ -o t.parquet
  reprise merge monday.parquet tuesday.parquet -o week.parquet`,
		Args: flags.Wants(1, math.MaxInt, "which shards, or which parts? Name the folder that has them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			schema := ""
			if !finish {
				schema = cli.SchemaOf(args[0])
			}
			switch {
			case !finish && shard.IsResults(args[0]):
				return machines.MergeResults(cmd, args, out, incomplete)
			case incomplete:
				return cli.Usagef("--incomplete is for the shards of a replay")
			case schema == trace.Schema:
				return mergeTraces(cmd, args, out)
			case schema == histogramSchema:
				return mergeHistograms(cmd, args, out)
			case !finish:
				return cli.NotMerged(args[0])
			}
			switch imported, err := shards.Takes(args); {
			case err != nil:
				return err
			case imported:
				return finishShards(cmd, &shards, args, out)
			}
			if err := cli.CheckBeside(cmd, out, cardBeside(out)); err != nil {
				return err
			}
			set, err := recording.Open(args)
			if err != nil {
				return err
			}
			return finishParts(cmd, set, out)
		},
	}
	results, _ := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	results.ParquetVar(&out, "`file` for the results or the trace; - is stdout, for a trace")
	results.BoolVar(&finish, "finish", false,
		"the parts of a recording, or the shards of an import, are complete: turn them into a trace")
	results.BoolVar(&incomplete, "incomplete", false,
		"merge shards though some are missing or unfinished; the results say so, and no report trusts them")
	results.Bool("json", false, "print the summary as JSON")
	results.Bool("quiet", false, flags.QuietUsage)
	shards.Register(cmd.Flags())
	return cmd
}

// mergeTraces puts traces into one order of arrival.
func mergeTraces(cmd *cobra.Command, paths []string, out string) error {
	if len(paths) == 1 {
		return cli.Usagef("merge joins two traces or more: name another one. slice copies one")
	}
	var traces []*trace.Trace
	for _, path := range paths {
		t, err := cli.OpenTrace(cmd, path)
		if err != nil {
			return err
		}
		defer t.Close()
		traces = append(traces, t)
	}
	m, err := trace.NewMerge("", traces)
	if err != nil {
		return err
	}
	defer m.Close()
	wrote := written{Use: "reprise profile " + out}
	wrote.Notes = append(wrote.Notes,
		fmt.Sprintf("%d traces: no session, user or prefix is shared between two of them", len(traces)))
	meta := m.Meta()
	if says := captureWords(meta.Capture); says != "" {
		wrote.Notes = append(wrote.Notes, says)
	} else {
		wrote.Notes = append(wrote.Notes,
			"they declare no capture window, so all of them begin at once: import with --capture-begin and "+
				"--capture-end tells when they were")
	}
	if meta.Card == "" {
		wrote.Notes = append(wrote.Notes, "the result has no privacy card: each trace has its own")
	}
	return writeTallied(cmd, out, &wrote, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		src, err := m.Reader()
		if err != nil {
			return meta, err
		}
		bar := cli.NewProgress(cmd)
		bar.Start("merge", "requests", m.Rows())
		defer bar.End()
		_, err = trace.Copy(dst, bar.Watch(cmd, src))
		return meta, err
	})
}

// mergeHistograms adds the counts of the histograms of several profiles.
func mergeHistograms(cmd *cobra.Command, paths []string, out string) error {
	if out == "" || out == cli.Standard {
		return cli.Usagef("name a file for the histograms: -o FILE.parquet")
	}
	if len(paths) == 1 {
		return cli.Usagef("merge joins two files of histograms or more: name another one")
	}
	var all profile.HistogramSet
	var metas []trace.Meta
	for _, path := range paths {
		meta, err := addHistograms(&all, path)
		if err != nil {
			return cli.InFile(path, err)
		}
		metas = append(metas, meta)
	}
	meta, err := trace.JoinMeta(paths, metas)
	if err != nil {
		return err
	}
	var digests []string
	for _, m := range metas {
		digests = append(digests, m.Digest)
	}
	meta.Digest = strings.Join(digests, ",")
	if err := writeHistograms(out, meta, all.Rows()); err != nil {
		return err
	}
	requests := all.Get(profile.MetricInput, "").Count()
	if cli.On(cmd, "json") {
		return cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"file": out, "files": len(paths), "requests": requests,
			"tier": meta.Tier, "relative_error": profile.BucketError})
	}
	cli.Answer(cmd, "--json prints them",
		fmt.Sprintf("%s: histograms of %s from %s; counts are added, which is exact", out,
			doc.Many(requests, "request"), doc.Many(int64(len(paths)), "file")),
		fmt.Sprintf("note: a value is known to within %s, in each file and in this one, as the buckets are the same",
			doc.Percent(profile.BucketError)),
		"note: reuse and gaps between requests are within each source: a cache that all share is seen only in "+
			"one trace of all, by merge and profile")
	return nil
}

var errNotHistograms = errors.New("it holds no histograms: merge joins files of one kind")

// addHistograms adds the histograms of a file, and reads what it says of itself.
func addHistograms(all *profile.HistogramSet, path string) (meta trace.Meta, err error) {
	f, err := objectstore.Open(path)
	if err != nil {
		return meta, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return meta, err
	}
	rows, err := trace.NewRowsReader[profile.HistogramRow](f, info.Size())
	if err != nil {
		return meta, errNotHistograms
	}
	if schema, _ := rows.Metadata("reprise.schema"); schema != histogramSchema {
		return meta, errNotHistograms
	}
	if meta, err = trace.MetaOf(rows.Metadata); err != nil {
		return meta, err
	}
	meta.Digest, _ = rows.Metadata("reprise.source_digest")
	return meta, trace.Each(rows, func(_ int64, r *profile.HistogramRow) error { return all.AddRow(*r) })
}

// finishParts makes a trace of parts and says of what.
func finishParts(cmd *cobra.Command, set *recording.Set, out string) error {
	meta := set.Meta()
	bar, progress := takeProgress(cmd, "merge", shareOf(meta.Counts.Passed()))
	policy := anonymize.Policy{Tier: anonymize.Internal, Progress: progress}
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
	if cli.On(cmd, "json") {
		return cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"files": len(files), "journals": journals,
			"captures": set.Captures(),
			"requests": t.Requests, "failed": t.Failed, "input_tokens": t.InputTokens, "output_tokens": t.KnownOutput(),
			"distinct_blocks": told(t.Blocks), "sessions": told(t.Sessions), "users": told(t.Users),
			"counts": meta.Counts})
	}
	cli.Notef(cmd, "%s from %s: %d input and %d output tokens, %d distinct blocks of %d",
		doc.Many(t.Requests, "request"),
		doc.Many(int64(len(files)), "file"), t.InputTokens, t.OutputTokens, t.Blocks, card.BlockSize)
	if says := captureWords(meta.Window()); says != "" {
		cli.Notef(cmd, "%s", says)
	}
	if journals > 0 {
		cli.Notef(cmd, "note: %s: the recorder was killed or still runs; requests of its last second may be missing",
			doc.Many(int64(journals), "journal"))
	}
	switch n, keys := len(set.Captures()), len(set.Keys()); {
	case n > 1 && keys == 1:
		cli.Notef(cmd, "note: %d recordings with one key: users, sessions and prefixes go on from one to the next; a "+
			"gap between them has no requests", n)
	case n > 1 && keys == n:
		cli.Notef(cmd, "note: %d recordings, each with a key of its own: no prefix and no session is shared between "+
			"two of them (record --key-file would); a gap between them has no requests", n)
	case n > 1:
		cli.Notef(cmd, "note: %d recordings with %d keys: users, sessions and prefixes are shared only between "+
			"recordings with one key; a gap between them has no requests", n, keys)
	}
	if meta.Share < 1 {
		cli.Notef(cmd, "note: %s of the sessions were recorded: rates and reuse describe the sample",
			doc.Percent(meta.Share))
	}
	if lost := meta.Counts.Lost(); lost > 0 {
		cli.Notef(cmd, "warning: %s of %d passed and %s not recorded, so that rates, lengths and reuse describe the "+
			"rest", doc.Many(lost, "request"), lost+meta.Counts.Recorded, doc.Was(lost))
		for _, o := range meta.Counts.Outcomes() {
			if o.Lost && *o.N > 0 {
				cli.Notef(cmd, "  %s %s", doc.Many(*o.N, "request"), o.Says)
			}
		}
	}
	for _, says := range countWords(card) {
		cli.Notef(cmd, "%s", says)
	}
	cli.Notef(cmd, "%s", trace.TierWords(card.Tier))
	return nil
}

// mergeParts writes the rows of a trace of parts, and returns its metadata and its card.
func mergeParts(ctx context.Context, policy anonymize.Policy, set *recording.Set,
	dst trace.Writer[trace.Request]) (trace.Meta, anonymize.Card, error) {
	meta, src := set.Meta(), set.Reader()
	defer src.Close()
	card, err := anonymize.MergeRecorded(ctx, policy, meta, src, dst)
	if err != nil {
		return trace.Meta{}, card, err
	}
	card.Tool = tool()
	m := trace.Meta{SourceFormat: "record", Keys: meta.Keys, TimeUnit: "ns", Capture: meta.Window(),
		Tier: card.Tier, Unit: card.Unit,
		Tokenizer: card.Tokenizer, Template: card.Template}
	for _, c := range set.Captures() {
		m.Captures = strings.TrimPrefix(m.Captures+","+c.CaptureID, ",")
	}
	m.Sessions, m.SessionDoubt = flags.SessionsOf(card)
	if card.Totals.Blocks > 0 {
		m.BlockSize, m.Convention, m.Categories = card.BlockSize, trace.PartialTail, trace.CategoryRule
	}
	if m.Card, m.CardHash, err = card.JSON(); err == nil && card.Breakers != nil {
		m.Breakers, err = card.Breakers.JSON()
	}
	return m, card, err
}
