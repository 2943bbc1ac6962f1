package main

import (
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/runs"
)

// replayCommandFlags are the flags of replay: those of the run, of the report that
// follows it, and other tools' spellings.
type replayCommandFlags struct {
	runs.Replay
	report    reportFlags
	spellings flags.Spellings
}

func replayCommand() *cobra.Command {
	var f replayCommandFlags
	cmd := &cobra.Command{
		Use:   "replay WORKLOAD [--url URL]",
		Short: "Send a workload on time and measure every token of the answers",
		Long: `Replay sends each request of a workload, or of a trace, to an OpenAI-compatible
endpoint when it is due. Where the source told think or tool times, a later turn
is due when the turns it follows have been answered and that time has passed, as
with the users and agents of the source: a slow server moves it, and the report
says by how much. Everything else is due at its recorded time, whatever became of
the requests before it; with --open-loop that is so for every request.

Prompts are made from the seed just before they are sent. The answers are
streamed and every token event is timed.

--start, --end, --sample and --max-requests replay a part of the workload, --loop
all of it again and again. --dry-run prints what would be sent and sends nothing.

Every request gives one row in the results. They are journalled as they come,
beside the output, and finished to Parquet at the end; after a crash, or while
the run goes on, "reprise report" reads the journal, and after a crash --resume
goes on with the run.

The summary goes to stdout. The exit code is 4 when the run cannot be trusted, and
3 when it does not keep to its --contract.

Spellings of vllm bench serve are taken where they mean the same, such as
--base-url, --request-rate, --max-concurrency and --save-result.`,
		Example: `  reprise replay w.parquet --url http://localhost:8000 --speed 2 -o r.parquet`,
		Args:    func(cmd *cobra.Command, args []string) error { return f.spellings.Args(cmd, args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.spellings.Apply(cmd, &f.report.VLLM); err != nil {
				return err
			}
			f.Ready = f.spellings.Ready
			if (f.Out == "" || f.Out == cli.Standard) && !f.Dry.Run {
				if err := cli.MissingFile(args[0]); err != nil {
					return err // the input before the output
				}
				return cli.Usagef("say where the results go: -o FILE.parquet")
			}
			if err := f.Settle(); err != nil {
				return err
			}
			if err := f.Check(cmd); err != nil {
				return err
			}
			if err := f.report.Check(f.report.VLLM.Saves(), "--save-result"); err != nil {
				return err
			}
			if err := f.report.checkRuns(1); err != nil {
				return err
			}
			w, err := cli.OpenTrace(cmd, args[0])
			if err != nil {
				return err
			}
			defer w.Close()
			if f.Dry.Run {
				return f.DryRun(cmd, w, f.report.AsJSON)
			}
			if !cmd.Flags().Changed("url") {
				cli.Stepf(cmd, "no --url: requests go to %s", strings.Join(f.Target.URLs, ", "))
			}
			f.Limits = f.report.Trust.Limits
			if err := f.Run(cmd, w); err != nil {
				return err
			}
			return f.report.report(cmd, f.Out)
		},
	}
	f.registerAll(cmd)
	return cmd
}

// registerAll registers the flags of the command.
func (f *replayCommandFlags) registerAll(cmd *cobra.Command) {
	f.Replay.Register(cmd)
	f.report.Register(cmd)
	f.report.VLLM.RegisterSave(cmd)
	f.spellings.Register(cmd) // last: it looks for the flags that it stands for
}
