package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/runs"
	"reprise/replay/bench"
	"reprise/replay/compare"
	"reprise/replay/report"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/objectstore"
)

// roundFlags say how rounds are made: with whom, under which load, and where the
// results are kept.
type roundFlags struct {
	trial            runs.Trials
	made             flags.Made
	serve            flags.ServeCmd
	spellings        flags.Spellings
	urls             [2]string // of A and of B
	presets, costs   [2]string
	sets             [2][]string // further flags of the simulated engines
	out              string
	rounds, pilot    int
	rest             time.Duration
	load             bench.Load
	duration         time.Duration
	loop             bool
	maxRequests      int64
	warmup, cooldown string
	dry              bool
}

func (f *roundFlags) register(cmd *cobra.Command) {
	f.trial.Register(cmd)
	f.made.Register(cmd)
	f.serve.Register(cmd)
	fl := cmd.Flags()
	for _, name := range []string{"url", "note"} { // each side has its own URL
		if err := fl.MarkHidden(name); err != nil {
			panic(err) // there is no such flag
		}
	}
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	twoServers, twoServersRest := flags.Sections(fl, "Two servers")
	rounds, roundsRest := flags.Sections(fl, "Rounds")
	load, loadRest := flags.Sections(fl, flags.LoadFlags)
	results.StringVarP(&f.out, "output", "o", "",
		"`directory` for the rounds and compare.json; rounds that it has are not repeated")
	for i, side := range []string{"a", "b"} {
		twoServers.StringVar(&f.urls[i], "url-"+side, "", "base URL of server "+strings.ToUpper(side))
		twoServersRest.StringVar(&f.presets[i], "preset-"+side, "",
			"simulated engine "+strings.ToUpper(side)+"; default: as --preset")
		twoServersRest.StringVar(&f.costs[i], "costs-"+side, "", "costs of simulated engine "+strings.ToUpper(side)+
			"; default: as --costs")
		twoServersRest.StringArrayVar(&f.sets[i], "set-"+side, nil, "flag of simulated engine "+strings.ToUpper(side)+
			" only, as `FLAG[=VALUE]`, such as no-prefix-caching or max-num-seqs=8; repeatable")
	}
	rounds.IntVar(&f.rounds, "rounds", 0, fmt.Sprintf(
		"most rounds, pilot rounds included; in each, both servers get the same requests. Default: %d pilot "+
			"rounds and %d that decide; with --primary %[2]d, with --detect as many as that needs",
		compare.DefaultPilot, compare.DefaultRounds))
	roundsRest.IntVar(&f.pilot, "pilot-rounds", compare.DefaultPilot, "")
	rounds.DurationVar(&f.rest, "rest", 10*time.Second, "pause between runs; simulated engines need none")
	load.RateFlag(&f.load.Rate, "arrivals in place of recorded times: 5 (per second), 300/min, or a `process` such "+
		"as constant:5; each round has a new seed")
	load.IntVar(&f.load.Concurrency, "concurrency", 0,
		"closed loop: keep this many requests in flight. Latencies then hide saturation")
	load.FactorVar(&f.load.Speed, "speed", 1, "replay this much faster than recorded")
	load.DurationVar(&f.duration, "duration", 0, "stop sending after this time; 0 sends the whole workload")
	loadRest.BoolVar(&f.loop, "loop", false, "repeat the workload with new prompts until --duration is over")
	loadRest.Int64Var(&f.maxRequests, "max-requests", 0, "send only the first rows; 0 is all")
	loadRest.StringVar(&f.warmup, "warmup", "",
		"leave the first requests of every run out of all figures: a number or a `span`. Default: a tenth, at most "+
			"50 requests, or 10s where --duration has no rate")
	loadRest.StringVar(&f.cooldown, "cooldown", "", "")
	rounds.BoolVar(&f.dry, "dry-run", false, dryRunUsage)
	flags.Demote(fl, "seed")
	f.spellings.Register(cmd) // last: it looks for the flags that it stands for
}

// given says whether the flags name servers.
func (f *roundFlags) given() bool {
	sets := len(f.sets[0])+len(f.sets[1]) > 0
	return f.urls != [2]string{} || f.presets != [2]string{} || f.costs != [2]string{} || sets ||
		f.trial.Simulated.Engine.Preset != "" || f.serve.Given()
}

// targets are the two sides.
func (f *roundFlags) targets(cmd *cobra.Command) (sides [2]bench.Target, simulated bool, err error) {
	settings, err := f.serve.Settings(cmd)
	if err != nil || settings != nil {
		sides, err := f.served(cmd, settings, err)
		return sides, false, err
	}
	for i := range sides {
		t := f.trial
		engine := &t.Simulated.Engine
		if *engine, err = engine.With(cmd, f.sets[i]); err != nil {
			return sides, false, cli.Usagef("--set-%s: %v", [2]string{"a", "b"}[i], err)
		}
		if f.presets[i] != "" {
			engine.Preset = f.presets[i]
		}
		if f.costs[i] != "" {
			engine.Costs = f.costs[i]
		}
		simulated = engine.Preset != "" || engine.Costs != ""
		switch {
		case simulated && f.urls != [2]string{}:
			return sides, false, cli.Usagef(
				"--url-a and --url-b cannot be used with presets or costs: compare endpoints or simulated engines")
		case simulated && t.Simulated.Router == flags.AllRouters:
			return sides, false, cli.Usagef("--router: name one")
		case !simulated && len(f.sets[0])+len(f.sets[1]) > 0:
			return sides, false, cli.Usagef("--set-a and --set-b set flags of simulated engines: give --preset")
		case !simulated && f.urls[i] == "":
			return sides, false, cli.Usagef("name both sides: --url-a and --url-b, or --preset-a and --preset-b, or " +
				"a --preset and --set-b or --costs-b")
		}
		t.Live.Target.URLs = []string{f.urls[i]}
		if sides[i], err = t.Target(cmd); err != nil {
			return sides, false, err
		}
	}
	return sides, simulated, nil
}

// served are engines that take turns, the first value of --vary as A and the second
// as B.
func (f *roundFlags) served(cmd *cobra.Command, settings []flags.ServeSetting,
	err error) (sides [2]bench.Target, _ error) {
	switch {
	case err != nil:
		return sides, err
	case len(settings) != 2:
		return sides, cli.Usagef("--serve-cmd needs --vary NAME=A,B, the setting in which the two servers differ")
	case f.urls != [2]string{} || f.presets != [2]string{} || f.costs != [2]string{} ||
		len(f.sets[0])+len(f.sets[1]) > 0:
		return sides, cli.Usagef("--serve-cmd starts both sides: no --url-a, --preset-a, --costs-a or --set-a beside " +
			"it, nor the flags of side b")
	}
	var both [2]*bench.Served
	for i, s := range settings {
		if both[i], err = runs.Started(cmd, &f.serve, s, f.trial.Live,
			objectstore.Join(f.out, []string{"a", "b"}[i]+".engine.log")); err != nil {
			return sides, err
		}
		sides[i] = both[i]
	}
	both[0].Others, both[1].Others = both[1:], both[:1]
	return sides, nil
}

// maker prepares the making of rounds. Who asks for it closes it.
func (f *roundFlags) maker(cmd *cobra.Command, path string, recorded map[string]bool,
	limits report.Limits) (*roundMaker, error) {
	m := &roundMaker{roundFlags: f, name: cmp.Or(f.made.Name(), bench.WorkloadName(path))}
	var err error
	if m.sides, m.simulated, err = f.targets(cmd); err != nil {
		return m, err
	}
	if f.dry { // nothing is kept
		if f.out, err = os.MkdirTemp("", "reprise-compare-"); err != nil {
			return m, err
		}
	}
	f.made.Requests = f.maxRequests
	if m.workload, _, err = loadFile(cmd, &f.made, path, f.out); err != nil {
		return m, err
	}
	if m.plan, err = f.plan(cmd, m.workload, recorded); err != nil {
		return m, err
	}
	if m.dir, err = bench.Continue(f.out, "compare", m.plan, limits); err != nil {
		return m, cli.Exit(cli.Usage, err)
	}
	if m.decided, err = storedPlan(&m.dir.Experiment); err != nil {
		return m, err
	}
	if m.oneServer = !m.simulated && oneServer(cmd.Context(), f.urls); m.oneServer && f.trial.Live.Prompts.Seed == "" {
		cli.Notef(cmd, "A and B are one server: the two runs of a round have prompts of their own, of the same "+
			"lengths and the same sharing")
	}
	m.first = rand.New(rand.NewPCG(m.plan.Seed, 0)).IntN(2)
	return m, nil
}

// A roundRun is one run of a round.
type roundRun struct {
	at     int // 0 is A, 1 is B
	side   string
	target bench.Target
}

// A roundMaker makes pairs of runs.
type roundMaker struct {
	*roundFlags
	plan      roundPlan
	decided   *compare.Plan // by the pilot rounds, before the others; null until then
	dir       *bench.Dir
	names     [2]string // of the sides
	sides     [2]bench.Target
	workload  string // file
	name      string // of the workload
	simulated bool
	oneServer bool // A and B find each other's prompts in its cache
	first     int  // which side begins
	began     bool // a run was made
	untold    int  // at most so many rounds are made, and nobody knows yet how long one takes; 0 once it is said
}

func (m *roundMaker) close() {
	if m.dir != nil {
		m.dir.Close()
	}
	if m.dry {
		_ = os.RemoveAll(m.out)
	}
	for _, side := range m.sides {
		if s, ok := side.(*bench.Served); ok {
			s.Close()
		}
	}
}

// order is that of the sides in a round.
func (m *roundMaker) order(round int) []roundRun {
	order := []roundRun{{0, "a", m.sides[0]}, {1, "b", m.sides[1]}}
	if (round+m.first)%2 == 0 {
		slices.Reverse(order)
	}
	return order
}

// makePilot makes the pilot rounds that the directory does not have.
func (m *roundMaker) makePilot(cmd *cobra.Command, rounds int) error {
	for round := 1; round <= rounds; round++ {
		p := roundPair{name: fmt.Sprintf("pilot round %d of %d", round, rounds), round: round, role: bench.RolePilot,
			seed: uint64(compare.MaxRounds + round - 1), run: uint64(2 * (round - 1))}
		if err := m.pair(cmd, p); err != nil {
			return err
		}
	}
	return nil
}

// makeRounds makes the rounds up to one that the directory does not have.
func (m *roundMaker) makeRounds(cmd *cobra.Command, upTo int) error {
	for round := 1; round <= upTo; round++ {
		p := roundPair{name: fmt.Sprintf("round %d of %d", round, m.decided.Rounds()), round: round,
			seed: uint64(round - 1), run: uint64(2 * (m.decided.Pilot + round - 1))}
		if err := m.pair(cmd, p); err != nil {
			return err
		}
	}
	return nil
}

// estimate counts the pilot rounds and the rounds that are asked for, or the planned rounds once there is a plan,
// without the runs that the directory has.
func (m *roundMaker) estimate() (bench.Estimate, error) {
	rounds := m.pilot + m.rounds
	if m.decided != nil {
		rounds = m.decided.Rounds() // with pilot rounds that are there
	}
	t := bench.Trial{Workload: m.workload, Load: m.load, Duration: m.duration, Rows: m.maxRequests}
	return bench.EstimateOf(slices.Repeat([]bench.Trial{t}, max(2*rounds-len(m.dir.Trials), 0)), m.rest)
}

// arms are the results of both sides, of so many rounds or pilot rounds.
func (m *roundMaker) arms(role string, rounds int) []bench.Arm {
	out := []bench.Arm{{Name: m.names[0]}, {Name: m.names[1]}}
	for round := 1; round <= rounds; round++ {
		for i, side := range []string{"a", "b"} {
			out[i].Files = append(out[i].Files, m.results(roundPair{role: role, round: round}, side))
		}
	}
	return out
}

// A roundPair is both runs of a round.
type roundPair struct {
	name  string
	round int
	role  string
	seed  uint64 // beside that of the plan
	run   uint64 // place of the first among all runs
}

// results is the results file of a side, a or b, of a round.
func (m *roundMaker) results(p roundPair, side string) string {
	return m.dir.Results(fmt.Sprintf("%s-%02d-%s", cmp.Or(p.role, "round"), p.round, side))
}

// pair makes both runs, unless both are there: one of today and one of yesterday are
// not a pair. Where a cache cannot be emptied, both have the same new prompts, or, on
// one server, each its own.
func (m *roundMaker) pair(cmd *cobra.Command, p roundPair) error {
	if m.dir.Has(m.results(p, "a")) != m.dir.Has(m.results(p, "b")) {
		cli.Notef(cmd, "%s has one run of two, and both are made anew, since a pair is of one time", p.name)
		for _, side := range []string{"a", "b"} {
			if err := m.dir.Drop(m.results(p, side), "unpaired"); err != nil {
				return err
			}
		}
	}
	var cold uint64
	start, makes := time.Now(), !m.dir.Has(m.results(p, "a"))
	for i, r := range m.order(p.round) {
		if i == 0 || m.oneServer {
			var err error
			if cold, err = flags.NewSeed(); err != nil {
				return err
			}
		}
		there := m.dir.Has(m.results(p, r.side))
		if m.began && !m.simulated && !there {
			select {
			case <-cmd.Context().Done():
				return errors.New("interrupted between two runs: run the same command again to continue")
			case <-time.After(m.rest):
			}
		}
		name := p.name + ", " + r.side
		if !there {
			m.began = true
			if p.round == 1 && i == 0 {
				cli.Notef(cmd, "rounds begin with A and B in turn, the first with %s:", strings.ToUpper(r.side))
			}
			cli.Notef(cmd, "%s", name)
		}
		t := bench.Trial{Name: name, Workload: m.workload, Load: m.load,
			Seed: strconv.FormatUint(m.plan.Seed+p.seed, 10), ColdSeed: strconv.FormatUint(cold, 10),
			Duration: m.duration, Loop: m.loop, Rows: m.maxRequests, Warmup: m.plan.Warmup, Cooldown: m.cooldown,
			Note: name, Series: m.plan.Seed, Run: p.run + uint64(i), Results: m.results(p, r.side)}
		k := bench.Keys{Workload: m.name, Load: m.load.String(), Server: m.names[r.at],
			Role: p.role, Round: p.round}
		if _, err := m.dir.Make(cmd.Context(), r.target, "", k, t); err != nil {
			if cmd.Context().Err() != nil {
				err = fmt.Errorf("interrupted in %s: run the same command again to continue, or read the rounds as "+
					"they are: reprise compare %s", name, m.out)
			}
			return err
		}
	}
	if makes && m.untold > 0 {
		cli.Notef(cmd, "%s", roundTook(time.Since(start)+m.rest, m.untold))
		m.untold = 0
	}
	return nil
}

// roundTook is the estimate of a comparison by its first round, with a pause behind it.
func roundTook(took time.Duration, rounds int) string {
	return fmt.Sprintf("estimate: a round took %v: at most %s, about %v in all", took.Round(time.Second),
		doc.Many(int64(rounds), "round"), (time.Duration(rounds) * took).Round(time.Second))
}

// nameSides names both sides: as the flags say, else as in the directory, else A and B.
func (m *roundMaker) nameSides(given [2]string) error {
	for i, side := range []string{"-a", "-b"} {
		was := ""
		for _, t := range m.dir.Trials {
			if strings.HasSuffix(path.Dir(t.Results), side) {
				was = t.Server
			}
		}
		if m.names[i] = cmp.Or(given[i], was, []string{"A", "B"}[i]); was != "" && was != m.names[i] {
			if err := m.dir.Rename(was, m.names[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// live makes the rounds and compares them.
func (f *compareFlags) live(cmd *cobra.Command, path string, o compare.Options) (c compare.Comparison, err error) {
	if err := f.settleRounds(cmd); err != nil {
		return c, err
	}
	o.Primary = f.primary
	switch m := &f.making; {
	case (m.out == "" || m.out == cli.Standard) && !m.dry:
		return c, cli.Usagef("name a directory for the rounds: -o DIRECTORY")
	case m.pilot != 0 && m.pilot < 3 || m.pilot > compare.MaxRounds || m.pilot == 0 && f.detect != "":
		return c, cli.Usagef("--set pilot-rounds: from 3 to %d; with --primary, and without --detect, 0",
			compare.MaxRounds)
	case m.loop && (m.duration <= 0 || m.maxRequests > 0):
		return c, cli.Usagef("--loop repeats the workload until --duration is over: give --duration, not " +
			"--max-requests")
	case cmd.Flags().Changed("url") || cmd.Flags().Changed("note"):
		return c, cli.Usagef("--url and --note are not flags of a comparison: give --url-a and --url-b")
	}
	if f.making.rounds > 0 {
		if err := f.gated(f.making.rounds, 1); err != nil {
			return c, err
		}
	}
	flags.SayRate(cmd)
	m, err := f.making.maker(cmd, path, f.readers, f.judge.Trust.Limits)
	defer m.close()
	if err != nil {
		return c, err
	}
	if err := m.nameSides(f.names); err != nil {
		return c, err
	}
	if !m.simulated {
		e, err := m.estimate()
		if err != nil {
			return c, err
		}
		sooner := "fewer once it is decided"
		if m.decided == nil && m.rounds == 0 {
			sooner = "these are the pilot rounds, which say how many follow"
		}
		if sayEstimate(cmd, e, sooner); e.Open > 0 {
			m.untold = e.Runs / 2
		}
	}
	if m.dry {
		return c, sayDry(cmd)
	}
	if err := f.planned(cmd, m, o); err != nil {
		return c, err
	}
	o.Plan = m.decided
	var arms []bench.Arm
	if o.Plan.Clear != nil {
		arms = m.arms(bench.RolePilot, m.pilot)
		return f.compared(cmd, arms, o)
	}
	for _, look := range o.Plan.Looks {
		if err := m.makeRounds(cmd, look); err != nil {
			return c, err
		}
		arms = m.arms("", look)
		if look == o.Plan.Rounds() {
			break
		}
		compared, err := f.summarised(cmd, arms, false)
		if err != nil {
			return c, err
		}
		if c, err = compare.Arms(compared, o); err != nil {
			return c, err
		}
		// A gate also looks for slowdowns of other metrics than the one that is better already.
		if v := c.Versus[0]; v.Decision == compare.Worse || v.Decided() && !f.gate {
			cli.Notef(cmd, "decided after %d of at most %d rounds", look, o.Plan.Rounds())
			break
		}
	}
	return f.compared(cmd, arms, o)
}

// compared compares the rounds that were made, and keeps the answer.
func (f *compareFlags) compared(cmd *cobra.Command, arms []bench.Arm, o compare.Options) (compare.Comparison, error) {
	c, err := f.rounds(cmd, arms, o)
	if err != nil {
		return c, err
	}
	return c, trace.WriteFile(objectstore.Join(f.making.out, "compare.json"), trace.TierMode(c.Tier),
		func(w io.Writer) error { return cli.WriteJSON(w, c) })
}
