package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay"
	"reprise/replay/bench"
	"reprise/replay/compare"
	"reprise/replay/result"
	"reprise/trace/arrival"
	"reprise/trace/doc"
)

// A roundPlan is what all rounds of a directory have in common, kept in it so that
// it is not gone on with by another comparison.
type roundPlan struct {
	Workload string            `json:"workload_digest"`
	Seed     uint64            `json:"seed"` // of the first round, and of the order
	Warmup   string            `json:"warmup"`
	Flags    map[string]string `json:"flags"` // that were given and are in the results
}

// mostWarmup is the longest warm-up of a round that nobody set.
const mostWarmup = 10 * time.Second

// readAgain are flags of what is made of rounds, and not of the rounds.
var readAgain = []string{"output", "rounds", "pilot-rounds", "rest", "quiet", "ready-timeout",
	"stop-timeout", "config", "target"}

// plan is that of the flags; recorded are the names of the flags that are about
// results, which may differ from one call to the next.
func (f *roundFlags) plan(cmd *cobra.Command, workload string, recorded map[string]bool) (p roundPlan, err error) {
	w, err := cli.OpenTrace(cmd, workload)
	if err != nil {
		return p, err
	}
	defer w.Close()
	rows, err := w.Reader()
	if err != nil {
		return p, err
	}
	p = roundPlan{Workload: w.Meta.Digest, Seed: 1, Warmup: f.warmup, Flags: map[string]string{}}
	if s := f.trial.Live.Prompts.Seed; s != "" {
		if p.Seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			return p, cli.Usagef("--seed: want a whole number")
		}
	}
	n := rows.Rows()
	if p.Warmup == "" && f.duration > 0 {
		process, err := arrival.ParseProcess(f.load.Rate)
		if n = int64(process.Rate() * f.duration.Seconds()); err != nil || n <= 0 { // only the run can tell
			p.Warmup = min(f.duration/10, mostWarmup).String()
		}
	}
	if p.Warmup == "" {
		if f.maxRequests > 0 {
			n = min(n, f.maxRequests)
		}
		p.Warmup = strconv.FormatInt(min(n/10, 50), 10)
	}
	if _, err := replay.ParseSpan(p.Warmup); err != nil {
		return p, cli.Usagef("--warmup: %v", err)
	}
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		if !recorded[fl.Name] && !flags.OtherSpelling(fl) && !slices.Contains(readAgain, fl.Name) &&
			len(cli.FlagValues(fl)) > 0 {
			p.Flags[fl.Name] = result.Redact(fl.Value.String())
		}
	})
	return p, nil
}

// storedPlan reads the plan that judges the rounds of an experiment. It is nil where the experiment has no plan.
func storedPlan(e *bench.Experiment) (*compare.Plan, error) {
	if e.Command != "compare" || len(e.Design) == 0 {
		return nil, nil
	}
	var p *compare.Plan
	err := json.Unmarshal(e.Design, &p)
	if err == nil && p != nil {
		err = p.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("the plan of the rounds cannot be read: %w", err)
	}
	return p, nil
}

// settleRounds says how many of the rounds that are asked for are pilot rounds. So few that no verdict could follow
// pilot rounds have none, and a metric that needs none.
func (f *compareFlags) settleRounds(cmd *cobra.Command) error {
	m, fl := &f.making, cmd.Flags()
	if f.primary != "" && f.detect == "" && !fl.Changed("pilot-rounds") {
		m.pilot = 0
	}
	switch least := m.pilot + compare.LeastRounds(f.alpha, 1); {
	case !fl.Changed("rounds") && f.detect != "": // as many as it needs
		return nil
	case !fl.Changed("rounds"):
		m.rounds = compare.DefaultRounds
		return nil
	case m.rounds < 1 || m.rounds > compare.MaxRounds:
		return cli.Usagef("--rounds: from 1 to %d", compare.MaxRounds)
	case m.pilot > 0 && m.rounds < least && (f.detect != "" || fl.Changed("pilot-rounds")):
		return cli.Usagef("--rounds %d: %d are pilot rounds, and a verdict at alpha %v takes %d after them: "+
			"%d at least", m.rounds, m.pilot, f.alpha, least-m.pilot, least)
	case m.pilot > 0 && m.rounds < least:
		cli.Notef(cmd, "plan: E2E mean decides; --primary names another metric. From --rounds %d on, %d pilot rounds "+
			"choose it, and the others decide (alpha %v)", least, m.pilot, f.alpha)
		m.pilot, f.primary = 0, compare.WholePrimary
	}
	m.rounds -= m.pilot
	return nil
}

// planned plans the rounds, by pilot rounds where there are any, or finds the plan that the
// directory has.
func (f *compareFlags) planned(cmd *cobra.Command, m *roundMaker, o compare.Options) error {
	if p := m.decided; p != nil {
		var differs string
		switch {
		case f.primary != "" && f.primary != p.Primary:
			differs = p.Primary + " as the metric that decides"
		case f.alpha != p.Alpha:
			differs = fmt.Sprintf("alpha %v", p.Alpha)
		case o.Detect != p.Detect:
			differs = "another change to detect"
		case p.Clear == nil && f.making.rounds > 0 && f.making.rounds != p.Rounds():
			differs = fmt.Sprintf("%d rounds", p.Pilot+p.Rounds())
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
		var err error
		if pilot, err = f.summarised(cmd, m.arms(bench.RolePilot, m.pilot), false); err != nil {
			return err
		}
	}
	p, err := compare.NewPlan(pilot, o, m.rounds)
	if err != nil {
		return err
	}
	if p.Clear == nil {
		if err := f.gated(p.Rounds(), 1); err != nil {
			return err
		}
	} else if err := m.dir.Measured(bench.RolePilot); err != nil {
		return err
	}
	if need := compare.LeastRounds(f.alpha, 1); p.Clear == nil && p.Rounds() < need {
		cli.Notef(cmd, "%s cannot give a verdict: alpha %v needs %d (--rounds %[3]d); rounds cannot be added later",
			doc.Many(int64(p.Rounds()), "round"), f.alpha, need)
	}
	m.decided = &p
	if err := m.dir.Decide(p); err != nil {
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
