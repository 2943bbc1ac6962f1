package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"reprise/replay"
	"reprise/replay/contract"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/longtest"
)

// A pretendedAgents is a server for sessions of three turns that think for one to three
// seconds between them. A turn takes a second, or three where more sessions are live than it serves.
type pretendedAgents struct {
	serves int
	runs   []Trial
}

func (p *pretendedAgents) Run(_ context.Context, t Trial) error {
	p.runs = append(p.runs, t)
	trees, o, err := agentTrees(t)
	if err != nil {
		return err
	}
	defer trees.Close()
	table, err := replay.NewTimetable(o, nil)
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(t.Seed, 10, 64)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	var flying []flight
	live := map[result.SessionKey]int{} // turns that are over
	var rows []result.Result
	for {
		due, ok := table.Next()
		if i := soonest(flying); i >= 0 && (!ok || flying[i].at <= due) {
			e := flying[i]
			flying = append(flying[:i], flying[i+1:]...)
			if live[e.key]++; live[e.key] == 3 {
				delete(live, e.key)
			}
			table.Over(e.id, e.at, false)
			continue
		}
		if !ok {
			break
		}
		d := table.Take()
		r := d.Result
		key, _ := r.SessionKey()
		live[key] += 0
		took := time.Second + time.Duration(rng.IntN(20_000_000)) - 10*time.Millisecond
		switch {
		case p.serves < 0: // they share the server
			took = max(took, time.Second*time.Duration(len(live))/time.Duration(-p.serves))
		case len(live) > p.serves:
			took *= 3
		}
		done := r.DueNS + int64(took)
		r.SentNS, r.FirstTokenNS, r.LastTokenNS, r.DoneNS = trace.Ptr(r.DueNS), trace.Ptr(done), trace.Ptr(done), trace.Ptr(done)
		r.Output, r.Input, r.Cached, r.Events = trace.Ptr(int32(1)), trace.Ptr(int32(8)), trace.Ptr(int32(4)), 1
		rows, flying = append(rows, r), append(flying, flight{d.ID, time.Duration(done), key})
	}
	run, err := table.Finish()
	if err != nil {
		return err
	}
	run.Schema, run.Version, run.Client = result.Schema, "test", result.Client{Cores: 1}
	return result.Write(t.Results, run, &rowReader{rows})
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

type flight struct {
	id  int64
	at  time.Duration
	key result.SessionKey
}

func soonest(of []flight) int {
	at := -1
	for i := range of {
		if at < 0 || of[i].at < of[at].at {
			at = i
		}
	}
	return at
}

// agentTrees are 40 sessions of three turns, under the load of a trial.
func agentTrees(t Trial) (*replay.Trees, replay.Options, error) {
	var rows []trace.Request
	rng := rand.New(rand.NewPCG(1, 1))
	for s := range int64(40) {
		for turn := range int32(3) {
			r := trace.Request{ArrivalNS: s * 1e9, Session: trace.Ptr(s), Turn: trace.Ptr(turn), InputTokens: 8, OutputTokens: trace.Ptr[int32](1)}
			if turn > 0 {
				r.ThinkNS, r.Parents = trace.Ptr(int64(1e9+rng.IntN(2e9))), []int64{int64(len(rows)) - 1}
			}
			rows = append(rows, r)
		}
	}
	trees, err := replay.ReadTrees(&requestReader{rows}, 0, true, "")
	if err != nil {
		return nil, replay.Options{}, err
	}
	s := &replay.SessionLoad{Trees: trees, Live: t.Load.Sessions, Window: t.Session.Window, Recycle: t.Session.Recycle}
	if t.Load.SessionRate != "" {
		process, err := arrival.ParseProcess(t.Load.SessionRate)
		if err != nil {
			return nil, replay.Options{}, err
		}
		s.Arrivals, s.Rate = process.New(arrival.Stream(1, t.Seed)), t.Load.SessionRate
	}
	o := replay.Options{Sessions: s, Duration: t.Duration}
	o.Warmup, err = replay.ParseSpan(t.Warmup)
	return trees, o, err
}

type requestReader struct{ rows []trace.Request }

func (r *requestReader) Read(rows []trace.Request) (int, error) {
	n := copy(rows, r.rows)
	if r.rows = r.rows[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func agentSweep(t *testing.T, p *pretendedAgents, clause string, change func(*Sweep)) SweepResult {
	t.Helper()
	c, err := contract.Parse("c", fmt.Appendf(nil, "clauses: [%s]", clause))
	if err != nil {
		t.Fatal(err)
	}
	s := Sweep{Target: p, Ladder: Ladder{From: 1, To: 64, Resolution: .05, Whole: true}, Sessions: &SessionSweep{SessionSettings: defaultSessionSettings(), Trees: 100, Limit: time.Hour},
		Duration: 5 * time.Second, Confirm: true, Sustain: 20 * time.Second, StopTTFT: 10 * time.Second, Report: report.Options{Contract: &c}, Dir: dirOf(t)}
	if change != nil {
		change(&s)
	}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The greatest number of live sessions is found in a range, and in a list between its levels.
func TestSweepByLiveSessions(t *testing.T) {
	const clause = "p95 session_time <= 10s"            // of 5 to 9 s, and of 11 to 15 where more are live than are served
	best := map[string]float64{"range": 13, "list": 11} // where the line through 8 and 16 meets the limit
	for name, ladder := range map[string]Ladder{
		"range": {From: 1, To: 64, Resolution: .05, Whole: true},
		"list":  {Loads: []float64{4, 8, 16, 32}, Resolution: .05, Whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pretendedAgents{serves: 13}
			r := agentSweep(t, p, clause, func(s *Sweep) { s.Ladder = ladder })
			if r.Unit != unitLiveSessions || !r.Closed || r.Highest.Load == nil || *r.Highest.Load != best[name] || !r.Highest.Sustained || r.Highest.Low == nil || *r.Highest.Low != best[name] || r.Highest.High == nil || *r.Highest.High > 16 {
				t.Errorf("%s, highest %s, stopped %v", r.Unit, asJSON(r.Highest), r.Stopped)
			}
			for i := range r.Levels {
				l := &r.Levels[i]
				trees, want := int64(100), l.Load/7 // N ÷ mean of 7 s
				if l.Role == roleSustain {
					trees = 300
				}
				if l.Load > 13 {
					want = l.Load / 13
				}
				s := l.Sessions
				if s.Measured < trees || s.Censored+s.Failed != 0 || math.Abs(*s.EndedPerS/want-1) > .15 || math.Abs(*s.LiveMean/l.Load-1) > .01 || *s.RequestsMean != 3 || *s.CachedMean != 12 || *s.OutputMean != 3 {
					t.Errorf("%s: %s, want %v/s", l.Name, asJSON(s), want)
				}
			}
			seeds := map[string]bool{}
			for _, run := range p.runs {
				if seeds[run.Seed] || run.Loop || run.Session.Recycle != result.RecycleSalt || !run.Session.Window.Settled {
					t.Errorf("%+v", run)
				}
				seeds[run.Seed] = true
			}
			if got := *r.Highest.SessionsPerS; math.Abs(got/(best[name]/7)-1) > .1 || *r.Highest.OutputPerSession != 3 {
				t.Errorf("%v sessions/s, %v output tokens", got, *r.Highest.OutputPerSession)
			}
		})
	}
}

// The greatest rate of sessions is that at which as many are live as are served, and beyond
// they pile up.
func TestSweepBySessionRate(t *testing.T) {
	longtest.Skip(t)
	p := &pretendedAgents{serves: 40} // 5.7 sessions/s of 7 s, with Poisson arrivals fewer
	r := agentSweep(t, p, "p50 session_time <= 10s", func(s *Sweep) {
		s.Process, s.Ladder = "poisson", Ladder{From: .5, To: 32, Resolution: .05}
	})
	if r.Unit != unitSessionRate || r.Highest.Load == nil || *r.Highest.Load < 3.4 || *r.Highest.Load > 5.8 {
		t.Errorf("%s, highest %s", r.Unit, asJSON(r.Highest))
	}
	for i := range r.Levels {
		l := &r.Levels[i]
		if s := l.Sessions; l.Load <= 2 && (math.Abs(*s.LiveMean/(l.Load*7)-1) > .35 || math.Abs(*s.BegunPerS/l.Load-1) > .35 || l.Outcome != outcomeHolds) {
			t.Errorf("%s %s: %v live, %v begun/s", l.Name, l.Outcome, *s.LiveMean, *s.BegunPerS)
		}
	}
	stuck := agentSweep(t, &pretendedAgents{serves: -5}, "p50 session_time <= 100h", func(s *Sweep) {
		s.Process, s.Ladder, s.Sessions.Limit = "poisson", Ladder{Loads: []float64{4}}, 20*time.Minute
		s.StopTTFT = 10 * time.Hour
	})
	if l := &stuck.Levels[0]; l.Outcome != outcomeSaturated || !strings.Contains(l.Why, "sessions pile up") {
		t.Errorf("%s: %s, %s", l.Outcome, l.Why, asJSON(l.Sessions))
	}
}

// With a precision the interval of session times is what runs are added for, and sessions are
// what the budget counts.
func TestSweepBySessionPrecision(t *testing.T) {
	p := &pretendedAgents{serves: 13}
	r := agentSweep(t, p, "p95 session_time <= 10s", func(s *Sweep) {
		s.Ladder, s.Precision, s.Budget, s.Sustain = Ladder{Loads: []float64{4, 8, 16}, Resolution: .1, Whole: true}, .05, 1500, 0
	})
	if r.Highest.Load == nil || *r.Highest.Load < 12 || *r.Highest.Load > 13 || r.Highest.Low == nil || r.Highest.High == nil || *r.Highest.High > 15 {
		t.Errorf("highest %s", asJSON(r.Highest))
	}
	for i := range r.Levels {
		l := &r.Levels[i]
		n := 0
		for _, m := range l.Intervals {
			if m.Metric == "p95 session_time" {
				if n++; m.Unit != "s" || m.Measured == nil || *m.Measured < 8 || *m.Measured > 15 || l.Outcome != outcomeFails && (m.Low == nil || *m.Low > *m.Measured) || m.Values > 1500 {
					t.Errorf("%s: %s", l.Name, asJSON(m))
				}
			}
		}
		if n != 1 || l.Role == roleConfirm && l.Outcome == outcomeHolds && l.Runs < 2 {
			t.Errorf("%s: %d intervals of p95 session_time, %d runs", l.Name, n, l.Runs)
		}
	}
}

// The same seed makes the same sweep, and what no sweep by session can be is refused.
func TestSweepBySessionIsItsSeed(t *testing.T) {
	make := func(seed uint64) SweepResult {
		return agentSweep(t, &pretendedAgents{serves: 5}, "p95 session_time <= 10s", func(s *Sweep) { s.Seed, s.Ladder.To = seed, 8 })
	}
	if a, b, c := make(3), make(3), make(4); !reflect.DeepEqual(a.Levels, b.Levels) || reflect.DeepEqual(a.Levels, c.Levels) {
		t.Error("two sweeps of a seed differ, or those of two seeds do not")
	}
	good := SessionSweep{SessionSettings: defaultSessionSettings(), Trees: 1, Limit: 1}
	if err := good.check(true); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(s *SessionSweep){
		"same": func(s *SessionSweep) { s.Recycle = result.RecycleSame }, "stop": func(s *SessionSweep) { s.Recycle = result.RecycleStop },
		"held back": func(s *SessionSweep) { s.MaxSessions = 3 }, "none": func(s *SessionSweep) { s.Trees = 0 }, "no time": func(s *SessionSweep) { s.Limit = 0 },
	} {
		bad := good
		if change(&bad); bad.check(true) == nil {
			t.Errorf("%s is taken", name)
		}
	}
	bad := good
	if bad.TrajectoryStart = "0..1"; bad.check(false) == nil {
		t.Error("an open loop that begins inside of sessions is taken")
	}
}

// Loads are lists or ranges.
func TestLevelsOf(t *testing.T) {
	parse := func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
	for _, c := range []struct {
		list     []string
		loads    []float64
		from, to float64
		bad      bool
	}{
		{list: []string{"1", "2.5"}, loads: []float64{1, 2.5}},
		{list: []string{"1..512"}, from: 1, to: 512},
		{list: []string{"0.05..5"}, from: .05, to: 5},
		{list: []string{"5..5"}, bad: true}, {list: []string{"0..5"}, bad: true}, {list: []string{"..5"}, bad: true}, {list: []string{"1", "2..3"}, bad: true}, {list: []string{"x"}, bad: true},
	} {
		loads, from, to, err := LevelsOf(c.list, parse)
		if (err != nil) != c.bad || err == nil && (!reflect.DeepEqual(loads, c.loads) || from != c.from || to != c.to) {
			t.Errorf("%v: %v, %v..%v, %v", c.list, loads, from, to, err)
		}
	}
	for _, l := range []Ladder{{From: 1, To: .5, Resolution: .1}, {From: 1.5, To: 4, Whole: true, Resolution: .1}, {From: 1, To: 1 << 20, Resolution: .1}} {
		if l.check() == nil {
			t.Errorf("%+v is taken", l)
		}
	}
	// A range is not left, whatever its levels say.
	low, high := Ladder{From: 4, To: 10, Resolution: .05, Whole: true}, []Level{{Load: 4, Outcome: outcomeHolds}, {Load: 8, Outcome: outcomeHolds}}
	if next := low.nextLoad(high); next != 10 {
		t.Errorf("after 8 comes %v, want 10", next)
	}
	if next := low.nextLoad(append(high, Level{Load: 10, Outcome: outcomeHolds})); next != 0 {
		t.Errorf("after 10 comes %v", next)
	}
	if next := low.nextLoad([]Level{{Load: 4, Outcome: outcomeFails}}); next != 0 {
		t.Errorf("after a failed 4 comes %v", next)
	}
}

// A row of a suite has a load by session with the keys of a replay, and what makes none is
// refused where it stands.
func TestSuiteBySession(t *testing.T) {
	s, err := ParseSuite("s.yaml", []byte(`
gap-cap: 1m
load: poisson:3
rows:
  - {name: requests, workload: chat}
  - {name: live, workload: chat, sessions: 20, recycle: apart, think-scale: 0, duration: 1m, settle: 30sessions, primary: p95_session_time}
  - {name: open, workload: chat, session-rate: 0.5, max-sessions: 9, gap-cap: 0, waits: ends}
  - {name: short, workload: chat, load: "sessions:7,ramp-up=30s", trajectory-start: 0.25..0.75}
`))
	if err != nil {
		t.Fatal(err)
	}
	settings := defaultSessionSettings()
	settings.GapCap = time.Minute
	live, open, short := settings, settings, settings
	live.Recycle, live.ThinkScale = result.RecycleApart, 0
	open.MaxSessions, open.GapCap, open.Waits = 9, 0, result.WaitsEnds
	short.TrajectoryStart = "0.25..0.75"
	for i, want := range []struct {
		load     string
		settings SessionSettings
	}{{"poisson:3", settings}, {"sessions:20", live}, {"session-rate:poisson:0.5", open}, {"sessions:7,ramp-up=30s", short}} {
		row := &s.Rows[i]
		if row.Load.String() != want.load || row.Session != want.settings {
			t.Errorf("%s: %s, %+v, want %+v", row.Name, row.Load, row.Session, want.settings)
		}
		if again, err := ParseLoad(row.Load.String()); err != nil || again != row.Load {
			t.Errorf("%s is read as %+v, %v", row.Load, again, err)
		}
	}
	for _, bad := range []string{
		"sessions: 0", "sessions: 2, load: burst", "sessions: 2, session-rate: 3", "gap-cap: 3s", "sessions: 2, recycle: never", "sessions: 2, session-idle-cap: 1s",
		"sessions: 2, max-sessions: 3", "session-rate: 2, trajectory-start: 0.5", "sessions: 2, think-scale: -1", "settle: 5sessions", "sessions: 2, waits: long", "session-rate: fast",
	} {
		if _, err := ParseSuite("s.yaml", fmt.Appendf(nil, "rows:\n  - {name: a, workload: chat, %s}\n", bad)); err == nil || !strings.HasPrefix(err.Error(), "s.yaml:2:") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
