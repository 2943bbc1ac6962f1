package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/replay/report"
)

// dirOf is a directory for the trials of a test.
func dirOf(t *testing.T) *Dir {
	t.Helper()
	d, err := Continue(t.TempDir(), "sweep", nil, report.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// A directory takes up the trials that it has whole, and is closed to other commands, plans and processes.
func TestContinue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	if _, err := Open(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	d, err := Continue(path, "sweep", map[string]int{"a": 1}, report.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Continue(path, "sweep", map[string]int{"a": 1}, report.Limits{}); err == nil || !strings.Contains(err.Error(), "another command is writing to") {
		t.Errorf("a directory that is written to: %v", err)
	}
	p := &pretended{serves: 1000, sends: 1000}
	trial := Trial{Name: "one", Load: Load{Rate: "constant:5"}, Seed: "1", Results: d.Results("one")}
	for i, want := range []bool{true, false} {
		made, err := d.Make(t.Context(), p, "about", Keys{Load: "constant:5"}, trial)
		if err != nil || made != want {
			t.Errorf("run %d: made %v, %v", i, made, err)
		}
	}
	if _, err := d.Make(t.Context(), p, "another", Keys{}, trial); err == nil || !strings.Contains(err.Error(), "results of another trial") {
		t.Errorf("another target: %v", err)
	}
	d.Close()

	for command, plan := range map[string]int{"sweep": 2, "bench": 1} {
		if _, err := Continue(path, command, map[string]int{"a": plan}, report.Limits{}); err == nil || !strings.Contains(err.Error(), "choose another directory") {
			t.Errorf("%s, %d: %v", command, plan, err)
		}
	}
	if d, err = Continue(path, "sweep", map[string]int{"a": 1}, report.Limits{}); err != nil || !d.Has(trial.Results) || len(d.Trials) != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	defer d.Close()
	if err := os.Remove(trial.Results); err != nil {
		t.Fatal(err)
	}
	if made, err := d.Make(t.Context(), p, "about", Keys{}, trial); err != nil || !made || len(d.Trials) != 1 {
		t.Errorf("a trial whose results are gone: %v, %v", made, err)
	}
}

// A trial that fails, or is interrupted, is not there.
func TestTrialsAreWholeOrAbsent(t *testing.T) {
	d := dirOf(t)
	trial := Trial{Name: "one", Load: Load{Rate: "constant:5"}, Seed: "1", Results: d.Results("one")}
	ctx, cancel := context.WithCancel(t.Context())
	for name, c := range map[string]struct {
		ctx context.Context
		to  Target
	}{"fails": {t.Context(), failing{}}, "interrupted": {ctx, canceling{&pretended{serves: 1000, sends: 1000}, cancel}}} {
		if _, err := d.Make(c.ctx, c.to, "", Keys{}, trial); err == nil || d.Has(trial.Results) {
			t.Errorf("%s: %v, kept %v", name, err, d.Trials)
		}
	}
}

type failing struct{}

func (failing) Run(context.Context, Trial) error { return errors.New("it fails") }

// A canceling target makes a trial that is interrupted at its end.
type canceling struct {
	*pretended
	cancel func()
}

func (c canceling) Run(ctx context.Context, t Trial) error {
	defer c.cancel()
	return c.pretended.Run(ctx, t)
}

// Directories of earlier versions are read by the names of their results, and not continued.
func TestEarlierKeys(t *testing.T) {
	for name, want := range map[string]struct {
		command string
		keys    Keys
		ok      bool
	}{
		"round-03-b.parquet":                      {"compare", Keys{Server: "B", Round: 3}, true},
		"round-01-aa-1.parquet":                   {"compare", Keys{}, false},
		"pilot-01-a.parquet":                      {"compare", Keys{}, false},
		"level-rate-5/results.parquet":            {"sweep", Keys{Load: "poisson:5"}, true},
		"x-64/level-rate-5/results.parquet":       {"sweep", Keys{Load: "poisson:5", Setting: "x-64"}, true},
		"confirm-concurrency-8/results.parquet":   {"sweep", Keys{Load: "concurrency:8", Role: "confirm"}, true},
		"level-rate-5.stopped-1/results.parquet":  {"sweep", Keys{}, false},
		"level-session-rate-0.5/results.parquet":  {"sweep", Keys{Load: "session-rate:poisson:0.5"}, true},
		"m/chat/results.parquet":                  {"bench", Keys{Server: "m", Row: "chat", Workload: "chat"}, true},
		"m/chat/repeat-2/results.parquet":         {"bench", Keys{Server: "m", Row: "chat", Workload: "chat", Round: 2}, true},
		"workloads/chat.parquet":                  {"bench", Keys{}, false},
		"host/chat/concurrency-4/results.parquet": {"frontier", Keys{Server: "host", Workload: "chat", Load: "concurrency:4"}, true},
		"host/chat/concurrency-4.parquet":         {"frontier", Keys{}, false},
		"level-rate-5-run-2/results.parquet":      {"sweep", Keys{Load: "poisson:5"}, true},
	} {
		k, ok := earlierKeys(name, want.command)
		if ok != want.ok || ok && k != want.keys {
			t.Errorf("%s: %+v, %v", name, k, ok)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"sweep.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Continue(dir, "sweep", nil, report.Limits{}); err == nil || !strings.Contains(err.Error(), "written by an earlier version") {
		t.Errorf("%v", err)
	}
}

func FuzzExperiment(f *testing.F) {
	f.Add([]byte(`{"schema": "experiment/1", "command": "sweep", "plan": {}, "trials": [{"load": "poisson:5", "results": "a/results.parquet"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, StateName), text, 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := Open(dir)
		if err != nil {
			return
		}
		for _, trial := range e.Trials {
			if path := e.Path(trial); !strings.HasPrefix(path, dir) {
				t.Errorf("%s is outside", path)
			}
		}
		_ = e.refuse("sweep", []byte("{}"))
	})
}

// A comparison that was stopped while it was planned is read by its pilot rounds, which are no measurements once there
// are others.
func TestPilotRoundsAreRead(t *testing.T) {
	e := Experiment{Command: "compare"}
	keep := func(role string, round int) {
		for _, server := range []string{"A", "B"} {
			of := Keys{Workload: "w", Load: "poisson:4", Server: server, Role: role, Round: round}
			e.Trials = append(e.Trials, KeptTrial{Keys: of,
				Results: fmt.Sprintf("%s-%d-%s/results.parquet", role, round, server)})
		}
	}
	keep(RolePilot, 1)
	keep(RolePilot, 2)
	for _, want := range []int{2, 1} {
		arms, err := Arms(e)
		if err != nil || len(arms) != 2 || len(arms[0].Files) != want || len(arms[1].Files) != want {
			t.Errorf("%+v, %v, want %d rounds", arms, err, want)
		}
		keep("", 1)
	}
}
