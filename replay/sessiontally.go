package replay

import (
	"cmp"
	"slices"
	"time"

	"reprise/replay/result"
)

// A sessionTally counts what becomes of the trees of a load of sessions.
type sessionTally struct {
	started, finished int64
	changes           []treeChange
	waited            struct {
		times     int64
		sum, most time.Duration
	}
	gaps                     result.Gaps
	gapCap, idleCap, treeCap result.Capped
}

// A treeChange is one live tree more, or less.
type treeChange struct {
	at time.Duration
	by int
}

func (t *sessionTally) begin(at time.Duration) {
	t.started++
	t.changes = append(t.changes, treeChange{at, 1})
}

func (t *sessionTally) finish(at time.Duration, whole bool) {
	if whole {
		t.finished++
	}
	t.changes = append(t.changes, treeChange{at, -1})
}

// held counts a tree that started so much later than it was to.
func (t *sessionTally) held(by time.Duration) {
	if by <= 0 {
		return
	}
	t.waited.times++
	t.waited.sum += by
	t.waited.most = max(t.waited.most, by)
}

// A gapKind says where the time is from that a row waits after its parents.
type gapKind uint8

const (
	noGap    gapKind = iota
	recorded         // its think and tool time
	fromEnds
	fromStarts
	fromFirst // it has no parents, and is not the first of its tree
)

// gap counts a row that is sent.
func (t *sessionTally) gap(r *treeRow) {
	if r.implied {
		t.gaps.Implied++
	}
	switch r.gap {
	case recorded:
		t.gaps.Recorded++
	case fromEnds:
		t.gaps.Ends++
	case fromStarts:
		t.gaps.Starts++
	case fromFirst:
		t.gaps.Offsets++
	}
	if r.cut > 0 {
		t.gapCap.Times++
		t.gapCap.NS += int64(r.cut)
	}
}

// moveEarlier moves the starts that are still to come.
func (t *sessionTally) moveEarlier(by, now time.Duration) {
	for i := len(t.changes) - 1; i >= 0; i-- {
		if c := &t.changes[i]; c.at > now {
			c.at -= by
		}
	}
}

// live finds how many trees were live from one instant to another.
func (t *sessionTally) live(from, to time.Duration) *result.LiveTrees {
	if t.started == 0 || len(t.changes) == 0 {
		return nil
	}
	// A tree that ends at the instant at which another starts makes room for it.
	slices.SortStableFunc(t.changes, func(a, b treeChange) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by))
	})
	out := &result.LiveTrees{Min: -1, FromNS: int64(from), ToNS: int64(max(from, to))}
	level, sum := int64(0), 0.
	for i, c := range t.changes {
		level += int64(c.by)
		end := to
		if i+1 < len(t.changes) {
			end = t.changes[i+1].at
		}
		if a, b := max(c.at, from), min(end, to); b > a {
			sum += float64(level) * (b - a).Seconds()
			if out.Min < 0 || level < out.Min {
				out.Min = level
			}
			out.Max = max(out.Max, level)
		}
	}
	if out.Min < 0 { // no time passed
		out.Min, out.Max = level, level
	} else {
		out.Mean = sum / (to - from).Seconds()
	}
	return out
}

// counts are what the results say of the trees.
func (l *liveTrees) counts() *result.SessionCounts {
	t, n := &l.tally, l.load.Trees.Len()
	c := &result.SessionCounts{Trees: n, Started: t.started, Finished: t.finished, HeldBack: t.waited.times,
		HeldNS: int64(t.waited.sum), HeldMostNS: int64(t.waited.most),
		Gaps: t.gaps, GapCap: t.gapCap, IdleCap: t.idleCap, TreeCap: t.treeCap}
	if n > 0 {
		c.MinPlays, c.MaxPlays = t.started/n, (t.started+n-1)/n
	}
	from, to := never, time.Duration(0)
	starts := 0
	for _, x := range t.changes {
		if x.by > 0 {
			starts++
			from = min(from, x.at)
			if l.load.Live > 0 && starts == l.opt.Share.Count(l.load.Live) {
				from = x.at // the last place was filled for the first time
			}
			if l.load.Live == 0 {
				to = max(to, x.at)
			}
		}
	}
	if l.load.Live > 0 {
		if to = l.idle; l.opt.Duration > 0 {
			to = min(max(to, l.opt.Duration), l.opt.Duration)
		}
		// The first place that was used and that no tree was left for.
		unused := max(int64(l.opt.Share.Count(l.load.Live))-t.started, 0)
		free := slices.Clone(l.slots)
		slices.SortFunc(free, func(a, b freeSlot) int { return cmp.Compare(a.at, b.at) })
		if int64(len(free)) > unused {
			to = min(to, max(free[unused].at, from))
		}
	}
	if w := l.window; w.isOver() {
		to = min(to, w.overAt)
	}
	c.LiveTrees = t.live(from, to)
	return c
}
