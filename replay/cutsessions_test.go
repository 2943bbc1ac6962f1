package replay

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// sessionsOf makes one session of rows that wait for each other, numbered by their first.
func sessionsOf(rows []trace.Request) {
	of := make([]int64, len(rows)) // the first row of each row's session, as far as is known
	for i := range rows {
		of[i] = int64(i)
		for _, p := range rows[i].Parents {
			a, b := of[i], of[p]
			for j := range i + 1 {
				if of[j] == a || of[j] == b {
					of[j] = min(a, b)
				}
			}
		}
	}
	dense := map[int64]int64{}
	for i := range rows {
		if _, ok := dense[of[i]]; !ok {
			dense[of[i]] = int64(len(dense))
		}
		rows[i].Session = trace.Ptr(dense[of[i]])
	}
}

// The sessions that a run names as cut are those of which it sent some rows and not all
// that were to be sent, whatever makes rows due and whatever ends the run.
func TestCutSessions(t *testing.T) {
	ends := map[string]func(*Options) func(context.CancelCauseFunc){
		"all is sent":  func(o *Options) func(context.CancelCauseFunc) { return nil },
		"the duration": func(o *Options) func(context.CancelCauseFunc) { o.Duration = 20 * time.Second; return nil },
		"an early end": func(o *Options) func(context.CancelCauseFunc) {
			return func(stop context.CancelCauseFunc) { time.Sleep(19 * time.Second); stop(errors.New("enough")) }
		},
	}
	for name, end := range ends {
		for seed := range uint64(6) {
			rows := forest(rand.New(rand.NewPCG(seed, 77)), 200)
			sessionsOf(rows)
			for _, o := range []Options{{}, {Causal: lineageOf(t, rows)}, {Concurrency: 3}, {Causal: lineageOf(t, rows), Speed: 3}} {
				synctest.Test(t, func(t *testing.T) {
					ctx, stop := context.WithCancelCause(t.Context())
					defer stop(nil)
					if early := end(&o); early != nil {
						go early(stop)
					}
					f := &fake{hold: func(id int32) time.Duration { return time.Duration(1+id%7) * 90 * time.Millisecond }}
					run, results := f.play(t, ctx, o, rows)
					checkCut(t, name, &run, results, rows)
				})
				if name != "an early end" {
					f := &fake{hold: func(id int32) time.Duration { return time.Duration(1+id%7) * 90 * time.Millisecond }}
					run, results := playTimetable(t, f, o, rows)
					checkCut(t, name+", simulated", &run, results, rows)
				}
			}
		}
	}
}

// Of a workload that is played again and again, those of the last round are cut.
func TestCutSessionsOfALoop(t *testing.T) {
	rows := forest(rand.New(rand.NewPCG(3, 78)), 40)
	sessionsOf(rows)
	n := int64(len(rows))
	for _, rounds := range []int64{0, 3} {
		for _, causal := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				o := Options{Duration: 25 * time.Second, Endless: rounds == 0, Origin: Origin(n, func(i int64) int64 { return i })}
				if causal {
					o.Causal = lineageOf(t, rows)
					o.Causal.Repeat()
				}
				loop := &Loop{Open: func() (trace.Reader[trace.Request], error) { return reader(cloned(rows)), nil }, Rows: n,
					PeriodNS: Period(rows[0].ArrivalNS, rows[n-1].ArrivalNS, n), Rounds: rounds}
				f := &fake{hold: func(int32) time.Duration { return time.Second }}
				var out trace.SliceWriter[result.Result]
				run, err := (&Runner{Endpoint: f, Pacer: sleeper, Options: o}).Run(t.Context(), loop, &out)
				if err != nil {
					t.Fatal(err)
				}
				checkCut(t, "rounds", &run, out.Rows, rows)
				if run.Cut == nil || len(run.Cut.Sessions) == 0 || run.Cut.Sessions[0].Round == 0 {
					t.Errorf("rounds %d, causal %v: cut %+v", rounds, causal, run.Cut)
				}
			})
		}
	}
}

// cloned copies rows, whose parents a loop changes.
func cloned(rows []trace.Request) []trace.Request {
	out := slices.Clone(rows)
	for i := range out {
		out[i].Parents = slices.Clone(out[i].Parents)
	}
	return out
}

// checkCut holds what a run says against what it sent of each session.
func checkCut(t *testing.T, name string, run *result.Run, results []result.Result, rows []trace.Request) {
	t.Helper()
	sent, of := map[result.SessionKey]int{}, map[int64]int{}
	for i := range results {
		if key, ok := results[i].SessionKey(); ok {
			sent[key]++
		}
	}
	for i := range rows {
		if rows[i].Status != trace.StatusFailed {
			of[*rows[i].Session]++
		}
	}
	want := map[result.SessionKey]bool{}
	for key, n := range sent {
		if n < of[key.Session] {
			want[key] = true
		}
	}
	got := map[result.SessionKey]bool{}
	if run.Cut != nil {
		for _, key := range run.Cut.Sessions {
			if sent[key] > 0 {
				got[key] = true
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s, %s: cut %v, want %v", name, run.Timing, got, want)
	}
	if left := run.Beyond + run.NotSent; run.Cut == nil && left > 0 {
		t.Errorf("%s, %s: %d rows left, and cut %+v", name, run.Timing, left, run.Cut)
	}
}

// Of trees that are played again and again, the plays that were live at the end are cut.
func TestCutSessionsOfTrees(t *testing.T) {
	for seed := range uint64(6) {
		rows, _ := agents(rand.New(rand.NewPCG(seed, 79)), 5)
		for _, load := range []SessionLoad{{Live: 3}, {Live: 2, Recycle: result.RecycleStop}} {
			load.Trees = treesOf(t, rows, 0)
			o := Options{Sessions: &load, Duration: 40 * time.Second, Speed: 1}
			synctest.Test(t, func(t *testing.T) {
				f := &fake{hold: randomHold(seed)}
				run, results := f.play(t, t.Context(), o, nil)
				checkCut(t, "trees", &run, results, rows)
				if load.Recycle == "" && len(run.Cut.Sessions) == 0 {
					t.Error("nothing was cut")
				}
			})
			f := &fake{hold: randomHold(seed)}
			run, results := playTimetable(t, f, o, nil)
			checkCut(t, "simulated trees", &run, results, rows)
		}
	}
}
