package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
)

// Flags of a load by session that contradict each other, or others, are refused with what
// to do.
func TestSessionFlags(t *testing.T) {
	w, _ := agentWorkload(t, 3)
	for flags, says := range map[string]string{
		"--sessions 2 --session-rate 1":                   "give one",
		"--sessions 2 --set max-sessions=3":               "--set max-sessions is for --session-rate",
		"--sessions 2 --concurrency 3":                    "--concurrency counts requests",
		"--session-rate 2 --rate 3":                       "--rate counts requests",
		"--sessions 2 --open-loop":                        "--open-loop counts requests",
		"--set gap-cap=3s":                                "--set gap-cap needs --sessions",
		"--set idle-cap=3s":                               "--set idle-cap needs --sessions",
		"--set think-scale=2":                             "--set think-scale needs --sessions",
		"--set tool-scale=2":                              "--set tool-scale needs --sessions",
		"--set recycle=stop":                              "--set recycle needs --sessions",
		"--sessions 2 --set waits=never":                  "--set waits: want think, ends, aiperf",
		"--set waits=ends":                                "--set waits needs --sessions",
		"--force":                                         "--force is for --scenario",
		"--scenario nowhere":                              "neither a file nor a scenario that is built in",
		"--sessions 2 --set recycle=twice":                "want salt, apart, same or stop",
		"--sessions 2 --loop 3":                           "--set recycle",
		"--sessions 2 --set trajectory-start=0.9..0.1":    "such as 0.25..0.75",
		"--session-rate 2 --set trajectory-start=0..1":    "--set trajectory-start needs --sessions",
		"--warmup 3sessions":                              "needs --sessions",
		"--session-rate often":                            "an arrival process",
		"--sessions 2 --duration 1h --dry-run":            "--set assume",
		"--sessions 2 --set gap-cap=-1s":                  "",
		"--sessions 2 --set row-extra=x":                  "--set row-extra",
		"--sessions 2 --max-in-flight 3 --set ramp-up=1s": "dry",
	} {
		args := append([]string{"replay", w, "-o", filepath.Join(t.TempDir(), "r.parquet")}, strings.Fields(flags)...)
		if says == "dry" {
			must(t, append(args, "--dry-run")...)
			continue
		}
		if strings.Contains(flags, "--duration") {
			args = append(args, "--set", "tool-scale=0", "--set", "think-scale=0")
		}
		if _, errs, code := reprise(t, args...); code != cli.Usage || !strings.Contains(errs, says) {
			t.Errorf("%s: exit code %d: %s", flags, code, errs)
		}
	}
}

// All settings work from a run file, reach the results of a simulation, and a dry run plans
// what the simulation does.
func TestSessionsFromARunFile(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	w, _ := agentWorkload(t, 40)
	run := "sessions: 6\nduration: 60s\nrecycle: same\ngap-cap: 1ms\nidle-cap: 5ms\nthink-scale: 0.5\ntool-scale: 2\nwarmup: 3sessions\n"
	if err := os.WriteFile("run.yaml", []byte(run), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "simulate", w, "--preset", "l4-qwen2.5-0.5b", "--config", "run.yaml", "-o", "r.parquet")
	f, err := result.Open("r.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := *f.Run.Sessions
	c := s.Counts
	s.Counts = nil
	if s != (result.Sessions{Live: 6, Recycle: result.RecycleSame, GapCapNS: 1e6, IdleCapNS: 5e6, ThinkScale: 0.5, ToolScale: 2, WarmTrees: 3}) {
		t.Errorf("%+v", s)
	}
	if c == nil || c.LiveTrees.Min != 6 || c.LiveTrees.Max != 6 || c.MaxPlays < 2 || c.GapCap.Times < 1000 || f.Run.Window == nil {
		t.Errorf("%+v", c)
	}
	if err := os.WriteFile("start.yaml", []byte("sessions: 6\ntrajectory-start: 0.25..0.75\nassume: ttft=20ms,itl=2ms\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var plan struct {
		Timing string           `json:"timing"`
		Load   *result.Sessions `json:"session_load"`
		Plan   struct {
			Requests int64 `json:"requests"`
		} `json:"plan"`
	}
	if err := json.Unmarshal([]byte(must(t, "replay", w, "--dry-run", "--config", "start.yaml", "--json")), &plan); err != nil {
		t.Fatal(err)
	}
	if l := plan.Load; l == nil || l.Start != "0.25..0.75" || l.Counts.Warm.Trees != 6 || l.Counts.Warm.History == 0 || plan.Plan.Requests != 360-l.Counts.Warm.History {
		t.Errorf("%+v", plan)
	}
	must(t, "simulate", w, "--preset", "l4-qwen2.5-0.5b", "--session-rate", "poisson:2", "--set", "max-sessions=4", "-o", "s.parquet")
	g, err := result.Open("s.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if s := g.Run.Sessions; s.Rate != "poisson:2" || s.MaxLive != 4 || s.Counts.Finished != 40 || s.Counts.LiveTrees.Max > 4 || g.Run.Timing != result.Causal {
		t.Errorf("%+v, %+v", s, s.Counts)
	}
}
