package flags

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
	"reprise/replay/result"
	"reprise/trace/fleet"
)

// AllRouters stands for every router, one after another.
const AllRouters = "all"

// Fleet says what the simulated engines are, how many there are, and which of them
// a request goes to.
type Fleet struct {
	Engine   Engine
	replicas int
	Router   string
	Noise    engine.Noise
}

// Register adds the flags.
func (f *Fleet) Register(fl *pflag.FlagSet) {
	f.Engine.Register(fl)
	_, rest := Sections(fl, SimulatedFlags)
	rest.IntVar(&f.replicas, "replicas", 1, "number of engines behind the router")
	rest.StringVar(&f.Router, "router", fleet.RoundRobin,
		"router: random, round-robin, least-loaded, session, prefix, prefix-weighted, or all to compare them")
	rest.Var(noise{&f.Noise}, "noise", "")
}

// Configs are those that the flags ask for, of engines of this config. seed is that of
// random routing.
func (f *Fleet) Configs(config engine.Config, seed uint64) []engine.FleetConfig {
	one := engine.FleetConfig{Engine: config, Replicas: f.replicas, Router: f.Router, Seed: seed,
		Noise: f.Noise.Run(seed, 0)}
	if f.Router != AllRouters {
		return []engine.FleetConfig{one}
	}
	var all []engine.FleetConfig
	for _, name := range fleet.Routers() {
		one.Router = name
		all = append(all, one)
	}
	return all
}

// Describe names the model for the results.
func (f *Fleet) Describe(c engine.FleetConfig) string {
	doc, err := json.Marshal(c.Engine)
	if err != nil {
		return ""
	}
	out := fmt.Sprintf("%d × %s, router %s, costs %s", c.Replicas, doc, c.Router, c.Engine.Costs)
	if f.Engine.Preset != "" {
		out = "preset " + presetName(f.Engine.Preset) + ": " + out
	}
	if noise := f.Noise.String(); noise != "" {
		out += ", noise " + noise
	}
	return out
}

// Engine says what a simulated engine is like: a preset, and what differs
// from it.
type Engine struct {
	Given     engine.Config
	Hardware  *Hardware // of commands that have its flags
	Preset    string
	Costs     string
	noChunks  bool
	noCaching bool
	changed   func(name string) bool // a flag was given; nil asks the command
}

// Register adds the flags.
func (f *Engine) Register(fl *pflag.FlagSet) {
	d := engine.DefaultConfig()
	everyday, rest := Sections(fl, SimulatedFlags)
	everyday.StringVar(&f.Preset, "preset", "", "engine fitted to published measurements: "+
		strings.Join(PresetNames(), ", ")+
		"; the file of reprise calibrate; or roofline:CONFIG.json:8xh100:fp8[:kv=fp8][:memory=90%][@EFFICIENCY], the "+
		"bound of hardware. The flags below change it")
	everyday.StringVar(&f.Costs, "costs", "",
		"time of an engine step, as step, kv-token, prefill-token, decode-seq and request: step=5ms,kv-token=40ns")
	rest.IntVar(&f.Given.BlockSize, "block-size", d.BlockSize, "")
	rest.IntVar(&f.Given.KVTokens, "kv-tokens", d.KVTokens, "")
	rest.IntVar(&f.Given.MaxSeqs, "max-num-seqs", d.MaxSeqs, "most requests that run at once")
	rest.IntVar(&f.Given.MaxWaiting, "max-waiting", d.MaxWaiting, "")
	rest.IntVar(&f.Given.MaxBatchTokens, "max-num-batched-tokens", d.MaxBatchTokens, "")
	rest.BoolVar(&f.noChunks, "no-chunked-prefill", false, "")
	rest.BoolVar(&f.noCaching, "no-prefix-caching", false, "do not reuse cached prefixes")
	rest.StringVar(&f.Given.Batching, "batching", d.Batching, "")
}

// With is the engine of the command's flags and of further ones, each NAME or
// NAME=VALUE, which go before them.
func (f *Engine) With(cmd *cobra.Command, further []string) (Engine, error) {
	var e Engine
	fl := pflag.NewFlagSet("", pflag.ContinueOnError)
	e.Register(fl)
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
	return e, mistake(fl, err)
}

// PresetNames are the engines that --preset takes.
func PresetNames() []string {
	var names []string
	for _, p := range engine.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// given tells which flags were given.
func (f *Engine) given(cmd *cobra.Command) func(name string) bool {
	if f.changed != nil {
		return f.changed
	}
	return cmd.Flags().Changed
}

// Config is the engine that the flags ask for, and the name of its model.
func (f *Engine) Config(cmd *cobra.Command) (engine.Config, string, error) {
	c, model := engine.DefaultConfig(), "simulated"
	batched := func(c engine.Config) engine.Config { return c }
	switch p, err := f.Chosen(cmd); {
	case err != nil:
		return c, "", err
	case p != nil:
		c, model, batched = p.Engine, p.Model, p.Batched
	case f.Costs == "":
		return c, "", cli.Usagef("no engine given: --preset %s, or --costs step=5ms,kv-token=40ns,prefill-token=25us",
			PresetNames()[0])
	}
	given := f.given(cmd)
	for name, set := range map[string]func(){
		"block-size":             func() { c.BlockSize = f.Given.BlockSize },
		"kv-tokens":              func() { c.KVTokens = f.Given.KVTokens },
		"max-num-seqs":           func() { c.MaxSeqs = f.Given.MaxSeqs },
		"max-num-batched-tokens": func() { c.MaxBatchTokens = f.Given.MaxBatchTokens },
		"max-waiting":            func() { c.MaxWaiting = f.Given.MaxWaiting },
		"no-chunked-prefill":     func() { c.ChunkedPrefill = !f.noChunks },
		"no-prefix-caching":      func() { c.PrefixCaching = !f.noCaching },
		"batching":               func() { c.Batching = f.Given.Batching },
	} {
		if given(name) {
			set()
		}
	}
	c = batched(c)
	if f.Costs != "" {
		var err error
		if c.Costs, err = engine.ParseCosts(f.Costs, c.Costs); err != nil {
			return c, "", cli.Usagef("--costs: %v", err)
		}
	}
	return c, model, nil
}

// Chosen is the preset that is named, or what --model-config and --hardware make; nil without
// either. A roofline's KV memory depends on the size of its steps.
func (f *Engine) Chosen(cmd *cobra.Command) (*engine.Preset, error) {
	like := engine.DefaultConfig()
	given := f.given(cmd)
	if given("max-num-batched-tokens") && f.Given.MaxBatchTokens > 0 {
		like.MaxBatchTokens = f.Given.MaxBatchTokens
	}
	if given("max-num-seqs") && f.Given.MaxSeqs > 0 {
		like.MaxSeqs = f.Given.MaxSeqs
	}
	var p engine.Preset
	var err error
	switch {
	case f.Hardware != nil && f.Hardware.Given() && f.Preset != "":
		return nil, cli.Usagef("--preset cannot be used with --model-config: both are an engine")
	case f.Hardware != nil && f.Hardware.Given():
		s, serr := f.Hardware.Setup()
		if serr != nil {
			return nil, serr
		}
		if p, err = engine.RooflinePreset("of "+f.Hardware.ModelConfig, s, like); err != nil {
			return nil, cli.Exit(cli.Usage, err)
		}
	case f.Preset != "":
		if p, err = openPreset(f.Preset, like); err != nil {
			return nil, cli.Usagef("--preset: %v", err)
		}
	default:
		return nil, nil
	}
	return &p, nil
}

// Warning is that of the preset at the costs of the engine that the flags ask for, or
// "", see [engine.Preset].
func (f *Engine) Warning(cmd *cobra.Command, c engine.Config) string {
	p, err := f.Chosen(cmd)
	if err != nil || p == nil {
		return ""
	}
	if IsEngineFile(f.Preset) {
		return p.Warning
	}
	return p.Warn(c.Costs)
}

// Beyond are the bounds of what the engine was fitted to that a run passed.
func (f *Engine) Beyond(cmd *cobra.Command, run engine.Covers) []result.Beyond {
	p, err := f.Chosen(cmd)
	if err != nil || p == nil || p.Covers == nil {
		return nil
	}
	return p.Covers.Beyond(run)
}

// SimulatedFlag is a flag or a setting that was given and means nothing to an endpoint, as it is typed, or "".
func SimulatedFlag(cmd *cobra.Command) (name string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if In(f, SimulatedFlags) {
			name = Spelled(f)
		}
	})
	return name
}
