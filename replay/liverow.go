package replay

import (
	"slices"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// A treeRow is what a live tree keeps of a row; the rest is read when it is due.
type treeRow struct {
	arrival, e2e     int64 // as recorded; e2e below 0 is not known
	think, tool      *int64
	input, output    int32
	thread, turn     int32
	parents          []int32 // indexes of earlier rows, each once
	children         []int32
	implied          bool // the parent is not one that the workload tells
	leftOut, history bool // failed in the source and is not sent; before the tree's instant

	end          time.Duration // when it was over
	waits        int           // parents that are not over
	latest, from time.Duration
	broken       bool          // a parent failed
	due          time.Duration // once known
	gap          gapKind
	cut          time.Duration // by the cap of its wait
	sending      bool          // accepted, and not over
	pending      *pendingRow   // of one that is sending
	over         bool
}

// A liveTree is a tree that was read and is not over.
type liveTree struct {
	number  int64 // over all plays
	first   int64 // id of its first row
	rows    []treeRow
	left    int // rows that are not over
	begun   bool
	short   bool // the run ended before some of its rows were due
	start   time.Duration
	end     time.Duration // of its last row so far
	wanted  time.Duration // when it is to start, if it may
	inside  bool          // it begins inside, at instant
	instant int64         // in recorded time; rows before are history
	agents  []agentWait   // of each row, to wait as AIPerf does; nil otherwise

	staged *flight // its first row, prepared before it is known when it starts
	tried  bool    // to prepare it
}

// loadTree reads a tree by its number over all plays.
func (o *Options) loadTree(number int64) (*liveTree, error) {
	s := o.Sessions
	first, rows := s.Trees.firstID(number)
	t := &liveTree{number: number, first: first, rows: make([]treeRow, len(rows)), left: len(rows)}
	var row trace.Request
	var wholes []int64 // first rows that the workload calls the first turn of a conversation
	blocks := make([][]uint64, len(rows))
	sessions := make([]*int64, len(rows))
	told := make([]*int32, len(rows)) // threads
	for i, at := range rows {
		if err := s.Trees.shelf.Row(int64(at), &row); err != nil {
			return nil, err
		}
		r := &t.rows[i]
		*r = treeRow{arrival: row.ArrivalNS, e2e: -1, think: row.ThinkNS, tool: row.ToolNS, input: row.InputTokens,
			output: row.OutputOr(0), leftOut: o.excludes(&row)}
		if row.E2ENS != nil {
			r.e2e = max(*row.E2ENS, 0)
		}
		if row.Turn != nil && *row.Turn == 0 {
			wholes = append(wholes, int64(i))
		}
		blocks[i], told[i] = row.Blocks[:s.Trees.full(&row)], row.Thread
		for _, p := range row.Parents {
			k, ok := slices.BinarySearch(rows, uint32(p))
			if ok && k < i && !slices.Contains(r.parents, int32(k)) {
				r.parents = append(r.parents, int32(k))
			}
		}
		slices.Sort(r.parents)
		if sessions[i] = row.Session; len(r.parents) == 0 && row.Session != nil && (row.Turn == nil || *row.Turn > 0) {
			r.parents = t.before(i, sessions)
			r.implied = len(r.parents) > 0
		}
		for _, p := range r.parents {
			t.rows[p].children = append(t.rows[p].children, int32(i))
		}
		if _, known := recordedGap(r, t.rows); known && s.Waits == result.WaitsEnds || s.Waits == result.WaitsAIPerf {
			r.think, r.tool = nil, nil
		}
		r.waits = len(r.parents)
	}
	if !t.setThreads(told, sessions) {
		find := threadFinder{size: s.Trees.size}
		for i := range t.rows {
			_, anew := slices.BinarySearch(wholes, int64(i))
			t.rows[i].thread, t.rows[i].turn = find.add(t.rows, i, blocks[i], anew)
		}
	}
	if s.Waits == result.WaitsAIPerf {
		t.findAgents()
	}
	if s.Start != nil && number < int64(o.Share.Count(s.Live)) && number < s.Trees.Len() {
		whole := s.Trees.wholeNumber(number)
		tree := whole
		if shift := s.Trees.Shift(); shift > 0 { // of a sweep, which has no shards
			tree = (number + shift) % s.Trees.Len()
		}
		t.cut(s.Start, whole, tree)
	}
	return t, nil
}

// setThreads takes the threads that the workload tells, if it tells that of each row of a
// tree of one session.
func (t *liveTree) setThreads(told []*int32, sessions []*int64) bool {
	for i := range t.rows {
		if told[i] == nil || sessions[i] == nil || *sessions[i] != *sessions[0] {
			return false
		}
	}
	turns := map[int32]int32{}
	for i := range t.rows {
		r := &t.rows[i]
		r.thread = *told[i]
		r.turn = turns[r.thread]
		turns[r.thread]++
	}
	return true
}

// before is what a turn of a session waits for whose parents the workload does not tell: the
// last row of its session before it, of those that are not recorded to have lasted
// longer.
func (t *liveTree) before(i int, sessions []*int64) []int32 {
	r := &t.rows[i]
	for k := i - 1; k >= 0; k-- {
		p := &t.rows[k]
		if sessions[k] != nil && *sessions[k] == *sessions[i] && (p.e2e < 0 || p.arrival+p.e2e <= r.arrival) {
			return []int32{int32(k)}
		}
	}
	return nil
}

// cut has a tree begin inside: the one at a place of the load, and of the workload.
func (t *liveTree) cut(s *TrajectoryStart, place, tree int64) {
	from, to := t.rows[0].arrival, t.rows[0].arrival
	for i := range t.rows {
		from, to = min(from, t.rows[i].arrival), max(to, t.rows[i].arrival)
	}
	t.inside, t.instant = true, from+int64(s.Share(place, tree)*float64(to-from))
	for i := range t.rows {
		r := &t.rows[i]
		if r.arrival >= t.instant {
			continue
		}
		r.history, r.over = true, true
		t.left--
		for _, c := range r.children {
			t.rows[c].waits--
		}
	}
}

// kind is where the time is from that a row waits.
func (r *treeRow) kind(rows []treeRow, i int) gapKind {
	switch {
	case len(r.parents) == 0 && i == 0:
		return noGap
	case len(r.parents) == 0:
		return fromFirst
	case r.think != nil || r.tool != nil:
		return recorded
	}
	if _, known := recordedGap(r, rows); known {
		return fromEnds
	}
	return fromStarts
}

// recordedGap is what the source has between the end of a row's last parent and its start.
func recordedGap(r *treeRow, rows []treeRow) (ns int64, known bool) {
	last := int64(0)
	for i, p := range r.parents {
		if rows[p].e2e < 0 {
			return 0, false
		}
		if end := rows[p].arrival + rows[p].e2e; i == 0 || end > last {
			last = end
		}
	}
	return max(r.arrival-last, 0), len(r.parents) > 0
}

// pauseIn is the time that a row waited after its last parent in the source, as far as is
// known.
func pauseIn(r *treeRow, rows []treeRow) int64 {
	if ns, known := pauseOf(r.think, r.tool); known {
		return ns
	}
	ns, _ := recordedGap(r, rows)
	return ns
}
