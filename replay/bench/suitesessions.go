package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/replay"
	"reprise/replay/result"
	"reprise/trace/arrival"
	"reprise/trace/quantity"
	"reprise/trace/strictyaml"
)

// bySession says whether the unit of a load is the session tree.
func (l *Load) bySession() bool { return l.Sessions > 0 || l.SessionRate != "" }

// sessionKeys are the keys of a row about a load by session: those of a replay's flags.
func sessionKeys(row *Row) []strictyaml.Key {
	s := &row.Session
	oneOf := func(names ...string) func(strictyaml.Node) (string, error) {
		return strictyaml.Parsed(func(text string) (string, error) {
			if !slices.Contains(names, text) {
				return "", fmt.Errorf("want one of %s", strings.Join(names, ", "))
			}
			return text, nil
		})
	}
	longest := strictyaml.Parsed(quantity.Duration)
	scale := func(n strictyaml.Node) (float64, error) {
		v, err := n.Number()
		if err == nil && !(v >= 0) {
			err = n.Faultf("want a number of 0 or more")
		}
		return v, err
	}
	return []strictyaml.Key{
		{Name: "sessions", Read: func(n strictyaml.Node) error {
			live, err := strictyaml.Whole(1, 1<<20)(n)
			row.Load = Load{Sessions: live}
			return err
		}},
		{Name: "session-rate", Read: func(n strictyaml.Node) error {
			load, err := strictyaml.Parsed(func(s string) (Load, error) {
				process, err := arrival.ParseProcess(s)
				if err != nil {
					return Load{}, err
				}
				return Load{SessionRate: process.String()}, nil
			})(n)
			row.Load = load
			return err
		}},
		{Name: "max-sessions", Read: strictyaml.Into(&s.MaxSessions, strictyaml.Whole(0, 1<<20))},
		{Name: "recycle", Read: strictyaml.Into(&s.Recycle,
			oneOf(result.RecycleSalt, result.RecycleApart, result.RecycleSame, result.RecycleStop))},
		{Name: "waits", Read: strictyaml.Into(&s.Waits,
			oneOf(result.WaitsThink, result.WaitsEnds, result.WaitsAIPerf))},
		{Name: "gap-cap", Read: strictyaml.Into(&s.GapCap, longest)},
		{Name: "idle-cap", Read: strictyaml.Into(&s.IdleCap, longest)},
		{Name: "session-idle-cap",
			Read: strictyaml.Into(&s.SessionIdleCap, strictyaml.Parsed(func(text string) (time.Duration, error) {
				d, err := quantity.Duration(text)
				if err == nil && d != 0 && d < 3*time.Second {
					err = errors.New("want 3s or more: requests are prepared 2 s before they are due")
				}
				return d, err
			}))},
		{Name: "think-scale", Read: strictyaml.Into(&s.ThinkScale, scale)},
		{Name: "tool-scale", Read: strictyaml.Into(&s.ToolScale, scale)},
		{Name: "trajectory-start",
			Read: strictyaml.Into(&s.TrajectoryStart, strictyaml.Parsed(asWritten(replay.ParseTrajectoryStart)))},
	}
}

// checkSessions refuses what a load by session cannot be, of a row with so many of load,
// sessions and session-rate.
func (r *Row) checkSessions(n strictyaml.Node, loads int, settled bool) error {
	switch {
	case loads > 1:
		return n.Faultf("load, sessions and session-rate are each a load: give one")
	case !r.Load.bySession() && settled:
		return n.Faultf("how sessions are played is of a load by session: give sessions or session-rate")
	case !r.Load.bySession():
		span, err := replay.ParseSpan(r.Settle)
		if err == nil && span.Sessions > 0 {
			err = n.Faultf("settle: a number of sessions needs a load by session: give sessions or session-rate")
		}
		return err
	case r.Load.Sessions > 0 && r.Session.MaxSessions > 0:
		return n.Faultf("max-sessions is for session-rate: sessions itself is how many are live")
	case r.Load.Sessions == 0 && r.Session.TrajectoryStart != "":
		return n.Faultf("trajectory-start needs sessions: it is for the sessions that are live at first")
	}
	return nil
}
