package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/runs"
	"reprise/replay"
	"reprise/replay/bench"
	"reprise/replay/compare"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/objectstore"
)

// roundFlags say how rounds are made: with whom, under which load, and where the
// results are kept.
type roundFlags struct {
	trial            runs.Trials
	serve            flags.ServeCmd
	urls             [2]string // of A and of B
	presets, costs   [2]string
	sets             [2][]string // further flags of the simulated engines
	out              string
	rounds, aaRounds int
	pilot            int
	rest             time.Duration
	load             bench.Load
	duration         time.Duration
	loop             bool
	maxRequests      int64
	warmup, cooldown string
}

func (f *roundFlags) register(cmd *cobra.Command) {
	f.trial.Register(cmd)
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
			"simulated engine "+strings.ToUpper(side)+"; default: that of --preset")
		twoServersRest.StringVar(&f.costs[i], "costs-"+side, "", "costs of simulated engine "+strings.ToUpper(side)+
			"; default: those of --costs")
		twoServersRest.StringArrayVar(&f.sets[i], "set-"+side, nil, "flag of simulated engine "+strings.ToUpper(side)+
			" only, as `FLAG[=VALUE]`, such as no-prefix-caching or max-num-seqs=8; repeatable")
	}
	rounds.IntVar(&f.rounds, "rounds", compare.DefaultRounds,
		"most rounds; in each, both servers get the same requests. With --detect as many as that needs")
	roundsRest.IntVar(&f.pilot, "pilot-rounds", compare.DefaultPilot, "")
	roundsRest.IntVar(&f.aaRounds, "aa-rounds", 0, "")
	roundsRest.DurationVar(&f.rest, "rest", 10*time.Second, "pause between runs; simulated engines need none")
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
			"50; 50 with --loop")
	loadRest.StringVar(&f.cooldown, "cooldown", "", "")
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
			"it, nor those of b")
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

// A roundPlan is what all rounds of a directory have in common, kept in it so that
// it is not gone on with by another comparison.
type roundPlan struct {
	Schema   string            `json:"schema"`
	Workload string            `json:"workload_digest"`
	Seed     uint64            `json:"seed"` // of the first round, and of the order
	Warmup   string            `json:"warmup"`
	Flags    map[string]string `json:"flags"` // that were given and are in the results

	// Plan is made from the pilot rounds, before the others; null until then.
	Plan *compare.Plan `json:"plan,omitempty"`
}

const roundsSchema = "rounds/1"

// readAgain are flags of what is made of rounds, and not of the rounds.
var readAgain = []string{"output", "rounds", "aa-rounds", "pilot-rounds", "rest", "quiet", "ready-timeout",
	"stop-timeout", "config", "target"}

// plan is that of the flags; recorded are the names of the flags that are about
// results, which may differ from one call to the next.
func (f *roundFlags) plan(cmd *cobra.Command, path string, recorded map[string]bool) (p roundPlan, err error) {
	w, err := cli.OpenTrace(cmd, path)
	if err != nil {
		return p, err
	}
	defer w.Close()
	rows, err := w.Reader()
	if err != nil {
		return p, err
	}
	p = roundPlan{Schema: roundsSchema, Workload: w.Meta.Digest, Seed: 1, Warmup: f.warmup, Flags: map[string]string{}}
	if s := f.trial.Live.Prompts.Seed; s != "" {
		if p.Seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			return p, cli.Usagef("--seed: want a whole number")
		}
	}
	if p.Warmup == "" {
		n := rows.Rows()
		if f.maxRequests > 0 {
			n = min(n, f.maxRequests)
		}
		if p.Warmup = "50"; !f.loop {
			p.Warmup = strconv.FormatInt(min(n/10, 50), 10)
		}
	}
	if _, err := replay.ParseSpan(p.Warmup); err != nil {
		return p, cli.Usagef("--warmup: %v", err)
	}
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		if !recorded[fl.Name] && !slices.Contains(readAgain, fl.Name) && len(cli.FlagValues(fl)) > 0 {
			p.Flags[fl.Name] = result.Redact(fl.Value.String())
		}
	})
	return p, nil
}

// roundsName is the plan in a directory of rounds.
const roundsName = "rounds.json"

// keep writes the plan into the directory, or finds the same one there.
func (p *roundPlan) keep(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	was, err := readPlan(dir)
	if err != nil {
		return err
	}
	if was == nil {
		return p.write(dir)
	}
	if was.Workload != p.Workload || was.Seed != p.Seed || was.Warmup != p.Warmup || !maps.Equal(was.Flags, p.Flags) {
		return cli.Usagef("%s holds rounds of another workload or of other flags, see rounds.json there: name "+
			"another directory with -o", dir)
	}
	p.Plan = was.Plan
	return nil
}

func (p *roundPlan) write(dir string) error {
	return trace.WriteFile(objectstore.Join(dir, roundsName), 0o644,
		func(w io.Writer) error { return cli.WriteJSON(w, p) })
}

// readPlan reads the plan of a directory; nil where there is none.
func readPlan(dir string) (*roundPlan, error) {
	name := objectstore.Join(dir, roundsName)
	doc, err := objectstore.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var p roundPlan
	if json.Unmarshal(doc, &p) != nil || p.Schema != roundsSchema || p.Plan != nil && p.Plan.Check() != nil {
		return nil, fmt.Errorf("%s is not the plan of rounds", name)
	}
	return &p, nil
}

// storedPlan is the plan by which the rounds of a directory are judged; nil where they were
// made without one.
func storedPlan(dir string) (*compare.Plan, error) {
	p, err := readPlan(dir)
	if p == nil || err != nil {
		return nil, err
	}
	return p.Plan, nil
}

// pilotFile is the results of a side of a pilot round.
func pilotFile(dir string, round int, side string) string {
	return objectstore.Join(dir, fmt.Sprintf("pilot-%02d-%s.parquet", round, side))
}

// roundFile is the results of a side of a round, which is a, b, aa-1 or aa-2.
func roundFile(dir string, round int, side string) string {
	return objectstore.Join(dir, fmt.Sprintf("round-%02d-%s.parquet", round, side))
}

// maker prepares the making of rounds. Who asks for it closes it.
func (f *roundFlags) maker(cmd *cobra.Command, path string, recorded map[string]bool) (*roundMaker, error) {
	m := &roundMaker{roundFlags: f, workload: path}
	var err error
	if m.sides, m.simulated, err = f.targets(cmd); err != nil {
		return m, err
	}
	if m.plan, err = f.plan(cmd, path, recorded); err != nil {
		return m, err
	}
	if err := m.plan.keep(f.out); err != nil {
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
	side   string
	target bench.Target
}

// A roundMaker makes pairs of runs.
type roundMaker struct {
	*roundFlags
	plan      roundPlan
	sides     [2]bench.Target
	workload  string
	cache     string
	simulated bool
	oneServer bool // A and B find each other's prompts in its cache
	first     int  // which side begins
	began     bool // a run was made
}

func (m *roundMaker) close() {
	for _, side := range m.sides {
		if s, ok := side.(*bench.Served); ok {
			s.Close()
		}
	}
}

// order is that of the sides in a round.
func (m *roundMaker) order(round int) []roundRun {
	order := []roundRun{{"a", m.sides[0]}, {"b", m.sides[1]}}
	if (round+m.first)%2 == 0 {
		slices.Reverse(order)
	}
	return order
}

// makePilot makes the pilot rounds that the directory does not have.
func (m *roundMaker) makePilot(cmd *cobra.Command, rounds int) error {
	for round := 1; round <= rounds; round++ {
		p := roundPair{name: fmt.Sprintf("pilot round %d of %d", round, rounds), order: m.order(round),
			file: func(side string) string { return pilotFile(m.out, round, side) },
			seed: uint64(compare.MaxRounds + round - 1), run: uint64(2 * (round - 1))}
		if err := m.pair(cmd, p, m.oneServer); err != nil {
			return err
		}
	}
	return nil
}

// makeRounds makes the rounds up to one that the directory does not have.
func (m *roundMaker) makeRounds(cmd *cobra.Command, upTo int) error {
	for round := 1; round <= upTo; round++ {
		p := roundPair{name: fmt.Sprintf("round %d of %d", round, m.plan.Plan.Rounds()), order: m.order(round),
			file: func(side string) string { return roundFile(m.out, round, side) },
			seed: uint64(round - 1), run: uint64(2*m.plan.Plan.Pilot + 4*(round-1))}
		if err := m.pair(cmd, p, m.oneServer); err != nil {
			return err
		}
		if round <= m.aaRounds {
			p.order, p.run = []roundRun{{"aa-1", m.sides[0]}, {"aa-2", m.sides[0]}}, p.run+2
			if err := m.pair(cmd, p, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// A roundPair is both runs of a round.
type roundPair struct {
	name  string
	order []roundRun
	file  func(side string) string
	seed  uint64 // beside that of the plan
	run   uint64 // place of the first among all runs
}

// pair makes both runs, unless both are there: one of today and one of yesterday are
// not a pair. Where a cache cannot be emptied, both have the same new prompts, or, on
// one server, each its own.
func (m *roundMaker) pair(cmd *cobra.Command, p roundPair, oneServer bool) error {
	if complete(p.file(p.order[0].side)) && complete(p.file(p.order[1].side)) {
		return nil
	}
	var cold uint64
	for i, r := range p.order {
		if i == 0 || oneServer {
			var err error
			if cold, err = flags.NewSeed(); err != nil {
				return err
			}
		}
		if m.began && !m.simulated {
			select {
			case <-cmd.Context().Done():
				return errors.New("interrupted between two runs: run the same command again to continue")
			case <-time.After(m.rest):
			}
		}
		m.began = true
		name := p.name + ", " + r.side
		cli.Stepf(cmd, "%s", name)
		t := bench.Trial{Name: name, Workload: m.workload, Load: m.load,
			Seed: strconv.FormatUint(m.plan.Seed+p.seed, 10), ColdSeed: strconv.FormatUint(cold, 10),
			Duration: m.duration, Loop: m.loop, Rows: m.maxRequests, Warmup: m.plan.Warmup, Cooldown: m.cooldown,
			Cache: m.cache, Note: name,
			Series: m.plan.Seed, Run: p.run + uint64(i), Results: p.file(r.side)}
		if err := r.target.Run(cmd.Context(), t); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := cmd.Context().Err(); err != nil {
			return fmt.Errorf("interrupted in %s: run the same command again to continue", name)
		}
	}
	return nil
}

// complete says whether a run was made to its end.
func complete(path string) bool {
	r, err := cli.OpenResults(path)
	if err != nil {
		return false
	}
	defer r.Close()
	return !r.Unfinished && r.Run.EndedEarly == ""
}

// stored finds the rounds of a directory, and how many of them are to be there; 0
// takes all.
func stored(dir string, rounds, aaRounds int) (arms []recordedArm, aa []string) {
	arms = []recordedArm{{name: "A"}, {name: "B"}}
	both := func(round int, a, b string) bool {
		return complete(roundFile(dir, round, a)) && complete(roundFile(dir, round, b))
	}
	for i := 1; (rounds == 0 || i <= rounds) && both(i, "a", "b"); i++ {
		arms[0].files = append(arms[0].files, roundFile(dir, i, "a"))
		arms[1].files = append(arms[1].files, roundFile(dir, i, "b"))
	}
	for i := 1; (rounds == 0 || i <= aaRounds) && both(i, "aa-1", "aa-2"); i++ {
		aa = append(aa, roundFile(dir, i, "aa-1"), roundFile(dir, i, "aa-2"))
	}
	return arms, aa
}

// live makes the rounds and compares them.
func (f *compareFlags) live(cmd *cobra.Command, path string, o compare.Options) (c compare.Comparison, err error) {
	if f.detect != "" && !cmd.Flags().Changed("rounds") {
		f.making.rounds = 0 // as many as it needs
	}
	if f.primary != "" && f.detect == "" && !cmd.Flags().Changed("pilot-rounds") {
		f.making.pilot = 0
	}
	switch m := &f.making; {
	case m.out == "" || m.out == cli.Standard:
		return c, cli.Usagef("name a directory for the rounds: -o DIRECTORY")
	case m.rounds < 1 && f.detect == "" || m.rounds > compare.MaxRounds || m.rounds > 0 && m.aaRounds > m.rounds:
		return c, cli.Usagef("--rounds: from 1 to %d, and --set aa-rounds no more than those", compare.MaxRounds)
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
	m, err := f.making.maker(cmd, path, f.readers)
	defer m.close()
	if err != nil {
		return c, err
	}
	if err := f.planned(cmd, m, o); err != nil {
		return c, err
	}
	o.Plan = m.plan.Plan
	var arms []recordedArm
	var aa []string
	for _, look := range o.Plan.Looks {
		if err := m.makeRounds(cmd, look); err != nil {
			return c, err
		}
		arms, aa = stored(f.making.out, look, f.making.aaRounds)
		if err := f.call(arms, f.making.out); err != nil {
			return c, err
		}
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
	if c, err = f.rounds(cmd, arms, aa, o); err != nil {
		return c, err
	}
	return c, trace.WriteFile(objectstore.Join(f.making.out, "compare.json"), trace.TierMode(c.Tier),
		func(w io.Writer) error { return compare.WriteJSON(w, c) })
}

// planned plans the rounds, by pilot rounds where there are any, or finds the plan that the
// directory has.
func (f *compareFlags) planned(cmd *cobra.Command, m *roundMaker, o compare.Options) error {
	if p := m.plan.Plan; p != nil {
		var differs string
		switch {
		case f.primary != "" && f.primary != p.Primary:
			differs = p.Primary + " as the metric that decides"
		case f.alpha != p.Alpha:
			differs = fmt.Sprintf("alpha %v", p.Alpha)
		case o.Detect != p.Detect:
			differs = "another change to detect"
		case f.making.rounds > 0 && f.making.rounds != p.Rounds():
			differs = fmt.Sprintf("%d rounds", p.Rounds())
		}
		if differs != "" {
			return cli.Usagef("%s was planned with %s, and its error holds for that plan alone: name another "+
				"directory with -o, or read the rounds as they are with reprise compare %s", m.out, differs, m.out)
		}
		return nil
	}
	began := time.Now()
	if err := m.makePilot(cmd, m.pilot); err != nil {
		return err
	}
	var pilot []compare.Arm
	if m.pilot > 0 {
		arms := []recordedArm{{name: "A"}, {name: "B"}}
		for i := range m.pilot {
			arms[0].files, arms[1].files = append(arms[0].files, pilotFile(m.out, i+1, "a")),
				append(arms[1].files, pilotFile(m.out, i+1, "b"))
		}
		var err error
		if pilot, err = f.summarised(cmd, arms, false); err != nil {
			return err
		}
	}
	p, err := compare.NewPlan(pilot, o, m.rounds)
	if err != nil {
		return err
	}
	if err := f.gated(p.Rounds(), 1); err != nil {
		return err
	}
	m.plan.Plan = &p
	if err := m.plan.write(m.out); err != nil {
		return err
	}
	if m.pilot == 0 {
		return nil
	}
	says := p.String()
	if took := time.Since(began) / time.Duration(m.pilot); !m.simulated && took > time.Second {
		says += fmt.Sprintf(" A round took %v.", took.Round(time.Second))
	}
	cli.Notef(cmd, "plan: %s", says)
	return nil
}
