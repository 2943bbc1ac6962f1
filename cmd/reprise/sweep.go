package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/runs"
	"reprise/replay/bench"
	"reprise/replay/contract"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/objectstore"
)

// sweepFlags are the flags of sweep, and of what begins with one.
type sweepFlags struct {
	trial     runs.Trials
	made      flags.Made
	serve     flags.ServeCmd
	spellings flags.Spellings
	engine    *flags.ServeSetting // that is started; nil is the only one that the flags name
	into      *bench.Dir          // that the results of several engines share; nil is one of its own
	flags.Contract
	trust         flags.Trust
	clauses       []string
	slo           string
	rates         []string
	concurrencies []string
	bySession     runs.SessionLevels
	adaptive      bool
	closed        bool
	from          float64
	resolution    float64
	past          bool
	process       string
	duration      time.Duration
	requests      int64
	warmup        string
	precision     float64
	budget        int64
	noConfirm     bool
	sustain       time.Duration
	stopTTFT      time.Duration
	causal        bool
	hypothesis    string
	dir           string
	html          string
	frontier      runs.Frontier // of the command sweep alone
	dry           bool          // likewise
}

func sweepCommand() *cobra.Command {
	var f sweepFlags
	cmd := &cobra.Command{
		Use:   "sweep WORKLOAD [--url URL]",
		Short: "Find the highest load that a server serves within a contract",
		Long: `Sweep finds the highest load that a server serves within a contract. It sends a workload
at one rate after another, in an open loop with Poisson arrivals, until the server is
saturated. It prints latency over load, the knee, and the highest rate that meets the
contract; without a contract the answer is the knee.

The exit code is 4 if the client was the limit or the contract cannot be judged, and 3
if no load meets it.` + flags.ListsBegin + `

With --sessions or --session-rates the load is whole sessions, and --precision 5% adds runs
until the interval of a level is that narrow. --preset or --costs sweeps a model of an engine
in virtual time. --frontier takes no WORKLOAD: arguments are directories of earlier frontiers.
WORKLOAD is a trace, a workload, a YAML specification or a built-in workload's name.

With -o DIR the results of every level are kept, a stopped sweep continues there, and reprise
sweep DIR prints it again. docs/sweep.md defines all that is printed.`,
		Example: `  reprise sweep chat --url http://localhost:8000 --clause 'p99 ttft <= 500ms' --adaptive
  reprise sweep chat --preset document-h100-llama-70b --contract contract.yaml --rates 20,25 --precision 25% --set level-budget=2000
  reprise sweep w.parquet --url http://localhost:8000 --rates 50 --level-duration 1s --level-requests 0 --warmup 1 --no-confirm
  reprise sweep w.parquet --preset l4-qwen2.5-0.5b --sessions 1..8 --set gap-cap=5s --no-confirm
  reprise sweep --frontier --preset t4-llama-3.2-3b,rtx5080-llama-3.2-3b --lengths chat,1024/1024 --html frontier.html`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.frontier.Asked {
				return nil
			}
			return flags.Wants(0, 1, "")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.spellings.Apply(cmd, new(flags.VLLMResult)); err != nil {
				return err
			}
			switch {
			case f.frontier.Asked && f.dry:
				return cli.Usagef("--dry-run is for the sweep of a workload: --frontier sends its own requests")
			case f.frontier.Asked:
				return f.cross(cmd, args)
			}
			if err := f.frontier.Check(cmd); err != nil {
				return err
			}
			if err := f.made.Wants(cmd, args); err != nil {
				return err
			}
			if experiments, err := experimentsOf(args); err != nil {
				return err
			} else if len(experiments) == 1 {
				return f.read(cmd, args[0], &experiments[0])
			}
			settings, err := f.serve.Settings(cmd)
			if err != nil {
				return err
			}
			workload := cmp.Or(args...) // "" where flags make it
			if len(settings) > 1 {
				return f.vary(cmd, workload, settings)
			}
			r, err := f.sweep(cmd, workload)
			if err != nil {
				return err
			}
			if err := f.write(cmd, r.Tier, &r); err != nil {
				return err
			}
			return keptSweep(&r)
		},
	}
	f.register(cmd)
	f.frontier.Register(cmd)
	flags.Demote(cmd.Flags(), "vary", "trust", "seed")
	everyday, _ := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	everyday.Bool("json", false, "print JSON")
	flags.Details(cmd.Flags())
	f.spellings.Register(cmd)
	everyday.FileVar(&f.html, "html", "write a self-contained HTML `page`")
	return cmd
}

// read prints the runs of a directory as a sweep: the answer that is there, unless they are to be judged anew.
func (f *sweepFlags) read(cmd *cobra.Command, dir string, e *bench.Experiment) error {
	judged := false
	err := flags.RefuseBut(cmd, "is about making runs, and "+dir+" has finished ones", func(fl *pflag.Flag) bool {
		judges := flags.In(fl, flags.JudgementFlags)
		judged = judged || judges
		return judges || slices.Contains(strings.Fields("json html overwrite details quiet config set"), fl.Name)
	})
	if err != nil {
		return err
	}

	f.trust.Keep(*e)
	if _, err := objectstore.Stat(objectstore.Join(dir, sweepFile)); err != nil && !judged && e.Terms != nil {
		f.clauses, f.slo, f.Path, judged = e.Terms.Clauses, e.Terms.SLO, e.Terms.Contract, true // it was stopped
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	var r bench.SweepResult
	if !judged {
		r, err = readSweep(cmd, dir, nil)
	} else if r, err = e.Sweep(cmd.Context(), o); err != nil {
		err = cli.Exit(cli.Usage, err)
	}
	if err != nil {
		return err
	}
	if err := f.write(cmd, r.Tier, &r); err != nil {
		return err
	}
	return keptSweep(&r)
}

// sweepFile is the answer of a sweep, in its directory.
const sweepFile = "sweep.json"

// cross makes a frontier.
func (f *sweepFlags) cross(cmd *cobra.Command, earlier []string) error {
	about := about(cmd, func(f *pflag.Flag) bool { // not which servers there are
		return flags.Measured(f) && !flags.In(f, flags.SimulatedFlags) && f.Name != "url"
	})
	ask := runs.FrontierAsk{Trials: &f.trial, Concurrencies: f.concurrencies, Requests: f.requests,
		Limits: f.trust.Limits, About: about, Earlier: earlier, Dir: f.dir}
	r, err := f.frontier.Run(cmd, ask)
	if err != nil {
		return err
	}
	r.Command = commandLine(cmd, earlier...)
	if err := ask.Write(&r); err != nil {
		return err
	}
	if err := f.write(cmd, "public", &r); err != nil { // its requests are of no trace
		return err
	}
	if why := r.Untrusted(); why != "" {
		return cli.Exit(cli.Untrusted, errors.New("the frontier is not trustworthy: "+why))
	}
	return nil
}

func (f *sweepFlags) register(cmd *cobra.Command) {
	f.trial.Register(cmd)
	f.made.Register(cmd)
	f.serve.Register(cmd)
	f.Contract.Register(cmd)
	f.trust.Register(cmd)
	fl := cmd.Flags()
	f.trial.MeasureServers(fl)
	f.trial.Live.Deployment.Register(cmd)
	judgement, _ := flags.Sections(fl, flags.JudgementFlags)
	ladder, ladderRest := flags.Sections(fl, "Ladder")
	results, resultsRest := flags.Sections(fl, flags.ResultsFlags)
	judgement.StringArrayVar(&f.clauses, "clause", nil,
		"clause of a contract, such as 'p99 ttft <= 500ms', instead of --contract; repeatable")
	judgement.StringVar(&f.slo, "slo", "",
		"objectives of a request, such as ttft:200ms,tpot:50ms,e2e:5s; without a contract 90 % of requests "+
			"must meet them")
	ladder.StringSliceVar(&f.rates, "rates", nil,
		"rates of the levels in requests per second, ascending (default 1,2,5,8,10,15,20,25,30,35,40,50)")
	ladder.StringSliceVar(&f.concurrencies, "concurrencies", nil,
		"closed loop: requests in flight of the levels, such as 1,2,4,8,16,32")
	f.bySession.Register(ladder, ladderRest)
	ladderRest.BoolVar(&f.closed, "closed-loop", false, "")
	ladder.BoolVar(&f.dry, "dry-run", false, dryRunUsage)
	ladder.BoolVar(&f.adaptive, "adaptive", false,
		"search for the highest load that meets the contract; double from the setting from, then bisect")
	ladderRest.RateVar(&f.from, "from", 0, "")
	ladderRest.ShareVar(&f.resolution, "resolution", 0.05, "")
	ladderRest.BoolVar(&f.past, "past-saturation", false, "")
	ladderRest.StringVar(&f.process, "process", "poisson",
		"arrivals of an open loop: poisson, constant, gamma:cv=2, weibull:cv=2")
	ladder.DurationVar(&f.duration, "level-duration", 60*time.Second, "shortest measured time of a level")
	ladder.Int64Var(&f.requests, "level-requests", 150,
		"fewest requests measured at a level. In an open loop it lasts as long as that takes; with --level-duration "+
			"alone they are what the contract takes to be judged: 100 for a p99, and without a contract 20")
	ladderRest.StringVar(&f.warmup, "warmup", "",
		"leave the first requests of a level out of its figures: a number or a `span`. Default: 10s, in an open loop "+
			"at least 50 requests; longer with --precision")
	ladder.ShareVar(&f.precision, "precision", 0,
		"add runs to each level until its interval is within this share, such as 5%; 0 makes one run of a level")
	ladderRest.Int64Var(&f.budget, "level-budget", 50_000, "")
	ladderRest.BoolVar(&f.noConfirm, "no-confirm", false, "do not confirm the highest load by a second run")
	ladder.DurationVar(&f.sustain, "sustain", 300*time.Second,
		"duration of the final run at the highest load; 0 skips it")
	ladderRest.DurationVar(&f.stopTTFT, "stop-ttft", bench.StopTTFT, "")
	ladderRest.BoolVar(&f.causal, "causal", false, "")
	resultsRest.StringVar(&f.hypothesis, "hypothesis", "", "")
	results.StringVarP(&f.dir, "output", "o", "",
		"`directory` for the results of every level and sweep.json; a stopped sweep continues there")
}

// sweep makes the sweep, of the engine that is to be started where there is one.
func (f *sweepFlags) sweep(cmd *cobra.Command, path string) (r bench.SweepResult, err error) {
	if err := f.check(cmd); err != nil {
		return r, err
	}
	if f.precision > 0 && !cmd.Flags().Changed("sustain") {
		f.sustain = 0 // the search has longer runs
	}
	if f.bySession.Given() && !cmd.Flags().Changed("level-budget") {
		f.budget = runs.SessionBudget
	}

	s, err := f.plan(cmd)
	if err != nil {
		return r, err
	}
	openLoop := !s.Closed() && !f.causal && s.Sessions == nil
	f.trial.Live.Load.OpenLoop, f.trial.Simulated.OpenLoop = openLoop, openLoop
	if s.Target, err = f.trial.Target(cmd); err != nil {
		return r, err
	}

	dir := f.dir
	if dir == "" || f.dry {
		if dir, err = os.MkdirTemp("", "reprise-sweep-"); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if s.Workload, s.Digest, err = loadFile(cmd, &f.made, path, dir); err != nil {
		return r, err
	}
	s.Keys, s.About = bench.Keys{Workload: cmp.Or(f.made.Name(), bench.WorkloadName(path)), Server: f.trial.Name()}, about(cmd, flags.Measured)
	if s.Dir = f.into; s.Dir == nil {
		if s.Dir, err = bench.Continue(dir, "sweep", sweepPlan{s.Digest, s.About}, s.Report.Limits); err != nil {
			return r, err
		}
		defer s.Dir.Close()
	}
	settings, err := f.engines(cmd)
	if err == nil {
		err = s.Dir.Under(bench.Terms{Clauses: f.clauses, SLO: f.slo, Contract: f.Path})
	}
	if err != nil {
		return r, err
	}
	answer := filepath.Join(f.dir, sweepFile)
	for _, engine := range settings { // one, where an engine is to be started
		s.Keys.Server = "engine" // its address is another each time
		log := "engine.log"
		if f.into != nil {
			s.Keys.Setting, s.Folder = engine.Name, directoryName(engine.Name)
			log, answer = filepath.Join(s.Folder, log), filepath.Join(f.dir, s.Folder, sweepFile)
			if err := os.MkdirAll(filepath.Dir(answer), 0o755); err != nil {
				return r, err
			}
		}
		served, err := runs.Started(cmd, &f.serve, engine, f.trial.Live, filepath.Join(dir, log))
		if err != nil {
			return r, err
		}
		defer served.Close()
		s.Target, s.About = served, s.About+" of "+result.Redact(engine.Command.String())
	}

	s.Told = func(l bench.Level) { sayLevel(cmd, &l) }
	if err = estimate(cmd, &s, f.dry); err == nil {
		r, err = s.Run(cmd.Context())
	}
	switch {
	case err != nil && cmd.Context().Err() != nil && f.dir != "":
		return r, fmt.Errorf("interrupted; the levels so far are in %s: run the same command again to continue, "+
			"or read them as they are: reprise sweep %[1]s", f.dir)
	case err != nil:
		return r, err
	}
	r.Command, r.Hypothesis = commandLine(cmd, strings.Fields(path)...), f.hypothesis
	r.Under(contract.Of(s.Report))
	if f.dir == "" {
		return r, nil
	}
	return r, trace.WriteFile(answer, trace.TierMode(r.Tier), func(w io.Writer) error { return cli.WriteJSON(w, r) })
}

// leastRequests is how many requests a level has whose length alone was asked for: as many as its contract takes to be
// judged, and enough to tell a rate.
func leastRequests(o report.Options) (requests int64, why string) {
	const ofRate = 20
	if c := contract.Of(o); c != nil {
		requests, why = c.Needs()
	}
	if requests < ofRate {
		return ofRate, "a rate"
	}
	return requests, why
}

// engines are the settings of the engine that is to be started: one, or none where a server runs already.
func (f *sweepFlags) engines(cmd *cobra.Command) ([]flags.ServeSetting, error) {
	if f.engine != nil {
		return []flags.ServeSetting{*f.engine}, nil
	}
	settings, err := f.serve.Settings(cmd)
	if err == nil && len(settings) > 1 {
		err = cli.Usagef("--vary varies the settings of several sweeps; this needs one: use --set")
	}
	return settings, err
}

// A sweepPlan is what all levels of a sweep have in common.
type sweepPlan struct {
	Workload string `json:"workload_digest"`
	Target   string `json:"target"`
}

// check refuses flags that would mean nothing.
func (f *sweepFlags) check(cmd *cobra.Command) error {
	if err := f.bySession.Check(cmd, f.trial.Simulated.Engine.Preset != "" ||
		f.trial.Simulated.Engine.Costs != ""); err != nil {
		return err
	}
	closed := f.closed || len(f.concurrencies) > 0 || len(f.bySession.Live) > 0
	for _, c := range []struct {
		flag  string
		alone bool
		why   string
	}{
		{"from", !f.adaptive, "is where --adaptive begins"},
		{"past-saturation", f.adaptive, "is for a ladder: --adaptive has no end"},
		{"level-budget", f.precision == 0, "is for --precision, which adds runs to a level"},
		{"no-confirm", f.precision > 0, "leaves out what --precision is for: the search for the highest load"},
		{"sustain", f.noConfirm && f.sustain > 0, "is a longer run at the highest load, and --no-confirm makes none"},
		{"process", closed, "is of an open loop"},
		{"level-requests", closed || f.bySession.Given(),
			"is of an open loop of requests: see --set level-sessions for a load by session; of a closed loop the " +
				"server says how many there are"},
		{"causal", closed || f.bySession.Given(), "is of an open loop of requests"},
		{"rates", f.bySession.Given(),
			"are of requests, and --sessions and --session-rates of whole sessions: give one"},
		{"concurrencies", f.bySession.Given(),
			"are of requests, and --sessions and --session-rates of whole sessions: give one"},
		{"closed-loop", f.bySession.Given(), "is of requests: --sessions is a closed loop by itself"},
		{"adaptive", f.bySession.Given(), "is of requests: give --sessions or --session-rates a range such as 1..512"},
		{"gpus", f.Path == "", "is what a contract computes cost from: give --contract FILE"},
	} {
		if c.alone && cmd.Flags().Changed(c.flag) {
			return cli.Usagef("%s %s", flags.Spelled(cmd.Flags().Lookup(c.flag)), c.why)
		}
	}
	return nil
}

// plan is the sweep that the flags ask for, without its target.
func (f *sweepFlags) plan(cmd *cobra.Command) (bench.Sweep, error) {
	s := bench.Sweep{Process: f.process, Duration: f.duration, Requests: f.requests, Warmup: f.warmup,
		Precision: f.precision, Budget: f.budget, Confirm: !f.noConfirm, Sustain: f.sustain, StopTTFT: f.stopTTFT}
	var err error
	if s.Seed, err = strconv.ParseUint(cmp.Or(f.trial.Live.Prompts.Seed, "1"), 10, 64); err != nil {
		return s, cli.Usagef("--seed: want a number")
	}
	s.Cache = f.trial.Live.Servers.Cache
	if f.closed || len(f.concurrencies) > 0 || len(f.bySession.Live) > 0 {
		s.Process = ""
	}
	if f.bySession.Given() {
		s.Sessions = f.bySession.Sweep()
		s.Ladder, err = f.bySession.Ladder(f.resolution, f.past)
	} else {
		s.Ladder, err = f.ladder()
	}
	if err != nil {
		return s, err
	}
	if s.Report, err = f.options(); err != nil {
		return s, err
	}
	if fl := cmd.Flags(); fl.Changed("level-duration") && !fl.Changed("level-requests") {
		s.Requests, s.For = leastRequests(s.Report)
	}
	if err := s.Check(); err != nil {
		return s, cli.Exit(cli.Usage, err)
	}
	return s, nil
}

// leastAttainment is what --slo asks of a load where no contract says more: the share of requests
// for which DistServe (Zhong et al., OSDI 2024) and those who compare with it find the highest rate.
const leastAttainment = "goodput >= 90%"

// options say how each level is judged.
func (f *sweepFlags) options() (o report.Options, err error) {
	o.Limits = f.trust.Limits
	if f.slo != "" {
		if o.SLO, err = report.ParseSLO(f.slo); err != nil {
			return o, cli.Usagef("--slo: %v", err)
		}
	}
	terms, err := f.terms()
	if err != nil {
		return o, err
	}
	if terms == nil && f.slo != "" {
		terms, err = spelled(map[string]string{"clause": leastAttainment, "slo": f.slo})
		if err != nil {
			return o, cli.Usagef("--slo: %v", err)
		}
	}
	if terms != nil {
		o.Contract = terms
	}
	if err := o.Check(); err != nil {
		return o, cli.Exit(cli.Usage, err)
	}
	return o, nil
}

// keptSweep is the error of a sweep that cannot be trusted, or whose contract holds at no
// load.
func keptSweep(r *bench.SweepResult) error {
	if l := r.Untrusted(); l != nil {
		return cli.Exit(cli.Untrusted,
			errors.New("the sweep is not trustworthy: at "+l.Name+" the client was the limit"))
	}
	if r.Highest.Load != nil {
		return nil
	}
	if l := r.Unjudged(); l != nil {
		const longer = "; longer levels have more requests (--level-duration, --level-requests)"
		return cli.Exit(cli.Untrusted, errors.New("at "+l.Name+" "+l.Why+longer))
	}
	if len(r.Contract) == 0 {
		return cli.Exit(cli.Check, errors.New("no load was held: "+r.Stopped.Text))
	}
	return cli.Exit(cli.Check, errors.New("no load meets the contract: "+r.Stopped.Text))
}

// write prints what was measured with requests of a tier, and writes its page.
func (f *sweepFlags) write(cmd *cobra.Command, tier string, r interface{ Page() *doc.Document }) error {
	rest := "All levels: --details."
	if f.html == "" {
		rest += " Page with curves: --html FILE."
	}
	return cli.Finding{Tier: tier, Page: r.Page(), JSON: r, HTML: f.html, Rest: rest}.Write(cmd)
}

// terms are the contract that the flags name, or spell; nil when they do neither.
func (f *sweepFlags) terms() (*contract.Contract, error) {
	if len(f.clauses) == 0 {
		return f.Read()
	}
	if f.Path != "" {
		return nil, cli.Usagef("--clause and --contract cannot be used together")
	}
	var c contract.Contract
	for _, clause := range f.clauses {
		one, err := spelled(clause)
		if err != nil {
			return nil, cli.Usagef("--clause %q: %v", clause, err)
		}
		c.Clauses = append(c.Clauses, one.Clauses...)
	}
	return &c, nil
}

// spelled is the contract of one clause, as a contract's file has it: a text, or keys with values.
func spelled(clause any) (*contract.Contract, error) {
	text, err := yaml.Marshal(map[string][]any{"clauses": {clause}})
	if err != nil {
		return nil, err
	}
	one, err := contract.Parse("", text)
	if err != nil {
		_, why, _ := strings.Cut(err.Error(), ": ") // after the place in what was made here
		return nil, errors.New(why)
	}
	return &one, nil
}
