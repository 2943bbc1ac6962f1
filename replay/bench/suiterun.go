package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	// Command gives a command line that makes a trial by hand.
	Command func(Trial) string
	Close   func() error // when set, is called after its last run
}

// A SuiteRun runs a suite, each column after the other, into a directory:
//
//	suite.json, suite.yaml           what was run
//	workloads/ROW.parquet            what was sent
//	MODEL/ROW/command                the command lines that make the run by hand
//	MODEL/ROW/environment.json       where and by what it was made
//	MODEL/ROW/results.parquet        every request
//	MODEL/ROW/report.html            the page of the run
//	MODEL/ROW/summary.json           its figures, and that the run is complete
//
// A row that repeats has a directory repeat-N for each run. Complete runs are not
// made again, unless Force is set.
type SuiteRun struct {
	Suite    Suite
	Text     []byte // of the suite
	Dir      string
	Columns  []Column
	Workload func(ctx context.Context, row *Row, seed uint64, path string) error // writes what a row sends
	// file of the rows whose workload is the trace
	Trace   string
	Options report.Options
	Force   bool
	Note    func(string) // when set, is told what happens

	workloads map[workloadKey]string
}

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
	entries, err := os.ReadDir(r.Dir)
	fresh := len(entries) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist)) // empty, or not there
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return SuiteResult{}, err
	}
	unlock, err := lockDir(r.Dir)
	if err != nil {
		return SuiteResult{}, err
	}
	defer unlock()
	if err := r.writeState(fresh); err != nil {
		return SuiteResult{}, err
	}
	r.workloads = map[workloadKey]string{}
	for i := range r.Suite.Rows { // all of them before the first run, which may be hours before the last
		if _, err := r.workload(ctx, &r.Suite.Rows[i]); err != nil {
			return SuiteResult{}, fmt.Errorf("row %s: %w", r.Suite.Rows[i].Name, err)
		}
	}
	var all []measured
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
func (r *SuiteRun) runColumn(ctx context.Context, c *Column) (all []measured, err error) {
	if c.Close != nil {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	for i := range r.Suite.Rows {
		m := measured{row: r.Suite.Rows[i].Name, model: c.Name}
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

// rowDir is the directory of a run.
func (r *SuiteRun) rowDir(model string, row *Row, repeat int) string {
	dir := filepath.Join(r.Dir, model, row.Name)
	if row.Repeats > 1 {
		dir = filepath.Join(dir, "repeat-"+strconv.Itoa(repeat+1))
	}
	return dir
}

// makeRun makes one run, or takes the one that is complete.
func (r *SuiteRun) makeRun(ctx context.Context, c *Column, i, repeat int) (report.Summary, error) {
	row := &r.Suite.Rows[i]
	dir := r.rowDir(c.Name, row, repeat)
	options := r.Options
	if row.Contract != nil {
		options.Contract = row.Contract
	}
	t, err := r.trial(ctx, c, i, repeat, dir)
	if err != nil {
		return report.Summary{}, err
	}
	if !r.Force && runComplete(dir) {
		r.note("%s", t.Name+": complete, and not run again")
		return Summarise(t.Results, options)
	}
	if err := r.prepare(ctx, c, row, t, fmt.Sprint(r.Suite.Seed+1_000_000+uint64(i)*1000+uint64(repeat))); err != nil {
		return report.Summary{}, err
	}
	r.note("%s: %s", t.Name, row.Load)
	if err := c.Target.Run(ctx, t); err != nil {
		return report.Summary{}, fmt.Errorf("%s: %w", t.Name, err)
	}
	s, err := Summarise(t.Results, options)
	if err == nil {
		err = ctx.Err() // what was stopped has results, and is run again
	}
	if err != nil {
		return s, err
	}
	return s, writeRun(dir, &s)
}

// trial is the run of a row.
func (r *SuiteRun) trial(ctx context.Context, c *Column, i, repeat int, dir string) (Trial, error) {
	row := &r.Suite.Rows[i]
	workload, err := r.workload(ctx, row)
	t := Trial{Name: c.Name + ", " + row.Name, Workload: workload, Load: row.Load, Seed: r.Suite.seed(i, repeat),
		Duration: row.Duration,
		Warmup:   row.Settle, Cooldown: row.Cooldown, Timeout: row.Timeout, Cache: row.Cache,
		Results: filepath.Join(dir, resultsName)}
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

// prepare makes the directory of a run ready, writes how it is made, and sends the
// requests before it.
func (r *SuiteRun) prepare(ctx context.Context, c *Column, row *Row, t Trial, seed string) error {
	dir := filepath.Dir(t.Results)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// Of an earlier run in the directory, the summary would say that the new one is
	// complete, and the journal would stop it.
	for _, pattern := range []string{summaryName, reportName, "results.*", "warmup.*"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, path := range paths {
			if err := removeIf(path); err != nil {
				return err
			}
		}
	}
	warm := Trial{Name: t.Name + ", warm-up", Workload: t.Workload, Load: Load{Concurrency: 1},
		Seed: seed, Rows: row.Warmup,
		Timeout: t.Timeout, Results: filepath.Join(dir, "warmup.parquet")}
	warms := row.Warmup > 0 && !c.Empty
	err := trace.WriteFile(filepath.Join(dir, "command"), 0o644, func(w io.Writer) error {
		var lines []string
		if warms {
			lines = append(lines, c.Command(warm))
		}
		_, err := io.WriteString(w, strings.Join(append(lines, c.Command(t)), "\n")+"\n")
		return err
	})
	if err != nil || !warms {
		return err
	}
	r.note("%s: %d requests", warm.Name, warm.Rows)
	if err := c.Target.Run(ctx, warm); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	return errors.Join(os.Remove(warm.Results), removeIf(result.MetricsName(warm.Results)), ctx.Err())
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
	dir := filepath.Join(r.Dir, workloadsDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, row.Name+".parquet")
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

// Plan lists the runs in their order. Nothing is made.
func (r *SuiteRun) Plan() []PlannedRun {
	var out []PlannedRun
	for _, c := range r.Columns {
		for i := range r.Suite.Rows {
			row := &r.Suite.Rows[i]
			for repeat := range row.Repeats {
				p := PlannedRun{Model: c.Name, Row: row.Name, Repeat: repeat + 1, Workload: row.Workload.String(),
					Load: row.Load.String(),
					Dir:  r.rowDir(c.Name, row, repeat)}
				if row.Hypothesis != nil {
					p.Hypothesis = row.Hypothesis.String()
				}
				p.Complete = !r.Force && runComplete(p.Dir)
				out = append(out, p)
			}
		}
	}
	return out
}
