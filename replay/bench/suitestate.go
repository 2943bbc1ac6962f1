package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// Names within the directory of a suite.
const (
	stateName    = "suite.json"
	textName     = "suite.yaml"
	workloadsDir = "workloads"
	resultsName  = "results.parquet"
	summaryName  = "summary.json"
	reportName   = "report.html"
)

// stateSchema names the layout of suite.json.
const stateSchema = "suite/1"

// A suiteState says which suite a directory holds the runs of, and of what.
type suiteState struct {
	Schema string       `json:"schema"`
	Suite  string       `json:"suite"`
	Digest string       `json:"suite_digest"` // of suite.yaml
	Plan   string       `json:"plan_digest"`  // of the rows as they are run, with what was given beside the suite
	Rows   []rowState   `json:"rows"`
	Models []modelState `json:"models"`
}

// A rowState is a row, with what its figures are read by.
type rowState struct {
	Name    string `json:"name"`
	Primary string `json:"primary_metric"`
}

// A modelState is a column.
type modelState struct {
	Name   string `json:"name"`
	Target string `json:"target"`
}

// writeState writes which suite the directory is of, unless it is of another.
func (r *SuiteRun) writeState(fresh bool) error {
	rows := slices.Clone(r.Suite.Rows)
	for i := range rows { // clauses of contracts have no fields to marshal, so they are text
		if c := rows[i].Contract; c != nil {
			rows[i].About += fmt.Sprintf("\x00%s %d %v", c.Name, c.GPUs, c.PricePerGPUHour)
			for j := range c.Clauses {
				rows[i].About += "\x00" + c.Clauses[j].Whole()
			}
			rows[i].Contract = nil
		}
	}
	plan, err := json.Marshal(struct {
		Seed  uint64
		Rows  []Row
		Trace string
	}{r.Suite.Seed, rows, r.Trace})
	if err != nil {
		return err
	}
	state := suiteState{Schema: stateSchema, Suite: r.Suite.Name, Digest: r.Suite.Digest, Plan: digestOf(plan)}
	for i := range r.Suite.Rows {
		state.Rows = append(state.Rows, rowState{r.Suite.Rows[i].Name, r.Suite.Rows[i].Primary.String()})
	}
	before, err := readState(r.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !r.Force && !fresh {
			return fmt.Errorf("%s is not empty and holds no suite: choose another directory, or use --force", r.Dir)
		}
	case err != nil:
		return err
	case r.Force:
	// The runs of one suite are not taken for those of another.
	case before.Digest != state.Digest:
		return fmt.Errorf("%s holds runs of another suite, %s with the digest %.12s: choose another directory, or "+
			"use --force", r.Dir, before.Suite, before.Digest)
	case before.Plan != state.Plan:
		return fmt.Errorf("%s holds runs of this suite with other rows or settings: choose another directory, or "+
			"use --force", r.Dir)
	default:
		state.Models = before.Models
	}
	for _, c := range r.Columns {
		i := slices.IndexFunc(state.Models, func(m modelState) bool { return m.Name == c.Name })
		switch {
		case i < 0:
			state.Models = append(state.Models, modelState{c.Name, c.About})
		case state.Models[i].Target != c.About:
			return fmt.Errorf("%s holds runs of %s against another target, %s: choose another directory or model "+
				"name, or use --force", r.Dir, c.Name, state.Models[i].Target)
		}
	}
	err = trace.WriteFile(filepath.Join(r.Dir, textName), 0o644, func(w io.Writer) error {
		_, err := w.Write(r.Text)
		return err
	})
	if err != nil {
		return err
	}
	return writeIndented(filepath.Join(r.Dir, stateName), state)
}

func readState(dir string) (suiteState, error) {
	var s suiteState
	path := filepath.Join(dir, stateName)
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	if s.Schema != stateSchema {
		return s, fmt.Errorf("%s: it has the schema %q, not %s", path, s.Schema, stateSchema)
	}
	for _, row := range s.Rows {
		if _, err := parseMetric(row.Primary); err != nil || !rowName.MatchString(row.Name) {
			return s, fmt.Errorf("%s: a row has an invalid name or metric", path)
		}
	}
	for _, m := range s.Models {
		if !rowName.MatchString(m.Name) {
			return s, fmt.Errorf("%s: a model has an invalid name", path)
		}
	}
	return s, nil
}

// runComplete tells whether a run has ended: its summary is written last.
func runComplete(dir string) bool {
	for _, name := range []string{resultsName, summaryName} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// writeRun writes where and by what a run was made, its page, and the summary last.
func writeRun(dir string, s *report.Summary) error {
	run := &s.Run
	environment := struct {
		Reprise       string              `json:"reprise"`
		Started       string              `json:"started,omitempty"`
		Model         string              `json:"model"`
		ServerVersion string              `json:"server_version,omitempty"`
		Simulated     string              `json:"simulated,omitempty"`
		PresetWarning string              `json:"preset_warning,omitempty"`
		Extrapolates  []result.Beyond     `json:"extrapolates,omitempty"`
		Seed          string              `json:"seed"`
		Workload      string              `json:"workload_digest"`
		Tier          string              `json:"tier,omitempty"`
		Environment   *result.Environment `json:"environment"`
	}{run.Version, run.Started, run.Model, run.ServerVersion, run.Simulated, run.PresetWarning, run.Extrapolates,
		run.Seed, run.Workload, run.Tier, run.Environment}
	if err := writeIndented(filepath.Join(dir, "environment.json"), environment); err != nil {
		return err
	}
	if err := trace.WriteFile(filepath.Join(dir, reportName), trace.TierMode(run.Tier),
		report.Page(*s).Write); err != nil {
		return err
	}
	return trace.WriteFile(filepath.Join(dir, summaryName), trace.TierMode(run.Tier),
		func(w io.Writer) error { return report.WriteJSON(w, *s) })
}

func writeIndented(path string, v any) error {
	return trace.WriteFile(path, 0o644, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

func removeIf(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ReadSuiteResult reads the outcome of the suite in a directory, as far as its runs are
// complete.
func ReadSuiteResult(dir string) (SuiteResult, error) {
	state, err := readState(dir)
	if err != nil {
		return SuiteResult{}, err
	}
	suite := Suite{Name: state.Suite, Digest: state.Digest}
	for _, row := range state.Rows {
		suite.Rows = append(suite.Rows, Row{Name: row.Name, Primary: metric(row.Primary)})
	}
	var names []string
	var all []measured
	for _, m := range state.Models {
		names = append(names, m.Name)
		for _, row := range state.Rows {
			of := measured{row: row.Name, model: m.Name}
			if of.runs, err = readRuns(filepath.Join(dir, m.Name, row.Name)); err != nil {
				return SuiteResult{}, err
			}
			if len(of.runs) > 0 {
				all = append(all, of)
			}
		}
	}
	return suite.result(names, all), nil
}

// readRuns reads the summaries of a row.
func readRuns(dir string) ([]report.Summary, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "repeat-*", summaryName))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		paths = []string{filepath.Join(dir, summaryName)}
	}
	var runs []report.Summary
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var s report.Summary
		if err := json.Unmarshal(text, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		runs = append(runs, s)
	}
	return runs, nil
}
