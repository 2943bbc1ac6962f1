package main

import (
	"cmp"
	"context"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/bench"
	"reprise/replay/result"
)

// trialFlags say what a command that makes several runs measures: an endpoint, with
// the flags of replay that say how it is talked to, or with --preset or --costs an
// engine in virtual time. What each run sets itself, such as its load, is no flag.
type trialFlags struct {
	live      replayFlags
	simulated simulateFlags
}

func (f *trialFlags) register(cmd *cobra.Command) {
	f.live.defaults()
	f.live.registerEndpoint(cmd)
	f.simulated.judge.defaults()
	f.simulated.Load.Register(new(cobra.Command).Flags())
	f.simulated.registerFleet(cmd.Flags())
	cmd.Flags().Bool("quiet", false, "no progress")
}

// measureServers has servers scraped that have metrics, also when no flag asks.
func (f *trialFlags) measureServers(fl *pflag.FlagSet) {
	f.live.answering = true
	fl.Lookup("scrape").Usage += ". Empty is auto where that answers"
}

// target is what the flags name.
func (f *trialFlags) target(cmd *cobra.Command) (bench.Target, error) {
	if f.simulated.engine.preset != "" || f.simulated.engine.costs != "" {
		if cmd.Flags().Changed("url") {
			return nil, cli.Usagef("--url is an endpoint, and --preset and --costs are a model of one: give one of them")
		}
		_, _, err := f.simulated.engine.config(cmd)
		return simulatedTarget{cmd, f.simulated}, err
	}
	if name := f.simulatedFlag(cmd); name != "" {
		return nil, cli.Usagef("--%s is of a simulated engine, and requests go to an endpoint: start that with it, or give a --preset", name)
	}
	return liveTarget{cmd, f.live}, f.live.check(cmd)
}

// simulatedFlag is a flag that was given and means nothing to an endpoint, or "".
func (f *trialFlags) simulatedFlag(cmd *cobra.Command) (name string) {
	var fleet simulateFlags
	fl := pflag.NewFlagSet("", pflag.ContinueOnError)
	fleet.registerFleet(fl)
	fl.VisitAll(func(own *pflag.Flag) {
		if cmd.Flags().Changed(own.Name) {
			name = own.Name
		}
	})
	return name
}

// under is a command with the flags of cmd and another context.
func under(ctx context.Context, cmd *cobra.Command) *cobra.Command {
	child := *cmd
	child.SetContext(ctx)
	return &child
}

// A liveTarget makes trials by replays against an endpoint.
type liveTarget struct {
	cmd   *cobra.Command
	flags replayFlags
}

// Run implements [bench.Target].
func (l liveTarget) Run(ctx context.Context, t bench.Trial) error {
	cmd, f := under(ctx, l.cmd), l.flags
	f.out = t.Results
	f.prompts.OwnSeed, f.prompts.ColdSeed = f.prompts.Seed == "", t.ColdSeed
	f.prompts.Seed = cmp.Or(t.Seed, f.prompts.Seed)
	f.cache, f.note = cmp.Or(t.Cache, f.cache), cmp.Or(t.Note, f.note)
	f.Timeout = cmp.Or(t.Timeout, f.Timeout)
	f.Load.Take(t)
	f.modeFlags.take(t)
	if err := f.settle(); err != nil {
		return err
	}
	if err := f.check(cmd); err != nil {
		return err
	}
	w, err := cli.OpenTrace(cmd, t.Workload)
	if err != nil {
		return err
	}
	defer w.Close()
	return f.run(cmd, w)
}

// take takes over what a trial sends, and how often.
func (f *modeFlags) take(t bench.Trial) {
	f.maxRequests = t.Rows
	if t.Loop {
		f.loop, f.loopUnsaid = t.Duration.String(), true
	}
}

// A simulatedTarget makes trials in virtual time, each with engines whose caches are
// empty.
type simulatedTarget struct {
	cmd   *cobra.Command
	flags simulateFlags
}

// Run implements [bench.Target].
func (s simulatedTarget) Run(ctx context.Context, t bench.Trial) error {
	cmd, f := under(ctx, s.cmd), s.flags
	if t.Cache == result.CacheWarm {
		return cli.Usagef("a warm cache is not simulated: the engines of each run begin empty")
	}
	if t.Seed != "" {
		seed, err := strconv.ParseUint(t.Seed, 10, 64)
		if err != nil {
			return cli.Usagef("the seed of a simulation is a number")
		}
		f.seed = seed
	}
	engine, model, err := f.engine.config(cmd)
	if err != nil {
		return err
	}
	f.out, f.note, f.timeout = t.Results, t.Note, t.Timeout
	f.Load.Take(t)
	f.modeFlags.take(t)
	if err := f.Load.Check(); err != nil {
		return err
	}
	w, err := cli.OpenTrace(cmd, t.Workload)
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = f.results(cmd, w, f.fleets(engine)[0], model)
	return err
}
