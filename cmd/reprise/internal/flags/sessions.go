package flags

import (
	"slices"
	"strings"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay"
	"reprise/replay/result"
	"reprise/trace/arrival"
)

// SessionLoad says how session trees are the unit of load.
type SessionLoad struct {
	Sessions              int    // --sessions, live at once; 0 is none
	SessionRate           string // --session-rate, empty is none
	maxSessions           int
	recycle, waits        string
	gapCap, idleCap       time.Duration
	treeCap               time.Duration
	thinkScale, toolScale float64
	Trajectory            string        // --trajectory-start, of a replay
	Trees                 *replay.Trees // of the workload, once they are read
	MaxPlays              int64         // of one tree, that prompts can be told apart in; 0 is no limit
}

// Recycling are the values of --recycle.
func Recycling() []string {
	return []string{result.RecycleSalt, result.RecycleApart, result.RecycleSame, result.RecycleStop}
}

// BySession says whether the unit of load is the session.
func (f *SessionLoad) BySession() bool { return f.Sessions > 0 || f.SessionRate != "" }

// Recycle says what becomes of a session that is played again: a constant of package result.
func (f *SessionLoad) Recycle() string { return f.recycle }

// Salted says whether a session that is played again has prompts of its own.
func (f *SessionLoad) Salted() bool {
	return f.recycle == result.RecycleSalt || f.recycle == result.RecycleApart
}

// Waiting lists the values of --waits.
func Waiting() []string {
	return []string{result.WaitsThink, result.WaitsEnds, result.WaitsAIPerf}
}

// Register adds the flags, but for --trajectory-start, which only a replay has.
func (f *SessionLoad) Register(everyday, rest Section) {
	everyday.IntVar(&f.Sessions, "sessions", 0, "closed loop over whole sessions: keep this many live, each with its turns, forks, joins and waits")
	everyday.Var(&rateFlag{to: &f.SessionRate}, "session-rate", "start whole sessions by this `process`, as --rate has them, whatever their recorded start")
	rest.IntVar(&f.maxSessions, "max-sessions", 0, "most live sessions with --session-rate; one that is held back is counted. 0 is no limit")
	rest.StringVar(&f.recycle, "recycle", result.RecycleSalt, "when all sessions were played before --duration is over: salt (again, with prompts of their own), apart (so that nothing is shared between sessions either, from the first play on), same (again, the same prompts) or stop")
	rest.StringVar(&f.waits, "waits", result.WaitsThink, "what a turn waits after those before it, in a load by session: think (its think and tool time), ends (what was recorded from their end to its start) or aiperf (as AIPerf 0.13: a join at once)")
	rest.DurationVar(&f.gapCap, "gap-cap", 0, "longest wait of a turn after those before it, in a load by session, after --speed; 0 is no limit")
	rest.DurationVar(&f.idleCap, "idle-cap", 0, "longest time with nothing in flight or due, in a load by session: all that is to come moves earlier alike; 0 is no limit")
	rest.DurationVar(&f.treeCap, "session-idle-cap", 0, "longest time with nothing in flight of a session, in a load by session: all that is to come of it moves earlier alike; 3s or more, 0 is no limit")
	rest.NumberVar(&f.thinkScale, "think-scale", 1, "multiply think times by this, in a load by session")
	rest.NumberVar(&f.toolScale, "tool-scale", 1, "multiply tool times by this, in a load by session")
}

// RegisterTrajectory adds --trajectory-start.
func (f *SessionLoad) RegisterTrajectory(rest Section) {
	rest.StringVar(&f.Trajectory, "trajectory-start", "", "begin the first --sessions inside, at a random `share` of their time such as 0.25..0.75; the server's cache is brought there first")
}

// checkSessions refuses flags that cannot be used together.
func (f *SessionLoad) checkSessions(l *Load) error {
	if !f.BySession() {
		for _, other := range []struct {
			name  string
			given bool
		}{
			{"max-sessions", f.maxSessions != 0}, {"recycle", f.recycle != result.RecycleSalt && f.recycle != ""}, {"gap-cap", f.gapCap != 0}, {"idle-cap", f.idleCap != 0}, {"session-idle-cap", f.treeCap != 0},
			{"waits", f.waits != result.WaitsThink && f.waits != ""}, {"think-scale", f.thinkScale != 1 && f.recycle != ""}, {"tool-scale", f.toolScale != 1 && f.recycle != ""}, {"trajectory-start", f.Trajectory != ""},
		} {
			if other.given {
				return cli.Usagef("--%s needs --sessions or --session-rate", other.name)
			}
		}
		if f.Sessions < 0 {
			return cli.Usagef("--sessions must not be negative")
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
		return cli.Usagef("--sessions keeps so many live and --session-rate starts them by a process: give one; --max-sessions limits those of --session-rate")
	case f.Sessions > 0 && f.maxSessions != 0:
		return cli.Usagef("--max-sessions is for --session-rate: --sessions itself is how many are live")
	case f.maxSessions < 0 || f.gapCap < 0 || f.idleCap < 0 || !(f.thinkScale >= 0) || !(f.toolScale >= 0):
		return cli.Usagef("--max-sessions, --gap-cap, --idle-cap, --think-scale and --tool-scale must not be negative")
	case f.treeCap != 0 && f.treeCap < 3*time.Second:
		return cli.Usagef("--session-idle-cap: want 3s or more: requests are prepared 2 s before they are due")
	case !slices.Contains(Recycling(), f.recycle):
		return cli.Usagef("--recycle: want %s or %s", strings.Join(Recycling()[:3], ", "), Recycling()[3])
	case !slices.Contains(Waiting(), f.waits):
		return cli.Usagef("--waits: want %s", strings.Join(Waiting(), ", "))
	case f.Trajectory != "" && f.Sessions == 0:
		return cli.Usagef("--trajectory-start needs --sessions: it is for the sessions that are live at first")
	}
	return nil
}

// sessions is the load of sessions that the flags ask for, nil for none, with a seed for
// random arrivals and starts, and a number of sessions for a rate that grows with it.
func (f *SessionLoad) sessions(seed uint64, requests int64) (*replay.SessionLoad, error) {
	if !f.BySession() {
		return nil, nil
	}
	s := &replay.SessionLoad{Trees: f.Trees, Live: f.Sessions, Rate: f.SessionRate, MaxLive: f.maxSessions, Recycle: f.recycle, MaxPlays: f.MaxPlays, Waits: f.waits,
		GapCap: f.gapCap, IdleCap: f.idleCap, TreeCap: f.treeCap, ThinkScale: &f.thinkScale, ToolScale: &f.toolScale}
	if f.SessionRate != "" {
		process, err := arrivals(f.SessionRate, arrival.Stream(seed, "replay sessions"), requests)
		if err != nil {
			return nil, cli.Usagef("--session-rate: %v", err)
		}
		s.Arrivals = process
	}
	if f.Trajectory != "" {
		start, err := replay.ParseTrajectoryStart(f.Trajectory)
		if err != nil {
			return nil, cli.Usagef("--trajectory-start: %v", err)
		}
		start.Seed = seed
		s.Start = start
	}
	return s, nil
}
