package bench

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/objectstore"
)

// StateName is the file in the directory of an experiment that says what was asked, and which
// trials are whole.
const StateName = "experiment.json"

// stateSchema names the layout of an [Experiment] as JSON.
const stateSchema = "experiment/1"

// Names of the files of a trial, in a directory of its own.
const (
	resultsName = "results.parquet"
	reportName  = "report.html"
)

// Keys say what a trial was made of, and tell it from the others of its experiment. A reading
// puts trials in rows, columns and pairs by them; what says nothing is empty.
type Keys struct {
	Row      string `json:"row,omitempty"`      // of a suite, by its name
	Workload string `json:"workload,omitempty"` // by its name
	Load     string `json:"load,omitempty"`     // as [ParseLoad] reads it
	Server   string `json:"server,omitempty"`   // or engine
	Setting  string `json:"setting,omitempty"`  // of the server, such as x=64
	Role     string `json:"role,omitempty"`     // its purpose, such as [RolePilot]; "" is a measurement
	Round    int    `json:"round,omitempty"`    // among trials that differ in nothing but their seed, from 1
}

// WorkloadName is how the workload of a file is called among keys.
func WorkloadName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// RolePilot is the role of a trial by which others are planned. A reading takes it for a measurement only where there is
// nothing else, as in a comparison that was stopped.
const RolePilot = "pilot"

// A KeptTrial is a whole trial in the directory of an experiment.
type KeptTrial struct {
	Keys
	Results string `json:"results"` // file, as a path below the directory
	Asked   string `json:"asked"`   // digest of the trial and its target, so that no other is taken for it
}

// An Experiment is several runs that are read together. It is the state file of a directory:
//
//	experiment.json         what was asked, and every whole trial with its keys
//	NAME/results.parquet    the trial of that name
//
// Sweeps, suites, frontiers and rounds of a comparison are written like this, so that each of
// these commands can read what another wrote.
type Experiment struct {
	Schema  string          `json:"schema"`
	Command string          `json:"command"`          // that wrote it: sweep, bench, compare or frontier
	Plan    json.RawMessage `json:"plan"`             // what all of its trials have in common
	Design  json.RawMessage `json:"design,omitempty"` // what was decided by the first of its trials
	Trials  []KeptTrial     `json:"trials"`           // in the order in which they were made
	// Trust are the limits that its runs were judged by when they were made, see [report.Limits.Changed].
	Trust map[string]*float64 `json:"trust,omitempty"`
	// Terms had to be met by its loads when they were made; nil without a contract.
	Terms *Terms `json:"terms,omitempty"`

	dir string
	old bool // it was written by an earlier version, which had no such file
}

// Terms are a contract in the words in which it was given.
type Terms struct {
	Clauses  []string `json:"clauses,omitempty"`
	SLO      string   `json:"slo,omitempty"`
	Contract string   `json:"contract,omitempty"` // its file
}

// Limits judged the runs when they were made.
func (e *Experiment) Limits() report.Limits { return report.LimitsOf(e.Trust) }

// Path is the results file of a trial.
func (e *Experiment) Path(t KeptTrial) string { return objectstore.Join(e.dir, t.Results) }

// Open reads the directory of an experiment. A directory without one is [fs.ErrNotExist].
func Open(dir string) (Experiment, error) {
	e := Experiment{dir: dir}
	path := objectstore.Join(dir, StateName)
	text, err := objectstore.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return openEarlier(dir)
	}
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("%s: %w", path, err)
	}
	if e.Schema != stateSchema {
		return e, fmt.Errorf("%s: it has the schema %q, not %s", path, e.Schema, stateSchema)
	}
	for _, t := range e.Trials {
		if !filepath.IsLocal(t.Results) {
			return e, fmt.Errorf("%s: the results of a trial are outside of the directory", path)
		}
	}
	return e, nil
}

// A Dir is the directory of an experiment that this process adds trials to.
type Dir struct {
	Experiment
	unlock func()
}

// Continue opens a directory for a command, to make the trials of a plan that it lacks. It is made
// where there is none. One of another command or plan is refused. Readings of the directory judge by the limits.
func Continue(dir, command string, plan any, limits report.Limits) (*Dir, error) {
	asked, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	d := &Dir{unlock: unlock}
	if d.Experiment, err = Open(dir); err == nil {
		err = d.refuse(command, asked)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
		d.Experiment = Experiment{Schema: stateSchema, Command: command, Plan: asked, dir: dir, Trials: []KeptTrial{}}
	}
	if err == nil {
		d.Trust = limits.Changed()
		err = d.write()
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return d, nil
}

// refuse is the error of a directory that a command with a plan cannot add to.
func (e *Experiment) refuse(command string, plan []byte) error {
	var was bytes.Buffer
	if err := json.Compact(&was, e.Plan); err != nil && !e.old {
		return fmt.Errorf("%s: %w", objectstore.Join(e.dir, StateName), err)
	}
	switch {
	case e.old:
		return fmt.Errorf("%s was written by an earlier version, which kept no %s: it can be read (reprise report %s) "+
			"and not continued. Choose another directory", e.dir, StateName, e.dir)
	case e.Command != command:
		return fmt.Errorf("%s holds runs of reprise %s: choose another directory", e.dir, e.Command)
	case !bytes.Equal(was.Bytes(), plan):
		return fmt.Errorf("%s holds runs of another workload or of other settings, see %s there: choose another "+
			"directory", e.dir, StateName)
	}
	return nil
}

// Close lets other commands write to the directory.
func (d *Dir) Close() { d.unlock() }

func (d *Dir) write() error {
	return writeIndented(filepath.Join(d.dir, StateName), d.Experiment)
}

// Under keeps the terms that loads are judged by, for readings of a directory that was stopped.
func (d *Dir) Under(t Terms) error {
	if d.Terms = &t; len(t.Clauses) == 0 && t.SLO == "" && t.Contract == "" {
		d.Terms = nil
	}
	return d.write()
}

// Decide keeps what was decided by the first trials, for the others.
func (d *Dir) Decide(design any) (err error) {
	if d.Design, err = json.Marshal(design); err != nil {
		return err
	}
	return d.write()
}

// Rename gives a server another name.
func (d *Dir) Rename(server, name string) error {
	for i := range d.Trials {
		if d.Trials[i].Server == server {
			d.Trials[i].Server = name
		}
	}
	return d.write()
}

// Measured takes trials of a role for measurements, as where pilot rounds decide already.
func (d *Dir) Measured(role string) error {
	for i := range d.Trials {
		if d.Trials[i].Role == role {
			d.Trials[i].Role = ""
		}
	}
	return d.write()
}

// Results is where the results of a trial of that name belong, which may have folders.
func (d *Dir) Results(name ...string) string {
	return filepath.Join(append(append([]string{d.dir}, name...), resultsName)...)
}

// at is where a results file is among the trials, -1 where it is not.
func (e *Experiment) at(results string) int {
	return slices.IndexFunc(e.Trials, func(t KeptTrial) bool { return filepath.Join(e.dir, t.Results) == results })
}

// Has tells whether the trial with these results is whole.
func (e *Experiment) Has(results string) bool { return e.at(results) >= 0 && whole(results) }

// Drop forgets a trial, so that it is made again. What was measured is kept under another name, which
// says why.
func (d *Dir) Drop(results, why string) error {
	if i := d.at(results); i >= 0 {
		d.Trials = slices.Delete(d.Trials, i, i+1)
		if err := d.write(); err != nil {
			return err
		}
	}
	return setAside(filepath.Dir(results), why)
}

// Make makes a trial at a target, which about tells from others, and keeps it under its keys. One that is
// there whole is taken up, unless something else was asked of it. The rest of a stopped trial is set
// aside.
func (d *Dir) Make(ctx context.Context, to Target, about string, k Keys, t Trial) (made bool, err error) {
	asked, err := t.asked(about)
	if err != nil {
		return false, err
	}
	if i := d.at(t.Results); i >= 0 && whole(t.Results) {
		if d.Trials[i].Asked != asked {
			return false, fmt.Errorf("%s holds results of another trial: choose another directory",
				filepath.Dir(t.Results))
		}
		return false, nil
	}

	for _, name := range []string{t.Results, result.JournalName(t.Results)} {
		if _, err := os.Lstat(name); err == nil {
			if err := d.Drop(t.Results, "stopped"); err != nil {
				return false, err
			}
		}
	}
	if err := os.MkdirAll(filepath.Dir(t.Results), 0o755); err != nil {
		return false, err
	}
	if err := to.Run(ctx, t); err != nil {
		return false, fmt.Errorf("%s: %w", t.Name, err)
	}
	if err := ctx.Err(); err != nil || !whole(t.Results) { // a replay that is interrupted ends in results
		return true, err
	}

	name, err := filepath.Rel(d.dir, t.Results)
	if err != nil {
		return true, err
	}
	name = filepath.ToSlash(name)
	d.Trials = slices.DeleteFunc(d.Trials, func(other KeptTrial) bool { return other.Results == name })
	d.Trials = append(d.Trials, KeptTrial{Keys: k, Results: name, Asked: asked})
	return true, d.write()
}

// asked is a digest of a trial without its paths and the seed that is new each time.
func (t Trial) asked(about string) (string, error) {
	t.Workload, t.Results, t.ColdSeed = "", "", ""
	text, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(append(text, 0), about...))
	return hex.EncodeToString(sum[:16]), nil
}

// whole tells whether a results file is of a run that went to its end.
func whole(results string) bool {
	f, err := result.Open(results)
	if err != nil {
		return false
	}
	defer f.Close()
	return !f.Unfinished && f.Run.EndedEarly == ""
}

// setAside makes place for a trial that is made again.
func setAside(dir, why string) error {
	for i := 1; ; i++ {
		name := fmt.Sprintf("%s.%s-%d", dir, why, i)
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Rename(dir, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return os.MkdirAll(dir, 0o755)
	}
}

func writeIndented(path string, v any) error {
	return trace.WriteFile(path, 0o644, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

// earlier are the files by which a directory of an earlier version is known, and the commands that wrote them.
var earlier = map[string]string{"rounds.json": "compare", "suite.json": "bench", "sweep.json": "sweep",
	"frontier.json": "frontier"}

// openEarlier reads a directory that an earlier version wrote: the names of its results say
// their keys. [fs.ErrNotExist] is a directory that has none.
func openEarlier(dir string) (Experiment, error) {
	dir = objectstore.Join(dir)
	e := Experiment{dir: dir, old: true}
	entries, err := objectstore.ReadDir(dir)
	if err != nil {
		return e, err
	}
	for _, entry := range entries {
		if command := earlier[entry.Name()]; command != "" {
			e.Command = command
		}
	}
	if e.Command == "" {
		return e, fs.ErrNotExist
	}

	// What was planned stands in files of its own, as do the names of the two sides of a comparison.
	var said struct {
		Plan   json.RawMessage `json:"plan"`
		A      string          `json:"a"`
		Versus []struct {
			B string `json:"b"`
		} `json:"versus"`
	}
	for _, name := range []string{"suite.json", "rounds.json", "compare.json"} {
		text, err := objectstore.ReadFile(objectstore.Join(dir, name))
		if err == nil && json.Valid(text) && name == "suite.json" {
			e.Plan = text
		} else if err == nil && json.Unmarshal(text, &said) != nil {
			return e, fmt.Errorf("%s is damaged", objectstore.Join(dir, name))
		}
	}
	e.Design = said.Plan
	sides := map[string]string{"A": "A", "B": "B"}
	if len(said.Versus) == 1 {
		sides = map[string]string{"A": said.A, "B": said.Versus[0].B}
	}

	err = objectstore.WalkDir(dir, func(path string, at fs.DirEntry, err error) error {
		if err != nil || at.IsDir() || filepath.Ext(path) != ".parquet" {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(path, dir), "/"))
		if k, ok := earlierKeys(name, e.Command); ok && whole(path) {
			k.Server = cmp.Or(sides[k.Server], k.Server)
			e.Trials = append(e.Trials, KeptTrial{Keys: k, Results: name})
		}
		return nil
	})
	return e, err
}

// earlierKeys are the keys of a results file of an earlier version.
func earlierKeys(name, command string) (k Keys, ok bool) {
	folders := strings.Split(strings.TrimSuffix(name, "/"+resultsName), "/")
	of := func(i int) string {
		if i < len(folders) {
			return folders[i]
		}
		return ""
	}
	switch side := ""; {
	case strings.Contains(name, ".stopped-") || strings.Contains(name, ".untrusted-"):
	case !strings.Contains(name, "/"):
		if n, _ := fmt.Sscanf(name, "round-%02d-%1s.parquet", &k.Round, &side); n == 2 {
			k.Server, ok = strings.ToUpper(side), name == fmt.Sprintf("round-%02d-%s.parquet", k.Round, side)
		}
	case !strings.HasSuffix(name, "/"+resultsName):
	case command == "sweep":
		role, load, _ := strings.Cut(of(len(folders)-1), "-")
		k.Load, ok = earlierLoad(load), true
		if k.Role = role; role == roleLevel {
			k.Role = ""
		}
		if len(folders) > 1 {
			k.Setting = of(0)
		}
	case command == "frontier":
		k.Server, k.Workload, k.Load, ok = of(0), of(1), earlierLoad(of(2)), true
	case command == "bench":
		k.Server, k.Row, k.Workload, ok = of(0), of(1), of(1), true
		_, _ = fmt.Sscanf(of(2), "repeat-%d", &k.Round)
	}
	return k, ok
}

// earlierLoad is the load that a folder is named for.
func earlierLoad(name string) string {
	name, _, _ = strings.Cut(name, "-run-")
	kind, value, _ := strings.Cut(name, "-")
	switch {
	case strings.HasPrefix(name, "session-rate-"):
		return "session-rate:poisson:" + strings.TrimPrefix(name, "session-rate-")
	case kind == "rate":
		return "poisson:" + value
	}
	return kind + ":" + value
}
