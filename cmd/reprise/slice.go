package main

import (
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/trace"
)

func sliceCommand() *cobra.Command {
	var out string
	var partitions int
	var start, end time.Duration
	cmd := &cobra.Command{
		Use:   "slice TRACE",
		Short: "Cut a window out of a trace, or a trace into partitions",
		Long: `Slice keeps the requests that arrive in a window. Times begin at the window's start,
ids are renumbered, and links to parents outside the window are dropped. If the trace
has a declared capture window, --start and --end count from its begin, and the slice
declares the part it covers.

--partitions writes a folder of so many Parquet files with about as many requests each, and a
manifest. Every command that takes a trace takes the folder too, and finds the same rows and
the same digest. Slice makes one file of it again. Without a window, a trace that is cut into
partitions or put together is copied as it is, ids and all.`,
		Example: `  reprise slice t.parquet --end 300s -o first.parquet
  reprise slice t.parquet --partitions 32 -o t/
  reprise slice t/ -o whole.parquet`,
		Args: flags.Wants(1, 1, "which trace?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if end > 0 && end <= start {
				return cli.Usagef("the window from %v to %v is empty", start, end)
			}
			if cmd.Flags().Changed("partitions") && (partitions < 1 || partitions > trace.MaxPartitions) {
				return cli.Usagef("--partitions: want a number from 1 to %d", trace.MaxPartitions)
			}
			if partitions > 0 && (out == "" || out == cli.Standard) {
				return cli.Usagef("--partitions writes a folder: name it with -o")
			}
			t, err := cli.OpenTrace(cmd, args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			capture, ok := t.Meta.Capture.Slice(int64(start), int64(end))
			if !ok {
				return cli.Usagef("the window begins after the declared capture, which lasts %v",
					t.Meta.Capture.Length())
			}
			src, err := t.Reader()
			if err != nil {
				return err
			}
			wrote := written{Of: trace.Ptr(src.Rows()), Partitions: partitions, toCome: src.Rows()}
			whole := !cmd.Flags().Changed("start") && !cmd.Flags().Changed("end") &&
				(partitions > 0 || trace.IsPartitioned(args[0]))
			if partitions > 0 && !whole {
				arrivals, err := trace.Columns[trace.Arrival](t)
				if err != nil {
					return err
				}
				window, err := trace.Window(arrivals, int64(start), int64(end))
				if err != nil {
					return err
				}
				wrote.toCome = window.Len()
			}
			if says := captureWords(capture); says != "" {
				wrote.Notes = append(wrote.Notes, says)
			}
			return writeTallied(cmd, out, &wrote, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
				if whole {
					_, err := trace.Copy(dst, src)
					return t.Meta, err
				}
				cut := &trace.Slice{Src: src, From: int64(start), To: int64(end)}
				defer cut.Close()
				_, err := trace.Copy(dst, cut)
				meta := t.Meta
				meta.Capture = capture
				meta.Breakers, meta.Raw, meta.Source = "", "", "" // those of the whole log
				return meta, err
			})
		},
	}
	results, _ := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	part, _ := flags.Sections(cmd.Flags(), flags.PartFlags)
	results.OutputVar(&out, "`file` for the trace, or folder with --partitions; - is stdout")
	results.IntVar(&partitions, "partitions", 0, "write a folder of this many files, with a manifest")
	results.Bool("json", false, "print the summary as JSON")
	part.DurationVar(&start, "start", 0, "start of the window, from the start of the trace")
	part.DurationVar(&end, "end", 0, "end of the window; 0 is the end of the trace")
	return cmd
}
