package bench

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"reprise/replay"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace/doc"
)

// SessionSettings say how session trees are played: the flags of replay of the same names, and
// the keys of a suite. See [replay.SessionLoad].
type SessionSettings struct {
	MaxSessions     int           `json:"max_sessions,omitempty"` // live at once, of an open loop; 0 is no limit
	Recycle         string        `json:"recycle"`                // a constant of package result
	Waits           string        `json:"waits"`                  // the same
	GapCap          time.Duration `json:"gap_cap_ns,omitempty"`
	IdleCap         time.Duration `json:"idle_cap_ns,omitempty"`
	SessionIdleCap  time.Duration `json:"session_idle_cap_ns,omitempty"`
	ThinkScale      float64       `json:"think_scale"`
	ToolScale       float64       `json:"tool_scale"`
	TrajectoryStart string        `json:"trajectory_start,omitempty"`
}

// defaultSessionSettings are those of a replay without flags.
func defaultSessionSettings() SessionSettings {
	return SessionSettings{Recycle: result.RecycleSalt, Waits: result.WaitsThink, ThinkScale: 1, ToolScale: 1}
}

// A SessionTrial is what a [Trial] under a load by session has beside that load.
type SessionTrial struct {
	SessionSettings
	// Window, when set, measures whole trees after the warm-up, which are drawn by the seed, and
	// ends the run; the trial's Duration then bounds it. Without one Warmup, Cooldown and Duration
	// are of requests, as in a replay.
	Window *replay.SessionWindow `json:",omitempty"`
}

// A SessionSweep makes a [Sweep] one over session trees: how many are live, or, with
// arrivals, how many start each second.
type SessionSweep struct {
	SessionSettings
	Trees int64         // measured at a level, at least; of a closed loop as many as are live, if that is more
	Limit time.Duration // of a level, all in all
}

// leastWarmTrees have ended before trees are measured, at least.
const leastWarmTrees = 20

// sustainTrees is how many times as many trees as another level the one has that sustains.
const sustainTrees = 3

func (s *SessionSweep) check(closed bool) error {
	switch {
	case s.Recycle != result.RecycleSalt && s.Recycle != result.RecycleApart:
		return fmt.Errorf("a sweep plays sessions again with prompts of their own: --set recycle=%s or %s; with "+
			"another, a session would hit its own earlier run, or the level end too soon", result.RecycleSalt,
			result.RecycleApart)
	case s.MaxSessions != 0:
		return errors.New("a limit of live sessions would hide what a rate of sessions does to the server")
	case s.Trees < 1 || s.Limit <= 0:
		return errors.New("a level measures one session at least, and its limit of time is above 0")
	case s.TrajectoryStart != "" && !closed:
		return errors.New("a start inside of sessions is for a number of live sessions")
	}
	return nil
}

// trial makes a trial one of sessions, with a factor on what is measured.
func (s *SessionSweep) trial(t *Trial, load float64, closed bool, arrivals string, factor int64,
	atLeast time.Duration) {
	trees := s.Trees
	if t.Load.SessionRate = arrivals; closed {
		t.Load.Sessions = int(load)
		trees = max(trees, int64(load))
	}
	w := &replay.SessionWindow{Trees: trees * factor, For: atLeast, Settled: t.Warmup == ""}
	if w.Settled {
		t.Warmup = fmt.Sprintf("%dsessions", leastWarmTrees)
	}
	t.Loop, t.Duration = false, s.Limit*time.Duration(factor)
	t.Session = &SessionTrial{s.SessionSettings, w}
}

// tellCut notes what the limit of time did to a level.
func (s *SessionSweep) tellCut(l *Level) {
	if s == nil || l.Sessions.Censored == 0 || l.Outcome == outcomeUntrusted {
		return
	}
	note := fmt.Sprintf("%d of %d measured sessions were not over when the level had to end; a longer "+
		"--set level-limit lets them end", l.Sessions.Censored, l.Sessions.Measured)
	l.note(note)
}

// LevelSessions are the figures by session of a level. Sessions are trees.
type LevelSessions struct {
	Measured     int64       `json:"measured"` // that began in the window
	Succeeded    int64       `json:"succeeded"`
	Failed       int64       `json:"failed"`
	Censored     int64       `json:"censored"`      // not over when the level had to end
	SuccessShare *float64    `json:"success_share"` // of those that ended
	Begun        int64       `json:"begun"`         // in the window
	Ended        int64       `json:"ended"`         // in the window, whenever they began
	BegunPerS    *float64    `json:"begun_per_s"`
	EndedPerS    *float64    `json:"ended_per_s"`
	LiveMean     *float64    `json:"live_mean"`    // in the window
	LiveBefore   int64       `json:"live_at_half"` // of the window
	LiveAfter    int64       `json:"live_at_end"`
	Time         report.Stat `json:"time"`          // of those that succeeded, from first due time to last answer
	ServerMeanS  *float64    `json:"server_mean_s"` // of that, in which the server worked, along the critical path
	RequestsMean *float64    `json:"requests_mean"` // of a session
	InputMean    *float64    `json:"input_tokens_mean"`
	CachedMean   *float64    `json:"cached_tokens_mean"`
	OutputMean   *float64    `json:"output_tokens_mean"`
}

// levelSessions takes the figures by session from the summary and the sessions of a run.
// share is of the sessions that are known.
func levelSessions(s *report.Summary, run *result.Run, all []report.SessionTime, share float64) *LevelSessions {
	l := &LevelSessions{}
	if of := s.Sessions; of != nil {
		l.Measured, l.Succeeded, l.Failed, l.Censored, l.SuccessShare = of.Sessions, of.Succeeded, of.Failed,
			of.Censored, of.SuccessShare
		l.Time, l.RequestsMean, l.InputMean, l.CachedMean, l.OutputMean = of.Completion, of.Requests.Mean,
			of.Input.Mean, of.Cached.Mean, of.Output.Mean
		if of.Path != nil {
			l.ServerMeanS = of.Path.Server.MeanS
		}
	} else { // no session came to a second request
		for i := range all {
			switch all[i].Outcome {
			case report.SessionSucceeded:
				l.Succeeded++
			case report.SessionFailed:
				l.Failed++
			case report.SessionCensored:
				l.Censored++
			}
		}
		l.Measured, l.SuccessShare = l.Succeeded+l.Failed+l.Censored, report.Ratio(l.Succeeded, l.Succeeded+l.Failed)
	}
	last := int64(0)
	for i := range all {
		last = max(last, all[i].StartNS+all[i].NS)
	}
	if end := run.Plan.DurationNS; end > 0 { // of the sending; what was in flight then may have taken long
		last = min(last, end)
	}
	from, to := run.Window.Span(last)
	if from >= to {
		return l
	}
	half, seconds := from+(to-from)/2, float64(to-from)/1e9*share
	var before, after int64
	live := 0.
	for i := range all {
		x := &all[i]
		start, end := x.StartNS, x.StartNS+x.NS
		if x.Cut {
			end = math.MaxInt64
		}
		if start >= from && start < to {
			l.Begun++
		}
		if end >= from && end < to {
			l.Ended++
		}
		live += float64(max(min(end, to)-max(start, from), 0)) / 1e9
		if start <= half && end > half {
			before++
		}
		if start < to && end >= to {
			after++
		}
	}
	l.LiveBefore, l.LiveAfter = int64(float64(before)/share), int64(float64(after)/share)
	l.BegunPerS, l.EndedPerS, l.LiveMean = report.Rounded(float64(l.Begun)/seconds, 1e9),
		report.Rounded(float64(l.Ended)/seconds, 1e9), report.Rounded(live/seconds, 1e6)
	return l
}

// growth says that the server does not keep up with trees that start at a rate: less than 95 %
// of those that began in the window ended in it, and fewer by more than three standard deviations
// of what chance does. Without a queue both numbers are Poisson distributed (M/G/∞), and their
// difference has at most the variance of their sum. It is "" where the server keeps up.
func (l *LevelSessions) growth() string {
	if l.BegunPerS == nil || *l.EndedPerS >= followShare**l.BegunPerS ||
		float64(l.Begun-l.Ended) <= followSD*math.Sqrt(float64(l.Begun+l.Ended)) {
		return ""
	}
	return fmt.Sprintf("sessions pile up: %s of %s a second ended, and live sessions went from %d to %d",
		doc.Number(*l.EndedPerS), doc.Number(*l.BegunPerS), l.LiveBefore, l.LiveAfter)
}

// LevelsOf reads loads as a flag has them: a list such as 1,2,4, or a range such as 1..512,
// which is searched from its begin and to its end.
func LevelsOf(list []string, parse func(string) (float64, error)) (loads []float64, from, to float64, err error) {
	if len(list) == 1 {
		if a, b, ok := strings.Cut(list[0], ".."); ok {
			if from, err = parse(a); err == nil {
				to, err = parse(b)
			}
			if err == nil && !(from > 0 && from < to) {
				err = fmt.Errorf("the range %s..%s is empty: its begin is above 0 and below its end", a, b)
			}
			return nil, from, to, err
		}
	}
	for _, s := range list {
		load, err := parse(s)
		if err != nil {
			return nil, 0, 0, err
		}
		loads = append(loads, load)
	}
	return loads, 0, 0, nil
}

// treesOf are the trees of a run, and to which of them each session of the workload belongs.
func treesOf(times *report.SessionTimes) (all []report.SessionTime, tree map[result.SessionKey]int32) {
	all, tree = times.Sessions(), map[result.SessionKey]int32{}
	for i := range all {
		for _, key := range all[i].Sessions {
			tree[key] = int32(i)
		}
	}
	return all, tree
}

// addTrees gives the figures of whole trees the values of a run, in the order in which the
// trees began. Where some that count were cut, an interval of the others would be wrong.
func (m *measurement) addTrees() {
	byBegin := slices.Clone(m.sessions)
	slices.SortStableFunc(byBegin, func(a, b report.SessionTime) int { return cmp.Compare(a.StartNS, b.StartNS) })
	for _, f := range m.figures {
		if !f.trees {
			continue
		}
		var values, beyond []int64
		for i := range byBegin {
			x := &byBegin[i]
			switch {
			case x.Outcome == report.SessionCensored:
				f.censored = true
			case f.percentile > 0 && x.Outcome == report.SessionSucceeded:
				values = append(values, x.NS)
				if f.clause >= 0 && m.terms.Clauses[f.clause].Met(float64(x.NS)/1e9) {
					beyond = append(beyond, 0)
				} else {
					beyond = append(beyond, 1)
				}
			case f.percentile == 0 && x.Outcome == report.SessionSucceeded:
				values = append(values, 0)
			case f.percentile == 0 && x.Outcome == report.SessionFailed:
				values = append(values, 1)
			}
		}
		f.values.Add(values)
		f.beyond.Add(beyond)
	}
	for i := range byBegin {
		if o := byBegin[i].Outcome; o == report.SessionSucceeded || o == report.SessionFailed ||
			o == report.SessionCensored {
			m.trees++
		}
	}
}
