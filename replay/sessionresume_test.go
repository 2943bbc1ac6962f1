package replay

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"reprise/replay/result"
	"reprise/trace/arrival"
)

// A run of sessions that is killed goes on: each live session from its last turn that was
// answered, waits beginning anew, in as many places as before; nothing that was answered is
// sent again, and no session is left out.
func TestSessionsResume(t *testing.T) {
	for seed := range uint64(4) {
		rows, treeOf := agents(rand.New(rand.NewPCG(seed, 3)), 60)
		trees := treesOf(t, rows, 0)
		pos := map[int64]int64{}
		for i, row := range trees.rows {
			pos[int64(row)] = int64(i)
		}
		open := seed == 3
		c := resumeCase{rows: rows, fake: func() *fake { return &fake{hold: randomHold(seed)} },
			id: func(r *result.Result) int64 { return int64(r.Round)*trees.Rows() + pos[r.RowID] },
			options: func() Options {
				o := Options{Sessions: &SessionLoad{Trees: trees, Live: 6, GapCap: 4 * time.Second}}
				if seed == 2 {
					o.Duration = 8 * time.Minute // each is played several times
				}
				if open {
					process, err := arrival.ParseProcess("poisson:0.3")
					if err != nil {
						t.Fatal(err)
					}
					o.Sessions.Live, o.Sessions.MaxLive, o.Sessions.Arrivals = 0, 6, process.New(arrival.Stream(seed, "test"))
				}
				return o
			}}
		run, results := c.play(t, 60*time.Second)
		gap := run.Resumed[0]
		base := time.Duration(gap.AtNS)
		if seed != 2 && len(results) != len(rows) {
			t.Fatalf("seed %d: %d results of %d rows", seed, len(results), len(rows))
		}
		o := c.options()
		list := playedTrees(t, treeOf, results)
		free := slices.Repeat([]time.Duration{base}, 6)
		var under, fresh int
		for _, p := range list {
			var old, late []int64
			for id, r := range p.rows {
				if *r.DoneNS <= int64(base) {
					old = append(old, id)
				} else {
					late = append(late, id)
				}
			}
			if len(late) == 0 {
				continue
			}
			slices.Sort(free)
			start := free[0]
			if free[0] = p.end; len(old) > 0 {
				if under++; start != base {
					t.Errorf("seed %d: session %d was live, and went on at %v only, not at %v", seed, p.session, start, base)
				}
			} else if fresh++; !open && p.start != start {
				t.Errorf("seed %d: session %d, play %d starts at %v, a place was free at %v", seed, p.session, p.play, p.start, start)
			}
			for _, id := range late {
				if len(rows[id].Parents) == 0 {
					continue
				}
				if want := wantDue(rows, p, id, &o, base); p.rows[id].DueNS != int64(want) {
					t.Fatalf("seed %d: row %d is due at %v, want %v", seed, id, time.Duration(p.rows[id].DueNS), want)
				}
			}
		}
		if counts := run.Sessions.Counts; under < 2 || fresh < 10 || counts.Started != int64(len(list)) || gap.Twice == nil || gap.Twice.Requests == 0 || gap.Again != gap.Twice.Requests {
			t.Errorf("seed %d: %d were live, %d began after; %+v; %+v", seed, under, fresh, counts, gap)
		}
		if !open && run.Sessions.Counts.LiveTrees.Min != 6 {
			t.Errorf("seed %d: %+v", seed, run.Sessions.Counts.LiveTrees)
		}
	}
}

// Sessions that were over before the run was killed count for a warm-up of sessions: the
// measurement begins after as many as if nothing had happened.
func TestSessionsResumeWarmUp(t *testing.T) {
	rows, treeOf := agents(rand.New(rand.NewPCG(4, 3)), 40)
	trees := treesOf(t, rows, 0)
	pos := map[int64]int64{}
	for i, row := range trees.rows {
		pos[int64(row)] = int64(i)
	}
	for _, kill := range []time.Duration{20 * time.Second, 100 * time.Second} {
		c := resumeCase{rows: rows, fake: func() *fake { return &fake{hold: randomHold(4)} }, id: func(r *result.Result) int64 { return pos[r.RowID] },
			options: func() Options {
				return Options{Sessions: &SessionLoad{Trees: trees, Live: 4}, Warmup: Span{Sessions: 5}}
			}}
		run, results := c.play(t, kill)
		list := playedTrees(t, treeOf, results)
		var ends []time.Duration
		for _, p := range list {
			ends = append(ends, p.end)
		}
		slices.Sort(ends)
		warm := ends[4]
		var first *result.Result // sent after five were over
		for i := range results {
			if r := &results[i]; *r.ReleasedNS >= int64(warm) && (first == nil || *r.ReleasedNS < *first.ReleasedNS) {
				first = r
			}
		}
		if w := run.Window; w == nil || w.From == nil || w.From.DueNS < int64(warm) || w.From.DueNS > first.DueNS {
			t.Errorf("killed at %v: measured from %+v, five sessions were over at %v, the next request was due at %v", kill, w.From, warm, time.Duration(first.DueNS))
		}
	}
}

// A run that began inside of its sessions, and one that waits as AIPerf does, are killed and go
// on: history is not sent, nothing that was answered is sent again, no row is left out, and each
// is due no sooner than all of its parents were over.
func TestSessionsResumeInside(t *testing.T) {
	for seed := range uint64(4) {
		rows, treeOf := agents(rand.New(rand.NewPCG(seed, 5)), 30)
		trees := treesOf(t, rows, 0)
		pos := map[int64]int64{}
		for i, row := range trees.rows {
			pos[int64(row)] = int64(i)
		}
		c := resumeCase{rows: rows, fake: func() *fake { return &fake{hold: randomHold(seed)} }, id: func(r *result.Result) int64 { return pos[r.RowID] },
			options: func() Options {
				o := Options{Sessions: &SessionLoad{Trees: trees, Live: 6, Start: &TrajectoryStart{From: 0.25, To: 0.75, Seed: seed}}}
				if seed%2 == 1 {
					o.Sessions.Waits = result.WaitsAIPerf
				}
				return o
			}}
		run, results := c.play(t, 30*time.Second)
		o := c.options()
		if err := func() (err error) { o, err = o.withDefaults(); return err }(); err != nil {
			t.Fatal(err)
		}
		history := map[int64]bool{}
		for n := range int64(6) {
			tree, err := o.loadTree(n)
			if err != nil {
				t.Fatal(err)
			}
			_, at := trees.firstID(n)
			for i := range tree.rows {
				if tree.rows[i].history {
					history[int64(at[i])] = true
				}
			}
		}
		sent := map[int64]*result.Result{}
		for i := range results {
			r := &results[i]
			if sent[r.RowID] != nil || history[r.RowID] {
				t.Fatalf("seed %d: row %d was sent again, or is history", seed, r.RowID)
			}
			sent[r.RowID] = r
		}
		if len(history) == 0 || len(sent)+len(history) != len(rows) || len(treeOf) != len(rows) || len(run.Resumed) != 1 {
			t.Errorf("seed %d: %d sent, %d history of %d rows", seed, len(sent), len(history), len(rows))
		}
		for id, r := range sent {
			for _, p := range rows[id].Parents {
				if before := sent[p]; before != nil && r.DueNS < *before.DoneNS {
					t.Fatalf("seed %d: row %d was due at %v, its parent %d over at %v", seed, id, time.Duration(r.DueNS), p, time.Duration(*before.DoneNS))
				}
			}
		}
	}
}
