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
		Long: `Replay sends each request of a workload to an OpenAI-compatible endpoint when it is
due, and measures every token. Where the source has think or tool times, a turn is
due when earlier turns of its session have been answered and that time has passed.
Other requests are due at their recorded times; with --open-loop, all are.

The exit code is 4 if the run cannot be trusted, and 3 if it fails its --contract.` + flags.ListsBegin + `

Prompts are generated from the seed just before they are sent. Each request is one row of the
results. They are kept in a journal beside the output until the end, which "reprise report"
reads after a crash.

Flags of vllm bench serve are accepted where they mean the same, such as --base-url,
--request-rate, --max-concurrency and --save-result.`,
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
				return cli.Usagef("name a file for the results: -o FILE.parquet")
			}
			if err := f.Scenario.Lock(cmd); err != nil {
				return err
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
			if err := f.Scenario.LockWorkload(cmd, w.Meta.Digest, w.Meta.Source); err != nil {
				return err
			}
			if f.Dry.Run {
				return f.DryRun(cmd, w, f.report.AsJSON)
			}
			if !cmd.Flags().Changed("url") {
				cli.Notef(cmd, "no --url: requests go to %s", strings.Join(f.Target.URLs, ", "))
			}
			f.Limits = f.report.Trust.Limits
			if err := f.Run(cmd, w); err != nil {
				return err
			}
			err = f.report.report(cmd, f.Out)
			if !f.Shard.Share.Whole() {
				err = f.ShardDone(cmd, err)
			}
			return err
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
	flags.Demote(cmd.Flags(), "session-rate", "api-key-env", "save-result")
	f.spellings.Register(cmd) // last: it looks for the flags that it stands for
}
