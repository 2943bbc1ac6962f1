package main

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/trace"
	"reprise/trace/fleet"
	"reprise/trace/profile"
)

// profileFlags are the flags of profile.
type profileFlags struct {
	out, histograms, tables string
	html                    string
	serverBlock             int
	warmUp                  time.Duration
	kvBytes                 int64
	shape                   string
	replicas                []int
	capacity                string
}

// categoryHelp lists the reuse categories.
func categoryHelp() string {
	var lines []string
	for _, d := range trace.CategoryDefinitions(trace.CategoryRule) {
		lines = append(lines, cli.Wrapped(d.Name+": "+d.Text))
	}
	return strings.Join(lines, "\n")
}

func profileCommand() *cobra.Command {
	var f profileFlags
	cmd := &cobra.Command{
		Use:   "profile TRACE",
		Short: "Print lengths, arrivals, prefix reuse and sessions of a trace",
		Long: `Profile reads a trace or a workload and prints lengths, arrivals with their index of
dispersion (IDC), hit ratios of an unlimited prefix cache and of an LRU cache of each
size, the prefixes with the most reuse, the working set, and where reuse is lost on
the way to what a server can reach. It also finds prefix breakers: places where
near-identical prompts differ, such as a date in a system prompt, and what they cost.

Each request with blocks has the first reuse category that fits:
` + categoryHelp() + `

--replicas simulates four routers over several prefix caches: round-robin; session, by
its hash; prefix, to the longest cached prefix; and prefix-weighted, by hit blocks /
prompt blocks minus the replica's share of prompt tokens above the mean.

--kv-bytes-per-token or --model-shape gives memory in GiB. Models:
` + cli.Wrapped(strings.Join(profile.ModelShapes(), ", ")),
		Example: `  reprise profile t.parquet
  reprise profile t.parquet --json | jq .reuse
  reprise profile t.parquet --html p.html
  reprise profile t.parquet --replicas 2,4,8 --replica-capacity 40GiB --model-shape llama-3-8b
  reprise profile t.parquet --histograms h.parquet --tables tables.parquet`,
		Args: flags.Wants(1, 1, "which trace?"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	fl := cmd.Flags()
	results, resultsRest := flags.Sections(fl, flags.ResultsFlags)
	caches, _ := flags.Sections(fl, "Caches")
	statistics, _ := flags.Sections(fl, "Statistics")
	results.OutputVar(&f.out, "`file` to write, instead of stdout")
	results.Bool("json", false, "print JSON")
	flags.Details(cmd.Flags())
	resultsRest.FileVar(&f.histograms, "histograms",
		"write histograms to this Parquet `file`: metric, category, lo, hi, count")
	results.FileVar(&f.html, "html", "write a self-contained HTML `page`")
	resultsRest.FileVar(&f.tables, "tables", "write curves and tables to this Parquet `file`: table, key, value, unit")
	caches.IntVar(&f.serverBlock, "server-block-size", profile.DefaultServerBlock,
		"block size of the server in tokens, for the reachable hit ratio")
	statistics.DurationVar(&f.warmUp, "warm-up", -1, "start of the steady state; by default half of the trace")
	caches.Int64Var(&f.kvBytes, "kv-bytes-per-token", 0, "KV `bytes` of a token over all layers")
	caches.StringVar(&f.shape, "model-shape", "",
		"`model` that gives --kv-bytes-per-token: a name, or layers=32,kv_heads=8,head_dim=128,bytes=2")
	caches.IntSliceVar(&f.replicas, "replicas", "simulate routing over these numbers of `replicas`, such as 2,4,8")
	caches.StringVar(&f.capacity, "replica-capacity", "",
		"prefix cache of each replica: `size` in blocks (10000), tokens (1Mtok) or memory (40GiB); by "+
			"default unlimited")
	results.Bool("quiet", false, flags.QuietUsage)
	return cmd
}

func (f *profileFlags) run(cmd *cobra.Command, path string) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	t, err := cli.OpenTrace(cmd, path)
	if err != nil {
		return err
	}
	defer t.Close()
	o, err := f.options(t.Meta.BlockSize)
	if err != nil {
		return err
	}
	defer cli.LimitMemory(largeMemory)()
	p, err := profileOf(cmd, t, o)
	if err != nil {
		return err
	}
	summary := p.Summary()
	if f.histograms != "" {
		if err := writeHistograms(f.histograms, t.Meta, p.Histograms()); err != nil {
			return err
		}
	}
	if f.tables != "" {
		if err := writeTable(f.tables, profile.TablesSchema, t.Meta, profile.Tables(summary)); err != nil {
			return err
		}
	}
	return cli.Finding{Tier: t.Meta.Tier, Page: profile.Page(summary, p.Histograms()), JSON: summary, HTML: f.html,
		Out: f.out, Rest: "All tables: --details. Page with plots: --html FILE."}.Write(cmd)
}

// check refuses what is wrong whatever the trace.
func (f *profileFlags) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case f.serverBlock < 1:
		return cli.Usagef("--server-block-size: a block has at least one token")
	case given("kv-bytes-per-token") && f.kvBytes < 1:
		return cli.Usagef("--kv-bytes-per-token: a token takes at least one byte")
	case f.kvBytes > profile.MaxKVBytesPerToken:
		return cli.Usagef("--kv-bytes-per-token: a token takes at most %d bytes", int64(profile.MaxKVBytesPerToken))
	case given("kv-bytes-per-token") && given("model-shape"):
		return cli.Usagef("--kv-bytes-per-token and --model-shape cannot be used together")
	case f.histograms == cli.Standard || f.tables == cli.Standard:
		return cli.Usagef("--histograms and --tables are binary: give each a file name")
	case f.html == cli.Standard && (f.out == "" || f.out == cli.Standard):
		return cli.Usagef("--html - and the printed answer both write to stdout: give -o FILE")
	case given("replicas") && len(f.replicas) == 0:
		return cli.Usagef("--replicas: give numbers of replicas, such as 2,4,8")
	}
	f.replicas = slices.Compact(slices.Sorted(slices.Values(f.replicas)))
	for _, n := range f.replicas {
		if n < 1 || n > fleet.MaxReplicas {
			return cli.Usagef("--replicas: each is a number from 1 to %d", fleet.MaxReplicas)
		}
	}
	if given("model-shape") {
		shape, err := profile.ParseModelShape(f.shape)
		if err != nil {
			return cli.Usagef("--model-shape: %v", err)
		}
		f.kvBytes = shape.KVBytesPerToken()
	}
	if given("replica-capacity") {
		size, err := profile.ParseCacheSize(f.capacity)
		if err != nil {
			return cli.Usagef("--replica-capacity: %v", err)
		}
		if size.NeedsKVBytes() && f.kvBytes == 0 {
			return cli.Usagef("--replica-capacity in bytes needs --model-shape or --kv-bytes-per-token")
		}
	}
	return nil
}

// options are those for a trace with blocks of so many tokens, once checked.
func (f *profileFlags) options(blockSize int) (profile.ProfilerOptions, error) {
	o := profileOptions(f.serverBlock, f.warmUp)
	o.KVBytesPerToken, o.Replicas = f.kvBytes, f.replicas
	if f.capacity == "" || blockSize < 1 {
		return o, nil
	}
	size, err := profile.ParseCacheSize(f.capacity)
	if err != nil {
		return o, err
	}
	if o.ReplicaBlocks = size.Blocks(blockSize, f.kvBytes); o.ReplicaBlocks < 1 {
		return o, cli.Usagef("--replica-capacity: not one block of the trace, of %d tokens, fits", blockSize)
	}
	return o, nil
}

// profileOptions takes a warm-up below 0 for half of the trace.
func profileOptions(serverBlock int, warmUp time.Duration) profile.ProfilerOptions {
	o := profile.ProfilerOptions{ServerBlock: serverBlock}
	if warmUp >= 0 {
		o.WarmUp = &warmUp
	}
	return o
}

// profileOf reads a whole trace into a Profiler.
func profileOf(cmd *cobra.Command, t *trace.Trace, o profile.ProfilerOptions) (*profile.Profiler, error) {
	bar := cli.NewProgress(cmd)
	defer bar.End()
	p := profile.NewProfiler(t.Meta, o)
	return p, feed(cmd, bar, "profile", t, p)
}

// feed hands a whole trace to what takes its rows, one by one, as a step that
// progress is shown of.
func feed(cmd *cobra.Command, bar *cli.Progress, step string, t *trace.Trace, dst trace.Writer[trace.Request]) error {
	src, err := t.Reader()
	if err != nil {
		return err
	}
	bar.Start(step, "requests", src.Rows())
	one := make([]trace.Request, 1)
	return trace.Each(src, func(row int64, r *trace.Request) error {
		if row%4096 == 0 {
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			bar.Set(row)
		}
		one[0] = *r
		_, err := dst.Write(one)
		return err
	})
}

// writeHistograms writes histograms as a table.
func writeHistograms(path string, meta trace.Meta, rows []profile.HistogramRow) error {
	return writeTable(path, histogramSchema, meta, rows)
}

// histogramSchema names the layout of histograms.
const histogramSchema = "histograms/1"

// writeTable writes rows with the tier of their trace.
func writeTable[T trace.TextFree](path, schema string, meta trace.Meta, rows []T) error {
	return trace.WriteFile(path, meta.Mode(), func(w io.Writer) error {
		out := trace.NewRowsWriter[T](w, nil)
		if _, err := out.Write(rows); err != nil {
			return err
		}
		digest := meta.Digest
		meta.Digest, meta.Seed = "", ""
		meta.Each(out.SetMetadata)
		out.SetMetadata("reprise.schema", schema)
		out.SetMetadata("reprise.source_digest", digest)
		return out.Close()
	})
}
