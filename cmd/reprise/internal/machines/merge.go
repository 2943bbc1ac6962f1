package machines

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
	"reprise/replay/shard"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// MergeResults writes the results of the shards of one load to one file, and says what of.
func MergeResults(cmd *cobra.Command, paths []string, out string, incomplete bool) error {
	if out == "" || out == cli.Standard {
		return cli.Usagef("name a file for the results: -o FILE.parquet")
	}
	if err := cli.CheckBeside(cmd, out, result.MetricsName(out)); err != nil {
		return err
	}
	set, err := shard.Open(paths, incomplete)
	if errors.Is(err, shard.ErrNoSet) && !incomplete {
		return cli.Usagef("%v. --incomplete merges what there is of one load", err)
	}
	if err != nil {
		return err
	}
	defer set.Close()
	run, err := set.Merge(out)
	if err != nil {
		return err
	}
	for _, gap := range set.Gaps() {
		cli.Warnf(cmd, "incomplete: %s", gap)
	}
	if cli.On(cmd, "json") {
		return cli.WriteJSON(cmd.OutOrStdout(), run)
	}
	p := textpage.New(cli.TextOptions(cmd, ""))
	p.Line("", fmt.Sprintf("%s of %s, in %s", doc.Many(run.Requests, "request"),
		doc.Many(int64(len(run.Shards)), "shard"), out))
	p.Blank()
	rows := [][]string{}
	for i := range run.Shards {
		rows = append(rows, shardRow(&run.Shards[i]))
	}
	const shown = 16
	if hidden := len(rows) - shown; hidden > 0 {
		rows = append(rows[:shown], []string{fmt.Sprintf("%d more", hidden), "", "", "", "", "", ""})
	}
	p.Table("By shard, lag from due to sent", shardHead, rows)
	p.Blank()
	for _, says := range shard.Apart(run.Shards) {
		p.Line("", says)
	}
	p.Line("", "reprise report "+out+" prints what they measured")
	_, err = p.WriteTo(cmd.OutOrStdout())
	return err
}

var shardHead = []string{"shard", "requests", "lag p50", "lag p99", "lag max", "CPU", "clock"}

func shardRow(s *result.SentShard) []string {
	ms := func(ns *int64) string {
		if ns == nil {
			return "–"
		}
		return doc.Short(float64(*ns)/1e6) + " ms"
	}
	clock := "–"
	if c := s.Clock; c != nil {
		clock = fmt.Sprintf("%v ± %v", time.Duration(c.OffsetNS).Round(time.Microsecond),
			time.Duration(c.UncertaintyNS).Round(time.Microsecond))
	}
	return []string{s.Share.String(), doc.Brief(s.Requests), ms(s.LagP50), ms(s.LagP99), ms(s.LagMax),
		fmt.Sprintf("%.2f of %d", s.ClientCPU, s.Cores), clock}
}
