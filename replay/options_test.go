package replay

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
)

// process makes an arrival process from its specification.
func process(t *testing.T, spec string) arrival.Process {
	t.Helper()
	s, err := arrival.ParseProcess(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s.New(arrival.Stream(1, "test"))
}

// The rows are sent at the instants of the process, whatever was recorded; a row
// that is left out takes none of them.
func TestArrivalsReplaceRecordedTimes(t *testing.T) {
	for _, spec := range []string{"constant:4", "poisson:300", "gamma:20,3", "ramp:1-50,10s", "step:2-30,5s"} {
		synctest.Test(t, func(t *testing.T) {
			rows := workload(append(every(time.Hour, 200), every(0, 0)...)...)
			rows[7].Status = trace.StatusFailed
			f := &fake{}
			run, results := f.play(t, t.Context(), Options{Arrivals: process(t, spec)}, rows)
			want, at := process(t, spec), time.Duration(0)
			for _, r := range results {
				at += want.Next()
				if r.DueNS != int64(at) || *r.ReleasedNS != int64(at) {
					t.Fatalf("%s: row %d is due at %v, want %v", spec, r.RowID, time.Duration(r.DueNS), at)
				}
			}
			if len(results) != 199 || run.Excluded != 1 {
				t.Errorf("%s: %d results", spec, len(results))
			}
		})
	}
}

// In a causal run the process starts sessions; their turns follow as ever, and
// one without a think time keeps its distance from its session's start.
func TestArrivalsStartSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := workload(100*time.Second, 101*time.Second, 200*time.Second, 300*time.Second)
		rows[1].Parents, rows[1].ThinkNS = []int64{0}, trace.Ptr(int64(time.Second))
		rows[2].Parents = []int64{1}
		f := &fake{hold: func(int32) time.Duration { return 3 * time.Second }}
		run, _ := f.play(t, t.Context(), Options{Causal: lineageOf(t, rows), Arrivals: process(t, "constant:0.5")}, rows)
		for i, want := range []time.Duration{2, 6, 102, 4} {
			if f.shots[int32(i)] != want*time.Second {
				t.Errorf("row %d: sent at %v, want %d s", i, f.shots[int32(i)], want)
			}
		}
		if d := run.Drift; d.Turns != 2 || d.MaxNS != 3e9 || d.MeanNS != 1.5e9 {
			t.Errorf("drift %+v", d)
		}
	})
}

func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := workload(every(time.Hour, 8)...)
		f := &fake{
			hold:    func(id int32) time.Duration { return time.Duration(id+1) * time.Second },
			prepare: func(r *trace.Request) error { return map[int32]error{4: errors.New("no prompt")}[r.InputTokens] },
		}
		run, results := f.play(t, t.Context(), Options{Concurrency: 3}, rows)
		// Rows 0, 1 and 2 end at 1, 2 and 3 s; row 3 at 1+4, row 5 at 2+6, row 6 at 3+7.
		for i, want := range []time.Duration{0, 0, 0, 1, -1, 2, 3, 5} {
			r := results[i]
			if want >= 0 && (r.DueNS != int64(want*time.Second) || *r.ReleasedNS != r.DueNS) {
				t.Errorf("row %d: due %v, want %d s", i, time.Duration(r.DueNS), want)
			}
		}
		if run.Timing != result.ClosedLoop || run.Concurrency != 3 || run.MaxInFlight != 3 || run.Requests != 7 || run.Unprepared != 1 || run.HeldBack != 0 {
			t.Errorf("run %+v", run)
		}
	})
}

// In a closed loop there are always as many in flight as asked for, and they are
// prepared ahead: a slow preparation does not show while it keeps up.
func TestClosedLoopIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{
			hold:    func(id int32) time.Duration { return time.Duration(1+id%13) * time.Second },
			prepare: func(*trace.Request) error { time.Sleep(10 * time.Millisecond); return nil },
		}
		_, results := f.play(t, t.Context(), Options{Concurrency: 10}, workload(make([]time.Duration, 500)...))
		var ends []int64
		for i, r := range results {
			if i >= 10 && r.DueNS != *r.ReleasedNS {
				t.Fatalf("row %d: due %d, released %d", i, r.DueNS, *r.ReleasedNS)
			}
			if i >= 10 { // it takes the place of the one that was over first
				slices.Sort(ends)
				if r.DueNS != ends[0] {
					t.Fatalf("row %d: due %d, a place since %d", i, r.DueNS, ends[0])
				}
				ends = ends[1:]
			}
			ends = append(ends, *r.DoneNS)
		}
	})
}

// After the duration nothing is sent, and what was is finished.
func TestDuration(t *testing.T) {
	slow := func(int32) time.Duration { return 4 * time.Second }
	turns, pausing := chain(0, 0, 0, 0, 0), chain(0, 20*time.Second, 0)
	for i := range pausing {
		pausing[i].ArrivalNS = 0 // read at once
	}
	for name, c := range map[string]struct {
		opt    Options
		rows   []trace.Request
		sent   int64
		beyond int64
	}{
		"open loop":   {Options{}, workload(every(time.Second, 100)...), 10, 90},
		"rate":        {Options{Arrivals: process(t, "constant:2")}, workload(every(time.Hour, 100)...), 19, 81},
		"causal":      {Options{Causal: lineageOf(t, turns)}, turns, 3, 3}, // due at 0, 4 and 8 s
		"closed loop": {Options{Concurrency: 2}, workload(every(time.Hour, 100)...), 6, 94},
		"long pause":  {Options{Causal: lineageOf(t, pausing)}, pausing, 2, 2},
		"short":       {Options{}, workload(every(time.Second, 3)...), 3, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{hold: slow}
			start := time.Now()
			c.opt.Duration = 10 * time.Second
			run, results := f.play(t, t.Context(), c.opt, c.rows)
			if run.Requests != c.sent || run.Beyond != c.beyond || run.NotSent != 0 || run.EndedEarly != "" || run.Skipped != 0 {
				t.Errorf("%s: run %+v", name, run)
			}
			for _, r := range results {
				if r.Error != "" || r.DueNS >= 10e9 {
					t.Errorf("%s: %+v", name, r)
				}
			}
			if took := time.Since(start); took > 14*time.Second {
				t.Errorf("%s: took %v", name, took)
			}
		})
	}
}

// The windows are in the order of due times, ties in that of rows.
func TestWarmupAndCooldown(t *testing.T) {
	burst := workload(append(make([]time.Duration, 5), every(time.Second, 10)...)...) // six at 0
	for i, c := range []struct {
		warm, cool      Span
		before, after   int
		concurrency     int
		wantNil, outage bool
	}{
		{Span{}, Span{}, 0, 0, 0, true, false},
		{Span{Requests: 3}, Span{}, 3, 0, 0, false, false},
		{Span{Requests: 8}, Span{Requests: 2}, 8, 2, 0, false, false},
		{Span{Time: 2 * time.Second}, Span{Time: 3 * time.Second}, 7, 4, 0, false, false},
		{Span{}, Span{Requests: 15}, 0, 15, 0, false, false},
		{Span{Requests: 15}, Span{}, 15, 0, 0, false, false},
		{Span{Requests: 99}, Span{Requests: 99}, 15, 15, 0, false, false},
		{Span{Requests: 4}, Span{Requests: 4}, 4, 4, 3, false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{hold: func(int32) time.Duration { return time.Second }}
			run, results := f.play(t, t.Context(), Options{Warmup: c.warm, Cooldown: c.cool, Concurrency: c.concurrency}, burst)
			before, after := 0, 0
			for j := range results {
				b, a := run.Window.Holds(&results[j])
				if b {
					before++
				}
				if a {
					after++
				}
			}
			if before != c.before || after != c.after || (run.Window == nil) != c.wantNil || len(results) != 15 {
				t.Errorf("case %d: %d before, %d after, %+v", i, before, after, run.Window)
			}
		})
	}
}

func TestParseSpan(t *testing.T) {
	for in, want := range map[string]Span{"": {}, "0": {}, "12": {Requests: 12}, "10k": {Requests: 10_000}, "5 min": {Time: 5 * time.Minute}, "90s": {Time: 90 * time.Second}} {
		if got, err := ParseSpan(in); err != nil || got != want {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{"-1", "-1s", "1.5", "many"} {
		if _, err := ParseSpan(in); err == nil {
			t.Errorf("%q is taken", in)
		}
	}
}

func TestContradictions(t *testing.T) {
	rows := chain(0)
	for i, o := range []Options{
		{Concurrency: -1}, {Duration: -1}, {Warmup: Span{Requests: -1}}, {Cooldown: Span{Time: -1}}, {Cooldown: Span{Requests: 1 << 21}},
		{Concurrency: 1, Speed: 2}, {Concurrency: 1, MaxInFlight: 2}, {Concurrency: 1, Causal: lineageOf(t, rows)},
		{Concurrency: 1, Arrivals: process(t, "constant:1")}, {Speed: 2, Arrivals: process(t, "constant:1")},
	} {
		if _, err := (&Runner{Options: o}).Run(t.Context(), reader(nil), nil); err == nil {
			t.Errorf("case %d is taken", i)
		}
	}
}

// Whatever the schedule and whatever goes wrong, every row is accounted for once.
func TestEveryScheduleAccountsForItsRows(t *testing.T) {
	for seed := range uint64(120) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			rows := forest(rng, 300)
			o := Options{Duration: time.Duration(rng.IntN(3)) * 40 * time.Second, pendingLimit: int64(rng.IntN(2)) * 20000}
			switch seed % 4 {
			case 0:
				o.Causal = lineageOf(t, rows)
			case 1:
				o.Causal, o.Arrivals = lineageOf(t, rows), process(t, "poisson:3")
			case 2:
				o.Arrivals = process(t, "poisson:3")
			case 3:
				o.Concurrency = 1 + rng.IntN(9)
			}
			ctx := t.Context()
			if rng.IntN(2) == 0 {
				late, cancel := timeout(t, time.Duration(rng.IntN(60))*time.Second)
				defer cancel()
				ctx = late
			}
			f := &fake{
				size: rng.IntN(1 << 27),
				hold: func(id int32) time.Duration { return time.Duration(id%11) * 500 * time.Millisecond },
				fail: func(id int32) bool { return id%29 == 3 },
				prepare: func(r *trace.Request) error {
					time.Sleep(time.Duration(r.InputTokens%5) * 10 * time.Millisecond)
					return map[int32]error{5: errors.New("no prompt")}[r.InputTokens%37]
				},
			}
			run, results := f.play(t, ctx, o, rows)
			if all := run.Requests + run.Excluded + run.NotSent + run.Unprepared + run.Skipped + run.Beyond; all != 300 || run.Requests+run.Unprepared != int64(len(results)) {
				t.Fatalf("seed %d: %d rows, %d results, run %+v", seed, all, len(results), run)
			}
			if run.NotSent > 0 && run.EndedEarly == "" || o.Duration == 0 && run.Beyond > 0 {
				t.Errorf("seed %d: run %+v", seed, run)
			}
		})
	}
}

func timeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
