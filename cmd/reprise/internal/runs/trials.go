package runs

import (
	"cmp"
	"context"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/bench"
	"reprise/replay/result"
)

// Started starts the engine of a setting for trials under the flags of a live
// endpoint. Its log is the file log, or without one a file beside the results of the
// trial that starts it. Who asks for it closes it.
func Started(cmd *cobra.Command, f *flags.ServeCmd, s flags.ServeSetting, live Replay,
	log string) (*bench.Served, error) {
	out := &bench.Served{Command: s.Command, Fresh: f.Fresh, Log: log, Ready: f.Ready, Grace: f.Grace}
	if cmd.Flags().Changed("url") {
		if len(live.Target.URLs) != 1 {
			return nil, cli.Usagef("--serve-cmd starts one engine: give at most one --url")
		}
		out.URL = live.Target.URLs[0]
	}
	out.Target = func(url string) bench.Target {
		l := live
		l.Target.URLs, l.Deployment.EngineFlags = []string{url}, cmp.Or(l.Deployment.EngineFlags, s.Command.String())
		return liveTarget{cmd, l}
	}
	out.Note = func(text string) {
		if s.Name != "" {
			text = s.Name + ": " + text
		}
		cli.Notef(cmd, "%s", text)
	}
	if err := live.Check(cmd); err != nil {
		return nil, err
	}
	_, err := live.Admin.open(cmd.Context(), cmd)
	return out, err
}

// Trials says what a command that makes several runs measures: an endpoint, with
// the flags of replay that say how it is talked to, or with --preset or --costs an
// engine in virtual time. What each run sets itself, such as its load, is no flag.
type Trials struct {
	Live      Replay
	Simulated Simulation
}

// Register adds the flags of an endpoint and of simulated engines.
func (f *Trials) Register(cmd *cobra.Command) {
	f.Live.Defaults()
	f.Live.RegisterEndpoint(cmd)
	f.Simulated.Load.Register(new(cobra.Command))
	f.Simulated.Fleet.Register(cmd.Flags())
	everyday, _ := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	everyday.Bool("quiet", false, flags.QuietUsage)
	flags.Demote(cmd.Flags(), "tokenizer", "timeout", "header", "api-key-env", "costs")
}

// Name is what the flags name, in short: a preset, an endpoint's address, or a model.
func (f *Trials) Name() string {
	if preset := f.Simulated.Engine.Preset; preset != "" {
		return shortName(preset)
	}
	if len(f.Live.Target.URLs) > 0 {
		if u, err := url.Parse(f.Live.Target.URLs[0]); err == nil && u.Host != "" {
			return u.Host
		}
	}
	return cmp.Or(f.Live.Target.Model, "endpoint")
}

// MeasureServers has servers scraped that have metrics, also when no flag asks.
func (f *Trials) MeasureServers(fl *pflag.FlagSet) {
	f.Live.Servers.Answering = true
	fl.Lookup("scrape").Usage += ". Default: auto where /metrics answers"
}

// Target is what the flags name.
func (f *Trials) Target(cmd *cobra.Command) (bench.Target, error) {
	if f.Simulated.Engine.Preset != "" || f.Simulated.Engine.Costs != "" {
		if cmd.Flags().Changed("url") {
			return nil, cli.Usagef("--url cannot be used with --preset or --costs: measure an endpoint or a " +
				"simulated engine")
		}
		if f.Live.Admin.address != "" {
			return nil, cli.Usagef("--set admin-listen needs a client that sends requests: a simulation has none")
		}
		_, _, err := f.Simulated.Engine.Config(cmd)
		return SimulatedTarget{cmd, f.Simulated}, err
	}
	if name := flags.SimulatedFlag(cmd); name != "" {
		return nil, cli.Usagef("%s is of a simulated engine: give --preset, or start the endpoint with it",
			name)
	}
	if err := f.Live.Check(cmd); err != nil {
		return nil, err
	}
	f.Live.Prompts.KeepLearnt()
	_, err := f.Live.Admin.open(cmd.Context(), cmd) // for all trials, until the command is over
	return liveTarget{cmd, f.Live}, err
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
	flags Replay
}

// Run implements [bench.Target].
func (l liveTarget) Run(ctx context.Context, t bench.Trial) error {
	cmd, f := under(ctx, l.cmd), l.flags
	f.Out = t.Results
	f.Prompts.OwnSeed, f.Prompts.ColdSeed = f.Prompts.Seed == "", t.ColdSeed
	f.Prompts.Seed = cmp.Or(t.Seed, f.Prompts.Seed)
	f.Servers.Cache, f.Servers.Note = cmp.Or(t.Cache, f.Servers.Cache), cmp.Or(t.Note, f.Servers.Note)
	f.Target.Timeout = cmp.Or(t.Timeout, f.Target.Timeout)
	f.Load.Take(t)
	f.Workload.Take(t)
	if err := f.Check(cmd); err != nil {
		return err
	}
	w, err := cli.OpenTrace(cmd, t.Workload)
	if err != nil {
		return err
	}
	defer w.Close()
	return f.Run(cmd, w)
}

// A simulatedTarget makes trials in virtual time, each with engines whose caches are
// empty.
type SimulatedTarget struct {
	cmd   *cobra.Command
	flags Simulation
}

// Run implements [bench.Target].
func (s SimulatedTarget) Run(ctx context.Context, t bench.Trial) error {
	cmd, f := under(ctx, s.cmd), s.flags
	if t.Cache == result.CacheWarm {
		return cli.Usagef("--cache warm is not simulated: engines begin empty in each run")
	}
	if t.Session != nil && t.Session.TrajectoryStart != "" {
		return cli.Usagef("trajectory-start is not simulated: engines begin empty in each run")
	}
	if t.Seed != "" {
		seed, err := strconv.ParseUint(t.Seed, 10, 64)
		if err != nil {
			return cli.Usagef("the seed of a simulation is a number")
		}
		f.Seed = seed
	}
	engine, model, err := f.Engine.Config(cmd)
	if err != nil {
		return err
	}
	f.Out, f.note, f.Timeout = t.Results, t.Note, t.Timeout
	f.Load.Take(t)
	f.Workload.Take(t)
	if err := f.Load.Check(); err != nil {
		return err
	}
	w, err := cli.OpenTrace(cmd, t.Workload)
	if err != nil {
		return err
	}
	defer w.Close()
	c := f.Configs(engine, f.Seed)[0]
	if t.Series > 0 || t.Run > 0 { // else each seed is a series of its own
		c.Noise = f.Noise.Run(t.Series, t.Run)
	}
	_, err = f.Record(cmd, w, c, model)
	return err
}
