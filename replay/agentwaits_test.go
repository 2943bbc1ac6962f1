package replay

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// A turn of a session with agents, as a generator knows it.
type agentTurn struct {
	at, took   int64 // as recorded, in seconds
	thread     int32
	own, calls int   // the turn before of its thread, and for the first of one its caller; -1 is none
	joins      []int // last turns of agents
	also       []int // what it waits for beside
}

// row is the turn as a workload has it, turn i of its thread.
func (a agentTurn) row(session int64, turn int32) trace.Request {
	r := trace.Request{ArrivalNS: a.at * int64(time.Second), Session: &session, Thread: &a.thread, Turn: &turn, E2ENS: trace.Ptr(a.took * int64(time.Second)),
		ThinkNS: trace.Ptr(int64(time.Hour)), InputTokens: 1, OutputTokens: trace.Ptr[int32](1)}
	for _, p := range append(append([]int{a.own, a.calls}, a.joins...), a.also...) {
		if p >= 0 && !slices.Contains(r.Parents, int64(p)) {
			r.Parents = append(r.Parents, int64(p))
		}
	}
	slices.Sort(r.Parents)
	return r
}

// played plays the turns as one session, each taking as long as took says, and returns
// when each was due.
func played(t *testing.T, turns []agentTurn, o Options, took func(i int) time.Duration) map[int]time.Duration {
	t.Helper()
	var rows []trace.Request
	next := map[int32]int32{}
	for _, a := range turns {
		rows = append(rows, a.row(0, next[a.thread]))
		next[a.thread]++
	}
	o.Sessions.Trees, o.Sessions.Waits, o.Sessions.Live = treesOf(t, rows, 0), result.WaitsAIPerf, 1
	table, err := NewTimetable(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	due := map[int]time.Duration{}
	var flying soonest[plannedEnd]
	for {
		at, ok := table.Next()
		if len(flying) > 0 && (!ok || flying[0].at <= at) {
			e := heap.Pop(&flying).(plannedEnd)
			table.Over(e.id, e.at, false)
			continue
		}
		if !ok {
			return due
		}
		d := table.Take()
		due[int(d.ID)] = at
		heap.Push(&flying, plannedEnd{at + took(int(d.ID)), d.ID})
	}
}

// AIPerf's waits, one by one.
func TestAIPerfWaits(t *testing.T) {
	turns := []agentTurn{
		{0, 1, 0, -1, -1, nil, nil},
		{4, 1, 1, -1, 0, nil, nil},
		{5, 1, 2, -1, 0, nil, nil},          // one second after the call of the agent before, which is joined with it
		{8, 1, 1, 1, -1, nil, nil},          // 3 s after the answer before
		{12, 1, 0, 0, -1, []int{2, 3}, nil}, // at once when the last of the agents is over
		{14, 5, 3, -1, 4, nil, nil},
		{16, 1, 0, 4, -1, nil, nil},
		{20, 1, 0, 6, -1, []int{5}, nil}, // the agent was over before: its own wait counts
		{21, 1, 4, -1, 7, nil, []int{5}}, // also waits for one that is no caller
	}
	due := played(t, turns, Options{Sessions: &SessionLoad{}}, func(int) time.Duration { return 2 * time.Second })
	for i, want := range []time.Duration{0, 2, 3, 7, 9, 11, 14, 19, 21} {
		if due[i] != want*time.Second {
			t.Errorf("turn %d was due after %v, want %v", i, due[i], want*time.Second)
		}
	}
	// A slow agent: the join waits for it and no longer.
	due = played(t, turns, Options{Sessions: &SessionLoad{}}, func(i int) time.Duration { return map[int]time.Duration{5: 60}[i]*time.Second + 2*time.Second })
	if due[7] != due[5]+62*time.Second || due[8] != due[7]+2*time.Second {
		t.Errorf("%v", due)
	}
}

// Sessions at random, held against the rules as a second program has them, begun at the
// first turn and inside.
func TestAIPerfWaitsOfAny(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		turns := anyAgents(r)
		o := Options{Sessions: &SessionLoad{}}
		instant := int64(0)
		if seed%2 == 1 {
			o.Sessions.Start = &TrajectoryStart{From: 0.5, To: 0.5}
			last := int64(0)
			for _, a := range turns {
				last = max(last, a.at)
			}
			instant = last * int64(time.Second) / 2
		}
		length := make([]time.Duration, len(turns))
		for i := range length {
			length[i] = time.Duration(r.IntN(20_000)) * time.Millisecond
		}
		due := played(t, turns, o, func(i int) time.Duration { return length[i] })
		end := map[int]time.Duration{}
		sec := func(s int64) time.Duration { return time.Duration(s) * time.Second }
		for i, a := range turns {
			history := func(k int) bool { return int64(sec(turns[k].at)) < instant }
			if history(i) {
				if _, sent := due[i]; sent {
					t.Fatalf("seed %d: turn %d of the history was sent", seed, i)
				}
				continue
			}
			live, joins := false, time.Duration(0)
			for _, k := range a.joins {
				if !history(k) {
					live, joins = true, max(joins, end[k])
				}
			}
			want := time.Duration(0)
			switch before := max(a.own, a.calls); {
			case before < 0:
			case history(before):
				if !live {
					want = sec(a.at) - time.Duration(instant)
				}
			case a.own < 0:
				group := a.at
				for k, b := range turns { // the earliest call of those with the same caller that the same turn joins
					if b.own < 0 && b.calls == a.calls && joinOf(turns, k) == joinOf(turns, i) {
						group = min(group, b.at)
					}
				}
				want = end[a.calls] + sec(a.at-group)
			case live && joins > end[a.own]:
				want = joins
			default:
				want = end[a.own] + max(sec(a.at-turns[a.own].at-turns[a.own].took), 0)
			}
			for _, k := range slices.Concat(a.joins, a.also, []int{a.own, a.calls}) {
				if k >= 0 && !history(k) {
					want = max(want, end[k])
				}
			}
			if due[i] != want {
				t.Fatalf("seed %d: turn %d was due after %v, want %v: %+v", seed, i, due[i], want, turns)
			}
			end[i] = want + length[i]
		}
	}
}

// joinOf is the turn that joins the agent of which a turn is the first, or -1.
func joinOf(turns []agentTurn, first int) int {
	last := first
	for k := range turns {
		if turns[k].thread == turns[first].thread {
			last = k
		}
	}
	return slices.IndexFunc(turns, func(a agentTurn) bool { return slices.Contains(a.joins, last) })
}

// anyAgents makes a root, agents that it calls and joins or not, and turns that wait for
// others beside.
func anyAgents(r *rand.Rand) []agentTurn {
	turns := []agentTurn{{0, r.Int64N(5), 0, -1, -1, nil, nil}}
	root, threads := 0, int32(1)
	last := map[int32]int{} // of each agent that is not joined
	at := int64(6)
	for range 4 + r.IntN(14) {
		at += r.Int64N(6)
		a := agentTurn{at: at, took: r.Int64N(5), own: -1, calls: -1}
		switch open := agentsOf(last); {
		case r.IntN(3) == 0:
			a.thread, a.calls = threads, root
			last[threads] = len(turns)
			threads++
		case len(open) > 0 && r.IntN(2) == 0:
			a.thread = open[r.IntN(len(open))]
			a.own = last[a.thread]
			last[a.thread] = len(turns)
		default:
			a.own = root
			for _, k := range open {
				if r.IntN(2) == 0 {
					a.joins = append(a.joins, last[k])
					delete(last, k)
				}
			}
			root = len(turns)
		}
		if k := r.IntN(len(turns)); a.thread > 0 && r.IntN(4) == 0 && turns[k].thread > 0 && turns[k].thread != a.thread {
			a.also = []int{k}
		}
		turns = append(turns, a)
	}
	return turns
}

func agentsOf(last map[int32]int) (all []int32) {
	for k := range last {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// After an error the session goes on; after a prompt that does not fit, its thread does not.
func TestAIPerfErrors(t *testing.T) {
	turns := []agentTurn{{0, 1, 0, -1, -1, nil, nil}, {2, 1, 1, -1, 0, nil, nil}, {4, 1, 1, 1, -1, nil, nil}, {6, 1, 1, 2, -1, nil, nil}, {8, 1, 0, 0, -1, []int{3}, nil}, {10, 1, 0, 4, -1, nil, nil}}
	for name, c := range map[string]struct {
		fails []int
		large bool
		sent  []int64
	}{
		"none":             {nil, false, []int64{0, 1, 2, 3, 4, 5}},
		"errors":           {[]int{0, 2, 4}, false, []int64{0, 1, 2, 3, 4, 5}},
		"agent too large":  {[]int{1}, true, []int64{0, 1, 4, 5}},
		"root too large":   {[]int{4}, true, []int64{0, 1, 2, 3, 4}},
		"caller too large": {[]int{0}, true, []int64{0, 1, 2, 3}},
	} {
		var rows []trace.Request
		next := map[int32]int32{}
		for _, a := range turns {
			rows = append(rows, a.row(0, next[a.thread]))
			next[a.thread]++
		}
		table, err := NewTimetable(Options{Sessions: &SessionLoad{Live: 1, Trees: treesOf(t, rows, 0), Waits: result.WaitsAIPerf}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var sent []int64
		for {
			at, ok := table.Next()
			if !ok {
				break
			}
			d := table.Take()
			sent = append(sent, d.ID)
			fails := slices.Contains(c.fails, int(d.ID))
			table.sched.rowEnded(rowEnd{id: d.ID, at: at + time.Second, failed: fails, large: fails && c.large})
		}
		slices.Sort(sent)
		run, err := table.Finish()
		if !slices.Equal(sent, c.sent) || err != nil || run.Skipped != int64(6-len(c.sent)) || run.Sessions.Counts.Finished != 1 {
			t.Errorf("%s: sent %v, want %v; %d skipped, %+v (%v)", name, sent, c.sent, run.Skipped, run.Sessions.Counts, err)
		}
	}
}

// A session is idle for no longer than its cap: what is pending of it moves earlier by one
// time, also behind a begin inside, and no other session with it.
func TestTreeCap(t *testing.T) {
	turns := []agentTurn{
		{0, 1, 0, -1, -1, nil, nil},
		{2, 1, 1, -1, 0, nil, nil},
		{500, 1, 0, 0, -1, nil, nil}, // pending, behind the agent
		{700, 1, 1, 1, -1, nil, nil}, // pending too: both move by one time
		{1000, 1, 0, 2, -1, nil, nil},
	}
	due := played(t, turns, Options{Sessions: &SessionLoad{TreeCap: time.Minute}}, func(int) time.Duration { return 2 * time.Second })
	// Row 0 ends at 2 and row 1, due at once, at 4. Rows 2 and 3 are due at 501 and 701, 497 s and
	// 697 s later: they move by 437 s. Row 2 ends at 66, and row 3, at 264, is 198 s away, row 4, at 565, further:
	// they move by 138 s. Row 3 ends at 128, and row 4, at 427, moves again.
	for i, want := range []time.Duration{0, 2, 64, 126, 188} {
		if due[i] != want*time.Second {
			t.Errorf("turn %d was due after %v, want %v", i, due[i], want*time.Second)
		}
	}
	inside := played(t, turns, Options{Sessions: &SessionLoad{TreeCap: time.Minute, Start: &TrajectoryStart{From: 0.25, To: 0.25}}}, func(int) time.Duration { return 2 * time.Second })
	// The instant is 250: rows 2 and 3 are due at 250 and 450, and move by 190.
	for i, want := range map[int]time.Duration{2: 60, 3: 122} {
		if inside[i] != want*time.Second {
			t.Errorf("inside, turn %d was due after %v, want %v", i, inside[i], want*time.Second)
		}
	}
}
