package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// A Column is what a suite is run against: a server, or an engine in virtual time.
type Column struct {
	Name   string
	About  string // what tells it from another; results of another are not taken for its own
	Target Target
	// Empty says that its caches begin empty with each run, so that requests sent
	// before it warm nothing.
	Empty bool
	Close func() error // when set, is called after its last run
}

// A SuiteRun runs a suite, each column after the other, into the directory of an
// [Experiment], which then also has:
//
//	suite.yaml                       what was run
//	workloads/ROW.parquet            what was sent
//	MODEL/ROW/report.html            the page of a run
//
// A row that repeats has a directory repeat-N for each run.
type SuiteRun struct {
	Suite    Suite
	Text     []byte // of the suite
	Dir      string
	Columns  []Column
	Workload func(ctx context.Context, row *Row, seed uint64, path string) error // writes what a row sends
	// file of the rows whose workload is the trace
	Trace   string
	Options report.Options
	Note    func(string) // when set, is told what happens

	dir       *Dir
	made      string // folder of the workloads that are made
	workloads map[workloadKey]string
}

// workloadsDir is the folder of the workloads.
const workloadsDir = "workloads"

// Check refuses what cannot be run, before anything is.
func (r *SuiteRun) Check() error {
	if len(r.Columns) == 0 {
		return errors.New("the suite has no server to run against")
	}
	seen := map[string]bool{}
	for _, c := range r.Columns {
		switch {
		case !rowName.MatchString(c.Name) || c.Name == workloadsDir:
			return fmt.Errorf("%q cannot be the name of a model: use letters, digits, dots, dashes and underscores, "+
				"since a directory gets this name", c.Name)
		case seen[c.Name]:
			return fmt.Errorf("two models are named %s", c.Name)
		}
		seen[c.Name] = true
		for i := range r.Suite.Rows {
			if row := &r.Suite.Rows[i]; c.Empty && row.Cache == result.CacheWarm {
				return fmt.Errorf("row %s needs a warm cache, but %s begins each run with an empty one", row.Name,
					c.Name)
			}
		}
	}
	for i := range r.Suite.Rows {
		row := &r.Suite.Rows[i]
		if row.Workload.Trace && r.Trace == "" {
			return fmt.Errorf("row %s replays a trace, but none is given", row.Name)
		}
	}
	return nil
}

// Run makes every run that is not complete, and returns the outcome of all.
func (r *SuiteRun) Run(ctx context.Context) (SuiteResult, error) {
	if err := r.Check(); err != nil {
		return SuiteResult{}, err
	}
	plan, err := r.plan()
	if err != nil {
		return SuiteResult{}, err
	}
	if r.dir, err = Continue(r.Dir, "bench", plan, r.Options.Limits); err != nil {
		return SuiteResult{}, err
	}
	defer r.dir.Close()
	r.made = filepath.Join(r.Dir, workloadsDir)
	err = trace.WriteFile(filepath.Join(r.Dir, "suite.yaml"), 0o644, func(w io.Writer) error {
		_, err := w.Write(r.Text)
		return err
	})
	if err != nil {
		return SuiteResult{}, err
	}
	r.workloads = map[workloadKey]string{}
	for i := range r.Suite.Rows { // all of them before the first run, which may be hours before the last
		if _, err := r.workload(ctx, &r.Suite.Rows[i]); err != nil {
			return SuiteResult{}, fmt.Errorf("row %s: %w", r.Suite.Rows[i].Name, err)
		}
	}
	_, estimate, err := r.planned(ctx)
	if err != nil {
		return SuiteResult{}, err
	}
	if estimate.Runs > 1 {
		r.note("estimate: %s", estimate)
	}
	var all []runsOf
	for i := range r.Columns {
		of, err := r.runColumn(ctx, &r.Columns[i])
		all = append(all, of...)
		if err != nil {
			return SuiteResult{}, err
		}
	}
	var names []string
	for _, c := range r.Columns {
		names = append(names, c.Name)
	}
	return r.Suite.result(names, all), nil
}

// runColumn makes the runs of all rows against one column.
func (r *SuiteRun) runColumn(ctx context.Context, c *Column) (all []runsOf, err error) {
	if c.Close != nil {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	for i := range r.Suite.Rows {
		m := runsOf{row: r.Suite.Rows[i].Name, model: c.Name}
		for repeat := range r.Suite.Rows[i].Repeats {
			s, err := r.makeRun(ctx, c, i, repeat)
			if err != nil {
				return all, fmt.Errorf("%s, row %s: %w", c.Name, m.row, err)
			}
			m.runs = append(m.runs, s)
		}
		all = append(all, m)
	}
	return all, nil
}

// A suitePlan is what all runs of a suite have in common, and what they are read by.
type suitePlan struct {
	Suite  string    `json:"suite"`
	Digest string    `json:"suite_digest"`
	Plan   string    `json:"plan_digest"` // of the rows as they are run, with what was given beside the suite
	Rows   []rowPlan `json:"rows"`
}

// A rowPlan is the name of a row and its primary metric.
type rowPlan struct {
	Name    string `json:"name"`
	Primary string `json:"primary_metric"`
}

func (r *SuiteRun) plan() (suitePlan, error) {
	p := suitePlan{Suite: r.Suite.Name, Digest: r.Suite.Digest}
	rows := slices.Clone(r.Suite.Rows)
	for i := range rows {
		p.Rows = append(p.Rows, rowPlan{rows[i].Name, rows[i].Primary.String()})
		if c := rows[i].Contract; c != nil { // clauses have no fields to marshal, so they are text
			rows[i].About += fmt.Sprintf("\x00%s %d %v", c.Name, c.GPUs, c.PricePerGPUHour)
			for j := range c.Clauses {
				rows[i].About += "\x00" + c.Clauses[j].Whole()
			}
			rows[i].Contract = nil
		}
	}
	text, err := json.Marshal(struct {
		Seed  uint64
		Rows  []Row
		Trace string
	}{r.Suite.Seed, rows, r.Trace})
	p.Plan = digestOf(text)
	return p, err
}

// repeatName is the folder of a repeat below its row; "" of a row with one run.
func (row *Row) repeatName(repeat int) string {
	if row.Repeats < 2 {
		return ""
	}
	return "repeat-" + strconv.Itoa(repeat+1)
}

// makeRun makes one run, or takes the one that is whole.
func (r *SuiteRun) makeRun(ctx context.Context, c *Column, i, repeat int) (report.Summary, error) {
	row := &r.Suite.Rows[i]
	options := r.Options
	if row.Contract != nil {
		options.Contract = row.Contract
	}
	t, err := r.trial(ctx, c, i, repeat)
	if err != nil {
		return report.Summary{}, err
	}
	if r.dir.Has(t.Results) {
		r.note("%s", t.Name+": complete, and not run again")
	} else {
		seed := fmt.Sprint(r.Suite.Seed + 1_000_000 + uint64(i)*1000 + uint64(repeat))
		if err := r.warm(ctx, c, row, t, seed); err != nil {
			return report.Summary{}, err
		}
		r.note("%s: %s", t.Name, row.Load)
	}

	k := Keys{Row: row.Name, Workload: WorkloadName(t.Workload), Load: row.Load.String(), Server: c.Name,
		Round: repeat + 1}
	if row.Workload.Name != "" { // rows may send more or fewer requests of it, and are of one workload still
		k.Workload = strings.Trim(row.Workload.Name+" "+row.Input+"/"+row.Output, " /")
	}
	made, err := r.dir.Make(ctx, c.Target, c.About, k, t)
	if err != nil {
		return report.Summary{}, err
	}
	s, err := Summarise(t.Results, options)
	if err != nil || !made {
		return s, err
	}
	return s, trace.WriteFile(filepath.Join(filepath.Dir(t.Results), reportName), trace.TierMode(s.Run.Tier),
		report.Page(s).Write)
}

// trial is the run of a row.
func (r *SuiteRun) trial(ctx context.Context, c *Column, i, repeat int) (Trial, error) {
	row := &r.Suite.Rows[i]
	workload, err := r.workload(ctx, row)
	t := Trial{Name: c.Name + ", " + row.Name, Workload: workload, Load: row.Load, Seed: r.Suite.seed(i, repeat),
		Duration: row.Duration,
		Warmup:   row.Settle, Cooldown: row.Cooldown, Timeout: row.Timeout, Cache: row.Cache,
		Results: r.dir.Results(c.Name, row.Name, row.repeatName(repeat))}
	if row.Load.bySession() {
		t.Session = &SessionTrial{SessionSettings: row.Session}
	}
	if row.Repeats > 1 {
		t.Name += fmt.Sprintf(" (%d of %d)", repeat+1, row.Repeats)
	}
	if (row.Cache == result.CacheCold || row.Cache == result.CacheSalted) && !c.Empty {
		t.Seed = "" // so that the server gets prompts that no run had
	}
	return t, err
}

// warm sends the requests before a run, which nothing is kept of.
func (r *SuiteRun) warm(ctx context.Context, c *Column, row *Row, t Trial, seed string) error {
	if row.Warmup == 0 || c.Empty {
		return nil
	}
	dir, err := os.MkdirTemp("", "reprise-warm-up-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	warm := Trial{Name: t.Name + ", warm-up", Workload: t.Workload, Load: Load{Concurrency: 1},
		Seed: seed, Rows: row.Warmup, Timeout: t.Timeout, Results: filepath.Join(dir, resultsName)}
	r.note("%s: %d requests", warm.Name, warm.Rows)
	if err := c.Target.Run(ctx, warm); err != nil {
		return fmt.Errorf("%s: %w", warm.Name, err)
	}
	return ctx.Err()
}

// A workloadKey is what the workload of a row depends on.
type workloadKey struct {
	of            WorkloadRef
	requests      int64
	input, output string
	duration      string
}

// workload is the file that a row sends, which is made when no row before it sends
// the same.
func (r *SuiteRun) workload(ctx context.Context, row *Row) (string, error) {
	switch {
	case row.Workload.Trace:
		return r.Trace, nil
	case isTrace(row.Workload.File):
		return row.Workload.File, nil
	}
	key := workloadKey{row.Workload, row.Requests, row.Input, row.Output, row.Duration.String()}
	if path, ok := r.workloads[key]; ok {
		return path, nil
	}
	if err := os.MkdirAll(r.made, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(r.made, row.Name+".parquet")
	if err := r.Workload(ctx, row, r.Suite.Seed, path); err != nil {
		return "", fmt.Errorf("workload: %w", err)
	}
	r.workloads[key] = path
	return path, nil
}

func (r *SuiteRun) note(format string, args ...any) {
	if r.Note != nil {
		r.Note(fmt.Sprintf(format, args...))
	}
}

// A PlannedRun is a run of a suite before it is made.
type PlannedRun struct {
	Model      string `json:"model"`
	Row        string `json:"row"`
	Repeat     int    `json:"repeat"`
	Workload   string `json:"workload"`
	Load       string `json:"load"`
	Hypothesis string `json:"hypothesis,omitempty"`
	Dir        string `json:"dir"`
	Complete   bool   `json:"complete"` // and would not be made again
}

// Plan lists the runs in their order, and says how long those that are still to make take. Nothing is sent, and
// workloads are made in a folder that is removed.
func (r *SuiteRun) Plan(ctx context.Context) ([]PlannedRun, Estimate, error) {
	there, err := Open(r.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, Estimate{}, err
	}
	if r.made, err = os.MkdirTemp("", "reprise-plan-"); err != nil {
		return nil, Estimate{}, err
	}
	defer os.RemoveAll(r.made)

	r.dir, r.workloads = &Dir{Experiment: there}, map[workloadKey]string{}
	return r.planned(ctx)
}

// planned is the plan of a directory that is open, and how long its runs at servers take. An engine's time is virtual.
func (r *SuiteRun) planned(ctx context.Context) (all []PlannedRun, _ Estimate, err error) {
	var missing []Trial
	for c := range r.Columns {
		column := &r.Columns[c]
		for i := range r.Suite.Rows {
			row := &r.Suite.Rows[i]
			for repeat := range row.Repeats {
				p := PlannedRun{Model: column.Name, Row: row.Name, Repeat: repeat + 1, Workload: row.Workload.String(),
					Load: row.Load.String(), Dir: filepath.Join(r.Dir, column.Name, row.Name, row.repeatName(repeat))}
				if row.Hypothesis != nil {
					p.Hypothesis = row.Hypothesis.String()
				}
				p.Complete = r.dir.Has(filepath.Join(p.Dir, resultsName))
				if all = append(all, p); p.Complete || column.Empty {
					continue
				}
				t, err := r.trial(ctx, column, i, repeat)
				if err != nil {
					return nil, Estimate{}, err
				}
				missing = append(missing, t)
			}
		}
	}
	e, err := EstimateOf(missing, 0)
	return all, e, err
}
