package main

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/runs"
	"reprise/trace"
)

// replayCommandFlags are the flags of replay: those of the run, of the report that
// follows it, and other tools' spellings.
type replayCommandFlags struct {
	runs.Replay
	made       flags.Made
	asSessions bool
	report     reportFlags
	spellings  flags.Spellings
}

func replayCommand() *cobra.Command {
	var f replayCommandFlags
	cmd := &cobra.Command{
		Use:   "replay WORKLOAD [--url URL]",
		Short: "Send a workload on time and measure every token of the answers",
		Long: `Replay sends requests to an OpenAI-compatible endpoint and measures every token.
WORKLOAD is a trace, a specification, a built-in name such as chat, or a file of prompts
(ShareGPT, OpenAI bodies, files of vLLM, GuideLLM and AIPerf), which are sent as they
are. Without it, --input-tokens makes requests.

The exit code is 4 if the run cannot be trusted, and 3 if it fails its --contract.` + flags.ListsBegin + `

A turn with a think or tool time is due when earlier turns of its session have been
answered and that time has passed. Other requests are due at their recorded times; with
--open-loop, all are.

Prompts are generated from the seed just before they are sent. Each request is one row of the
results. They are kept in a journal beside the output until the end, which "reprise report"
reads after a crash.

Flags of vllm bench serve are accepted where they mean the same, such as --base-url,
--request-rate, --max-concurrency and --save-result.`,
		Example: `  reprise replay --input-tokens 550 --output-tokens 150 --concurrency 10
  reprise replay sharegpt.json --rate 4 --max-requests 200
  reprise replay w.parquet --url http://localhost:8000 --speed 2 -o r.parquet`,
		Args: flags.Wants(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.spellings.Apply(cmd, &f.report.VLLM); err != nil {
				return err
			}
			f.Ready = f.spellings.Ready
			if err := f.made.Wants(cmd, args); err != nil {
				return err
			}
			return f.run(cmd, cmp.Or(args...))
		},
	}
	f.registerAll(cmd)
	return cmd
}

// run sends what arg names, or without one what the flags make, and reports on it.
func (f *replayCommandFlags) run(cmd *cobra.Command, arg string) error {
	switch {
	case f.Dry.Run:
	case f.Out == cli.Standard:
		return cli.Usagef("results are no text: name a file for them, -o FILE.parquet")
	case f.Out == "":
		f.Out = freeName(time.Now())
	}
	if err := f.Scenario.Lock(cmd); err != nil {
		return err
	}
	var prompts promptFile
	if !f.made.Given() && !f.HasText() && cli.IsLog(arg) {
		if err := prompts.create(arg); err != nil {
			return err
		}
		defer prompts.remove()
		f.SendText(prompts.raw(), nil)
	}
	f.paceLoad(prompts.given())
	if err := f.Check(cmd); err != nil {
		return err
	}
	if err := f.report.Check(f.report.VLLM.Saves(), "--save-result"); err != nil {
		return err
	}
	if err := f.report.checkRuns(1); err != nil {
		return err
	}

	w, err := f.open(cmd, arg, &prompts)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := f.Scenario.LockWorkload(cmd, w.Meta.Digest, w.Meta.Source); err != nil {
		return err
	}
	if f.Dry.Run {
		return f.DryRun(cmd, w)
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
}

// paceLoad fills in what a load without recorded times goes by: requests that are made come as
// long as --duration says, and prompts of a file are independent of each other and end where the
// server ends them, unless the flags say otherwise.
func (f *replayCommandFlags) paceLoad(prompts bool) {
	if (prompts || f.made.Given()) && !f.Load.Paced() { // a bound alone is a closed loop
		f.Load.Concurrency, f.Load.MaxInFlight = f.Load.MaxInFlight, 0
	}
	switch {
	case f.made.Given() && f.Load.Duration > 0 && f.Workload.MaxRequests == 0 && f.Workload.Loop == "" &&
		!f.Load.BySession():
		f.Workload.Loop, f.Workload.LoopQuiet = f.Load.Duration.String(), true
	case prompts:
		f.Workload.Apart = !f.asSessions && !f.Load.BySession()
		f.Load.OpenLoop = f.Load.OpenLoop || f.Workload.Apart && f.Load.Concurrency == 0
		f.Workload.OutputsOfPrompts()
		if f.Load.Paced() && f.Workload.Apart && f.Load.Duration > 0 && f.Workload.MaxRequests == 0 &&
			f.Workload.Loop == "" {
			f.Workload.LoopPrompts(f.Load.Duration)
		}
	}
}

// open opens the workload. One whose requests have no times of their own needs flags that say
// when they are sent.
func (f *replayCommandFlags) open(cmd *cobra.Command, arg string, prompts *promptFile) (*trace.Trace, error) {
	switch paced := f.Load.Paced(); {
	case prompts.given():
		w, raw, err := prompts.open(cmd, f.Prompts.Tokenizer, paced, f.Workload.MaxRequests)
		f.SendText(prompts.raw(), raw)
		if err == nil {
			cli.Notef(cmd, "cache: the prompts are sent as they are, so that a server that had them before is faster: "+
				"empty its cache before a run that is to be compared")
		}
		if errors.Is(err, errNoTimes) {
			err = cli.Usagef("%s has no times: say how fast its prompts are sent, such as --rate 4 or --concurrency 10",
				arg)
		}
		return w, err
	case f.made.Given() && f.made.Turns() && f.Load.Concurrency > 0:
		return nil, cli.Usagef("--turns and --concurrency cannot be used together: --sessions 10 keeps 10 sessions " +
			"live, each with its turns")
	case f.made.Given() && !paced:
		return nil, flags.ErrUnpaced
	}
	return openLoad(cmd, &f.made, arg, f.Workload.MaxRequests)
}

// registerAll registers the flags of the command.
func (f *replayCommandFlags) registerAll(cmd *cobra.Command) {
	f.Replay.Register(cmd)
	f.made.Of = &f.Workload
	f.made.Register(cmd)
	_, rest := flags.Sections(cmd.Flags(), flags.PromptFlags)
	rest.BoolVar(&f.asSessions, "as-sessions", false,
		"a file of prompts: send the turns of a conversation one after another; by default each prompt is by itself")
	f.report.Register(cmd)
	f.report.VLLM.RegisterSave(cmd)
	flags.Promote(cmd.Flags(), "input-tokens")
	flags.Demote(cmd.Flags(), "session-rate", "save-result", "sample", "loop")
	f.spellings.Register(cmd) // last: it looks for the flags that it stands for
}
