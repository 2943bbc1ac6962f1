package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/replay/contract"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace/arrival"
)

// noRuns refuses a directory whose command was stopped before its first run ended.
const noRuns = "%s has no run that ended: give the command that began it again, and it goes on"

// column is what comparisons tell apart: the server of a trial, and its setting.
func (k Keys) column() string {
	return cmp.Or(strings.Trim(k.Server+", "+k.Setting, ", "), "server")
}

// row is what a trial has in common with the trials of other servers.
func (k Keys) row() Keys {
	k.Server, k.Setting = "", ""
	return k
}

// measured are the trials that a reading takes.
func (e *Experiment) measured() (out []KeptTrial) {
	for _, t := range e.Trials {
		if t.Role != RolePilot {
			out = append(out, t)
		}
	}
	if len(out) == 0 { // it was stopped while it was planned
		out = slices.Clone(e.Trials)
	}
	if e.Command == "compare" { // which makes B first in every other round
		slices.SortStableFunc(out, func(a, b KeptTrial) int { return cmp.Compare(a.Results, b.Results) })
	}
	return out
}

// columns are the servers and settings of an experiment, in the order in which they were measured.
func (e *Experiment) columns() (out []string) {
	for _, t := range e.measured() {
		if !slices.Contains(out, t.column()) {
			out = append(out, t.column())
		}
	}
	return out
}

// Table reads an experiment as a suite: a row for each workload and load, a column for each server and
// setting, and the rounds of both together.
func (e *Experiment) Table(o report.Options) (SuiteResult, error) {
	suite := Suite{Name: filepath.Base(e.dir)}
	var plan suitePlan
	if e.Command == "bench" {
		if err := json.Unmarshal(e.Plan, &plan); err != nil {
			return SuiteResult{}, fmt.Errorf("%s: what the suite is cannot be read: %w", e.dir, err)
		}
		suite.Name, suite.Digest = plan.Suite, plan.Digest
	}
	for _, row := range plan.Rows {
		suite.Rows = append(suite.Rows, Row{Name: row.Name, Primary: metric(row.Primary)})
	}

	loads := map[string]string{} // of a workload; "" of one that has several
	for _, t := range e.measured() {
		if was, ok := loads[t.Workload]; ok && was != t.Load {
			loads[t.Workload] = ""
		} else {
			loads[t.Workload] = t.Load
		}
	}
	var all []runsOf
	for _, t := range e.measured() {
		name := cmp.Or(t.Row, t.Workload)
		if t.Row == "" && loads[t.Workload] == "" {
			name += " " + t.Load
		}
		if name = strings.TrimSpace(name + " " + t.Role); suite.Row(name) == nil {
			load, err := ParseLoad(t.Load)
			if err != nil {
				return SuiteResult{}, fmt.Errorf("%s: %w", e.dir, err)
			}
			suite.Rows = append(suite.Rows, Row{Name: name, Load: load, Primary: metric("p99_ttft")})
		}
		s, err := Summarise(e.Path(t), o)
		if err != nil {
			return SuiteResult{}, err
		}
		at := slices.IndexFunc(all, func(m runsOf) bool { return m.row == name && m.model == t.column() })
		if at < 0 {
			at, all = len(all), append(all, runsOf{row: name, model: t.column()})
		}
		all[at].runs = append(all[at].runs, s)
	}
	r := suite.result(e.columns(), all)
	if e.Command != "bench" {
		r.title = "Runs in " + suite.Name
	}
	return r, nil
}

// An Arm is a server, or a server with a setting, and its results. File i of each arm is of the same round.
type Arm struct {
	Name  string
	Files []string
}

// Arms pairs the trials of several servers or settings by all that they have in common: workload, load and
// round. A trial that one of them lacks is left out. Of several experiments with a server each, every
// one is an arm, called by its directory.
func Arms(experiments ...Experiment) ([]Arm, error) {
	var arms []Arm
	var of []map[Keys]string
	var rows []Keys // of the first arm
	for i := range experiments {
		e := &experiments[i]
		columns := e.columns()
		for _, column := range columns {
			arm, files := Arm{Name: column}, map[Keys]string{}
			if len(experiments) > 1 {
				arm.Name = filepath.Base(e.dir)
			}
			if len(experiments) > 1 && len(columns) > 1 {
				arm.Name += ", " + column
			}
			for _, t := range e.measured() {
				if t.column() != column {
					continue
				}
				if files[t.row()] = e.Path(t); len(of) == 0 {
					rows = append(rows, t.row())
				}
			}
			arms, of = append(arms, arm), append(of, files)
		}
	}
	if len(arms) == 0 {
		return nil, fmt.Errorf(noRuns, experiments[0].dir)
	}
	if len(arms) < 2 {
		return nil, fmt.Errorf("%s has runs of one server or setting alone, %s: name a second directory to compare it "+
			"with", experiments[0].dir, strings.Join(experiments[0].columns(), ""))
	}

	slices.SortStableFunc(rows, func(a, b Keys) int { return cmp.Compare(a.Round, b.Round) })
	for _, row := range rows {
		if slices.ContainsFunc(of, func(files map[Keys]string) bool { return files[row] == "" }) {
			continue
		}
		for i := range arms {
			arms[i].Files = append(arms[i].Files, of[i][row])
		}
	}
	if len(arms[0].Files) == 0 {
		return nil, errors.New("no run of one server has a run of the others beside it, of the same workload, load " +
			"and round")
	}
	return arms, nil
}

// StopTTFT is the p99 of TTFT from schedule beyond which a server counts as saturated, unless a sweep says more.
const StopTTFT = 10 * time.Second

// checkSingle is the error of trials of several workloads or servers, where a reading takes one of each.
func (e *Experiment) checkSingle() error {
	var workloads []string
	for _, t := range e.measured() {
		if !slices.Contains(workloads, t.Workload) {
			workloads = append(workloads, t.Workload)
		}
	}
	several := func(what string, names []string) error {
		return fmt.Errorf("%s has runs of several %s, and a sweep is of one: %s", e.dir, what,
			strings.Join(names, "; "))
	}
	switch columns := e.columns(); {
	case len(columns) > 1:
		return several("servers or settings", columns)
	case len(workloads) > 1:
		return several("workloads", workloads)
	}
	return nil
}

// Sweep reads an experiment as a sweep: each load is a level, by all of its rounds.
func (e *Experiment) Sweep(ctx context.Context, o report.Options) (SweepResult, error) {
	s := Sweep{Report: o, StopTTFT: StopTTFT}
	r := SweepResult{Schema: sweepSchema, Command: "reprise " + e.Command + " -o " + e.dir}
	if err := e.checkSingle(); err != nil {
		return r, err
	}
	together := map[string]*measurement{}
	for _, t := range e.measured() {
		load, err := ParseLoad(t.Load)
		if err != nil {
			return r, fmt.Errorf("%s: %w", e.dir, err)
		}
		at := float64(load.Concurrency)
		if process, err := arrival.ParseProcess(load.Rate); err == nil {
			at = process.Rate()
			s.Process, _, _ = strings.Cut(load.Rate, ":")
		}
		if at == 0 || s.Process != "" != (load.Concurrency == 0) {
			return r, fmt.Errorf("%s has a run under the load %s: a sweep is of rates of requests, or of requests in "+
				"flight", e.dir, load)
		}

		summary, err := Summarise(e.Path(t), o)
		if err != nil {
			return r, err
		}
		of := t.Load + " " + t.Role
		if together[of] == nil {
			together[of] = newMeasurement(&s.Report, false)
		}
		role := t.Role
		if role != roleConfirm && role != roleSustain {
			role = roleLevel
		}
		l, err := s.level(role, at, Trial{Name: filepath.ToSlash(filepath.Dir(t.Results)), Results: e.Path(t),
			Seed: summary.Run.Seed}, &summary, together[of])
		if err != nil {
			return r, err
		}
		r.about(&summary.Run)
		r.Workload = summary.Run.Workload
		if i := len(r.Levels) - 1; i >= 0 && r.Levels[i].Load == at && r.Levels[i].Role == role {
			r.Levels = r.Levels[:i] // the last run of a level stands for all
		}
		r.Levels = append(r.Levels, l)
		r.Levels[len(r.Levels)-1].Intervals = together[of].intervals(0)
	}
	if len(r.Levels) == 0 {
		return r, fmt.Errorf(noRuns, e.dir)
	}
	r.Unit, r.Closed, r.Process = s.unit(), s.Closed(), s.Process
	r.Under(contract.Of(o))
	r.findSaturation()
	if r.Stopped = r.stopped(); r.Stopped.Code == stoppedResolved || r.Stopped.Code == stoppedEnd {
		r.Stopped = Stop{stoppedEnd, "the directory has no further runs; one that was interrupted goes on by its command"}
	}
	r.Knee = r.knee()
	return r, s.highest(ctx, &r)
}

// Frontier reads an experiment as a frontier: its servers are the engines, its workloads the classes of
// lengths, and its loads, which are requests in flight, the levels.
func (e *Experiment) Frontier() (FrontierResult, error) {
	r := FrontierResult{Schema: frontierSchema, Command: "reprise " + e.Command + " -o " + e.dir}
	for _, t := range e.measured() {
		load, err := ParseLoad(t.Load)
		if err != nil || load.Concurrency == 0 {
			return r, fmt.Errorf("%s has a run under the load %s: a frontier is of requests in flight", e.dir, t.Load)
		}
		var ended endedRequests
		run, err := ended.read(e.Path(t))
		if err != nil {
			return r, err
		}

		engine := r.engine(t.column(), &run)
		p, refused, err := ended.point(load.Concurrency, engine)
		if err != nil {
			return r, fmt.Errorf("%s: %w", e.Path(t), err)
		}
		curve := r.class(t.Workload).curve(engine.Name)
		if curve.Stopped = refused; refused == "" {
			curve.Points = append(curve.Points, p)
		}
	}
	for i := range r.Classes {
		for j := range r.Classes[i].Curves {
			markFront(r.Classes[i].Curves[j].Points)
		}
		r.Classes[i].complete(r.Engines)
		r.Classes[i].rank()
	}
	if len(r.Classes) == 0 {
		return r, fmt.Errorf(noRuns, e.dir)
	}
	return r, r.served()
}

// engine is the engine of a name, which is added where it is not there.
func (r *FrontierResult) engine(name string, run *result.Run) *FrontierEngine {
	i := slices.IndexFunc(r.Engines, func(e FrontierEngine) bool { return e.Name == name })
	if i < 0 {
		i = len(r.Engines)
		r.Engines = append(r.Engines, FrontierEngine{Name: name, GPUs: 1, Assumed: true, Simulated: run.Simulated,
			Endpoint: strings.Join(run.Endpoints, ", "), Warning: run.PresetWarning})
		r.Engines[i].take(run)
	}
	return &r.Engines[i]
}

// class is the class of a workload, which is added where it is not there.
func (r *FrontierResult) class(workload string) *FrontierClass {
	i := slices.IndexFunc(r.Classes, func(c FrontierClass) bool { return c.Name == workload })
	if i < 0 {
		i = len(r.Classes)
		of := "of the workload"
		r.Classes = append(r.Classes, FrontierClass{LengthClass: LengthClass{Name: workload, Prompt: of, Output: of}})
	}
	return &r.Classes[i]
}

// curve is the curve of an engine, which is added where it is not there.
func (c *FrontierClass) curve(engine string) *FrontierCurve {
	i := slices.IndexFunc(c.Curves, func(o FrontierCurve) bool { return o.Engine == engine })
	if i < 0 {
		i = len(c.Curves)
		c.Curves = append(c.Curves, FrontierCurve{Engine: engine, Points: []FrontierPoint{}})
	}
	return &c.Curves[i]
}
