package flags

import (
	"slices"
	"strings"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay"
	"reprise/replay/bench"
	"reprise/replay/result"
	"reprise/trace/arrival"
)

// SessionLoad says how session trees are the unit of load.
type SessionLoad struct {
	Sessions    int    // --sessions, live at once; 0 is none
	SessionRate string // --session-rate, empty is none
	bench.SessionSettings
	Window   *replay.SessionWindow // of a trial that measures whole trees
	Trees    *replay.Trees         // of the workload, once they are read
	MaxPlays int64                 // of one tree, that prompts can be told apart in; 0 is no limit
}

// Recycling are the values of recycle.
func Recycling() []string {
	return []string{result.RecycleSalt, result.RecycleApart, result.RecycleSame, result.RecycleStop}
}

// BySession says whether the unit of load is the session.
func (f *SessionLoad) BySession() bool { return f.Sessions > 0 || f.SessionRate != "" }

// Salted says whether a session that is played again has prompts of its own.
func (f *SessionLoad) Salted() bool {
	return f.Recycle == result.RecycleSalt || f.Recycle == result.RecycleApart
}

// Waiting lists the values of waits.
func Waiting() []string {
	return []string{result.WaitsThink, result.WaitsEnds, result.WaitsAIPerf}
}

// Register adds the flags, but for trajectory-start, which only a replay has.
func (f *SessionLoad) Register(everyday, rest Section) {
	everyday.IntVar(&f.Sessions, "sessions", 0,
		"closed loop: keep this many whole sessions live")
	everyday.Var(&rateFlag{to: &f.SessionRate}, "session-rate",
		"start whole sessions by this `process`, as --rate has them, whatever their recorded start")
	rest.IntVar(&f.MaxSessions, "max-sessions", 0, "")
	RegisterSessions(rest, &f.SessionSettings)
}

// RegisterSessions adds the flags of how sessions are played, but for max-sessions and
// trajectory-start.
func RegisterSessions(rest Section, f *bench.SessionSettings) {
	rest.StringVar(&f.Recycle, "recycle", result.RecycleSalt, "")
	rest.StringVar(&f.Waits, "waits", result.WaitsThink, "")
	rest.DurationVar(&f.GapCap, "gap-cap", 0, "")
	rest.DurationVar(&f.IdleCap, "idle-cap", 0, "")
	rest.DurationVar(&f.SessionIdleCap, "session-idle-cap", 0, "")
	rest.NumberVar(&f.ThinkScale, "think-scale", 1, "")
	rest.NumberVar(&f.ToolScale, "tool-scale", 1, "")
}

// checkSessions refuses flags that cannot be used together.
func (f *SessionLoad) checkSessions(l *Load) error {
	if !f.BySession() {
		for _, other := range []struct {
			name  string
			given bool
		}{
			{"max-sessions", f.MaxSessions != 0}, {"recycle", f.Recycle != result.RecycleSalt && f.Recycle != ""},
			{"gap-cap", f.GapCap != 0}, {"idle-cap", f.IdleCap != 0}, {"session-idle-cap", f.SessionIdleCap != 0},
			{"waits", f.Waits != result.WaitsThink && f.Waits != ""}, {"think-scale", f.ThinkScale != 1 &&
				f.Recycle != ""}, {"tool-scale", f.ToolScale != 1 && f.Recycle != ""}, {"trajectory-start",
				f.TrajectoryStart != ""},
		} {
			if other.given {
				return cli.Usagef("--set %s needs --sessions or --session-rate", other.name)
			}
		}
		return nil
	}
	for _, other := range []struct {
		name  string
		given bool
	}{{"open-loop", l.OpenLoop}, {"rate", l.Rate != ""}, {"concurrency", l.Concurrency != 0}} {
		if other.given {
			return cli.Usagef("--%s counts requests: it cannot be used with --sessions or --session-rate", other.name)
		}
	}
	switch {
	case f.Sessions > 0 && f.SessionRate != "":
		return cli.Usagef("--sessions keeps so many live and --session-rate starts them by a process: give one; " +
			"--set max-sessions limits the sessions of --session-rate")
	case f.Sessions > 0 && f.MaxSessions != 0:
		return cli.Usagef("--set max-sessions is for --session-rate: --sessions itself is how many are live")
	case f.SessionIdleCap != 0 && f.SessionIdleCap < 3*time.Second:
		return cli.Usagef("--set session-idle-cap: want 3s or more: requests are prepared 2 s before they are due")
	case !slices.Contains(Recycling(), f.Recycle):
		return cli.Usagef("--set recycle: want %s or %s", strings.Join(Recycling()[:3], ", "), Recycling()[3])
	case !slices.Contains(Waiting(), f.Waits):
		return cli.Usagef("--set waits: want %s", strings.Join(Waiting(), ", "))
	case f.TrajectoryStart != "" && f.Sessions == 0:
		return cli.Usagef("--set trajectory-start needs --sessions: it is for the sessions that are live at first")
	}
	return nil
}

// sessions is the load of sessions that the flags ask for, nil for none, with a seed for
// random arrivals and starts, and a number of sessions for a rate that grows with it.
func (f *SessionLoad) sessions(seed uint64, requests int64) (*replay.SessionLoad, error) {
	if !f.BySession() {
		return nil, nil
	}
	s := &replay.SessionLoad{Trees: f.Trees, Live: f.Sessions, Rate: f.SessionRate, MaxLive: f.MaxSessions,
		Recycle: f.Recycle, MaxPlays: f.MaxPlays, Waits: f.Waits, Window: f.Window,
		GapCap: f.GapCap, IdleCap: f.IdleCap, TreeCap: f.SessionIdleCap, ThinkScale: &f.ThinkScale,
		ToolScale: &f.ToolScale}
	if f.SessionRate != "" {
		process, err := arrivals(f.SessionRate, arrival.Stream(seed, "replay sessions"), requests)
		if err != nil {
			return nil, cli.Usagef("--session-rate: %v", err)
		}
		s.Arrivals = process
	}
	if f.TrajectoryStart != "" {
		start, err := replay.ParseTrajectoryStart(f.TrajectoryStart)
		if err != nil {
			return nil, cli.Usagef("--set trajectory-start: %v", err)
		}
		start.Seed = seed
		s.Start = start
	}
	return s, nil
}
