package runs

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/bench"
	"reprise/replay/hardware"
	"reprise/trace/quantity"
)

// Frontier says what sweep --frontier crosses, and what the GPUs of its engines cost and draw.
type Frontier struct {
	Asked   bool
	presets []string
	lengths []string
	prices  perGPU
	watts   perGPU
}

// Register adds the flags, to those of a sweep.
func (f *Frontier) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	everyday, rest := flags.Sections(fl, "Frontier")
	everyday.BoolVar(&f.Asked, "frontier", false, "throughput per GPU against interactivity, for every --preset, length class and number in flight, in place of a sweep of WORKLOAD")
	rest.StringSliceVar(&f.lengths, "lengths", bench.DefaultLengths(), "length classes of --frontier: chat, or the most tokens of a prompt and an output")
	rest.Var(&f.watts, "watts", "`watts` of a GPU for --frontier: one number, or l4=72,h100=700. Default: its data sheet's")
	preset, price := fl.Lookup("preset"), fl.Lookup("price-per-gpu-hour")
	preset.Value = presetList{preset.Value, &f.presets}
	preset.Usage += ". With --frontier several, between commas, and engine.yaml:8xh100 where the file's GPUs are to count"
	price.Value = priceValue{price.Value, &f.prices}
	price.Usage += ". With --frontier also by GPU: l4=0.8,h100=2.5"
}

// Check refuses what only a frontier has, and is for a sweep that makes none.
func (f *Frontier) Check(cmd *cobra.Command) error {
	switch {
	case len(f.presets) > 1:
		return cli.Usagef("a sweep has one --preset: several are for --frontier")
	case f.prices.of != nil:
		return cli.Usagef("--price-per-gpu-hour: prices by GPU are for --frontier: want a number")
	}
	for _, name := range []string{"lengths", "watts"} {
		if fl := cmd.Flags().Lookup(name); fl.Changed && !flags.SetByVariable(fl) {
			return cli.Usagef("--%s is for --frontier", name)
		}
	}
	return nil
}

// ofFrontier are the flags that a frontier takes beside those of simulated engines.
var ofFrontier = []string{"frontier", "lengths", "concurrencies", "watts", "price-per-gpu-hour", "seed", "json", "html", "overwrite", "details", "quiet", "config"}

// Run measures the frontier, with so many requests in flight, or as many as help.
func (f *Frontier) Run(cmd *cobra.Command, trials *Trials, concurrencies []string) (none bench.FrontierResult, err error) {
	if err := f.alone(cmd); err != nil {
		return none, err
	}
	var work bench.Frontier
	for _, text := range f.lengths {
		c, err := bench.ParseLengthClass(text)
		if err != nil {
			return none, cli.Usagef("--lengths: %v", err)
		}
		if slices.ContainsFunc(work.Classes, func(o bench.LengthClass) bool { return o.Name == c.Name }) {
			return none, cli.Usagef("--lengths: %s is there twice", text)
		}
		work.Classes = append(work.Classes, c)
	}
	for _, text := range concurrencies {
		n, err := quantity.Count(text)
		if err != nil {
			return none, cli.Usagef("--concurrencies: %v", err)
		}
		work.Concurrencies = append(work.Concurrencies, int(n))
	}
	if work.Seed, err = strconv.ParseUint(cmp.Or(trials.Live.Prompts.Seed, "1"), 10, 64); err != nil {
		return none, cli.Usagef("--seed: want a number")
	}
	presets := f.presets
	if len(presets) == 0 {
		presets = []string{""} // of --costs, or an error
	}
	for _, preset := range presets {
		e, err := f.engine(cmd, trials, preset, work.Seed)
		if err != nil {
			return none, err
		}
		if slices.ContainsFunc(work.Engines, func(o bench.FrontierEngine) bool { return o.Name == e.Name }) {
			e.Name = preset // of files of one name, or one with other settings
			if slices.ContainsFunc(work.Engines, func(o bench.FrontierEngine) bool { return o.Name == preset }) {
				return none, cli.Usagef("--preset: %s is there twice", preset)
			}
		}
		work.Engines = append(work.Engines, e)
	}
	for flag, by := range map[string]perGPU{"price-per-gpu-hour": f.prices, "watts": f.watts} {
		for gpu := range by.of {
			if !slices.ContainsFunc(work.Engines, func(e bench.FrontierEngine) bool { return e.GPU == gpu }) {
				return none, cli.Usagef("--%s: no engine has a GPU %s", flag, gpu)
			}
		}
	}
	bar := cli.NewProgress(cmd)
	bar.Start("frontier", "curves", int64(len(work.Engines)*len(work.Classes)))
	defer bar.End()
	work.Told = func(curves int) { bar.Set(int64(curves)) }
	r, err := work.Run(cmd.Context())
	switch {
	case err != nil && cmd.Context().Err() != nil:
		err = fmt.Errorf("interrupted: nothing is kept of a frontier that is not complete")
	case err != nil && len(r.Classes) == 0 && len(work.Concurrencies) > 0:
		err = cli.Exit(cli.Usage, err)
	}
	return r, err
}

// alone refuses flags that mean nothing to a frontier.
func (f *Frontier) alone(cmd *cobra.Command) (err error) {
	simulated := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(flags.Fleet).Register(simulated)
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		switch {
		case err != nil || flags.SetByVariable(fl) || simulated.Lookup(fl.Name) != nil || slices.Contains(ofFrontier, fl.Name):
		case fl.Name == "url" || fl.Name == "serve-cmd" || fl.Name == "target":
			err = cli.Usagef("--frontier measures engines in virtual time, and --%s names a server: measure one by a closed loop of each length, reprise sweep WORKLOAD --url URL --concurrencies 1,2,4,8, or fit an engine to it (reprise calibrate) and give its file with --preset", fl.Name)
		case fl.Name == "rates":
			err = cli.Usagef("--frontier is over requests in flight: give --concurrencies, or leave --rates out")
		default:
			err = cli.Usagef("--%s cannot be used with --frontier", fl.Name)
		}
	})
	return err
}

// engine is that of a preset, or of --costs alone where the name is empty.
func (f *Frontier) engine(cmd *cobra.Command, trials *Trials, preset string, seed uint64) (out bench.FrontierEngine, err error) {
	fleet := trials.Simulated.Fleet
	file, gpus, own := cutGPUs(preset)
	var further []string
	if preset != "" {
		further = []string{"preset=" + file}
	}
	if fleet.Engine, err = fleet.Engine.With(cmd, further); err != nil {
		return out, err
	}
	config, model, err := fleet.Engine.Config(cmd)
	if err != nil {
		return out, err
	}
	chosen, err := fleet.Engine.Chosen(cmd)
	if err != nil {
		return out, err
	}
	configs := fleet.Configs(config, seed)
	if len(configs) > 1 {
		return out, cli.Usagef("--router all compares routers: name one for --frontier")
	}
	out = bench.FrontierEngine{Name: shortName(preset), Model: model, GPUs: 1, Assumed: true, Fleet: configs[0], Warning: fleet.Engine.Warning(cmd, config)}
	if chosen != nil && chosen.GPU != "" {
		out.GPU, out.GPUs, out.Assumed, out.Bound = chosen.GPU, chosen.Hardware.GPUs, false, chosen.Setup != nil
	}
	if own {
		n, gpu, err := flags.ParseGPUs(gpus)
		if err != nil || n < 1 {
			return out, cli.Usagef("--preset %s: the GPUs behind the file: %v", preset, cmp.Or(err, fmt.Errorf("want 1 or more")))
		}
		out.GPU, out.GPUs, out.Assumed = gpu.Name, n, false
	}
	out.GPUs *= out.Fleet.Replicas
	out.Simulated = fleet.Describe(out.Fleet)
	out.PerGPUHour = f.prices.at(out.GPU)
	if out.Watts = f.watts.at(out.GPU); out.Watts == 0 && out.GPU != "" {
		sheet, err := hardware.FindGPU(out.GPU)
		if err != nil {
			return out, err
		}
		out.Watts, out.DataSheet = sheet.Watts, true
	}
	return out, nil
}

// cutGPUs parts the file of an engine from the GPUs behind it, as in engine.yaml:8xh100.
func cutGPUs(preset string) (file, gpus string, own bool) {
	if i := strings.LastIndexByte(preset, ':'); i > 0 && flags.IsEngineFile(preset[:i]) {
		return preset[:i], preset[i+1:], true
	}
	return preset, "", false
}

// shortName is how a preset is called in tables and legends: without folders.
func shortName(preset string) string {
	if preset == "" {
		return "costs"
	}
	name := strings.TrimPrefix(preset, "roofline:")
	if file, gpus, own := cutGPUs(name); own || flags.IsEngineFile(name) || name != preset {
		return strings.TrimSuffix(filepath.Base(file)+":"+gpus, ":")
	}
	return name
}

// perGPU is a number for all GPUs, or one for each kind of them.
type perGPU struct {
	all float64
	of  map[string]float64 // by the name in the table of data sheets
}

func (p *perGPU) at(gpu string) float64 {
	if v, ok := p.of[gpu]; ok {
		return v
	}
	return p.all
}

// Set implements [pflag.Value].
func (p *perGPU) Set(text string) error {
	wrong := &quantity.Error{Text: text, Want: "a number above 0, or such numbers by GPU", Examples: [3]string{"700", "l4=72", "l4=72,h100=700"}}
	if !strings.Contains(text, "=") {
		v, err := quantity.Number(text)
		if err != nil || !(v > 0) {
			return wrong
		}
		p.all = v
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(part, "=")
		v, err := quantity.Number(number)
		gpu, gerr := hardware.FindGPU(name)
		if gerr != nil {
			return gerr
		}
		if err != nil || !(v > 0) {
			return wrong
		}
		if p.of == nil {
			p.of = map[string]float64{}
		}
		p.of[gpu.Name] = v
	}
	return nil
}

// String implements [pflag.Value].
func (p *perGPU) String() string {
	var parts []string
	for gpu, v := range p.of {
		parts = append(parts, gpu+"="+strconv.FormatFloat(v, 'g', -1, 64))
	}
	slices.Sort(parts)
	if p.all > 0 {
		parts = append([]string{strconv.FormatFloat(p.all, 'g', -1, 64)}, parts...)
	}
	return strings.Join(parts, ",")
}

// Type implements [pflag.Value].
func (p *perGPU) Type() string { return "watts" }

// A priceValue is --price-per-gpu-hour, which a frontier takes by GPU too.
type priceValue struct {
	pflag.Value
	prices *perGPU
}

// Set implements [pflag.Value].
func (p priceValue) Set(text string) error {
	if strings.Contains(text, "=") {
		return p.prices.Set(text)
	}
	if err := p.Value.Set(text); err != nil {
		return err
	}
	v, err := quantity.Number(text)
	p.prices.all = v
	return err
}

// String implements [pflag.Value].
func (p priceValue) String() string {
	if p.prices == nil || p.prices.of == nil {
		return p.Value.String()
	}
	return p.prices.String()
}

// A presetList is --preset where it takes several, as for a frontier.
type presetList struct {
	pflag.Value
	all *[]string
}

// Set implements [pflag.Value].
func (p presetList) Set(text string) error {
	*p.all = append(*p.all, strings.Split(text, ",")...)
	return p.Value.Set(text)
}

// String implements [pflag.Value].
func (p presetList) String() string {
	if p.all == nil || len(*p.all) < 2 {
		return p.Value.String()
	}
	return strings.Join(*p.all, ",")
}
