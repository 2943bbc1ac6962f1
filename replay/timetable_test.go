package replay

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
)

// ending is when a row that was taken will be over.
type ending struct {
	at     time.Duration
	row    int64
	failed bool
}

func (e ending) dueAt() (time.Duration, int64) { return e.at, e.row }

// playTimetable takes rows from a timetable by the latencies of f, in a time of
// its own.
func playTimetable(t *testing.T, f *fake, o Options, rows []trace.Request) (result.Run, []result.Result) {
	t.Helper()
	table, err := NewTimetable(o, reader(rows))
	if err != nil {
		t.Fatal(err)
	}
	var flying soonest[ending]
	var results []result.Result
	for {
		due, ok := table.Next()
		if len(flying) > 0 && (!ok || flying[0].at <= due) {
			e := heap.Pop(&flying).(ending)
			table.Over(e.row, e.at, e.failed)
			continue
		}
		if !ok {
			break
		}
		d := table.Take()
		at := time.Duration(d.Result.DueNS)
		id := d.Row.InputTokens
		e := ending{at: at + f.hold(id), row: d.ID, failed: f.fail != nil && f.fail(id)}
		d.Result.ReleasedNS, d.Result.DoneNS = trace.Ptr(int64(at)), trace.Ptr(int64(e.at))
		if e.failed {
			d.Result.Error = "server_error"
		}
		results = append(results, d.Result)
		heap.Push(&flying, e)
	}
	run, err := table.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return run, results
}

// A timetable is due when a run is, row by row, and counts the same.
func TestTimetableIsARun(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 21))
		rows := forest(rng, 400)
		f := &fake{hold: func(id int32) time.Duration { return time.Duration(1+id%7) * 90 * time.Millisecond }}
		f.fail = func(id int32) bool { return seed%2 == 1 && id%41 == 7 }
		o := func() Options {
			switch seed % 4 {
			case 0:
				return Options{Warmup: Span{Requests: 20}, Cooldown: Span{Requests: 9}}
			case 1:
				return Options{Causal: lineageOf(t, rows), Speed: 2, KeepThink: true, Duration: 40 * time.Second}
			case 2:
				return Options{Concurrency: 3, RampUp: 8 * time.Second, Duration: 20 * time.Second}
			}
			process, err := arrival.ParseProcess("poisson:20")
			if err != nil {
				t.Fatal(err)
			}
			return Options{Causal: lineageOf(t, rows), Arrivals: process.New(arrival.Stream(seed, "test"))}
		}
		run, results := playTimetable(t, f, o(), rows)
		again, _ := playTimetable(t, f, o(), rows)
		if !reflect.DeepEqual(run, again) {
			t.Fatalf("seed %d: not twice the same: %+v, %+v", seed, run, again)
		}
		synctest.Test(t, func(t *testing.T) {
			real, want := f.play(t, t.Context(), o(), rows)
			due := map[int64]int64{}
			for _, r := range want {
				due[r.RowID] = r.DueNS
			}
			if len(results) != len(want) {
				t.Fatalf("seed %d: %d rows taken, %d sent", seed, len(results), len(want))
			}
			for _, r := range results {
				if at, ok := due[r.RowID]; !ok || at != r.DueNS {
					t.Fatalf("seed %d: row %d due at %d, in the run %d", seed, r.RowID, r.DueNS, at)
				}
			}
			// What becomes of rows that are not sent is counted as the end finds
			// them: one that failed in the source may be beyond it as well.
			said := func(r result.Run) string {
				return fmt.Sprint(r.Timing, r.Requests, r.Excluded+r.Beyond+r.Skipped, r.ReadLate, r.PlannedNS, deref(r.Drift), windowOf(r.Window))
			}
			if said(run) != said(real) {
				t.Fatalf("seed %d:\n%s, in the run\n%s", seed, said(run), said(real))
			}
		})
	}
}

func deref(d *result.Drift) string {
	if d == nil {
		return "no drift"
	}
	return fmt.Sprint(d.Turns, d.MeanNS, d.P50NS, d.MaxNS)
}

func windowOf(w *result.Window) string {
	if w == nil {
		return "whole"
	}
	return fmt.Sprint(w.From, w.To)
}
