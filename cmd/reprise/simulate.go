package main

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/runs"
	"reprise/replay"
	"reprise/replay/engine"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// simulateFlags are the flags of simulate.
type simulateFlags struct {
	runs.Simulation
	made     flags.Made
	requests int64 // that are made
	presets  bool
	judge    reportFlags
}

func simulateCommand() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate WORKLOAD --preset PRESET",
		Short: "Run a workload against a model of an engine, in virtual time",
		Long: `Simulate runs a workload against a model of a serving engine in virtual time and writes
the results that a replay would have written. An hour takes seconds, and the same
command gives the same results. Requests are due as in a replay; --open-loop, --rate and
--concurrency change that.` + flags.ListsBegin + `

--replicas puts a router before several engines, and --router all compares routers. The router
prefix follows the prompt's prefix alone, prefix-weighted the load too. Only whole blocks of
the workload are shared between prompts. --presets lists engines fitted to published
measurements; docs/architecture.md says how an engine works.`,
		Example: `  reprise simulate w.parquet --preset l4-qwen2.5-0.5b -o r.parquet
  reprise simulate w.parquet --preset document-h100-llama-70b --replicas 4 --router all
  reprise simulate w.parquet --costs step=5ms,kv-token=40ns,prefill-token=25us --kv-tokens 500000
  reprise simulate --presets`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.presets {
				return flags.Wants(0, 0, "")(cmd, args)
			}
			return flags.Wants(0, 1, "")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.presets {
				return writePresets(cmd, f.judge.AsJSON)
			}
			if err := f.made.Wants(cmd, args); err != nil {
				return err
			}
			return f.run(cmd, cmp.Or(args...))
		},
	}
	fl := cmd.Flags()
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	endpoint, _ := flags.Sections(fl, flags.EndpointFlags)
	simulated, simulatedRest := flags.Sections(fl, flags.SimulatedFlags)
	judgement, _ := flags.Sections(fl, flags.JudgementFlags)
	results.ParquetVar(&f.Out, "Parquet `file` for the results; by default only a summary is printed")
	f.Load.Register(cmd)
	f.made.Of = &f.Workload
	f.made.Register(cmd)
	_, loadRest := flags.Sections(fl, flags.LoadFlags)
	loadRest.Int64Var(&f.requests, "requests", 0, "how many requests --input-tokens makes; 0 is 1,000")
	endpoint.DurationVar(&f.Timeout, "timeout", 0, "time after which the client of a request gives up; 0 is none")
	simulated.BoolVar(&f.presets, "presets", false, "print the presets with the error of their fit, and exit")
	f.Fleet.Register(fl)
	f.Engine.Hardware = new(flags.Hardware)
	f.Engine.Hardware.Register(fl)
	flags.Promote(fl, "input-tokens", "replicas", "router", "kv-tokens", "max-num-seqs", "max-num-batched-tokens")
	simulatedRest.Seed(&f.Seed, "seed", 1, "of random")
	results.Bool("quiet", false, flags.QuietUsage)
	f.judge.Defaults()
	results.BoolVar(&f.judge.AsJSON, "json", false, "print JSON")
	f.judge.RegisterPages(fl)
	judgement.StringVar(&f.judge.SLO, "slo", "",
		"objectives that a request must meet to count as goodput, such as ttft:200ms,tpot:50ms,e2e:5s")
	f.judge.Contract.Register(cmd)
	f.judge.Trust.Register(cmd, "max-errors") // there is no send lag to limit
	return cmd
}

// simulateGarbage is how much garbage there is before it is collected, in bytes: of a few
// thousand requests it saves a tenth of the CPU, and memory has 64 MB more at most.
const simulateGarbage = 64 << 20

func (f *simulateFlags) run(cmd *cobra.Command, path string) error {
	config, model, err := f.Engine.Config(cmd)
	if err != nil {
		return err
	}
	switch {
	case f.Out == cli.Standard:
		return cli.Usagef("results are binary: give -o FILE.parquet")
	case f.Out != "" && f.Router == flags.AllRouters:
		return cli.Usagef("-o writes the results of one router: name one with --router")
	}
	for _, name := range []string{"html", "slo", "trust", "max-errors", "contract", "gpus", "price-per-gpu-hour"} {
		if f.Out == "" && cmd.Flags().Changed(name) {
			return cli.Usagef("--%s is about the results: give -o FILE.parquet", name)
		}
	}
	if f.Engine.Hardware.Given() {
		s, err := f.Engine.Hardware.Setup()
		if err != nil {
			return err
		}
		s.BatchTokens, s.Seqs = config.MaxBatchTokens, config.MaxSeqs
		m := s.Memory()
		cli.Notef(cmd, "memory of each GPU: %s. KV fits %s tokens", &m, doc.Count(int64(m.KVTokens)))
	}
	fleets := f.Configs(config, f.Seed)
	for _, c := range fleets {
		if _, err := engine.NewFleet(c, nil); err != nil {
			return cli.Exit(cli.Usage, err)
		}
	}
	if err := f.Load.Check(); err != nil {
		return err
	}
	if _, err := f.judge.Options(); err != nil {
		return err
	}
	if err := f.judge.checkRuns(1); err != nil {
		return err
	}
	if f.made.Given() && !f.Load.Paced() {
		return flags.ErrUnpaced
	}
	w, err := openLoad(cmd, &f.made, path, f.requests)
	if err != nil {
		return err
	}
	defer w.Close()
	defer replay.CollectGarbage(100, simulateGarbage)()
	if f.Out != "" {
		s, err := f.Record(cmd, w, fleets[0], model)
		if err != nil {
			return err
		}
		cli.Notef(cmd, "KV blocks in use: at most %d of %d; %d preemptions", s.MaxUsedBlocks,
			s.CapacityBlocks, s.Preemptions)
		return f.judge.report(cmd, f.Out)
	}
	var all []engine.FleetSummary
	for _, c := range fleets {
		s, _, err := f.Play(cmd, w, c, result.Run{}, nil)
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	if f.judge.AsJSON {
		out := make([]tieredFleet, len(all))
		for i, s := range all {
			out[i] = tieredFleet{w.Meta.Tier, f.Engine.Warning(cmd, config), f.Engine.Beyond(cmd, s.Reached), s}
		}
		return cli.WriteJSON(cmd.OutOrStdout(), out)
	}
	var beyond []result.Beyond
	for _, s := range all {
		beyond = result.JoinBeyond(beyond, f.Engine.Beyond(cmd, s.Reached))
	}
	return writeFleets(cmd, all, report.Warned(f.Engine.Warning(cmd, config), beyond), w.Meta.Tier)
}

// writeFleets writes a line for each fleet: what its cache and its users saw, and with
// --details the rest.
func writeFleets(cmd *cobra.Command, all []engine.FleetSummary, warning, tier string) error {
	o := cli.TextOptions(cmd, "All figures: --details. Results to report on: -o FILE.")
	p := textpage.New(o)
	head := []string{"router", "hits", "TTFT p50", "p99", "imbalance", "refused"}
	if o.Details {
		head = append(head, "answered", "hits by block", "prefill imbalance", "preempted", "blocks in use")
	}
	var rows [][]string
	for i := range all {
		s := &all[i]
		row := []string{s.Router, doc.OrDash(s.HitByToken, doc.Percent), doc.OrDash(s.TTFTP50MS, doc.Number),
			doc.OrDash(s.TTFTP99MS, doc.Number),
			cli.Figure(s.LoadImbalance, 2), doc.Count(int64(s.Refused))}
		if o.Details {
			row = append(row, doc.Count(int64(s.Answered)), doc.OrDash(s.HitByBlock, doc.Percent),
				cli.Figure(s.PrefillImbalance, 2),
				doc.Count(int64(s.Preemptions)), fmt.Sprintf("%d of %d", s.MaxUsedBlocks, s.CapacityBlocks))
		}
		rows = append(rows, row)
	}
	if warning != "" {
		p.Line("Warning: ", warning+".")
	}
	more := 0
	if o.Details {
		p.Table("", head, rows)
	} else {
		const most = textpage.AnswerLines - 10 // the warning, the head and where the rest is
		more = max(0, len(rows)-most)
		p.Columns(head, rows[:len(rows)-more])
	}
	if more > 0 {
		p.Line("", "and "+doc.Many(int64(more), "more router"))
	}
	p.Blank()
	foot := []string{"Hits by token; TTFT in ms; imbalance is the load of the busiest instance ÷ the mean.",
		trace.TierNote("table", tier)}
	if !o.Details {
		foot = append(foot, o.Rest)
	}
	p.Line("", strings.Join(foot, " "))
	_, err := p.WriteTo(cmd.OutOrStdout())
	return err
}

// A tieredFleet is a summary with the tier of the workload that it is of, and the
// warning of the preset.
type tieredFleet struct {
	Tier          string `json:"tier,omitempty"`
	PresetWarning string `json:"preset_warning,omitempty"`
	// Extrapolates are the bounds of what the preset was fitted to that the run passed.
	Extrapolates []result.Beyond `json:"extrapolates,omitempty"`
	engine.FleetSummary
}

// A fittedPreset is a preset beside the figures that it was fitted to.
type fittedPreset struct {
	Name        string            `json:"name"`
	Model       string            `json:"model"`
	About       string            `json:"about"`
	Warning     string            `json:"warning,omitempty"`
	Engine      engine.Config     `json:"engine"`
	Costs       string            `json:"costs"`
	StaticCosts string            `json:"costs_static,omitempty"` // of static batching, where they are others
	RMSE        *float64          `json:"rmse_log"`               // over all figures of the source; null without any
	Fitted      *float64          `json:"rmse_log_fitted"`        // over those that the costs were fitted to
	Fit         []engine.FitPoint `json:"fit"`
}

// fitPreset plays the published loads to a preset.
func fitPreset(p *engine.Preset) (f fittedPreset, err error) {
	f = fittedPreset{Name: p.Name, Model: p.Model, About: p.About, Warning: p.Warning, Engine: p.Engine,
		Costs: p.Engine.Costs.String(), Fit: []engine.FitPoint{}}
	if p.Static != nil {
		f.StaticCosts = p.Static.String()
	}
	points, err := p.Fit()
	if err != nil || len(points) == 0 {
		return f, err
	}
	all, fitted := engine.RMSE(points), engine.RMSE(engine.Fitted(points))
	f.RMSE, f.Fitted, f.Fit = &all, &fitted, points
	return f, nil
}

// writePresets plays the published loads to every preset and prints how far
// each comes from its source: a line for each, then every row of every source.
func writePresets(cmd *cobra.Command, asJSON bool) error {
	var all []fittedPreset
	for _, p := range engine.Presets() {
		f, err := fitPreset(&p)
		if err != nil {
			return err
		}
		all = append(all, f)
	}
	if asJSON {
		return cli.WriteJSON(cmd.OutOrStdout(), all)
	}
	o := cli.TextOptions(cmd, "Published and simulated values, costs and sources: --details.")
	p := textpage.New(o)
	var rows [][]string
	for i := range all {
		f := &all[i]
		name := f.Name
		if f.Warning != "" {
			name += " !"
		}
		worst := "–"
		if at := f.worst(); at != nil {
			worst = errorOf(at)
		}
		rows = append(rows, []string{name, fmt.Sprint(len(f.Fit)), doc.OrDash(f.Fitted, doc.Percent),
			doc.OrDash(f.RMSE, doc.Percent), worst})
	}
	p.Columns([]string{"preset", "figures", "error, fitted", "all", "worst"}, rows)
	p.Blank()
	p.Line("", "Figures are the source's; errors are root mean squares of logarithms, over the figures that "+
		"were fitted and over all. "+
		"! = a warning, which stands below. Below is each row of each source with the error of simulated over "+
		"published, in ( ) where it was not fitted. "+o.Rest)
	for i := range all {
		all[i].write(p, o.Details)
	}
	_, err := p.WriteTo(cmd.OutOrStdout())
	return err
}

// worst is the figure that is farthest from its source, of logarithms; nil without any.
func (f *fittedPreset) worst() (worst *engine.FitPoint) {
	far := func(at *engine.FitPoint) float64 { return math.Abs(math.Log(at.Simulated / at.Published)) }
	for i := range f.Fit {
		if worst == nil || far(&f.Fit[i]) > far(worst) {
			worst = &f.Fit[i]
		}
	}
	return worst
}

// errorOf is how far a simulated figure is from the published one, such as +3.1 %.
func errorOf(at *engine.FitPoint) string { return fmt.Sprintf("%+.1f %%", 100*at.Error()) }

// write writes the rows of a preset's source, each with its errors; with details also
// what the preset is, and the figures themselves.
func (f *fittedPreset) write(p *textpage.Page, details bool) {
	p.Blank()
	p.Line("", f.Name)
	if f.Warning != "" {
		p.Line("  ", "Warning: "+f.Warning+".")
	}
	if details || len(f.Fit) == 0 {
		p.Line("  ", f.Model+". "+f.About)
	}
	if details {
		p.Line("  ", f.Costs)
		if f.StaticCosts != "" {
			p.Line("  ", "static: "+f.StaticCosts)
		}
	}
	for from := 0; from < len(f.Fit); {
		to := from
		var figures []string
		for ; to < len(f.Fit) && f.Fit[to].Load == f.Fit[from].Load; to++ {
			at := &f.Fit[to]
			text := errorOf(at)
			if details {
				text = fmt.Sprintf("%s → %s %s", doc.Number(at.Published), doc.Number(at.Simulated), text)
			}
			if !at.Fitted {
				text = "(" + text + ")"
			}
			figures = append(figures, strings.TrimSuffix(at.Metric, ", ms")+" "+text)
		}
		p.Line("  ", f.Fit[from].Load)
		p.Line("    ", strings.Join(figures, ", "))
		from = to
	}
	if f.RMSE != nil {
		p.Line("  ", fmt.Sprintf("Root mean square error over all %d figures: %.1f %% (of logarithms), the worst %s.",
			len(f.Fit), 100**f.RMSE, errorOf(f.worst())))
		if n := len(engine.Fitted(f.Fit)); n < len(f.Fit) {
			p.Line("  ", fmt.Sprintf("Over the %d that were fitted: %.1f %%.", n, 100**f.Fitted))
		}
	}
}
