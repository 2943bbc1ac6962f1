package replay

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
)

// A SessionLoad makes the session tree the unit of load, see [Trees]. A tree is live from
// when its first row is due until its last is over. Within it a row is due when all of
// its parents are over and its think and tool time has passed. Where neither is known:
//
//   - where the ends of its parents are recorded, what was recorded between the last
//     of these and its start takes the place of the think time;
//   - otherwise it is due as long after its parent was due as it started after it in the
//     source, or at its parents' end where that is later: how long the parent took is
//     never waited for twice.
//
// A turn of a session whose parents are not told waits for the last turn before it that was
// not recorded to last longer. Any other row without parents is due as long after the first of its tree as recorded. A
// row that only failed parents lead to is not sent.
type SessionLoad struct {
	Trees *Trees
	// Live closes the loop: so many trees are live, and the next starts when one ends. 0 is
	// an open loop, in which trees start by Arrivals whatever their recorded start.
	Live     int
	Arrivals arrival.Process
	Rate     string // what Arrivals are, for the results
	MaxLive  int    // of an open loop: a tree that arrives while so many are live is held back; 0 is no limit

	// Recycle is what happens when all trees were played before [Options].Duration is
	// over: one of the constants of package result; empty is [result.RecycleSalt].
	// Without a duration each tree is played once.
	Recycle  string
	MaxPlays int64 // of one tree, that prompts can be told apart in; 0 is no limit

	// Waits is [result.WaitsThink], or [result.WaitsEnds] for recorded ends to take the place
	// of think and tool times wherever they are known, or [result.WaitsAIPerf] for the rules
	// of AIPerf 0.13, see [agentWait]; empty is the first.
	Waits string

	// GapCap is the longest that a turn waits after its last parent; IdleCap the longest that
	// no request is in flight and none is due: everything that is still to come is then
	// moved earlier by as much. 0 is no limit. Both are times of the run, after Speed.
	GapCap, IdleCap time.Duration
	// TreeCap is the longest that no request of a tree is in flight while some are to come:
	// all that is pending of the tree is then moved earlier by as much. It is longer
	// than [Options].Ahead; 0 is no limit. It is a time of the run too.
	TreeCap time.Duration
	// ThinkScale and ToolScale multiply think and tool times, beside what Speed does; nil is
	// 1. A time that is neither counts as think time.
	ThinkScale, ToolScale *float64

	// Start, in a closed loop, has the first tree of each place begin inside of it; Warmed
	// is what was sent for that before the run, for the results.
	Start  *TrajectoryStart
	Warmed *result.TrajectoryWarmup

	// Window, when set, says which trees are measured, and ends the run when they are over.
	Window *SessionWindow
}

// A TrajectoryStart draws an instant in each tree that the first places of a closed loop
// play: the share of the time from its first request to its last is uniform between From and To.
// Requests before that instant are history and not sent.
type TrajectoryStart struct {
	From, To float64
	Seed     uint64
}

// ParseTrajectoryStart reads the two shares, such as 0.25..0.75, or one.
func ParseTrajectoryStart(s string) (*TrajectoryStart, error) {
	from, to, two := strings.Cut(s, "..")
	if !two {
		to = from
	}
	a, err := strconv.ParseFloat(strings.TrimSpace(from), 64)
	b, err2 := strconv.ParseFloat(strings.TrimSpace(to), 64)
	if err != nil || err2 != nil || !(a >= 0 && a <= b && b <= 1) {
		return nil, errors.New("want two shares from 0 to 1, such as 0.25..0.75")
	}
	return &TrajectoryStart{From: a, To: b}, nil
}

func (s *TrajectoryStart) String() string { return fmt.Sprintf("%g..%g", s.From, s.To) }

// Share is the share of a tree's time at which a place begins: From + u·(To − From), where u
// is the first 53 bits of the SHA-256 of "seed:place:tree", in decimal digits, divided by
// 2^53. place and tree count from 0.
func (s *TrajectoryStart) Share(place, tree int64) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%d:%d", s.Seed, place, tree))
	u := float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
	return s.From + u*(s.To-s.From)
}

var (
	errSessionsAlone = errors.New("replay: a load of sessions has its own arrivals and order: it cannot be combined " +
		"with a closed loop of requests, arrivals, a lineage or an endless workload")
	errSessionsLoop = errors.New("replay: a load of sessions takes either a number of live trees or arrivals; a " +
		"limit of live trees is for arrivals, and a start inside of trees for a number of them")
	errSessionsPart = errors.New("replay: a load of sessions takes caps and scales of 0 or more, and recycles by " +
		"salt, apart, same or stop, and waits by think times, ends or as AIPerf")
	errSessionsWindow = errors.New("replay: a window of sessions takes one at least, a warm-up of sessions or time " +
		"and no cool-down")
	errWarmTrees = errors.New("replay: a warm-up of whole sessions needs a load of sessions")
)

// checkSessions refuses what makes no sense for a load of sessions.
func (o *Options) checkSessions() error {
	s := o.Sessions
	if s == nil {
		if o.Warmup.Sessions > 0 {
			return errWarmTrees
		}
		return nil
	}
	switch {
	case o.Concurrency > 0 || o.Causal != nil || o.Arrivals != nil || o.Endless:
		return errSessionsAlone
	case s.Live < 0 || s.MaxLive < 0 || (s.Live > 0) == (s.Arrivals != nil) || s.MaxLive > 0 && s.Live > 0 ||
		s.Start != nil && s.Live == 0:
		return errSessionsLoop
	case s.GapCap < 0 || s.IdleCap < 0 || s.TreeCap < 0 || s.TreeCap > 0 && s.TreeCap <= o.Ahead ||
		!(s.thinkScale() >= 0) || !(s.toolScale() >= 0) ||
		!slices.Contains([]string{"", result.RecycleSalt, result.RecycleApart, result.RecycleSame, result.RecycleStop},
			s.Recycle), !slices.Contains([]string{"", result.WaitsThink, result.WaitsEnds, result.WaitsAIPerf},
		s.Waits):
		return errSessionsPart
	case s.Window != nil && (s.Window.Trees < 1 || s.Window.For < 0 || o.Warmup.Requests > 0 || o.Cooldown != Span{}):
		return errSessionsWindow
	}
	return nil
}

func (s *SessionLoad) thinkScale() float64 { return orOne(s.ThinkScale) }
func (s *SessionLoad) toolScale() float64  { return orOne(s.ToolScale) }

func orOne(f *float64) float64 {
	if f == nil {
		return 1
	}
	return *f
}

func (s *SessionLoad) recycle() string {
	if s.Recycle == "" {
		return result.RecycleSalt
	}
	return s.Recycle
}

// about is what the results say of the load before the run.
func (s *SessionLoad) about(warm int64) *result.Sessions {
	about := &result.Sessions{Live: s.Live, Rate: s.Rate, MaxLive: s.MaxLive, Recycle: s.recycle(),
		GapCapNS: int64(s.GapCap), IdleCapNS: int64(s.IdleCap), TreeCapNS: int64(s.TreeCap),
		ThinkScale: s.thinkScale(), ToolScale: s.toolScale(), WarmTrees: warm}
	if s.Waits != result.WaitsThink {
		about.Waits = s.Waits
	}
	if w := s.Window; w != nil {
		about.Measure, about.MeasureNS = w.Trees, int64(w.For)
	}
	about.FirstTree = s.Trees.Shift()
	if s.Start != nil {
		about.Start, about.StartSeed = s.Start.String(), strconv.FormatUint(s.Start.Seed, 10)
	}
	return about
}

// wait is how long a turn waits after its last parent, of what was recorded: nil is not
// known. cut is what GapCap took away.
func (o *Options) wait(think, tool *int64) (wait time.Duration) {
	s := o.Sessions
	if think != nil {
		wait += times(o.thinking(max(*think, 0)), s.thinkScale())
	}
	if tool != nil {
		wait += times(o.thinking(max(*tool, 0)), s.toolScale())
	}
	return wait
}

func times(d time.Duration, by float64) time.Duration {
	if by == 1 {
		return d
	}
	return time.Duration(float64(d) * by)
}

// A WarmRequest is sent before the run, for its prompt to be in the server's cache.
type WarmRequest struct {
	Row trace.Request
	At  time.Duration // from the begin of the warm-up
}

// WarmRequests are what brings the server's cache to where the trees of a closed loop
// begin: for each thread that has requests on both sides of its tree's instant, the last one
// before it. Each is sent as long before the end of the warm-up as it was before that
// instant, divided by the speed and at most GapCap, so that the instants of all trees
// meet at its end, took after its begin. Each asks for one token.
func (o *Options) WarmRequests() (all []WarmRequest, took time.Duration, about result.TrajectoryWarmup, err error) {
	s := o.Sessions
	if s.Start == nil {
		return nil, 0, about, nil
	}
	opt := *o
	opt.Speed = cmp.Or(opt.Speed, 1)
	for n := range min(int64(o.Share.Count(s.Live)), s.Trees.Len()) {
		t, err := opt.loadTree(n)
		if err != nil {
			return nil, 0, about, err
		}
		last := map[int32]int{} // by thread: its last row before the instant
		for i := range t.rows {
			r := &t.rows[i]
			if r.history {
				about.History++
				last[r.thread] = i
				continue
			}
			before, under := last[r.thread]
			if !under {
				continue
			}
			delete(last, r.thread)
			row, err := s.Trees.row(t, before, s.recycle())
			if err != nil {
				return nil, 0, about, err
			}
			row.Parents, row.OutputTokens = nil, trace.Ptr[int32](1)
			lead := opt.scaled(t.instant - t.rows[before].arrival)
			if s.GapCap > 0 {
				lead = min(lead, s.GapCap)
			}
			took = max(took, lead)
			all = append(all, WarmRequest{*row, -lead})
			about.Tokens += int64(row.InputTokens)
		}
		about.Trees++
	}
	for i := range all {
		all[i].At += took
	}
	slices.SortStableFunc(all, func(a, b WarmRequest) int { return int(min(max(a.At-b.At, -1), 1)) })
	about.Streams = int64(len(all))
	return all, took, about, nil
}
