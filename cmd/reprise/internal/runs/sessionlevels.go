package runs

import (
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/bench"
	"reprise/trace/quantity"
)

// SessionBudget is how many sessions a level measures at most with --precision, by default.
const SessionBudget = 10_000

// SessionLevels are the flags of a sweep by session.
type SessionLevels struct {
	Live     []string // --sessions
	rates    []string // --session-rates
	trees    int64
	limit    time.Duration
	settings bench.SessionSettings
}

// ofSessionLevels are flags that mean nothing without a sweep by session.
var ofSessionLevels = []string{"level-sessions", "level-limit", "recycle", "waits", "gap-cap", "idle-cap",
	"session-idle-cap", "think-scale", "tool-scale", "trajectory-start"}

// Register adds the flags.
func (f *SessionLevels) Register(everyday, rest flags.Section) {
	everyday.StringSliceVar(&f.Live, "sessions", nil,
		"closed loop over whole sessions: how many are live at the levels, such as 8,16,32, or a range to search, "+
			"such as 1..512")
	rest.StringSliceVar(&f.rates, "session-rates", nil,
		"open loop over whole sessions: how many start each second at the levels, such as 0.1,0.2,0.5, or a range to "+
			"search, such as 0.05..5")
	rest.Int64Var(&f.trees, "level-sessions", 0, "")
	rest.DurationVar(&f.limit, "level-limit", 0, "")
	flags.RegisterSessions(rest, &f.settings)
	rest.StringVar(&f.settings.TrajectoryStart, "trajectory-start", "", "")
}

// Given says whether the sweep is by session.
func (f *SessionLevels) Given() bool { return len(f.Live)+len(f.rates) > 0 }

// Check refuses flags that cannot be used together, and takes the defaults of an endpoint or of
// a model in virtual time.
func (f *SessionLevels) Check(cmd *cobra.Command, simulated bool) error {
	if !f.Given() {
		return flags.Refuse(cmd, "needs --sessions or --session-rates", ofSessionLevels...)
	}
	defaultTrees, defaultLimit := int64(100), 30*time.Minute
	if simulated { // time costs little
		defaultTrees, defaultLimit = 1_000, 6*time.Hour
	}
	if !cmd.Flags().Changed("level-sessions") {
		f.trees = defaultTrees
	}
	if !cmd.Flags().Changed("level-limit") {
		f.limit = defaultLimit
	}
	switch {
	case len(f.Live) > 0 && len(f.rates) > 0:
		return cli.Usagef("--sessions keeps so many live and --session-rates starts so many each second: give one")
	case f.settings.TrajectoryStart != "" && simulated:
		return cli.Usagef("--set trajectory-start is not simulated: engines begin empty in each run")
	}
	// What a run would refuse, before the first.
	load := flags.Load{Speed: 1}
	load.SessionSettings = f.settings
	if load.Sessions = 1; len(f.Live) == 0 {
		load.Sessions, load.SessionRate = 0, "poisson:1"
	}
	return load.Check()
}

// Sweep says how the levels are made.
func (f *SessionLevels) Sweep() *bench.SessionSweep {
	return &bench.SessionSweep{SessionSettings: f.settings, Trees: f.trees, Limit: f.limit}
}

// Ladder is the loads that the flags name, or the range in which they are searched for.
func (f *SessionLevels) Ladder(resolution float64, past bool) (bench.Ladder, error) {
	l := bench.Ladder{Resolution: resolution, Whole: len(f.Live) > 0, Past: past}
	flag, list := "session-rates", f.rates
	if l.Whole {
		flag, list = "sessions", f.Live
	}
	parse := quantity.Rate
	if l.Whole {
		parse = func(s string) (float64, error) {
			n, err := quantity.Count(s)
			return float64(n), err
		}
	}
	var err error
	if l.Loads, l.From, l.To, err = bench.LevelsOf(list, parse); err != nil {
		return l, cli.Usagef("--%s: %v", flag, err)
	}
	return l, nil
}
