package replay

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/host"
	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// Quantiles of an interval and of all are within 1 % of those by sorting.
func TestMeters(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for spent := host.CPUTime(); host.CPUTime() < spent+50*time.Millisecond; {
	}
	m := newMeters()
	var all []int64
	for range 5 {
		var part []int64
		for range 3000 {
			v := int64(1000 * (1 + rng.ExpFloat64()*1e6))
			part = append(part, v)
			r := result.Result{DueNS: 7, SentNS: trace.Ptr(v + 7), FirstTokenNS: trace.Ptr(3*v + 7), GapsNS: []int64{4 * v}, Output: trace.Ptr(int32(2))}
			m.add(&r)
		}
		all = append(all, part...)
		var p Progress
		m.report(&p)
		for _, c := range []struct {
			got    Distribution
			values []int64
			by     int64
		}{
			{p.Interval.Lag, part, 1}, {p.Interval.TTFT, part, 2}, {p.Interval.ITL, part, 4},
			{p.Total.Lag, all, 1}, {p.Total.TTFT, all, 2}, {p.Total.ITL, all, 4},
		} {
			slices.Sort(c.values)
			at := func(q int) time.Duration { return time.Duration(c.by * c.values[len(c.values)*q/100]) }
			if near := func(a, b time.Duration) bool { return (a - b).Abs() <= b/50 }; c.got.Count != int64(len(c.values)) ||
				!near(c.got.P50, at(50)) || !near(c.got.P99, at(99)) || !near(c.got.Max, time.Duration(c.by*slices.Max(c.values))) {
				t.Errorf("%+v, want p50 %v and p99 %v", c.got, at(50), at(99))
			}
		}
	}
	m.add(&result.Result{Error: openai.KindRateLimited, HTTPStatus: trace.Ptr(int32(429)), SentNS: trace.Ptr(int64(1)), FirstTokenNS: trace.Ptr(int64(2))})
	m.add(&result.Result{Error: result.KindPrepare})
	m.add(&result.Result{Error: openai.KindCancelled, SentNS: trace.Ptr(int64(1)), GapsNS: []int64{1}})
	var p Progress
	m.report(&p)
	if most := float64(runtime.GOMAXPROCS(0)) + 1; p.CPUTotal <= 0 || p.CPUTotal > most {
		t.Errorf("%v cores busy", p.CPUTotal)
	}
	if p.Errors[openai.KindRateLimited] != 1 || p.Errors[result.KindPrepare] != 1 || len(p.Errors) != 2 || p.Refused != 1 || p.Tokens != 30000 ||
		p.Interval.Lag.Count != 2 || p.Interval.TTFT.Count != 0 || p.Interval.ITL.Count != 0 {
		t.Errorf("%+v", p)
	}
}

// At a limit of two in flight, rows that are due and cannot be sent are due all
// the same.
func TestProgressTellsDueFromSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []Progress
		o := Options{MaxInFlight: 2, Progress: func(p Progress) { seen = append(seen, p) }}
		f := &fake{hold: func(int32) time.Duration { return 10 * time.Second }}
		f.play(t, t.Context(), o, workload(every(time.Second, 9)...))
		p := seen[5]
		// The dispatcher has taken one that waits for its slot: it is neither sent
		// nor in the line.
		if p.Sent != 2 || p.InFlight != 2 || p.Done != 0 || p.Due < 4 || p.Due > 6 {
			t.Errorf("after %v: %+v", p.Elapsed, p)
		}
		if last := seen[len(seen)-1]; last.Sent != 9 || last.Due != 9 || last.Done != 9 || last.InFlight != 0 || last.Total.Lag.Count != 9 {
			t.Errorf("last: %+v", last)
		}
	})
}

func TestOverdue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	l := new(readyQueue)
	var want [100]int64
	for range 1000 {
		due := rng.IntN(100)
		l.push(&flight{due: time.Duration(due)}, true)
		for i := due; i < 100; i++ {
			want[i]++
		}
	}
	for now, n := range want {
		if got := l.overdue(time.Duration(now)); got != n {
			t.Errorf("at %d: %d, want %d", now, got, n)
		}
	}
}

// Rows that are not sent are told apart, so that the last report adds up to the
// workload: some failed in the source, some are turns after one that failed, and
// some are due after the end.
func TestProgressAddsUpToTheWorkload(t *testing.T) {
	rows := workload(every(time.Second, 9)...)
	rows[2].Status, rows[5].Status = trace.StatusFailed, trace.StatusFailed
	rows[4].Parents, rows[6].Parents = []int64{3}, []int64{4}
	synctest.Test(t, func(t *testing.T) {
		for _, causal := range []bool{false, true} {
			var last Progress
			o := Options{Duration: 7500 * time.Millisecond, Progress: func(p Progress) { last = p }}
			done, leftOut := int64(6), int64(3) // rows 2, 5 and 8
			if causal {
				o.Causal = lineageOf(t, rows)
				done, leftOut = 4, 5 // rows 4 and 6 as well
			}
			f := &fake{fail: func(id int32) bool { return id == 3 }}
			f.play(t, t.Context(), o, rows)
			if last.Done != done || last.LeftOut != leftOut || last.InFlight != 0 {
				t.Errorf("causal %v: %+v", causal, last)
			}
		}
	})
}
