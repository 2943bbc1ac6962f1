package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
)

// dealt is what a share has of rows, by brute force: those of every Of-th session in the order
// of first rows, with their numbers in the whole.
func dealt(rows []trace.Request, treeOf []int, share result.Share) (own []trace.Request, numbers []int64) {
	number, at := map[int]int64{}, map[int64]int64{}
	for i, r := range rows {
		if _, seen := number[treeOf[i]]; !seen {
			number[treeOf[i]] = int64(len(number))
		}
		if number[treeOf[i]]%int64(share.Of) != int64(share.Index) {
			continue
		}
		at[int64(i)] = int64(len(own))
		r.Parents = nil
		for _, p := range rows[i].Parents {
			r.Parents = append(r.Parents, at[p])
		}
		own, numbers = append(own, r), append(numbers, int64(i))
	}
	return own, numbers
}

// apart are copies that share no list, as those of a file.
func apart(rows []trace.Request) (out []trace.Request) {
	for _, r := range rows {
		r.Parents, r.Blocks = slices.Clone(r.Parents), slices.Clone(r.Blocks)
		out = append(out, r)
	}
	return out
}

// A due row of a run: when, and for plays the blocks that its prompt has.
type dueRow struct {
	at     int64
	blocks string
}

// duesOf plays a run to its end, and returns when each row was due.
func duesOf(t *testing.T, f *fake, o Options, rows trace.Reader[trace.Request], into map[result.RequestKey]dueRow) {
	t.Helper()
	table, err := NewTimetable(o, rows)
	if err != nil {
		t.Fatal(err)
	}
	var flying soonest[ending]
	for {
		due, ok := table.Next()
		if len(flying) > 0 && (!ok || flying[0].at <= due) {
			e := flying[0]
			flying = slices.Delete(flying, 0, 1)
			slices.SortFunc(flying, func(a, b ending) int { return int(a.at - b.at) })
			table.Over(e.row, e.at, e.failed)
			continue
		}
		if !ok {
			break
		}
		d := table.Take()
		key := d.Result.Key()
		if was, twice := into[key]; twice {
			t.Fatalf("%v is sent twice, at %v and %v", key, was.at, d.Result.DueNS)
		}
		into[key] = dueRow{d.Result.DueNS, fmt.Sprint(d.Row.Blocks, d.Row.OutputBlocks)}
		flying = append(flying, ending{at: time.Duration(d.Result.DueNS) + f.hold(d.Row.InputTokens), row: d.ID, failed: f.fail(d.Row.InputTokens)})
		slices.SortStableFunc(flying, func(a, b ending) int { return int(a.at - b.at) })
	}
	if _, err := table.Finish(); err != nil {
		t.Fatal(err)
	}
}

// The shards of a load send each row of the whole once, and at the same time: at recorded
// times, after parents, by an arrival process, in rounds, and by session.
func TestSharesAreTheWhole(t *testing.T) {
	for seed := range uint64(48) {
		rng := rand.New(rand.NewPCG(seed, 88))
		rows, treeOf := agents(rng, 25)
		for i := range rows {
			rows[i].Blocks = []uint64{uint64(i % 9), uint64(100 + i)}
			if rng.IntN(9) == 0 {
				rows[i].Status = trace.StatusFailed
			}
		}
		f := &fake{hold: func(id int32) time.Duration { return time.Duration(1+id%7) * 210 * time.Millisecond }}
		f.fail = func(id int32) bool { return seed%2 == 1 && id%17 == 3 }
		poisson, err := arrival.ParseProcess("gamma:3,cv=2")
		if err != nil {
			t.Fatal(err)
		}
		process := func() arrival.Process { return poisson.New(arrival.Stream(seed, "x")) }
		kind := seed % 6
		causal, loop := kind == 1 || kind == 3 || kind == 4, kind == 4
		options := func(rows []trace.Request) (o Options) {
			o.IncludeFailed = seed%5 == 0
			if causal {
				o.Causal = lineageOf(t, rows)
				if loop {
					o.Causal.Repeat()
				}
			}
			if kind >= 2 && kind <= 4 {
				o.Arrivals = process()
			}
			if kind == 5 {
				o.Duration = 20 * time.Second
				o.Sessions = &SessionLoad{Arrivals: process(), Recycle: []string{result.RecycleSalt, result.RecycleApart}[seed/6%2]}
			}
			return o
		}
		source := func(rows []trace.Request) trace.Reader[trace.Request] {
			if !loop {
				return reader(rows)
			}
			return &Loop{Open: func() (trace.Reader[trace.Request], error) { return reader(apart(rows)), nil }, Rows: int64(len(rows)), PeriodNS: 60e9, Rounds: 3}
		}
		whole := map[result.RequestKey]dueRow{}
		o := options(rows)
		o.Origin = Origin(int64(len(rows)), func(i int64) int64 { return i })
		if kind == 5 {
			o.Sessions.Trees = treesOf(t, rows, 16)
		}
		duesOf(t, f, o, source(rows), whole)
		for _, of := range []int{1, 2, 3, 8} {
			together, each := map[result.RequestKey]dueRow{}, 0
			for index := range of {
				share := result.Share{Index: index, Of: of}
				own, numbers := dealt(rows, treeOf, share)
				o := options(own)
				o.Share = share
				o.Origin = Origin(int64(len(own)), func(i int64) int64 { return numbers[i] })
				if o.Arrivals != nil {
					thin, err := ThinRows(o, options(rows).Causal, reader(rows), func(i int64) bool { return slices.Contains(numbers, i) })
					if err != nil {
						t.Fatal(err)
					}
					o.Arrivals = thin.Of(o.Arrivals)
				}
				if kind == 5 {
					trees := treesOf(t, rows, 16)
					o.Sessions.Arrivals = ThinTrees(share, trees.Len()).Of(o.Sessions.Arrivals)
					trees.Deal(share)
					o.Sessions.Trees, o.Origin = trees, nil
				}
				before := len(together)
				duesOf(t, f, o, source(own), together)
				if len(together) > before {
					each++
				}
			}
			if !maps.Equal(together, whole) || each != of || len(whole) < 100 {
				t.Fatalf("seed %d, %d shards, of which %d send: %d rows where there are %d, or at other times", seed, of, each, len(together), len(whole))
			}
		}
	}
}

// Places of a closed loop are dealt out as they open, and the first trees that are played
// begin inside at the instants of the whole.
func TestSharesOfPlaces(t *testing.T) {
	rows, _ := agents(rand.New(rand.NewPCG(5, 5)), 40)
	whole := Options{Concurrency: 11, RampUp: 22 * time.Second}
	want := whole.slotTimes()
	start := &TrajectoryStart{From: 0.2, To: 0.8, Seed: 3}
	load := Options{Speed: 1, RampUp: 10 * time.Second, Sessions: &SessionLoad{Trees: treesOf(t, rows, 0), Live: 10, Start: start}}
	instants, places := map[int64]int64{}, load.placeTimes()
	for n := range int64(10) {
		tree, err := load.loadTree(n)
		if err != nil {
			t.Fatal(err)
		}
		instants[n] = tree.instant
	}
	for _, of := range []int{1, 3, 8} {
		var got, opened []time.Duration
		for index := range of {
			share := result.Share{Index: index, Of: of}
			o := whole
			o.Share = share
			got = append(got, o.slotTimes()...)
			trees := treesOf(t, rows, 0)
			trees.Deal(share)
			s := load
			s.Share, s.Sessions = share, &SessionLoad{Trees: trees, Live: 10, Start: start}
			mine := s.placeTimes()
			opened = append(opened, mine...)
			for k := range int64(len(mine)) {
				tree, err := s.loadTree(k)
				if err != nil {
					t.Fatal(err)
				}
				if n := k*int64(of) + int64(index); tree.instant != instants[n] || !tree.inside {
					t.Errorf("shard %v: tree %d of it begins at %d, and %d in the whole", share, k, tree.instant, instants[n])
				}
			}
			if next, err := s.loadTree(int64(len(mine))); err != nil || next.inside {
				t.Errorf("shard %v: a tree after the first of each place begins inside (%v)", share, err)
			}
		}
		slices.Sort(got)
		slices.Sort(opened)
		if !slices.Equal(got, want) || !slices.Equal(opened, places) {
			t.Errorf("%d shards: places open at %v and %v, want %v and %v", of, got, opened, want, places)
		}
	}
}

// A share is refused what it cannot do without the others.
func TestSharesRefuse(t *testing.T) {
	share := result.Share{Index: 1, Of: 4}
	for _, o := range []Options{
		{Share: result.Share{Index: 4, Of: 4}}, {Share: result.Share{Index: -1, Of: 4}}, {Share: result.Share{Index: 1}},
		{Share: share, Warmup: Span{Requests: 5}}, {Share: share, Cooldown: Span{Requests: 5}}, {Share: share, Concurrency: 3}, {Share: share, MaxInFlight: 2},
		{Share: share, Sessions: &SessionLoad{Live: 8, IdleCap: time.Second}}, {Share: share, Sessions: &SessionLoad{Live: 3}},
	} {
		if o.CheckShare() == nil {
			t.Errorf("taken: share %v, %+v", o.Share, o)
		}
	}
	fine := Options{Share: share, Warmup: Span{Time: time.Second}, Concurrency: 4}
	if err := fine.CheckShare(); err != nil {
		t.Error(err)
	}
}

// A run starts when its clock says, by the wall clock, and one that is late leaves nothing.
func TestStartClock(t *testing.T) {
	rows := []trace.Request{{InputTokens: 1}, {InputTokens: 2, ArrivalNS: 3e9}}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		f := &fake{hold: func(int32) time.Duration { return time.Second }}
		run, results := f.play(t, t.Context(), Options{StartAt: begun.Add(40 * time.Second).Round(0)}, rows)
		started, err := time.Parse(time.RFC3339Nano, run.Started)
		if err != nil || started.Sub(begun.Round(0)) != 40*time.Second || len(results) != 2 || time.Since(begun) != 44*time.Second {
			t.Errorf("started %v after the begin, over after %v (%v)", started.Sub(begun.Round(0)), time.Since(begun), err)
		}
		for _, r := range results {
			if *r.SentNS != r.DueNS {
				t.Errorf("row %d is due at %d and sent at %d", r.RowID, r.DueNS, *r.SentNS)
			}
		}
	})
	for _, slow := range []time.Duration{0, 5 * time.Second} { // late before and after the first row is prepared
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			f := &fake{hold: func(int32) time.Duration { return time.Second }, prepare: func(*trace.Request) error { time.Sleep(slow); return nil }}
			o := Options{StartAt: time.Now().Add(slow/2 - time.Millisecond).Round(0), Share: result.Share{Index: 0, Of: 2}}
			path := filepath.Join(dir, "r.parquet")
			_, err := (&Runner{Endpoint: f, Pacer: sleeper, Options: o}).Record(context.Background(), reader(rows), path)
			left, _ := os.ReadDir(dir)
			if !errors.Is(err, ErrLateStart) || len(left) != 0 || len(f.shots) != 0 {
				t.Errorf("prepared in %v: %v; %d files, %d requests are there", slow, err, len(left), len(f.shots))
			}
		})
	}
}
