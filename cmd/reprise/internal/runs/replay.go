// Package runs makes the runs of several commands: a replay against an endpoint, a
// simulation in virtual time, and the trials that bench, sweep, compare and capacity are
// made of. It wires groups of flags to the libraries: the part of the workload, the
// prompts, the endpoint and its servers, the schedule, and the results file.
//
// # Files
//
//   - replay.go: what a replay is told: its groups of flags, --output, --max-in-flight,
//     and checks across groups
//   - run.go: a replay from flags to results: opening all, filling in the Run, sending,
//     oddities of the run, check-deterministic
//   - part.go: the part of a workload that is sent: window, sample and how it differs,
//     first rows, rounds, and whether prompts have words enough for these; priming the
//     cache before it
//   - workload.go: opening a workload, made-up blocks for one without, and its privacy card in
//     the results
//   - setup.go: waiting for a server that is full, and what to do about one that refuses
//   - servers.go: waiting for the endpoint, calibrating templates, emptying and warming
//     caches
//   - shard.go: the share of the rows that a shard sends, what the others have sent by then, and
//     its clock
//   - journal.go: the journal of another run in the way
//   - thread.go: --thread: replies in prompts
//   - verbatim.go: --verbatim: the source's own text from the raw file
//   - dryrun.go: --dry-run: what would be sent, its size and price, as text and JSON
//   - watch.go, liveview.go: live: watching a run, Ctrl-C, lines of progress; the view on a
//     terminal with its figures and sparklines
//   - adminlisten.go: --admin-listen: the client's figures for Prometheus
//   - sessions.go: session trees of a load by session, the warm-up of trajectories, and how
//     sessions ended
//   - sessionlevels.go: flags of a sweep by session
//   - simulate.go: a simulation into a results file
//   - trials.go: the trials of sweep, bench, compare and capacity: live endpoint,
//     simulated engines, or an engine that is started
//   - frontier.go: sweep --frontier: its engines and servers with their GPUs, prices and watts, and
//     the flags that it refuses
//   - frontiervalues.go: prices and watts by GPU, and several presets, as values of flags
package runs

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/client"
	"reprise/replay/openai"
	"reprise/replay/report"
	"reprise/replay/result"
)

// Replay says what a replay sends, to whom, when, and what it measures. Each field
// that is a struct is a group of flags.
type Replay struct {
	Out         string
	Prompts     flags.Prompts
	verify      bool
	Target      flags.Target
	Load        flags.Load
	Scenario    flags.Scenario
	Shard       flags.Shard
	Wire        flags.Wire
	Workload    flags.Workload
	Dry         DryRun
	Live        Live
	Admin       AdminListen
	Abort       flags.Abort
	Servers     flags.Servers
	thread      bool               // the server's replies go into the next turn's prompt
	verbatim    string             // raw file whose text is sent
	raw         *anonymize.RawText // once it is open
	Deployment  flags.Deployment
	serverBlock int
	Ready       time.Duration // to wait for the endpoint
	Limits      report.Limits // that the view holds the run against
}

// Register adds the flags of a replay.
func (f *Replay) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	f.Limits = report.DefaultLimits()
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	_, promptRest := flags.Sections(fl, flags.PromptFlags)
	load, _ := flags.Sections(fl, flags.LoadFlags)
	results.ParquetVar(&f.Out, "Parquet `file` for the results")
	f.RegisterEndpoint(cmd)
	for _, group := range []flags.Group{&f.Load, &f.Shard, &f.Workload, &f.Dry, &f.Live, &f.Abort, &f.Deployment} {
		group.Register(cmd)
	}
	promptRest.BoolVar(&f.verify, "verify", false, "")
	_, loadRest := flags.Sections(fl, flags.LoadFlags)
	loadRest.StringVar(&f.Load.TrajectoryStart, "trajectory-start", "", "")
	f.Scenario.Register(loadRest)
	load.IntVar(&f.Load.MaxInFlight, "max-in-flight", 0,
		"most requests in flight; 0 is no limit. A request that waits keeps its due time and is counted")
	promptRest.BoolVar(&f.thread, "thread", false,
		"put the server's own replies into later turns of a session, so that its generated KV is reused; needs "+
			"think times")
	promptRest.StringVar(&f.verbatim, "verbatim", "",
		"send the real text from the trace's raw `file` (import --tier raw) instead of generated prompts")
	results.Bool("quiet", false, flags.QuietUsage)
}

// RegisterEndpoint registers to whom requests go, and how they are made and sent.
func (f *Replay) RegisterEndpoint(cmd *cobra.Command) {
	fl := cmd.Flags()
	f.Prompts.Register(fl, "the endpoint's tokenizer: a name or the path of a tokenizer.json; by default the "+
		"workload's, else o200k_base",
		"seed of the prompts; by default the workload's, else 1")
	f.Target.Register(cmd)
	f.Servers.Register(cmd)
	f.Wire.Register(cmd)
	f.Admin.Register(cmd)
	_, rest := flags.Sections(fl, flags.CachesFlags)
	rest.IntVar(&f.serverBlock, "server-block-size", 0,
		"block size of the endpoint's prefix cache in tokens, for the expected hit ratio; by default what the server "+
			"states, else 16")
}

// Check refuses what cannot be done, before anything is: first what each group of flags
// refuses by itself, then flags that cannot be used together.
func (f *Replay) Check(cmd *cobra.Command) error {
	f.Wire.AtOnce = max(f.Load.Concurrency, f.Load.MaxInFlight)
	if err := f.checkShard(); err != nil {
		return err
	}
	for _, group := range []flags.Group{&f.Workload, &f.Dry, &f.Target, &f.Load, &f.Wire, &f.Live, &f.Admin, &f.Abort,
		&f.Servers, &f.Deployment} {
		if err := group.Check(); err != nil {
			return err
		}
	}
	// A loop for a duration ends with it.
	if loop, _ := f.Workload.Rounds(); loop.Time > 0 && (f.Load.Duration == 0 || loop.Time < f.Load.Duration) {
		f.Load.Duration = loop.Time
	}
	if err := f.checkShare(); err != nil {
		return err
	}
	if f.Target.HTTP2 && !slices.Contains([]string{client.Auto, client.PerRequest, client.Pooled}, f.Wire.Connections) {
		return cli.Usagef("--set http2 supports only --connections %s, %s and %s", client.Auto,
			client.PerRequest, client.Pooled)
	}
	switch {
	case !f.thread:
	case f.Load.OpenLoop:
		return cli.Usagef("--thread and --open-loop cannot be used together: at its recorded time a turn may be sent " +
			"before the reply that it contains")
	case f.Load.Concurrency != 0:
		return cli.Usagef("--thread and --concurrency cannot be used together: a closed loop does not wait for the " +
			"turn before")
	case f.verify:
		return cli.Usagef("--thread and --set verify cannot be used together: what a server replies need not encode " +
			"to the tokens that it generated")
	case !slices.Contains([]string{result.APICompletions, result.APIChat, result.APIMessages}, f.Target.API):
		return cli.Usagef("--thread is for --api %s, %s and %s", result.APICompletions, result.APIChat,
			result.APIMessages)
	case f.Workload.Loop != "":
		return cli.Usagef("--thread and --loop cannot be used together")
	}
	if err := f.checkVerbatim(cmd); err != nil {
		return err
	}
	switch {
	case f.Dry.Run && f.Admin.address != "":
		return cli.Usagef("--set admin-listen and --dry-run cannot be used together: nothing is sent")
	case f.Target.RowExtra != "" && (f.Workload.Loop != "" || f.Servers.Cache == result.CacheWarm):
		return cli.Usagef("--set row-extra is read once: it cannot be used with --loop or --cache warm")
	case f.Load.BySession() && f.Workload.Loop != "":
		return cli.Usagef("--loop repeats rows: with --sessions or --session-rate, --duration plays sessions again " +
			"by itself, see --set recycle")
	case f.Load.BySession() && f.Target.RowExtra != "":
		return cli.Usagef("--set row-extra is read in the order of the rows: it cannot be used with --sessions or " +
			"--session-rate")
	case f.Load.BySession() && f.verbatim != "" &&
		(f.Load.Duration > 0 && f.Load.Salted() || f.Load.Recycle == result.RecycleApart):
		return cli.Usagef("--verbatim sends the same text in every play of a session: add --set recycle=same or stop")
	case f.Dry.Run:
		return nil
	}
	return f.checkJournal(cmd)
}

// checkVerbatim refuses flags that have no meaning for text that was kept, and says where it goes.
func (f *Replay) checkVerbatim(cmd *cobra.Command) error {
	if f.verbatim == "" {
		return nil
	}
	err := flags.Refuse(cmd, "is about generated prompts and cannot be used with --verbatim", verbatimExcludes...)
	if err != nil {
		return err
	}
	switch {
	case cmd.Flags().Changed("cache") && f.Servers.Cache != result.CacheCold && f.Servers.Cache != result.CacheAsIs:
		return cli.Usagef("--cache %s makes prompts, and prompts of --verbatim or of a file are sent as they are: "+
			"use --cache %s or %s", f.Servers.Cache, result.CacheCold, result.CacheAsIs)
	case f.Workload.Loop != "" && !f.Workload.LoopSame:
		return cli.Usagef("--verbatim sends the same text in every round: add --set loop-same")
	case f.Workload.Start > 0 && f.Workload.Prime != flags.PrimeNone:
		return cli.Usagef("--verbatim cannot prime a cache: add --set prime=%s", flags.PrimeNone)
	}
	if f.Target.ExtraBody != "" {
		extra, err := openai.ParseExtra([]byte(f.Target.ExtraBody))
		if err != nil {
			return cli.Usagef("--extra-body: %v", err)
		}
		if _, ok := extra.Get("tools"); ok {
			return cli.Usagef("--extra-body: with --verbatim, tools come from the source")
		}
	}
	switch {
	case !f.Target.APIGiven():
		f.Target.API = result.APIAuto // each row goes where its kind does
	case f.Target.API != result.APIChat && f.Target.API != result.APIAuto:
		return cli.Usagef("--api: a source's text is sent where each row's kind belongs (auto), or all of it as chat")
	}
	if !cmd.Flags().Changed("force-output") {
		f.Target.Unforced() // the model ends its answers, unless it is asked to go on
	}
	return nil
}

// Defaults sets every flag to its default, for a caller that is no command line.
func (f *Replay) Defaults() { f.Register(new(cobra.Command)) }
