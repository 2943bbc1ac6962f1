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
	var start, end time.Duration
	cmd := &cobra.Command{
		Use:   "slice TRACE",
		Short: "Cut a window out of a trace",
		Long: `Slice keeps the requests that arrive in a window. Times begin at the window's start,
ids are renumbered, and links to parents outside the window are dropped. If the trace
has a declared capture window, --start and --end count from its begin, and the slice
declares the part it covers.`,
		Example: `  reprise slice t.parquet --end 300s -o first.parquet`,
		Args:    flags.Wants(1, 1, "which trace?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if start < 0 || end < 0 || end > 0 && end <= start {
				return cli.Usagef("the window from %v to %v is empty", start, end)
			}
			t, err := cli.OpenTrace(cmd, args[0])
			if err != nil {
				return err
			}
			defer t.Close()
			capture, ok := t.Meta.Capture.Slice(int64(start), int64(end))
			if !ok {
				return cli.Usagef("the window begins after the declared capture, which lasts %v", t.Meta.Capture.Length())
			}
			src, err := t.Reader()
			if err != nil {
				return err
			}
			wrote := written{Of: trace.Ptr(src.Rows())}
			if says := captureWords(capture); says != "" {
				wrote.Notes = append(wrote.Notes, says)
			}
			return writeTallied(cmd, out, &wrote, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
				_, err := trace.Copy(dst, &trace.Slice{Src: src, From: int64(start), To: int64(end)})
				meta := t.Meta
				meta.Capture = capture
				meta.Breakers, meta.Raw, meta.Source = "", "", "" // those of the whole log
				return meta, err
			})
		},
	}
	results, _ := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	part, _ := flags.Sections(cmd.Flags(), flags.PartFlags)
	results.OutputVar(&out, "`file` for the trace; - is stdout")
	results.Bool("json", false, "print the summary as JSON")
	part.DurationVar(&start, "start", 0, "start of the window, from the start of the trace")
	part.DurationVar(&end, "end", 0, "end of the window; 0 is the end of the trace")
	return cmd
}
