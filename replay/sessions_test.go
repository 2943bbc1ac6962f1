package replay

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
)

// agents makes sessions of agents: a first request, three sub-agents of one to three turns
// that it calls, a turn that joins them, and one or two more. Of their waits some are think
// times, some tool times, some known by the ends of requests only, and some not at all.
// Rows are in the order of their recorded starts; treeOf says which session each is of.
func agents(rng *rand.Rand, sessions int) (rows []trace.Request, treeOf []int) {
	type draft struct {
		trace.Request
		session int
		parents []int // among drafts
	}
	var all []draft
	begin := time.Duration(0)
	for s := range sessions {
		var ends []time.Duration
		first := len(all)
		add := func(parents ...int) int {
			var latest, at time.Duration
			for _, p := range parents {
				latest = max(latest, ends[p-first])
			}
			gap := time.Duration(rng.ExpFloat64() * 3e9)
			if at = latest + gap; len(parents) == 0 {
				at = begin
			}
			took := time.Duration(rng.ExpFloat64() * 2e9)
			d := draft{session: s, parents: parents}
			d.ArrivalNS, d.Session = int64(at), trace.Ptr(int64(s))
			switch kind := rng.IntN(4); {
			case len(parents) == 0 || kind == 0:
			case kind == 1:
				d.ThinkNS = trace.Ptr(int64(gap))
			case kind == 2:
				d.ToolNS = trace.Ptr(int64(gap))
			default:
				d.ThinkNS, d.ToolNS = trace.Ptr(int64(gap/3)), trace.Ptr(int64(gap/2))
			}
			if rng.IntN(5) > 0 {
				d.E2ENS = trace.Ptr(int64(took))
			}
			all, ends = append(all, d), append(ends, at+took)
			return len(all) - 1
		}
		root := add()
		join := []int{root}
		for range 3 {
			at := root
			for range 1 + rng.IntN(3) {
				at = add(at)
			}
			join = append(join, at)
		}
		last := add(join...)
		for range 1 + rng.IntN(2) {
			last = add(last)
		}
		begin += time.Duration(rng.ExpFloat64() * 4e9)
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[a].ArrivalNS, all[b].ArrivalNS) })
	row := make([]int64, len(all))
	for at, i := range order {
		row[i] = int64(at)
	}
	for at, i := range order {
		d := &all[i]
		d.InputTokens, d.OutputTokens = int32(at), trace.Ptr[int32](7)
		for _, p := range d.parents {
			d.Parents = append(d.Parents, row[p])
		}
		rows, treeOf = append(rows, d.Request), append(treeOf, d.session)
	}
	return rows, treeOf
}

// treesOf reads the trees of rows.
func treesOf(t *testing.T, rows []trace.Request, size int) *Trees {
	t.Helper()
	trees, err := ReadTrees(reader(slices.Clone(rows)), size, true, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { trees.Close() })
	return trees
}

// A playedTree is one play of a session, as the results have it.
type playedTree struct {
	session    int
	play       int32
	rows       map[int64]*result.Result
	start, end time.Duration
}

// playedTrees groups results by session and play, in the order in which they started.
func playedTrees(t *testing.T, treeOf []int, results []result.Result) []*playedTree {
	t.Helper()
	type key struct {
		session int
		play    int32
	}
	all := map[key]*playedTree{}
	var list []*playedTree
	for i := range results {
		r := &results[i]
		if r.Play == nil || *r.Play != r.Round {
			t.Fatalf("row %d: play %v, round %d", r.RowID, r.Play, r.Round)
		}
		k := key{treeOf[r.RowID], *r.Play}
		p := all[k]
		if p == nil {
			p = &playedTree{session: k.session, play: k.play, rows: map[int64]*result.Result{}, start: never}
			all[k], list = p, append(list, p)
		}
		if p.rows[r.RowID] != nil {
			t.Fatalf("row %d was sent twice in play %d", r.RowID, k.play)
		}
		p.rows[r.RowID] = r
		p.start, p.end = min(p.start, time.Duration(r.DueNS)), max(p.end, time.Duration(*r.DoneNS))
	}
	slices.SortStableFunc(list, func(a, b *playedTree) int {
		return cmp.Or(cmp.Compare(a.play, b.play), cmp.Compare(a.session, b.session))
	})
	return list
}

// wantDue computes when a row is due by what really happened to its parents.
func wantDue(rows []trace.Request, p *playedTree, id int64, o *Options) time.Duration {
	row := &rows[id]
	if len(row.Parents) == 0 {
		return p.start
	}
	speed := o.Speed
	if speed == 0 {
		speed = 1
	}
	var latest, planned time.Duration
	ends, known := int64(0), true
	for _, q := range row.Parents {
		latest = max(latest, time.Duration(*p.rows[q].DoneNS))
		planned = max(planned, time.Duration(p.rows[q].DueNS)+time.Duration(float64(row.ArrivalNS-rows[q].ArrivalNS)/speed))
		if rows[q].E2ENS == nil {
			known = false
		} else {
			ends = max(ends, rows[q].ArrivalNS+*rows[q].E2ENS)
		}
	}
	scaled := func(ns *int64, by *float64) time.Duration {
		if ns == nil {
			return 0
		}
		d := time.Duration(float64(*ns) / speed)
		if by != nil && *by != 1 {
			d = time.Duration(float64(d) * *by)
		}
		return d
	}
	var wait time.Duration
	switch s := o.Sessions; {
	case (row.ThinkNS != nil || row.ToolNS != nil) && !(known && s.Waits == result.WaitsEnds):
		wait = scaled(row.ThinkNS, s.ThinkScale) + scaled(row.ToolNS, s.ToolScale)
	case known:
		wait = scaled(trace.Ptr(max(row.ArrivalNS-ends, 0)), s.ThinkScale)
	default:
		wait = max(planned-latest, 0)
	}
	if limit := o.Sessions.GapCap; limit > 0 {
		wait = min(wait, limit)
	}
	return latest + wait
}

// checkOrder holds every row of every play to its due time, and the whole to so many live
// trees at every instant until none is left to start.
func checkOrder(t *testing.T, rows []trace.Request, treeOf []int, results []result.Result, o *Options) []*playedTree {
	t.Helper()
	list := playedTrees(t, treeOf, results)
	for _, p := range list {
		for id, r := range p.rows {
			if want := wantDue(rows, p, id, o); r.DueNS != int64(want) || *r.ReleasedNS != int64(want) {
				t.Fatalf("session %d, play %d, row %d of parents %v: due %v, released %v, want %v", p.session, p.play, id, rows[id].Parents,
					time.Duration(r.DueNS), time.Duration(*r.ReleasedNS), want)
			}
		}
	}
	return list
}

// checkLive holds that each tree starts at the instant at which the place that it takes
// became free, places in the order in which they did.
func checkLive(t *testing.T, list []*playedTree, live int) {
	t.Helper()
	free := make([]time.Duration, live)
	for i, p := range list {
		slices.Sort(free)
		if p.start != free[0] {
			t.Fatalf("tree %d (session %d, play %d) starts at %v, a place was free at %v", i, p.session, p.play, p.start, free[0])
		}
		free[0] = p.end
	}
}

// hold makes a server whose latency is random, by row.
func randomHold(seed uint64) func(int32) time.Duration {
	return func(id int32) time.Duration {
		return time.Duration(rand.New(rand.NewPCG(seed, uint64(id))).ExpFloat64() * 2e9)
	}
}

// 200 sessions with sub-agents and joins over a server of random latency: every row is due
// to the nanosecond, and so many sessions are live at every instant.
func TestSessionsClosedLoop(t *testing.T) {
	half, none := 0.5, 0.
	for seed, o := range []Options{
		{Sessions: &SessionLoad{Live: 1}},
		{Sessions: &SessionLoad{Live: 8}},
		{Sessions: &SessionLoad{Live: 8, GapCap: time.Second}, Speed: 2},
		{Sessions: &SessionLoad{Live: 300}},
		{Sessions: &SessionLoad{Live: 25, ThinkScale: &half, ToolScale: &none}, Speed: 0.5},
		{Sessions: &SessionLoad{Live: 25, ThinkScale: &half, Waits: result.WaitsEnds}},
	} {
		synctest.Test(t, func(t *testing.T) {
			rows, treeOf := agents(rand.New(rand.NewPCG(uint64(seed), 3)), 200)
			o.Sessions.Trees = treesOf(t, rows, 0)
			f := &fake{hold: randomHold(uint64(seed))}
			run, results := f.play(t, t.Context(), o, rows)
			if len(results) != len(rows) || run.Requests != int64(len(rows)) || run.NotSent+run.Beyond+run.Skipped != 0 || run.Drift != nil {
				t.Fatalf("%d results of %d rows: %+v", len(results), len(rows), run)
			}
			list := checkOrder(t, rows, treeOf, results, &o)
			checkLive(t, list, o.Sessions.Live)
			s := run.Sessions
			if s.Live != o.Sessions.Live || s.Counts.Started != 200 || s.Counts.Finished != 200 || s.Counts.MinPlays != 1 || s.Counts.MaxPlays != 1 || run.Timing != result.ClosedLoop {
				t.Errorf("%+v, %+v", s, s.Counts)
			}
			if live := s.Counts.LiveTrees; live.Max != int64(min(200, o.Sessions.Live)) || o.Sessions.Live < 200 && (live.Min != live.Max || live.Mean < float64(live.Max)-1e-9 || live.ToNS == 0) {
				t.Errorf("live trees %+v, want %d", live, o.Sessions.Live)
			}
			var want result.Gaps
			for _, r := range rows {
				known := !slices.ContainsFunc(r.Parents, func(p int64) bool { return rows[p].E2ENS == nil })
				switch {
				case len(r.Parents) == 0:
				case (r.ThinkNS != nil || r.ToolNS != nil) && !(known && o.Sessions.Waits == result.WaitsEnds):
					want.Recorded++
				case known:
					want.Ends++
				default:
					want.Starts++
				}
			}
			if s.Counts.Gaps != want || want.Ends == 0 || want.Starts == 0 {
				t.Errorf("gaps %+v, want %+v", s.Counts.Gaps, want)
			}
			if capped := s.Counts.GapCap; (o.Sessions.GapCap > 0) != (capped.Times > 100 && capped.NS > int64(100*time.Second)) {
				t.Errorf("capped %+v", capped)
			}
		})
	}
}

// A timetable has the due times of a run of sessions.
func TestSessionsTimetable(t *testing.T) {
	for seed := range uint64(6) {
		rows, _ := agents(rand.New(rand.NewPCG(seed, 3)), 60)
		f := &fake{hold: randomHold(seed)}
		f.fail = func(id int32) bool { return seed%2 == 1 && id%41 == 7 }
		o := func() Options {
			s := &SessionLoad{Trees: treesOf(t, rows, 0), GapCap: 5 * time.Second}
			o := Options{Sessions: s}
			switch seed / 2 {
			case 0:
				s.Live, o.Duration, s.IdleCap = 2, 5*time.Minute, time.Second
			case 1:
				s.Live = 1
				s.IdleCap = 500 * time.Millisecond
			default:
				process, err := arrival.ParseProcess("poisson:0.5")
				if err != nil {
					t.Fatal(err)
				}
				s.Arrivals, s.MaxLive, s.IdleCap = process.New(arrival.Stream(seed, "test")), 3, 300*time.Millisecond
			}
			return o
		}
		run, results := playTimetable(t, f, o(), rows)
		synctest.Test(t, func(t *testing.T) {
			real, want := f.play(t, t.Context(), o(), rows)
			due := map[result.RequestKey]int64{}
			for _, r := range want {
				due[r.Key()] = r.DueNS
			}
			if len(results) != len(want) {
				t.Fatalf("seed %d: %d rows taken, %d sent", seed, len(results), len(want))
			}
			for _, r := range results {
				if at, ok := due[r.Key()]; !ok || at != r.DueNS {
					t.Fatalf("seed %d: row %v due at %d, in the run %d", seed, r.Key(), r.DueNS, at)
				}
			}
			a, b := *run.Sessions.Counts, *real.Sessions.Counts
			a.LiveTrees, b.LiveTrees = nil, nil
			// What ends after the duration is not waited for: one tree in each place at most.
			if n := a.Finished - b.Finished; n < 0 || n > 2 || seed < 2 && a.Finished == a.Started {
				t.Errorf("seed %d: %d trees finished of %d, in the run %d", seed, a.Finished, a.Started, b.Finished)
			}
			a.Finished, b.Finished = 0, 0
			if !reflect.DeepEqual(a, b) || a.IdleCap.Times == 0 {
				t.Errorf("seed %d: %+v, in the run %+v", seed, a, b)
			}
		})
	}
}

// A workload that cannot be read is no load of sessions.
func TestTreesOfABrokenWorkload(t *testing.T) {
	if _, err := ReadTrees(brokenReader{reader(workload(0, 1, 2))}, 0, false, t.TempDir()); err == nil {
		t.Error("its trees were read")
	}
}

// A plan of sessions is the run of them, over a server that takes as long as is said.
func TestPlanSessions(t *testing.T) {
	rows, _ := agents(rand.New(rand.NewPCG(6, 3)), 80)
	hold := randomHold(6)
	took := func(r *trace.Request) (time.Duration, bool) { return hold(r.InputTokens), true }
	o := Options{Sessions: &SessionLoad{Trees: treesOf(t, rows, 0), Live: 7, IdleCap: time.Second}, Duration: 9 * time.Minute}
	var tokens int64
	plan, about, err := PlanSessions(o, took, func(r *trace.Request) error { tokens += int64(r.InputTokens); return nil })
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		run, results := (&fake{hold: hold}).play(t, t.Context(), o, rows)
		var sum, first, last, end int64
		for i, r := range results {
			sum += int64(r.WantInput)
			if i == 0 {
				first = r.DueNS
			}
			first, last, end = min(first, r.DueNS), max(last, r.DueNS), max(end, *r.DoneNS)
		}
		if plan.Requests != run.Requests || tokens != sum || plan.FirstNS != first || plan.LastNS != last || plan.EndNS != end || plan.Timed != run.Requests {
			t.Errorf("%+v, %d tokens; the run has %d requests from %d to %d, over at %d, %d tokens", plan, tokens, run.Requests, first, last, end, sum)
		}
		if about.Counts.Started != run.Sessions.Counts.Started || about.Counts.Gaps != run.Sessions.Counts.Gaps || about.Counts.Started < 81 {
			t.Errorf("%+v, in the run %+v", about.Counts, run.Sessions.Counts)
		}
	})
	// One in which no time passes never ends.
	none := 0.
	o.Sessions.ThinkScale, o.Sessions.ToolScale = &none, &none
	for i := range rows {
		rows[i].ArrivalNS = 0
	}
	o.Sessions.Trees = treesOf(t, rows, 0)
	_, _, err = PlanSessions(o, func(*trace.Request) (time.Duration, bool) { return 0, false }, func(*trace.Request) error { return nil })
	if !errors.Is(err, ErrNoTime) {
		t.Errorf("a plan without time ends with %v", err)
	}
}

// Turns of a session whose parents are not told wait for each other, unless they were
// recorded at once.
func TestSessionsWithoutParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := workload(0, 5*time.Second, 6*time.Second, 30*time.Second)
		for i := range rows {
			rows[i].Session, rows[i].Turn = trace.Ptr(int64(4)), trace.Ptr(int32(i))
		}
		rows[1].E2ENS = trace.Ptr(int64(10 * time.Second)) // row 2 came before it was over
		f := &fake{hold: func(int32) time.Duration { return 8 * time.Second }}
		run, results := f.play(t, t.Context(), Options{Sessions: &SessionLoad{Live: 1, Trees: treesOf(t, rows, 0)}}, rows)
		// Rows 1 and 2 wait for row 0, over at 8 s; row 3 for row 2, over at 16 s, and it was
		// 24 s after that: row 2 was due at 8 s, so row 3 at 32 s.
		for i, want := range []int64{0, 8, 8, 32} {
			if got := results[i].DueNS / 1e9; got != want {
				t.Errorf("row %d is due at %d s, want %d s", i, got, want)
			}
		}
		if g := run.Sessions.Counts.Gaps; g != (result.Gaps{Starts: 3, Implied: 3}) {
			t.Errorf("%+v", g)
		}
		if p := results[3].Parents; !slices.Equal(p, []int64{2}) {
			t.Errorf("row 3 waited for %v", p)
		}
	})
}

// In the open loop trees start by the process, unless as many are live as may be.
func TestSessionsOpenLoop(t *testing.T) {
	for _, limit := range []int{0, 4} {
		synctest.Test(t, func(t *testing.T) {
			rows, treeOf := agents(rand.New(rand.NewPCG(5, 3)), 200)
			spec, err := arrival.ParseProcess("poisson:0.5")
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Sessions: &SessionLoad{Trees: treesOf(t, rows, 0), Arrivals: spec.New(arrival.Stream(1, "test")), Rate: "poisson:0.5", MaxLive: limit}}
			f := &fake{hold: randomHold(5)}
			run, results := f.play(t, t.Context(), o, rows)
			list := checkOrder(t, rows, treeOf, results, &o)
			again, at := spec.New(arrival.Stream(1, "test")), time.Duration(0)
			free := make([]time.Duration, max(limit, 1))
			var held int64
			var waited time.Duration
			for i, p := range list {
				at += again.Next()
				want := at
				if limit > 0 {
					slices.Sort(free)
					if want = max(at, free[0]); want > at {
						held++
						waited += want - at
					}
					free[0] = p.end
				}
				if p.session != i || p.start != want {
					t.Fatalf("tree %d is session %d, starts at %v, want %v", i, p.session, p.start, want)
				}
			}
			c := run.Sessions.Counts
			if c.HeldBack != held || c.HeldNS != int64(waited) || (limit > 0) != (held > 10) || limit > 0 && c.LiveTrees.Max != int64(limit) || run.Timing != result.Causal {
				t.Errorf("%+v, held %d for %v", c, held, waited)
			}
		})
	}
}

// The cap on idle time moves all that is to come by one time: the order and the distances
// between all requests that an idle time does not lie between stay.
func TestSessionsIdleCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Two sessions of three turns. Answers take a second.
		minute := int64(time.Minute)
		rows := workload(0, 0, 60*time.Second, 70*time.Second, 200*time.Second, 300*time.Second)
		for i, s := range []int64{0, 1, 0, 1, 0, 1} {
			rows[i].Session = trace.Ptr(s)
		}
		for i, think := range []int64{0, 0, minute, 70 * minute / 60, 2 * minute, minute / 60} {
			if i >= 2 {
				rows[i].Parents, rows[i].ThinkNS = []int64{int64(i - 2)}, &think
			}
		}
		f := &fake{hold: func(int32) time.Duration { return time.Second }}
		run, results := f.play(t, t.Context(), Options{Sessions: &SessionLoad{Live: 2, Trees: treesOf(t, rows, 0), IdleCap: 10 * time.Second}}, rows)
		// Idle from 1 to 61: 50 s less. Row 2 at 11, row 3 ten seconds later at 21: from 12 to 21
		// is below the cap. Row 5 at 23, over at 24. Row 4 would be at 132; idle from 24 on, so
		// that it is at 34, 98 s earlier.
		for i, want := range []int64{0, 0, 11, 21, 34, 23} {
			if got := results[i].DueNS / 1e9; got != want || f.shots[int32(i)] != time.Duration(want)*time.Second {
				t.Errorf("row %d: due at %d s, sent at %v, want %d s", i, got, f.shots[int32(i)], want)
			}
		}
		if c := run.Sessions.Counts.IdleCap; c != (result.Capped{Times: 2, NS: int64(148 * time.Second)}) {
			t.Errorf("%+v", c)
		}
	})
}

// Trees are played again until the time is over, each play with blocks of its own but for
// those that most trees begin with.
func TestSessionsRecycle(t *testing.T) {
	for _, recycle := range []string{result.RecycleSalt, result.RecycleSame, result.RecycleStop} {
		synctest.Test(t, func(t *testing.T) {
			rows, treeOf := agents(rand.New(rand.NewPCG(8, 3)), 10)
			turns := map[int]uint64{}
			for i := range rows {
				s := treeOf[i]
				turns[s]++
				rows[i].InputTokens = int32(10000 + i) // 2 blocks of 16, and more
				rows[i].Blocks = []uint64{0, 1, uint64(100*s + 2), uint64(100*s+10) + turns[s]}
				if s%2 == 0 {
					rows[i].Blocks[1] = uint64(500 + 100*s)
				}
			}
			blocks := map[int64]map[string]bool{}
			f := &fake{hold: randomHold(8), prepare: func(row *trace.Request) error {
				id := int64(row.InputTokens - 10000)
				if blocks[id] == nil {
					blocks[id] = map[string]bool{}
				}
				key := fmt.Sprint(row.Blocks)
				if blocks[id][key] {
					return nil
				}
				blocks[id][key] = true
				if row.Blocks[0] != 0 { // all trees have it
					t.Errorf("row %d begins with block %d", id, row.Blocks[0])
				}
				return nil
			}}
			o := Options{Sessions: &SessionLoad{Live: 3, Trees: treesOf(t, rows, 16), Recycle: recycle}, Duration: 10 * time.Minute}
			run, results := f.play(t, t.Context(), o, rows)
			list := playedTrees(t, treeOf, results)
			checkLive(t, list, 3)
			plays := int(list[len(list)-1].play) + 1
			c := run.Sessions.Counts
			switch {
			case recycle == result.RecycleStop:
				if plays != 1 || c.MaxPlays != 1 || c.Finished != 10 {
					t.Errorf("%d plays, %+v", plays, c)
				}
			case plays < 3 || c.MaxPlays != int64(plays) || c.LiveTrees.Min != 3 || c.LiveTrees.ToNS != int64(o.Duration):
				t.Errorf("%d plays, %+v, %+v", plays, c, c.LiveTrees)
			}
			for id, seen := range blocks {
				want := map[string]int{result.RecycleSalt: plays, result.RecycleSame: 1, result.RecycleStop: 1}[recycle]
				if recycle == result.RecycleSalt && (len(seen) < want-1 || len(seen) > want+1) || recycle != result.RecycleSalt && len(seen) != want { // one may be prepared ahead
					t.Errorf("%s: row %d had %d prompts in %d plays", recycle, id, len(seen), plays)
				}
			}
		})
	}
}

// Turns whose parent failed are not sent, and their tree gives up its place.
func TestSessionsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows, _ := agents(rand.New(rand.NewPCG(2, 3)), 100)
		for i := range rows {
			if i%17 == 3 {
				rows[i].Status, rows[i].E2ENS = trace.StatusFailed, trace.Ptr(int64(time.Second))
			}
		}
		f := &fake{hold: randomHold(2), fail: func(id int32) bool { return id%13 == 5 }}
		o := Options{Sessions: &SessionLoad{Live: 5, Trees: treesOf(t, rows, 0)}}
		run, results := f.play(t, t.Context(), o, rows)
		sent, failed := map[int64]bool{}, map[int64]bool{}
		for _, r := range results {
			sent[r.RowID] = true
		}
		var skipped, excluded int64
		for i, r := range rows {
			id := int64(i)
			failed[id] = slices.ContainsFunc(r.Parents, func(p int64) bool { return failed[p] })
			switch {
			case r.Status == trace.StatusFailed:
				excluded++
			case failed[id]:
				skipped++
			default:
				failed[id] = i%13 == 5
				if !sent[id] {
					t.Errorf("row %d was not sent", i)
				}
				continue
			}
			if sent[id] {
				t.Errorf("row %d was sent", i)
			}
		}
		if c := run.Sessions.Counts; run.Skipped != skipped || run.Excluded != excluded || skipped == 0 || c.Finished != 100 {
			t.Errorf("skipped %d, excluded %d: %+v, %+v", skipped, excluded, run, c)
		}
	})
}
