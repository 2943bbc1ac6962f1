package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/bench"
	"reprise/replay/engine"
	"reprise/replay/host"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/profile"
)

// allRouters stands for every router, one after another.
const allRouters = "all"

// simulateFlags are the flags of simulate.
type simulateFlags struct {
	out    string
	engine engineFlags
	flags.Load
	modeFlags  // of trials: the command plays the whole workload once
	note       string
	timeout    time.Duration
	presets    bool
	replicas   int
	router     string
	loadWeight float64
	seed       uint64
	judge      judgeFlags
}

func simulateCommand() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate WORKLOAD --preset PRESET",
		Short: "Answer a workload by a model of an engine, in virtual time",
		Long: `Simulate sends each request of a workload, or of a trace, to a model of a serving
engine and writes the results that a replay would have written. An hour takes
seconds, and the same command gives the same results. When a request is due is as
in a replay: with think times a turn waits for those before it, and --open-loop,
--rate and --concurrency change that.

The engine works in steps: each decodes the running sequences and computes parts
of prompts within a budget of tokens, from a queue in order of arrival. KV is
kept in blocks; those of prompts are found again by what they hold, those in use
are not evicted, and when blocks run out the sequence admitted last starts anew.
A step takes the larger of step + kv-token × tokens of KV, for memory, and
prefill-token × prompt tokens + decode-seq × sequences, for compute. --presets
prints engines fitted to published measurements, and how far each is from them.

With --replicas, a router sends requests to one of several engines. --router all
puts the routers side by side: the share of prompt tokens and blocks found in the
cache, the most over the mean of replicas of the prompt tokens computed and of
those sent, and the time to the first token. Prefix routing is shown without a
weight of load and with --load-weight.

Prompts are known by the blocks of the workload alone: where two of them part
inside a block, none of it is shared.`,
		Example: `  reprise simulate w.parquet --preset l4-qwen2.5-0.5b -o r.parquet
  reprise simulate w.parquet --preset h100-llama-70b --replicas 4 --router all
  reprise simulate w.parquet --costs step=5ms,kv-token=40ns,prefill-token=25us --kv-tokens 500000
  reprise simulate --presets`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.presets {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.presets {
				return writePresets(cmd.OutOrStdout(), f.judge.asJSON)
			}
			return f.run(cmd, args[0])
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "results to write, Parquet; empty prints a line for the fleet alone")
	f.Load.Register(fl)
	fl.DurationVar(&f.timeout, "timeout", 0, "of one request, whose client then gives up; 0 is none")
	fl.BoolVar(&f.presets, "presets", false, "print the presets with the error of their fit, and do nothing else")
	f.registerFleet(fl)
	fl.Uint64Var(&f.seed, "seed", 1, "of random")
	fl.Bool("quiet", false, "no progress")
	f.judge.defaults()
	fl.BoolVar(&f.judge.asJSON, "json", false, "print JSON")
	f.judge.registerPages(fl)
	fl.StringVar(&f.judge.slo, "slo", "", "what goodput asks of each request, such as ttft:200ms,tpot:50ms,e2e:5s")
	f.judge.contractFlags.register(cmd)
	f.judge.trust.Register(cmd, "max-errors") // there is no send lag to limit
	return cmd
}

// registerFleet registers what the engines are, and how many.
func (f *simulateFlags) registerFleet(fl *pflag.FlagSet) {
	f.engine.register(fl)
	fl.IntVar(&f.replicas, "replicas", 1, "engines behind the router")
	fl.StringVar(&f.router, "router", engine.RouterRoundRobin, "random, round-robin, least-loaded, session, prefix, or all to compare them")
	fl.Float64Var(&f.loadWeight, "load-weight", 1, "of prefix: share of a prompt that a replica must hold more for each share that it was sent above the mean; 0 follows the prefix alone")
}

func (f *simulateFlags) run(cmd *cobra.Command, path string) error {
	config, model, err := f.engine.config(cmd)
	if err != nil {
		return err
	}
	switch {
	case f.out == cli.Standard:
		return cli.Usagef("results are binary: give -o FILE.parquet")
	case f.out != "" && f.router == allRouters:
		return cli.Usagef("-o holds the results of one router: name one with --router")
	}
	for _, name := range []string{"html", "plots", "slo", "trust", "max-errors", "contract", "gpus", "price-per-gpu-hour"} {
		if f.out == "" && cmd.Flags().Changed(name) {
			return cli.Usagef("--%s is about the results: give -o FILE.parquet", name)
		}
	}
	fleets := f.fleets(config)
	for _, c := range fleets {
		if _, err := engine.NewFleet(c, nil); err != nil {
			return cli.Exit(cli.Usage, err)
		}
	}
	if f.timeout < 0 {
		return cli.Usagef("--timeout must not be below zero")
	}
	if err := f.Load.Check(); err != nil {
		return err
	}
	if _, err := f.judge.options(); err != nil {
		return err
	}
	if err := f.judge.checkRuns(1); err != nil {
		return err
	}
	w, err := cli.OpenTrace(cmd, path)
	if err != nil {
		return err
	}
	defer w.Close()
	if f.out != "" {
		return f.record(cmd, w, fleets[0], model)
	}
	var all []engine.FleetSummary
	for _, c := range fleets {
		s, err := f.play(cmd, w, c, result.Run{}, nil)
		if err != nil {
			return err
		}
		all = append(all, s.summary)
	}
	if f.judge.asJSON {
		return cli.WriteJSON(cmd.OutOrStdout(), tiered(all, w.Meta.Tier, f.engine.warning(config)))
	}
	if warning := f.engine.warning(config); warning != "" {
		fmt.Fprintln(cmd.OutOrStdout(), cli.Wrapped("Warning: "+warning+"."))
	}
	if tier := trace.TierNote("table", w.Meta.Tier); tier != "" {
		fmt.Fprintln(cmd.OutOrStdout(), tier)
	}
	return writeFleets(cmd.OutOrStdout(), all)
}

// A tieredFleet is a summary with the tier of the workload that it is of, and the
// warning of the preset.
type tieredFleet struct {
	Tier          string `json:"tier,omitempty"`
	PresetWarning string `json:"preset_warning,omitempty"`
	engine.FleetSummary
}

func tiered(all []engine.FleetSummary, tier, warning string) []tieredFleet {
	out := make([]tieredFleet, len(all))
	for i, s := range all {
		out[i] = tieredFleet{tier, warning, s}
	}
	return out
}

// fleets are those that the flags ask for.
func (f *simulateFlags) fleets(config engine.Config) []engine.FleetConfig {
	one := engine.FleetConfig{Engine: config, Replicas: f.replicas, Router: f.router, LoadWeight: f.loadWeight, Seed: f.seed}
	if f.router != allRouters {
		return []engine.FleetConfig{one}
	}
	var all []engine.FleetConfig
	for _, name := range engine.Routers() {
		one.Router = name
		if name == engine.RouterPrefix && f.loadWeight > 0 {
			one.LoadWeight = 0
			all = append(all, one)
			one.LoadWeight = f.loadWeight
		}
		all = append(all, one)
	}
	return all
}

// record simulates into a results file, and reports it as a replay's.
func (f *simulateFlags) record(cmd *cobra.Command, w *trace.Trace, c engine.FleetConfig, model string) error {
	s, err := f.results(cmd, w, c, model)
	if err != nil {
		return err
	}
	cli.Notef(cmd, "KV blocks in use: at most %d of %d; %d preemptions", s.MaxUsedBlocks, s.CapacityBlocks, s.Preemptions)
	return f.judge.report(cmd, f.out)
}

// results simulates into a results file.
func (f *simulateFlags) results(cmd *cobra.Command, w *trace.Trace, c engine.FleetConfig, model string) (engine.FleetSummary, error) {
	about := result.Run{
		Schema:      result.Schema,
		Version:     version,
		Source:      result.Source{Workload: w.Meta.Digest, Tier: w.Meta.Tier, Seed: strconv.FormatUint(f.seed, 10), BlockSize: w.Meta.BlockSize, ServerBlock: c.Engine.BlockSize},
		Load:        result.Load{Tokenizer: w.Meta.Tokenizer, Model: model, Rate: f.Rate},
		Note:        f.note,
		Simulation:  result.Simulation{Simulated: f.describe(c), PresetWarning: f.engine.warning(c.Engine), Instances: c.Replicas, PrefixCaching: trace.Ptr(c.Engine.PrefixCaching)},
		Environment: &result.Environment{Host: host.This()},
	}
	var err error
	if about.Privacy, err = privacyOf(&w.Meta); err != nil {
		return engine.FleetSummary{}, err
	}
	name := result.JournalName(f.out)
	journal, err := result.CreateJournal(name, about)
	if err != nil {
		return engine.FleetSummary{}, err
	}
	s, err := f.play(cmd, w, c, about, journal)
	if cerr := journal.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = finishSimulated(name, f.out, s.run)
	}
	if rerr := os.Remove(name); err == nil {
		err = rerr // what can be computed again is not kept half done
	}
	return s.summary, err
}

// finishSimulated puts the rows of the journal in order.
func finishSimulated(journal, out string, about result.Run) error {
	j, err := result.Open(journal)
	if err != nil {
		return err
	}
	defer j.Close()
	return result.Write(out, about, j.Reader())
}

// describe names the model for the results.
func (f *simulateFlags) describe(c engine.FleetConfig) string {
	doc, err := json.Marshal(c.Engine)
	if err != nil {
		return ""
	}
	router := c.Router
	if router == engine.RouterPrefix {
		router += fmt.Sprintf(" with load weight %v", c.LoadWeight)
	}
	out := fmt.Sprintf("%d × %s, router %s, costs %s", c.Replicas, doc, router, c.Engine.Costs)
	if f.engine.preset != "" {
		out = "preset " + f.engine.preset + ": " + out
	}
	return out
}

// writeFleets prints fleets side by side.
func writeFleets(w io.Writer, all []engine.FleetSummary) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "router\tload weight\tanswered\trefused\thit by token\thit by block\tprefill max/mean\tload max/mean\tTTFT p50, ms\tTTFT p99, ms\tpreempted\tblocks in use\t")
	for _, s := range all {
		weight := "–"
		if s.Router == engine.RouterPrefix {
			weight = strconv.FormatFloat(s.LoadWeight, 'g', -1, 64)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d of %d\t\n", s.Router, weight, s.Answered, s.Refused,
			cli.Figure(s.HitByToken, 4), cli.Figure(s.HitByBlock, 4), cli.Figure(s.PrefillImbalance, 2), cli.Figure(s.LoadImbalance, 2),
			cli.Figure(s.TTFTP50MS, 1), cli.Figure(s.TTFTP99MS, 1), s.Preemptions, s.MaxUsedBlocks, s.CapacityBlocks)
	}
	return t.Flush()
}

// simulated is what a simulation came to.
type simulated struct {
	summary engine.FleetSummary
	run     result.Run // what the sending says of itself
}

// play sends a workload to a fleet. Without a journal the results are counted
// and not kept.
func (f *simulateFlags) play(cmd *cobra.Command, w *trace.Trace, c engine.FleetConfig, about result.Run, journal *result.Journal) (simulated, error) {
	part, err := f.part(cmd, w, f.seed)
	if err != nil {
		return simulated{}, err
	}
	rows, err := part.reader()
	if err != nil {
		return simulated{}, err
	}
	lineage, err := f.Lineage(cmd, part.turns)
	if err != nil {
		return simulated{}, err
	}
	options, err := f.Schedule(lineage, f.seed)
	if err != nil {
		return simulated{}, err
	}
	options.About = about
	part.apply(&options)
	sim := bench.Simulation{Fleet: c, Rows: rows, BlockSize: part.blockSize, Options: options, Timeout: f.timeout}
	if journal != nil {
		sim.Results = journal
		if w.Meta.BlockSize > 0 {
			sim.Options.Known = profile.NewKnownPass(w.Meta.BlockSize, false).Touch
		}
	}
	bar := cli.NewProgress(cmd)
	bar.Start("simulate "+c.Router, "requests", rows.total)
	defer bar.End()
	sim.Progress = bar.Set
	s, run, err := sim.Run(cmd.Context())
	return simulated{s, run}, err
}

// engineFlags say what a simulated engine is like: a preset, and what differs
// from it.
type engineFlags struct {
	given     engine.Config
	preset    string
	costs     string
	noChunks  bool
	noCaching bool
	changed   func(name string) bool // a flag was given; nil asks the command
}

func (f *engineFlags) register(fl *pflag.FlagSet) {
	d := engine.DefaultConfig()
	fl.StringVar(&f.preset, "preset", "", "engine fitted to published measurements: "+strings.Join(presetNames(), ", ")+"; the flags below change it")
	f.registerModel(fl)
	fl.IntVar(&f.given.BlockSize, "block-size", d.BlockSize, "tokens in a block of KV")
	fl.IntVar(&f.given.KVTokens, "kv-tokens", d.KVTokens, "tokens of KV memory of an engine; 0 is without bound")
	fl.IntVar(&f.given.MaxSeqs, "max-num-seqs", d.MaxSeqs, "requests that run at once")
	fl.IntVar(&f.given.MaxWaiting, "max-waiting", d.MaxWaiting, "requests that wait; more are refused with 429")
}

// modelFlags are those of registerModel.
var modelFlags = []string{"costs", "max-num-batched-tokens", "no-chunked-prefill", "no-prefix-caching", "batching"}

// registerModel registers what only a model of an engine has.
func (f *engineFlags) registerModel(fl *pflag.FlagSet) {
	d := engine.DefaultConfig()
	fl.StringVar(&f.costs, "costs", "", "what steps take: step, kv-token, prefill-token and decode-seq, and request before the first; such as step=5ms,kv-token=40ns")
	fl.IntVar(&f.given.MaxBatchTokens, "max-num-batched-tokens", d.MaxBatchTokens, "tokens computed in a step")
	fl.BoolVar(&f.noChunks, "no-chunked-prefill", false, "compute each prompt in one step")
	fl.BoolVar(&f.noCaching, "no-prefix-caching", false, "compute every prompt whole")
	fl.StringVar(&f.given.Batching, "batching", d.Batching, "continuous, or static: no request is admitted before the whole batch has ended")
}

// with is the engine of the command's flags and of further ones, each NAME or
// NAME=VALUE, which go before them.
func (f *engineFlags) with(cmd *cobra.Command, further []string) (engineFlags, error) {
	var e engineFlags
	fl := pflag.NewFlagSet("", pflag.ContinueOnError)
	e.register(fl)
	e.changed = fl.Changed
	var args []string
	fl.VisitAll(func(own *pflag.Flag) {
		if given := cmd.Flags().Lookup(own.Name); given != nil && given.Changed {
			args = append(args, "--"+own.Name+"="+given.Value.String())
		}
	})
	for _, s := range further {
		args = append(args, "--"+strings.TrimPrefix(s, "--"))
	}
	err := fl.Parse(args)
	if err == nil && fl.NArg() > 0 {
		err = fmt.Errorf("%q is no flag", fl.Arg(0))
	}
	return e, err
}

func presetNames() []string {
	var names []string
	for _, p := range engine.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// config is the engine that the flags ask for, and the name of its model.
func (f *engineFlags) config(cmd *cobra.Command) (engine.Config, string, error) {
	c, model := engine.DefaultConfig(), "simulated"
	switch {
	case f.preset != "":
		p, err := engine.OpenPreset(f.preset)
		if err != nil {
			return c, "", cli.Usagef("--preset: %v", err)
		}
		c, model = p.Engine, p.Model
	case f.costs == "":
		return c, "", cli.Usagef("say how fast the engine is: --preset %s, or --costs step=5ms,kv-token=40ns,prefill-token=25us", presetNames()[0])
	}
	given := f.changed
	if given == nil {
		given = cmd.Flags().Changed
	}
	for name, set := range map[string]func(){
		"block-size":             func() { c.BlockSize = f.given.BlockSize },
		"kv-tokens":              func() { c.KVTokens = f.given.KVTokens },
		"max-num-seqs":           func() { c.MaxSeqs = f.given.MaxSeqs },
		"max-num-batched-tokens": func() { c.MaxBatchTokens = f.given.MaxBatchTokens },
		"max-waiting":            func() { c.MaxWaiting = f.given.MaxWaiting },
		"no-chunked-prefill":     func() { c.ChunkedPrefill = !f.noChunks },
		"no-prefix-caching":      func() { c.PrefixCaching = !f.noCaching },
		"batching":               func() { c.Batching = f.given.Batching },
	} {
		if given(name) {
			set()
		}
	}
	if f.costs != "" {
		var err error
		if c.Costs, err = engine.ParseCosts(f.costs, c.Costs); err != nil {
			return c, "", cli.Usagef("--costs: %v", err)
		}
	}
	return c, model, nil
}

// warning is that of the preset at the costs of the engine that the flags ask for, or
// "", see [engine.Preset].
func (f *engineFlags) warning(c engine.Config) string {
	p, err := engine.OpenPreset(f.preset)
	if err != nil {
		return ""
	}
	return p.Warn(c.Costs)
}

// A fittedPreset is a preset beside the figures that it was fitted to.
type fittedPreset struct {
	Name    string            `json:"name"`
	Model   string            `json:"model"`
	About   string            `json:"about"`
	Warning string            `json:"warning,omitempty"`
	Engine  engine.Config     `json:"engine"`
	Costs   string            `json:"costs"`
	RMSE    float64           `json:"rmse_log"`        // over all figures of the source
	Fitted  float64           `json:"rmse_log_fitted"` // over those that the costs were fitted to
	Fit     []engine.FitPoint `json:"fit"`
}

// writePresets plays the published loads to every preset and prints how far
// each comes from its source.
func writePresets(w io.Writer, asJSON bool) error {
	var all []fittedPreset
	for _, p := range engine.Presets() {
		points, err := p.Fit()
		if err != nil {
			return err
		}
		all = append(all, fittedPreset{p.Name, p.Model, p.About, p.Warning, p.Engine, p.Engine.Costs.String(),
			engine.RMSE(points), engine.RMSE(engine.Fitted(points)), points})
	}
	if asJSON {
		return cli.WriteJSON(w, all)
	}
	for _, p := range all {
		fmt.Fprintf(w, "%s\n%s\n%s\n", p.Name, cli.Wrapped(p.Model+". "+p.About), p.Costs)
		if p.Warning != "" {
			fmt.Fprintln(w, cli.Wrapped("WARNING: "+p.Warning+"."))
		}
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "  load\tmetric\tpublished\tsimulated\terror\t")
		worst := 0.0
		for _, f := range p.Fit {
			worst = max(worst, math.Abs(f.Error()))
			note := "not fitted"
			if f.Fitted {
				note = ""
			}
			fmt.Fprintf(t, "  %s\t%s\t%.5g\t%.5g\t%+.1f %%\t%s\n", f.Load, f.Metric, f.Published, f.Simulated, 100*f.Error(), note)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(w, "  root mean square error over all %d figures: %.1f %% (of logarithms), the worst %.1f %%\n", len(p.Fit), 100*p.RMSE, 100*worst)
		if n := len(engine.Fitted(p.Fit)); n < len(p.Fit) {
			fmt.Fprintf(w, "  over the %d that were fitted: %.1f %%\n", n, 100*p.Fitted)
		}
		fmt.Fprintln(w)
	}
	return nil
}
