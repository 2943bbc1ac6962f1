package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
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
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/objectstore"
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
	everyday.BoolVar(&f.Asked, "frontier", false,
		"throughput per GPU against interactivity, for every --preset, --url and length class, in place of a sweep "+
			"of WORKLOAD. Arguments are directories of earlier frontiers, to lay over each other")
	rest.StringSliceVar(&f.lengths, "lengths", bench.DefaultLengths(),
		"length classes of --frontier: chat, or the most tokens of a prompt and an output")
	rest.Var(&f.watts, "watts",
		"`watts` of a GPU for --frontier: one number, or l4=72,h100=700. Default: its data sheet's")
	preset, price := fl.Lookup("preset"), fl.Lookup("price-per-gpu-hour")
	preset.Value = presetList{preset.Value, &f.presets}
	preset.Usage += ". With --frontier several, between commas, and engine.yaml:8xh100 where the file's GPUs " +
		"are to count"
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
	return flags.Refuse(cmd, "is for --frontier", "lengths", "watts")
}

// ofFrontier are the flags that a frontier takes beside those of simulated engines and of
// endpoints.
var ofFrontier = []string{"frontier", "lengths", "concurrencies", "level-requests", "watts",
	"price-per-gpu-hour", "seed", "output", "json", "html", "overwrite", "details", "quiet", "config",
	"set"}

// A FrontierAsk is what a frontier takes of the flags of a sweep.
type FrontierAsk struct {
	Trials        *Trials
	Concurrencies []string
	Requests      int64         // of a level
	Limits        report.Limits // beyond which a run at a server is not trusted
	About         string        // what servers are measured with
	Earlier       []string      // files or directories of earlier frontiers
	Dir           string        // for the results; "" keeps none
}

// Run measures the frontier, and lays earlier ones over it.
func (f *Frontier) Run(cmd *cobra.Command, ask FrontierAsk) (r bench.FrontierResult, err error) {
	servers := cmd.Flags().Changed("url")
	if err := f.alone(cmd, servers); err != nil {
		return r, err
	}
	earlier := make([]bench.FrontierResult, len(ask.Earlier))
	for i, path := range ask.Earlier {
		if earlier[i], err = readFrontier(path); err != nil {
			return r, err
		}
	}
	work, err := f.plan(cmd, &ask, servers)
	if err != nil {
		return r, err
	}
	for flag, by := range map[string]perGPU{"price-per-gpu-hour": f.prices, "watts": f.watts} {
		for gpu := range by.of {
			has := slices.ContainsFunc(work.Engines, func(e bench.FrontierEngine) bool { return e.GPU == gpu })
			for _, o := range earlier {
				has = has || slices.ContainsFunc(o.Engines, func(e bench.FrontierEngine) bool { return e.GPU == gpu })
			}
			if !has {
				return r, cli.Usagef("--%s: no engine has a GPU %s", flag, gpu)
			}
		}
	}
	if len(work.Engines) > 0 {
		if r, err = f.measure(cmd, work, &ask); err != nil {
			return r, err
		}
	}
	for i, o := range earlier {
		o.Reprice(func(gpu string) bench.Prices {
			return bench.Prices{PerGPUHour: f.prices.at(gpu), Watts: f.watts.at(gpu)}
		})
		if err := r.Overlay(o, nameOf(ask.Earlier[i])); err != nil {
			return r, fmt.Errorf("%s: %w", ask.Earlier[i], err)
		}
	}
	return r, nil
}

// plan is what the flags ask to be measured: no engine where only earlier frontiers are to be
// laid over each other.
func (f *Frontier) plan(cmd *cobra.Command, ask *FrontierAsk, servers bool) (work bench.Frontier, err error) {
	work.Requests, work.Report = ask.Requests, report.Options{Limits: ask.Limits}
	for _, text := range f.lengths {
		c, err := bench.ParseLengthClass(text)
		if err != nil {
			return work, cli.Usagef("--lengths: %v", err)
		}
		if slices.ContainsFunc(work.Classes, func(o bench.LengthClass) bool { return o.Name == c.Name }) {
			return work, cli.Usagef("--lengths: %s is there twice", text)
		}
		work.Classes = append(work.Classes, c)
	}
	for _, text := range ask.Concurrencies {
		n, err := quantity.Count(text)
		if err != nil {
			return work, cli.Usagef("--concurrencies: %v", err)
		}
		work.Concurrencies = append(work.Concurrencies, int(n))
	}
	if work.Seed, err = strconv.ParseUint(cmp.Or(ask.Trials.Live.Prompts.Seed, "1"), 10, 64); err != nil {
		return work, cli.Usagef("--seed: want a number")
	}
	presets := f.presets
	if len(presets) == 0 && (!servers && len(ask.Earlier) == 0 || ask.Trials.Simulated.Engine.Costs != "") {
		presets = []string{""} // of --costs, or an error
	}
	for _, preset := range presets {
		e, err := f.engine(cmd, ask.Trials, preset, work.Seed)
		if err != nil {
			return work, err
		}
		if slices.ContainsFunc(work.Engines, func(o bench.FrontierEngine) bool { return o.Name == e.Name }) {
			e.Name = preset // of files of one name, or one with other settings
			if slices.ContainsFunc(work.Engines, func(o bench.FrontierEngine) bool { return o.Name == preset }) {
				return work, cli.Usagef("--preset: %s is there twice", preset)
			}
		}
		work.Engines = append(work.Engines, e)
	}
	if !servers {
		return work, nil
	}
	if len(presets) == 0 {
		if name := flags.SimulatedFlag(cmd); name != "" {
			return work, cli.Usagef(
				"%s is of a simulated engine: give --preset, or start the endpoint with it", name)
		}
	}
	for _, url := range ask.Trials.Live.Target.URLs {
		e, err := f.server(cmd, ask, url)
		if err != nil {
			return work, err
		}
		if slices.ContainsFunc(work.Engines, func(o bench.FrontierEngine) bool { return o.Name == e.Name }) {
			return work, cli.Usagef("--url: %s is there twice", e.Name)
		}
		work.Engines = append(work.Engines, e)
	}
	_, err = ask.Trials.Live.Admin.open(cmd.Context(), cmd) // for all levels, until the command is over
	return work, err
}

// measure runs what was planned. Levels at servers are kept in the directory of the results.
func (f *Frontier) measure(cmd *cobra.Command, work bench.Frontier,
	ask *FrontierAsk) (r bench.FrontierResult, err error) {
	if slices.ContainsFunc(work.Engines, func(e bench.FrontierEngine) bool { return e.Target != nil }) {
		if !cmd.Flags().Changed("level-requests") {
			work.Requests = bench.ServerRequests
		}
		dir := ask.Dir
		if dir == "" {
			if dir, err = os.MkdirTemp("", "reprise-frontier-"); err != nil {
				return r, err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		}
		if work.Dir, err = bench.Continue(dir, "frontier", work.Seed, ask.Limits); err != nil {
			return r, err
		}
		defer work.Dir.Close()
		levels := "levels until throughput grows no more"
		if n := len(work.Concurrencies); n > 0 {
			levels = doc.Many(int64(n), "level")
		}
		cli.Notef(cmd, "estimate: %s for each server and each of %d length classes, as long as the server takes",
			levels, len(work.Classes))
		work.ToldLevel = func(engine, class string, p bench.FrontierPoint) {
			cli.Notef(cmd, "%s, %s, %d in flight: %s tok/s/user, %s tok/s/GPU", engine, class, p.Concurrency,
				doc.Number(p.PerUser), doc.Number(p.OutputPerGPU))
		}
	} else {
		bar := cli.NewProgress(cmd)
		bar.Start("frontier", "curves", int64(len(work.Engines)*len(work.Classes)))
		defer bar.End()
		work.Told = func(curves int) { bar.Set(int64(curves)) }
	}
	r, err = work.Run(cmd.Context())
	switch {
	case err != nil && cmd.Context().Err() != nil && work.Dir != nil && ask.Dir != "":
		err = fmt.Errorf("interrupted; the levels so far are in %s: run the same command again to continue", ask.Dir)
	case err != nil && cmd.Context().Err() != nil:
		err = errors.New("interrupted: nothing is kept of a frontier that is not complete")
	case err != nil && len(r.Classes) == 0 && !work.Searches():
		err = cli.Exit(cli.Usage, err)
	}
	return r, err
}

// frontierFile is the name of a frontier in its directory.
const frontierFile = "frontier.json"

// readFrontier reads an earlier frontier, or the runs of a directory as one.
func readFrontier(path string) (r bench.FrontierResult, err error) {
	file := path
	if info, err := objectstore.Stat(path); err == nil && info.IsDir() {
		file = objectstore.Join(path, frontierFile)
	}
	in, err := objectstore.Open(file)
	if errors.Is(err, fs.ErrNotExist) && file != path {
		if e, err := bench.Open(path); err == nil {
			return e.Frontier()
		} else if !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return r, cli.Usagef("--frontier makes its own requests, see --lengths, and an argument is a directory that "+
			"sweep, bench or compare wrote (-o): there is no file %s", file)
	}
	if err != nil {
		return r, err
	}
	defer in.Close()
	return bench.ReadFrontier(path, in)
}

// nameOf is how an earlier frontier is called, where its engines have the names of others.
func nameOf(path string) string {
	if filepath.Base(path) == frontierFile {
		path = filepath.Dir(path)
	}
	return strings.TrimSuffix(filepath.Base(filepath.Clean(path)), ".json")
}

// Write keeps the frontier in its directory.
func (ask *FrontierAsk) Write(r *bench.FrontierResult) error {
	if ask.Dir == "" {
		return nil
	}
	if err := os.MkdirAll(ask.Dir, 0o755); err != nil {
		return err
	}
	return trace.WriteFile(objectstore.Join(ask.Dir, frontierFile), 0o644,
		func(w io.Writer) error { return cli.WriteJSON(w, r) })
}

// alone refuses flags that mean nothing to a frontier.
func (f *Frontier) alone(cmd *cobra.Command, servers bool) (err error) {
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		measured := flags.Measured(fl) || fl.Name == "trust" || flags.In(fl, flags.DeployedFlags)
		switch {
		case err != nil || flags.SetByVariable(fl) || flags.In(fl, flags.SimulatedFlags) ||
			slices.Contains(ofFrontier, fl.Name):
		case fl.Name == "serve-cmd" || fl.Name == "target":
			err = cli.Usagef("--%s cannot be used with --frontier: start the server, and give its --url", fl.Name)
		case servers && measured:
		case measured:
			err = cli.Usagef("%s is about a server, and no --url names one", flags.Spelled(fl))
		default:
			err = cli.Usagef("%s cannot be used with --frontier", flags.Spelled(fl))
		}
	})
	return err
}

// server is the endpoint of a URL. Its GPUs are those that --hardware says.
func (f *Frontier) server(cmd *cobra.Command, ask *FrontierAsk, base string) (e bench.FrontierEngine, err error) {
	live := ask.Trials.Live
	live.Target.URLs = []string{base}
	if err := live.Check(cmd); err != nil {
		return e, err
	}
	e = bench.FrontierEngine{Name: base, Endpoint: result.Redact(base), GPUs: 1, Assumed: true,
		Target: liveTarget{cmd, live}}
	if u, err := url.Parse(base); err == nil {
		e.Name = cmp.Or(strings.TrimSuffix(u.Host+u.Path, "/"), base)
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		e.Endpoint = u.String()
	}
	e.About = ask.About + " of " + e.Endpoint
	serving, err := live.Deployment.Serving()
	if err != nil {
		return e, err
	}
	if serving != nil && serving.GPUs > 0 {
		e.GPU, e.GPUs, e.Assumed = serving.GPU, serving.GPUs, false
	}
	if serving != nil && serving.Engine != "" && len(ask.Trials.Live.Target.URLs) == 1 {
		e.Name = serving.Engine
	}
	if sheet, err := hardware.FindGPU(strings.ToLower(e.GPU)); err == nil {
		e.GPU, e.Watts, e.DataSheet = sheet.Name, sheet.Watts, true
	}
	if w := f.watts.at(e.GPU); w > 0 {
		e.Watts, e.DataSheet = w, false
	}
	e.PerGPUHour = f.prices.at(e.GPU)
	return e, nil
}

// engine is that of a preset, or of --costs alone where the name is empty.
func (f *Frontier) engine(cmd *cobra.Command, trials *Trials, preset string,
	seed uint64) (out bench.FrontierEngine, err error) {
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
	out = bench.FrontierEngine{Name: shortName(preset), Model: model, GPUs: 1, Assumed: true, Fleet: configs[0],
		Warning: fleet.Engine.Warning(cmd, config)}
	if chosen != nil && chosen.GPU != "" {
		out.GPU, out.GPUs, out.Assumed, out.Bound = chosen.GPU, chosen.Hardware.GPUs, false, chosen.Setup != nil
	}
	if chosen != nil {
		out.Covers = chosen.Covers
	}
	if own {
		n, gpu, err := flags.ParseGPUs(gpus)
		if err != nil || n < 1 {
			return out, cli.Usagef("--preset %s: the GPUs behind the file: %v", preset,
				cmp.Or(err, fmt.Errorf("want 1 or more")))
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
