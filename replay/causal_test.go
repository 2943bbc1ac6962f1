package replay

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// lineageOf reads the lineage of rows.
func lineageOf(t *testing.T, rows []trace.Request) *Lineage {
	t.Helper()
	var turns []Turn
	for _, r := range rows {
		turns = append(turns, Turn{Parents: r.Parents, ThinkNS: r.ThinkNS, ToolNS: r.ToolNS})
	}
	l, err := ReadLineage(&trace.SliceReader[Turn]{Rows: turns})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// chain makes one session: a first turn, and turns that follow their parent by
// the think times, recorded as if each answer took a second.
func chain(think ...time.Duration) []trace.Request {
	at := []time.Duration{0}
	for _, d := range think {
		at = append(at, at[len(at)-1]+time.Second+d)
	}
	rows := workload(at...)
	for i, d := range think {
		rows[i+1].Parents, rows[i+1].ThinkNS = []int64{int64(i)}, trace.Ptr(int64(d))
	}
	return rows
}

func TestSpeedAndThinkTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := chain(4 * time.Second)
		for _, c := range []struct {
			keep bool
			want time.Duration
		}{{false, 3 * time.Second}, {true, 5 * time.Second}} {
			f := &fake{hold: func(int32) time.Duration { return time.Second }}
			run, _ := f.play(t, t.Context(), Options{Causal: lineageOf(t, rows), Speed: 2, KeepThink: c.keep}, rows)
			if f.shots[1] != c.want || run.KeepThink != c.keep || run.Drift.MaxNS != int64(c.want-2500*time.Millisecond) {
				t.Errorf("keep %v: %v, run %+v", c.keep, f.shots, run)
			}
		}
	})
}

// A forest is a random workload of sessions that branch, join and lack times.
func forest(rng *rand.Rand, n int) []trace.Request {
	var at []time.Duration
	now := time.Duration(0)
	for range n {
		at = append(at, now)
		now += time.Duration(rng.IntN(3)) * time.Duration(rng.ExpFloat64()*4e8)
	}
	rows := workload(at...)
	for i := range rows {
		r := &rows[i]
		if i > 0 && rng.IntN(4) > 0 {
			for range 1 + rng.IntN(3)/2*rng.IntN(3) {
				r.Parents = append(r.Parents, int64(max(0, i-1-rng.IntN(40))))
			}
		}
		if rng.IntN(5) > 0 {
			r.ThinkNS = trace.Ptr(int64(rng.ExpFloat64() * 3e9))
		}
		if rng.IntN(3) == 0 {
			r.ToolNS = trace.Ptr(int64(rng.IntN(2)) * int64(rng.ExpFloat64()*1e9))
		}
		if r.Status = trace.StatusOK; rng.IntN(20) == 0 {
			r.Status, r.E2ENS = trace.StatusFailed, trace.Ptr(int64(rng.IntN(3e9)))
		}
	}
	return rows
}

// ends are when rows were over, by row; what was not sent has none of its own.
type endings struct {
	at     map[int64]time.Duration
	failed map[int64]bool
}

// check computes from what really happened when each row was due, one row after
// another in the order of the file, and compares. It returns the drifts.
func checkCausal(t *testing.T, rows []trace.Request, speed float64, results []result.Result) (skipped int64, drift []time.Duration) {
	t.Helper()
	scaled := func(ns int64) time.Duration { return time.Duration(float64(ns) / speed) }
	byRow := map[int64]*result.Result{}
	for i := range results {
		byRow[results[i].RowID] = &results[i]
	}
	e := endings{map[int64]time.Duration{}, map[int64]bool{}}
	for i := range rows {
		id, row, r := int64(i), &rows[i], byRow[int64(i)]
		plan := scaled(row.ArrivalNS)
		due, latest := plan, time.Duration(0)
		for _, p := range row.Parents {
			latest = max(latest, e.at[p])
			e.failed[id] = e.failed[id] || e.failed[p]
		}
		if len(row.Parents) > 0 {
			if due = max(plan, latest); row.ThinkNS != nil || row.ToolNS != nil {
				pause := int64(0)
				for _, part := range []*int64{row.ThinkNS, row.ToolNS} {
					if part != nil {
						pause += *part
					}
				}
				due = latest + scaled(pause)
			}
		}
		switch {
		case row.Status == trace.StatusFailed:
			e.at[id] = due + scaled(*row.E2ENS)
		case e.failed[id]:
			skipped++
			e.at[id] = latest
		case r == nil:
			t.Fatalf("row %d was not sent", i)
		}
		if sent := row.Status != trace.StatusFailed && !e.failed[id]; sent != (r != nil) {
			t.Fatalf("row %d: sent %v", i, r != nil)
		}
		if r == nil {
			continue
		}
		if r.DueNS != int64(due) || *r.ReleasedNS != int64(due) {
			t.Fatalf("row %d of parents %v: due %d, released %d, want %d", i, row.Parents, r.DueNS, *r.ReleasedNS, due)
		}
		if len(row.Parents) > 0 {
			drift = append(drift, due-plan)
		}
		e.at[id], e.failed[id] = time.Duration(*r.DoneNS), r.Failed()
	}
	return skipped, drift
}

// Every row is due to the nanosecond when its parents were over and its pause
// has passed, in workloads that branch and join, with servers faster and slower
// than the source, and failures on both sides.
func TestCausalOrder(t *testing.T) {
	var moved, early int
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			rows := forest(rng, 700)
			slow := []time.Duration{0, 100 * time.Millisecond, 5 * time.Second}[seed%3]
			f := &fake{hold: func(id int32) time.Duration { return time.Duration(id%7) * slow }}
			if seed%2 == 1 {
				f.fail = func(id int32) bool { return id%41 == 7 }
			}
			speed := []float64{1, 3}[seed%4/2]
			run, results := f.play(t, t.Context(), Options{Causal: lineageOf(t, rows), Speed: speed}, rows)
			skipped, drift := checkCausal(t, rows, speed, results)
			if run.Skipped != skipped || skipped == 0 && seed%2 == 1 || run.NotSent != 0 || run.ReadLate != 0 || run.EndedEarly != "" {
				t.Errorf("seed %d: %d skipped, run %+v", seed, skipped, run)
			}
			slices.Sort(drift)
			var sum float64
			for _, d := range drift {
				sum += float64(d)
			}
			mean := sum / float64(len(drift))
			d := run.Drift
			if int(d.Turns) != len(drift) || d.MaxNS != int64(drift[len(drift)-1]) || d.MeanNS-mean > 1 || mean-d.MeanNS > 1 || d.P50NS < int64(drift[(len(drift)-1)/2]) || d.P50NS > int64(drift[len(drift)/2]) {
				t.Errorf("seed %d: drift %+v, mean %v of %d", seed, d, mean, len(drift))
			}
			if mean > 0 {
				moved++
			} else {
				early++
			}
		})
	}
	if moved == 0 || early == 0 {
		t.Errorf("the test has %d slow servers and %d fast ones", moved, early)
	}
}

// A server that answers at once makes a session far shorter than recorded: its
// last turn stands behind thousands of rows that are due later, and is on time.
func TestFastServerReadsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows, last := aheadRows()
		f := &fake{}
		run, results := f.play(t, t.Context(), Options{Causal: lineageOf(t, rows)}, rows)
		checkCausal(t, rows, 1, results)
		if f.shots[last] != time.Second || run.ReadLate != 0 {
			t.Errorf("the last turn was sent at %v, run %+v", f.shots[last], run)
		}
	})
}

// aheadRows are two turns, recorded an hour apart since the first took that long
// to answer, and a row each second between.
func aheadRows() (rows []trace.Request, last int32) {
	rows = workload(append([]time.Duration{0}, every(time.Second, 3600)...)...)
	last = 3600
	rows[last].Parents, rows[last].ThinkNS = []int64{0}, trace.Ptr(int64(time.Second))
	for i := range rows {
		rows[i].Blocks = make([]uint64, 100)
	}
	return rows, last
}

// What is pending in memory is bounded. A row after the bound is read when there
// is room for it, sent late with its due time kept, and counted.
func TestPendingRowsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows, last := aheadRows()
		one := 640 + 8*int64(len(rows[0].Parents)+len(rows[0].Blocks)+len(rows[0].OutputBlocks)) // as the scheduler counts
		src := &countingReader{rows: rows}
		f := &fake{}
		src.sent = func() int { f.mu.Lock(); defer f.mu.Unlock(); return len(f.shots) }
		var out trace.SliceWriter[result.Result]
		run, err := (&Runner{Endpoint: f, Pacer: sleeper, Options: Options{Causal: lineageOf(t, rows), pendingLimit: 1000 * one}}).Run(t.Context(), src, &out)
		if err != nil || len(out.Rows) != len(rows) {
			t.Fatalf("%d results, %v", len(out.Rows), err)
		}
		if src.most > 1000+2*128+10 { // a batch, and those that are prepared
			t.Errorf("%d rows were read and not sent", src.most)
		}
		if at := f.shots[last]; at < 2000*time.Second || at > 3000*time.Second || run.ReadLate != 1 {
			t.Errorf("the last turn was sent at %v, run %+v", at, run)
		}
		for _, r := range out.Rows {
			if r.RowID == int64(last) && r.DueNS != int64(time.Second) {
				t.Errorf("its due time became %v", time.Duration(r.DueNS))
			}
		}
	})
}

// A countingReader hands out rows and notes how many are read and not sent.
type countingReader struct {
	rows []trace.Request
	read int
	sent func() int
	most int
}

func (c *countingReader) Read(rows []trace.Request) (int, error) {
	n, err := (&trace.SliceReader[trace.Request]{Rows: c.rows[c.read:]}).Read(rows)
	c.read += n
	c.most = max(c.most, c.read-c.sent())
	return n, err
}

// Known tokens are counted in the order of sending, which is not the file's.
func TestKnownFollowsTheSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := chain(0, 0)                      // recorded at 0, 1 and 2 s
		rows = append(rows, workload(2500e6)...) // between the turns of a slow server
		rows[3].InputTokens = 3
		var asked []int32
		f := &fake{hold: func(int32) time.Duration { return 2 * time.Second }}
		_, results := f.play(t, t.Context(), Options{Causal: lineageOf(t, rows), Known: func(_ int64, r *trace.Request) int32 {
			asked = append(asked, r.InputTokens)
			return int32(len(asked))
		}}, rows)
		if !slices.Equal(asked, []int32{0, 1, 3, 2}) || *results[3].Known != 3 || *results[2].Known != 4 {
			t.Errorf("asked for %v", asked)
		}
	})
}

// A turn whose prompt cannot be made, or whose parent failed, ends its session.
func TestFailedParentsEndASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := append(chain(0, 0, 0), workload(10*time.Second)...)
		rows[4].InputTokens = 4
		for name, f := range map[string]*fake{
			"failed":     {fail: func(id int32) bool { return id == 1 }},
			"unprepared": {prepare: func(r *trace.Request) error { return map[int32]error{1: errors.New("no")}[r.InputTokens] }},
		} {
			run, results := f.play(t, t.Context(), Options{Causal: lineageOf(t, rows)}, rows)
			if run.Skipped != 2 || len(results) != 3 || run.NotSent != 0 || run.Requests+run.Unprepared != 3 {
				t.Errorf("%s: run %+v", name, run)
			}
		}
		// A user who hung up goes on.
		rows[1].Status, rows[1].E2ENS = trace.StatusCancelled, trace.Ptr(int64(time.Second))
		f := &fake{hold: func(int32) time.Duration { return time.Minute }, cuts: map[int32]time.Duration{}, shots: map[int32]time.Duration{}}
		f.hangUp = true
		run, results := f.play(t, t.Context(), Options{Causal: lineageOf(t, rows)}, rows)
		if run.Skipped != 0 || results[1].Error != openai.KindCancelled || f.shots[2] != 61*time.Second {
			t.Errorf("run %+v, %v", run, f.shots)
		}
	})
}

func TestReadLineage(t *testing.T) {
	rows := workload(0, 1, 2, 3)
	rows[1].Parents = []int64{0, 3, 1} // two that it cannot wait for
	rows[2].Parents, rows[2].ToolNS = []int64{0, 1}, trace.Ptr(int64(2e9))
	rows[3].ThinkNS = trace.Ptr(int64(1)) // of a parent that is not in the file
	l := lineageOf(t, rows)
	of := func(row int64) []uint32 { rows, _ := l.children(row); return rows }
	if l.Timed() != 1 || l.Backward() != 2 || !slices.Equal(of(0), []uint32{1, 2}) || !slices.Equal(of(1), []uint32{2}) || len(of(2)) != 0 || len(of(99)) != 0 {
		t.Errorf("lineage %+v", l)
	}
	synctest.Test(t, func(t *testing.T) { // nothing hangs
		if run, _ := (&fake{}).play(t, t.Context(), Options{Causal: l}, rows); run.Requests != 4 {
			t.Errorf("run %+v", run)
		}
	})
}

func TestDriftOfManyTurns(t *testing.T) {
	d := drifts{limit: 64}
	if d.summary() != nil {
		t.Error("no turns have a drift")
	}
	for i := range 10001 {
		d.add(time.Duration(10000 - i))
	}
	s := d.summary()
	if s.Turns != 10001 || s.MeanNS != 5000 || s.MaxNS != 10000 || s.P99NS != nil || s.Sample > 64 || s.Sample < 32 || s.P50NS < 4700 || s.P50NS > 5300 {
		t.Errorf("%+v", s)
	}
}
