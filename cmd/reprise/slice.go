package main

import (
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/trace"
)

// sliceFlags say which part of a trace is kept, and where it is written.
type sliceFlags struct {
	out        string
	partitions int
	start, end time.Duration // of the window; end 0 is the end of the trace
}

func sliceCommand() *cobra.Command {
	var f sliceFlags
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
			if err := f.check(cmd); err != nil {
				return err
			}
			return f.slice(cmd, args[0])
		},
	}
	results, _ := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	part, _ := flags.Sections(cmd.Flags(), flags.PartFlags)
	results.ParquetVar(&f.out, "`file` for the trace, or folder with --partitions; - is stdout")
	results.IntVar(&f.partitions, "partitions", 0, "write a folder of this many files, with a manifest")
	results.Bool("json", false, "print the summary as JSON")
	results.Bool("quiet", false, flags.QuietUsage)
	part.DurationVar(&f.start, "start", 0, "start of the window, from the start of the trace")
	part.DurationVar(&f.end, "end", 0, "end of the window; 0 is the end of the trace")
	return cmd
}

// check refuses flags that go against each other.
func (f *sliceFlags) check(cmd *cobra.Command) error {
	if f.end > 0 && f.end <= f.start {
		return cli.Usagef("the window from %v to %v is empty", f.start, f.end)
	}
	if cmd.Flags().Changed("partitions") && (f.partitions < 1 || f.partitions > trace.MaxPartitions) {
		return cli.Usagef("--partitions: want a number from 1 to %d", trace.MaxPartitions)
	}
	if f.partitions > 0 && (f.out == "" || f.out == cli.Standard) {
		return cli.Usagef("--partitions writes a folder: name it with -o")
	}
	return nil
}

// slice writes the window of the trace at a path, or all of it as another number of files.
func (f *sliceFlags) slice(cmd *cobra.Command, path string) error {
	t, err := cli.OpenTrace(cmd, path)
	if err != nil {
		return err
	}
	defer t.Close()

	capture, ok := t.Meta.Capture.Slice(int64(f.start), int64(f.end))
	if !ok {
		return cli.Usagef("the window begins after the declared capture, which lasts %v",
			t.Meta.Capture.Length())
	}
	src, err := t.Reader()
	if err != nil {
		return err
	}

	wrote := written{Of: trace.Ptr(src.Rows()), Partitions: f.partitions, toCome: src.Rows()}
	whole := !cmd.Flags().Changed("start") && !cmd.Flags().Changed("end") &&
		(f.partitions > 0 || trace.IsPartitioned(path))
	if f.partitions > 0 && !whole {
		arrivals, err := trace.Columns[trace.Arrival](t)
		if err != nil {
			return err
		}
		window, err := trace.Window(arrivals, int64(f.start), int64(f.end))
		if err != nil {
			return err
		}
		wrote.toCome = window.Len()
	}

	if says := captureWords(capture); says != "" {
		wrote.Notes = append(wrote.Notes, says)
	}

	return writeTallied(cmd, f.out, &wrote, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		if whole {
			_, err := trace.Copy(dst, src)
			return t.Meta, err
		}

		cut := &trace.Slice{Src: src, From: int64(f.start), To: int64(f.end)}
		defer cut.Close()
		_, err := trace.Copy(dst, cut)
		meta := t.Meta
		meta.Capture = capture
		meta.Breakers, meta.Raw, meta.Source = "", "", "" // they are of the whole log
		return meta, err
	})
}
