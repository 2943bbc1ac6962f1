package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/replay/simserver"
)

// engineFlags say what a simulated engine is like: a preset, and what differs
// from it.
type engineFlags struct {
	given     simserver.EngineConfig
	preset    string
	costs     string
	noChunks  bool
	noCaching bool
	changed   func(name string) bool // a flag was given; nil asks the command
}

func (f *engineFlags) register(fl *pflag.FlagSet) {
	d := simserver.DefaultEngine()
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
	d := simserver.DefaultEngine()
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
	for _, p := range simserver.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// config is the engine that the flags ask for, and the name of its model.
func (f *engineFlags) config(cmd *cobra.Command) (simserver.EngineConfig, string, error) {
	c, model := simserver.DefaultEngine(), "simulated"
	switch {
	case f.preset != "":
		p, err := simserver.OpenPreset(f.preset)
		if err != nil {
			return c, "", usagef("--preset: %v", err)
		}
		c, model = p.Engine, p.Model
	case f.costs == "":
		return c, "", usagef("say how fast the engine is: --preset %s, or --costs step=5ms,kv-token=40ns,prefill-token=25us", presetNames()[0])
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
		if c.Costs, err = simserver.ParseCosts(f.costs, c.Costs); err != nil {
			return c, "", usagef("--costs: %v", err)
		}
	}
	return c, model, nil
}

// warning is that of the preset at the costs of the engine that the flags ask for, or
// "", see [simserver.Preset].
func (f *engineFlags) warning(c simserver.EngineConfig) string {
	p, err := simserver.OpenPreset(f.preset)
	if err != nil {
		return ""
	}
	return p.Warn(c.Costs)
}

// A fittedPreset is a preset beside the figures that it was fitted to.
type fittedPreset struct {
	Name    string                 `json:"name"`
	Model   string                 `json:"model"`
	About   string                 `json:"about"`
	Warning string                 `json:"warning,omitempty"`
	Engine  simserver.EngineConfig `json:"engine"`
	Costs   string                 `json:"costs"`
	RMSE    float64                `json:"rmse_log"`        // over all figures of the source
	Fitted  float64                `json:"rmse_log_fitted"` // over those that the costs were fitted to
	Fit     []simserver.FitPoint   `json:"fit"`
}

// writePresets plays the published loads to every preset and prints how far
// each comes from its source.
func writePresets(w io.Writer, asJSON bool) error {
	var all []fittedPreset
	for _, p := range simserver.Presets() {
		points, err := p.Fit()
		if err != nil {
			return err
		}
		all = append(all, fittedPreset{p.Name, p.Model, p.About, p.Warning, p.Engine, p.Engine.Costs.String(),
			simserver.RMSE(points), simserver.RMSE(simserver.Fitted(points)), points})
	}
	if asJSON {
		return writeJSON(w, all)
	}
	for _, p := range all {
		fmt.Fprintf(w, "%s\n%s\n%s\n", p.Name, wrapped(p.Model+". "+p.About), p.Costs)
		if p.Warning != "" {
			fmt.Fprintln(w, wrapped("WARNING: "+p.Warning+"."))
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
		if n := len(simserver.Fitted(p.Fit)); n < len(p.Fit) {
			fmt.Fprintf(w, "  over the %d that were fitted: %.1f %%\n", n, 100*p.Fitted)
		}
		fmt.Fprintln(w)
	}
	return nil
}
