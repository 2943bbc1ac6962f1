package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/bench"
	"reprise/replay/report"
	"reprise/replay/result"
)

// A sweep by session finds a number of live sessions in virtual time and at a server, the same
// in each sweep of a seed, and a capacity is made of it.
func TestSweepSessions(t *testing.T) {
	long(t)
	w, _ := agentWorkload(t, 200)
	dir := filepath.Join(t.TempDir(), "s")
	args := []string{"sweep", w, "--preset=l4-qwen2.5-0.5b", "--sessions=1..4", "--set", "level-sessions=20", "--sustain=0s", "--level-duration=1s", "--clause=p95 session_time <= 100s", "--json"}
	sweep := func(more ...string) bench.SweepResult {
		out, errs, code := reprise(t, append(args, more...)...)
		var r bench.SweepResult
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.Good {
			t.Fatalf("%v, exit code %d\n%s", err, code, errs)
		}
		return r
	}
	a, b := sweep("-o", dir), sweep()
	x, _ := json.Marshal(a.Levels)
	y, _ := json.Marshal(b.Levels)
	if string(x) != string(y) || a.Unit != "live_sessions" || a.Highest.Load == nil || *a.Highest.Load != 4 || !a.Highest.AtLeast || a.Levels[2].Sessions.Measured < 20 {
		t.Errorf("%s, highest %+v\n%s\n%s", a.Unit, a.Highest, x, y)
	}
	out, errs, code := reprise(t, "capacity", dir, "--target-sessions=10", "--price-per-gpu-hour=2", "--json")
	var c bench.Capacity
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != cli.Good || c.Instances != 3 || c.Cost.PerSession == nil {
		t.Errorf("capacity: %v, exit code %d, %+v\n%s", err, code, c, errs)
	}
	server := newSessionServer(t)
	out, errs, code = reprise(t, "sweep", w, "--url", server.url, "--sessions=5", "--set", "level-sessions=20", "--no-confirm", "--level-duration=1s", "--trust=max-stall-ttft=off,max-stall-gap=off,max-lag=off,max-lag-p50=off,max-lag-drift=off", "--json")
	var live bench.SweepResult
	if err := json.Unmarshal([]byte(out), &live); err != nil || code != cli.Good || live.Levels[0].Sessions.Measured < 20 || live.Levels[0].Sessions.Censored != 0 {
		t.Errorf("%v, exit code %d, %s\n%s", err, code, out, errs)
	}
}

// What is no sweep by session is refused, and says what to do.
func TestSweepSessionsRefused(t *testing.T) {
	w, _ := agentWorkload(t, 5)
	for _, c := range [][2]string{
		{"--sessions=4 --rates=3", "give one"}, {"--sessions=4 --session-rates=3", "give one"}, {"--set gap-cap=3s", "needs --sessions"}, {"--set level-sessions=3", "needs --sessions"},
		{"--sessions=4..2", "is empty"}, {"--sessions=some", "--sessions"}, {"--sessions=4 --set recycle=same", "prompts of their own"}, {"--sessions=4 --set trajectory-start=0.5", "not simulated"},
		{"--sessions=4 --warmup=30", "number of sessions"}, {"--sessions=1..4 --adaptive", "range"},
	} {
		_, errs, code := reprise(t, append([]string{"sweep", w, "--preset=l4-qwen2.5-0.5b"}, strings.Fields(c[0])...)...)
		if code != cli.Usage || !strings.Contains(errs, c[1]) {
			t.Errorf("%s: exit code %d, want %q in\n%s", c[0], code, c[1], errs)
		}
	}
}

// After a warm-up pass over sessions all of the first plays is known, and nothing of plays with
// prompts of their own but what they share.
func TestSessionsWarm(t *testing.T) {
	long(t)
	t.Parallel()
	w, _ := agentWorkload(t, 20)
	server := newSessionServer(t)
	for _, c := range []struct {
		recycle string
		all     bool // of later plays
	}{{result.RecycleSalt, false}, {result.RecycleSame, true}} {
		out := filepath.Join(t.TempDir(), "r.parquet")
		must(t, "replay", w, "--url", server.url, "-o", out, "--quiet", "--sessions", "20", "--cache", "warm", "--duration", "3s", "--set", "recycle="+c.recycle)
		f, err := result.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		known, of := map[bool]int64{}, map[bool]int64{}
		var rows [64]result.Result
		for r := f.Reader(); ; {
			n, err := r.Read(rows[:])
			for i := range rows[:n] {
				if x := &rows[i]; x.Known != nil {
					later := *x.Play > 0
					known[later], of[later] = known[later]+int64(*x.Known), of[later]+int64(report.InputTokens(x))
				}
			}
			if err != nil {
				break
			}
		}
		if of[false] == 0 || of[true] == 0 || known[false] < of[false]*95/100 || (known[true] >= of[true]*95/100) != c.all {
			t.Errorf("%s: %v tokens known of %v, by whether it is a later play", c.recycle, known, of)
		}
	}
}
