package replay

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
)

// windowCases are loads that measure whole trees, made anew for each use.
func windowCases(t *testing.T, rows []trace.Request) map[string]func() Options {
	load := func(s SessionLoad, w SessionWindow) Options {
		s.Trees, s.Window = treesOf(t, rows, 0), &w
		s.Trees.Begin(17)
		return Options{Sessions: &s}
	}
	return map[string]func() Options{
		"closed": func() Options {
			o := load(SessionLoad{Live: 8}, SessionWindow{Trees: 30, Settled: true})
			o.Warmup.Sessions = 5
			return o
		},
		"for a time": func() Options { return load(SessionLoad{Live: 3}, SessionWindow{Trees: 2, For: 5 * time.Minute}) },
		"more than all": func() Options {
			o := load(SessionLoad{Live: 5}, SessionWindow{Trees: 150, Settled: true})
			o.Warmup.Time = time.Minute
			return o
		},
		"idle": func() Options {
			return load(SessionLoad{Live: 1, IdleCap: 500 * time.Millisecond}, SessionWindow{Trees: 20, Settled: true})
		},
		"open": func() Options {
			process, err := arrival.ParseProcess("poisson:0.5")
			if err != nil {
				t.Fatal(err)
			}
			return load(SessionLoad{Arrivals: process.New(arrival.Stream(7, "test"))}, SessionWindow{Trees: 40, Settled: true})
		},
	}
}

// Every tree that starts in the window is played to its end, under the whole load, and then
// nothing is sent any more.
func TestSessionWindow(t *testing.T) {
	rows, treeOf := agents(rand.New(rand.NewPCG(4, 3)), 60)
	for name, o := range windowCases(t, rows) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, opt := &fake{hold: randomHold(4)}, o()
				run, results := f.play(t, t.Context(), opt, rows)
				checkWindow(t, &opt, &run, results, treeOf, len(rows))
			})
		})
	}
}

// checkWindow finds the window again from the results.
func checkWindow(t *testing.T, opt *Options, run *result.Run, results []result.Result, treeOf []int, rows int) {
	t.Helper()
	s, w := opt.Sessions, opt.Sessions.Window
	sizes := map[int]int{}
	for _, tree := range treeOf {
		sizes[tree]++
	}
	list := playedTrees(t, treeOf, results)
	if run.Window == nil || run.Window.From == nil || run.Window.To == nil || run.EndedEarly != "" {
		t.Fatalf("window %+v, ended %q", run.Window, run.EndedEarly)
	}
	from, to := time.Duration(run.Window.From.DueNS), time.Duration(run.Window.To.DueNS)
	slices.SortStableFunc(list, func(a, b *playedTree) int { return cmp.Compare(a.start, b.start) })
	if first := list[0]; first.session != 17 {
		t.Errorf("session %d was played first", first.session)
	}
	measured, lastEnd := 0, time.Duration(0)
	for _, p := range list {
		if p.start < from || p.start >= to {
			continue
		}
		if measured++; len(p.rows) != sizes[p.session] {
			t.Errorf("session %d, play %d: %d of %d requests of a measured tree", p.session, p.play, len(p.rows), sizes[p.session])
		}
		lastEnd = max(lastEnd, p.end)
	}
	if int64(measured) < w.Trees || w.For == 0 && int64(measured) != w.Trees || to-from < w.For {
		t.Errorf("%d trees measured in %v, want %d in %v", measured, to-from, w.Trees, w.For)
	}
	liveAt := func(at time.Duration) (live, ended int) {
		for _, p := range list {
			switch whole := len(p.rows) == sizes[p.session]; {
			case whole && p.end <= at:
				ended++
			case p.start <= at:
				live++
			}
		}
		return live, ended
	}
	if w.Settled {
		for _, p := range list { // the first tree that starts when twice as many ended as are live
			live, ended := liveAt(p.start)
			settled := ended >= 2*live && int64(ended) >= opt.Warmup.Sessions && p.start >= opt.Warmup.Time
			if p.start < from && settled || p.start == from && !settled {
				t.Errorf("the window begins at %v; at %v %d trees were live and %d had ended", from, p.start, live, ended)
			}
		}
	}
	end := max(lastEnd, to)
	if s.Live > 0 && s.IdleCap == 0 {
		for _, p := range list {
			if live, _ := liveAt(p.start); p.start > 0 && p.start < end && live != s.Live {
				t.Errorf("%d trees live at %v, before the last measured one ended at %v", live, p.start, lastEnd)
			}
		}
	}
	for _, r := range results {
		if at := time.Duration(r.DueNS); at > end+opt.Ahead+2*time.Second {
			t.Errorf("row %d was sent at %v, and the last measured tree ended at %v", r.RowID, at, lastEnd)
		}
	}
	c := run.Sessions.Counts
	if run.Sessions.Measure != w.Trees || run.Sessions.FirstTree != 17 || c.LiveTrees.ToNS > int64(end) || c.LiveTrees.Max == 0 || s.Live > 0 && c.LiveTrees.Max != int64(s.Live) {
		t.Errorf("%+v, %+v", run.Sessions, c.LiveTrees)
	}
	if run.Cut == nil || run.Beyond == 0 || run.Beyond > int64(rows) {
		t.Errorf("%d rows beyond, cut %+v", run.Beyond, run.Cut)
	}
}

// A timetable has the window of a run.
func TestSessionWindowTimetable(t *testing.T) {
	rows, treeOf := agents(rand.New(rand.NewPCG(4, 3)), 60)
	for name, o := range windowCases(t, rows) {
		t.Run(name, func(t *testing.T) {
			f, opt := &fake{hold: randomHold(4)}, o()
			run, results := playTimetable(t, f, opt, rows)
			checkWindow(t, &opt, &run, results, treeOf, len(rows))
			synctest.Test(t, func(t *testing.T) {
				real, _ := f.play(t, t.Context(), o(), rows)
				if name == "open" { // where trees are begun ahead of their time, before the last have ended
					return
				}
				if a, b := fmt.Sprint(*run.Window.From, *run.Window.To), fmt.Sprint(*real.Window.From, *real.Window.To); a != b {
					t.Errorf("window %s, of the run %s", a, b)
				}
			})
		})
	}
}

// Where the load never settles, the window begins at half of the time, and what its end cuts
// is cut.
func TestSessionWindowUnsettled(t *testing.T) {
	rows, _ := agents(rand.New(rand.NewPCG(4, 3)), 60)
	trees := treesOf(t, rows, 0)
	f := &fake{hold: func(int32) time.Duration { return time.Hour }}
	o := Options{Sessions: &SessionLoad{Trees: trees, Live: 4, Window: &SessionWindow{Trees: 3, Settled: true}}, Duration: 10 * time.Minute}
	run, results := playTimetable(t, f, o, rows)
	if len(results) != 4 || run.Window.From.DueNS != int64(never) {
		t.Errorf("%d results, window %+v", len(results), run.Window.From)
	}
	o.Sessions.Live, f.hold = 1, func(int32) time.Duration { return 40 * time.Second }
	run, results = playTimetable(t, f, o, rows)
	if from := time.Duration(run.Window.From.DueNS); from < 5*time.Minute || from > 10*time.Minute || run.Window.To != nil || run.Cut == nil || len(run.Cut.Sessions) != 1 {
		t.Errorf("%d results, window %+v, cut %+v", len(results), run.Window, run.Cut)
	}
}

// What makes no window is refused.
func TestSessionWindowRefused(t *testing.T) {
	rows, _ := agents(rand.New(rand.NewPCG(4, 3)), 2)
	for _, o := range []Options{
		{Sessions: &SessionLoad{Live: 1, Window: &SessionWindow{}}},
		{Sessions: &SessionLoad{Live: 1, Window: &SessionWindow{Trees: 1, For: -1}}},
		{Sessions: &SessionLoad{Live: 1, Window: &SessionWindow{Trees: 1}}, Warmup: Span{Requests: 1}},
		{Sessions: &SessionLoad{Live: 1, Window: &SessionWindow{Trees: 1}}, Cooldown: Span{Time: 1}},
	} {
		o.Sessions.Trees = treesOf(t, rows, 0)
		if _, err := NewTimetable(o, reader(rows)); err == nil {
			t.Errorf("%+v is taken", o.Sessions.Window)
		}
	}
}
