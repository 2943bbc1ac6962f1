package replay

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/openai"
	"reprise/replay/pace"
	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
)

// Then comes last, with the whole run, and not after an early end.
func TestThen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, early := range []bool{false, true} {
		called := false
		opt := Options{Then: func(_ context.Context, run *result.Run) error {
			called = true
			run.Determinism = &result.Determinism{Rows: run.Requests}
			return nil
		}}
		if early {
			cancel()
		}
		run, err := (&Runner{Endpoint: instantly{}, Options: opt}).Run(ctx, reader(workload(0, 0)), &trace.SliceWriter[result.Result]{})
		if err != nil || called == early || !early && run.Determinism.Rows != 2 {
			t.Errorf("early %v: called %v, %+v, %v", early, called, run.Determinism, err)
		}
	}
}

// A fake is an Endpoint without a network, in the virtual time of a synctest
// bubble. It knows a row by its input length.
type fake struct {
	resulttest.Endpoint
	size    int                            // of every Call
	prepare func(row *trace.Request) error // may sleep
	hold    func(id int32) time.Duration   // how long a request takes
	fail    func(id int32) bool            // whether it fails
	hangUp  bool                           // cancelled rows are cut
	fired   func()                         // at the start of each
	waiting int                            // prepared, not fired
	peak    int                            // highest waiting
	mu      sync.Mutex
	shots   map[int32]time.Duration // when each was fired
	cuts    map[int32]time.Duration
}

type fakeCall struct {
	id   int32
	size int
}

func (c fakeCall) Size() int { return c.size }

func (f *fake) Prepare(_ int64, _ int32, row *trace.Request, _ result.Prompter) (result.Call, error) {
	if f.prepare != nil {
		if err := f.prepare(row); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting++
	f.peak = max(f.peak, f.waiting)
	return fakeCall{row.InputTokens, f.size}, nil
}

func (f *fake) Fire(ctx context.Context, s result.Shot, r *result.Result) {
	id := s.Call.(fakeCall).id
	at := time.Since(s.Start)
	f.mu.Lock()
	f.waiting--
	if f.shots == nil {
		f.shots, f.cuts = map[int32]time.Duration{}, map[int32]time.Duration{}
	}
	f.shots[id], f.cuts[id] = at, s.Cut
	f.mu.Unlock()
	if f.fired != nil {
		f.fired()
	}
	r.SentNS = trace.Ptr(int64(at))
	if f.fail != nil && f.fail(id) {
		defer func() { r.Error = openai.KindTimeout }()
	}
	if f.hold == nil {
		return
	}
	var cut <-chan time.Time
	if f.hangUp && s.Cut > 0 {
		cut = time.After(s.Cut)
	}
	// A timer that is due at once crashes the race detector in virtual time (Go 1.26).
	hold := f.hold(id)
	if hold <= 0 {
		return
	}
	select {
	case <-time.After(hold):
	case <-cut:
		r.Error = openai.KindCancelled
	case <-ctx.Done():
		r.Error = openai.KindCancelled
	}
}

// sleeper makes a pacer that only sleeps, which is exact in virtual time.
func sleeper(start time.Time) (pace.Pacer, error) { return sleeping(start), nil }

type sleeping time.Time

func (s sleeping) WaitUntil(ctx context.Context, due time.Duration) error {
	left := due - time.Since(time.Time(s))
	if err := ctx.Err(); err != nil || left <= 0 {
		return err
	}
	select {
	case <-time.After(left):
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// workload makes rows that arrive at the given times; a row's input length is
// its number, by which the fake knows it.
func workload(arrivals ...time.Duration) []trace.Request {
	var rows []trace.Request
	for i, at := range arrivals {
		rows = append(rows, trace.Request{ArrivalNS: int64(at), InputTokens: int32(i), OutputTokens: trace.Ptr[int32](7)})
	}
	return rows
}

func every(gap time.Duration, n int) []time.Duration {
	var at []time.Duration
	for i := range n {
		at = append(at, time.Duration(i)*gap)
	}
	return at
}

func reader(rows []trace.Request) trace.Reader[trace.Request] {
	return &trace.SliceReader[trace.Request]{Rows: rows}
}

// play runs a workload against f and returns the results in row order.
func (f *fake) play(t *testing.T, ctx context.Context, o Options, rows []trace.Request) (result.Run, []result.Result) {
	t.Helper()
	var out trace.SliceWriter[result.Result]
	run, err := (&Runner{Endpoint: f, Pacer: sleeper, Options: o}).Run(ctx, reader(rows), &out)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(out.Rows, func(a, b result.Result) int { return int(a.RowID - b.RowID) })
	return run, out.Rows
}

func TestRowsAreSentWhenDue(t *testing.T) {
	for _, speed := range []float64{0, 0.5, 1, 3} {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(speed*10)))
			var at []time.Duration
			now := 5 * time.Second
			for len(at) < 3000 {
				for range 1 + rng.IntN(4) { // several at one instant
					at = append(at, now)
				}
				now += time.Duration(rng.ExpFloat64() * 5e6)
			}
			rows := workload(at...)
			rows[9].Session, rows[9].Class, rows[9].Category = trace.Ptr(int64(4)), trace.Ptr("gold"), trace.Cold
			f := &fake{hold: func(int32) time.Duration { return time.Second }}
			run, results := f.play(t, t.Context(), Options{Speed: speed}, rows)
			if speed == 0 {
				speed = 1
			}
			if len(results) != len(rows) || run.Requests != int64(len(rows)) || run.Speed != speed || run.Timing != "open-loop" {
				t.Fatalf("%d results of %d rows, run %+v", len(results), len(rows), run)
			}
			for i, r := range results {
				due := time.Duration(float64(at[i]) / speed)
				if r.RowID != int64(i) || r.DueNS != int64(due) || *r.ReleasedNS != int64(due) || f.shots[int32(i)] != due {
					t.Fatalf("row %d: due %v, result %+v, fired %v", i, due, r, f.shots[int32(i)])
				}
				if *r.DoneNS != int64(due+time.Second) || *r.WantOutput != 7 || r.WantInput != int32(i) {
					t.Fatalf("row %d: %+v", i, r)
				}
			}
			if r := results[9]; *r.Session != 4 || r.Class != "gold" || r.Category != trace.Cold {
				t.Errorf("labels are lost: %+v", r)
			}
			if want := int64(float64(now)/speed) - results[0].DueNS; run.PlannedNS > want || run.PlannedNS != results[len(results)-1].DueNS-results[0].DueNS {
				t.Errorf("planned %d, the rows span less than %d", run.PlannedNS, want)
			}
		})
	}
}

// With 100 ms for a prompt and a row each 10 ms, preparation falls behind by 90
// ms a row, once the head start of two seconds is used up.
func TestSlowPreparationIsLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gap, cost = 10 * time.Millisecond, 100 * time.Millisecond
		rows := workload(every(gap, 400)...)
		f := &fake{prepare: func(*trace.Request) error { time.Sleep(cost); return nil }}
		_, results := f.play(t, t.Context(), Options{}, rows)
		var free time.Duration // when the feeder is done with the row before
		for i, r := range results {
			due := time.Duration(i) * gap
			want := due
			if due > 2*time.Second { // not prepared before the clock starts
				free = max(free, due-2*time.Second) + cost
				want = max(due, free)
			}
			if r.DueNS != int64(due) || *r.ReleasedNS != int64(want) {
				t.Fatalf("row %d: due %v, released %v, want %v", i, time.Duration(r.DueNS), time.Duration(*r.ReleasedNS), want)
			}
		}
		if last := results[len(results)-1]; *last.ReleasedNS == last.DueNS {
			t.Error("the test never made the client late")
		}
	})
}

func TestInFlightLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := append(make([]time.Duration, 10), 2500*time.Millisecond, 10*time.Second)
		f := &fake{hold: func(int32) time.Duration { return time.Second }}
		run, results := f.play(t, t.Context(), Options{MaxInFlight: 3}, workload(at...))
		want := []time.Duration{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 10}
		for i, r := range results {
			if r.DueNS != int64(at[i]) || *r.ReleasedNS != int64(want[i]*time.Second) {
				t.Errorf("row %d: due %d, released %v, want %d s", i, r.DueNS, time.Duration(*r.ReleasedNS), want[i])
			}
		}
		// Seven of the burst, and the one that stood in line behind them.
		if run.HeldBack != 8 || run.MaxInFlight != 3 || run.InFlightLimit != 3 {
			t.Errorf("run %+v", run)
		}
	})
}

func TestNoLimitIsNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{hold: func(int32) time.Duration { return time.Second }}
		run, _ := f.play(t, t.Context(), Options{}, workload(make([]time.Duration, 2000)...))
		if run.MaxInFlight != 2000 || run.HeldBack != 0 || run.InFlightLimit != 0 {
			t.Errorf("run %+v", run)
		}
	})
}

func TestStatusOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := workload(every(time.Second, 5)...)
		rows[1].Status = trace.StatusFailed
		rows[2].Status, rows[2].E2ENS = trace.StatusCancelled, trace.Ptr(int64(4*time.Second))
		rows[3].Status = trace.StatusCancelled // when is not known
		rows[4].Status, rows[4].E2ENS = trace.StatusOK, trace.Ptr(int64(time.Second))
		f := &fake{}
		run, results := f.play(t, t.Context(), Options{Speed: 2}, rows)
		if run.Requests != 4 || run.Excluded != 1 || len(results) != 4 || results[1].RowID != 2 {
			t.Errorf("run %+v", run)
		}
		if f.cuts[2] != 2*time.Second || f.cuts[3] != 0 || f.cuts[4] != 0 {
			t.Errorf("cuts %v", f.cuts)
		}
		run, results = (&fake{}).play(t, t.Context(), Options{IncludeFailed: true}, rows)
		if run.Requests != 5 || run.Excluded != 0 || len(results) != 5 {
			t.Errorf("with failed rows: run %+v", run)
		}
	})
}

func TestEarlyEnd(t *testing.T) {
	cause := errors.New("the error rate passed 5 %")
	for _, c := range []struct {
		name  string
		hold  time.Duration
		cause error
		limit int
		want  result.Run
		end   time.Duration
		cut   int
	}{
		{"short requests finish", time.Second, nil, 0, result.Run{Sending: result.Sending{Requests: 51, NotSent: 49}, EndedEarly: "interrupted"}, 6 * time.Second, 0},
		{"long ones are cut", time.Minute, nil, 0, result.Run{Sending: result.Sending{Requests: 51, NotSent: 49}, EndedEarly: "interrupted"}, 7 * time.Second, 51},
		{"the cause is told", time.Minute, cause, 0, result.Run{Sending: result.Sending{Requests: 51, NotSent: 49}, EndedEarly: cause.Error()}, 7 * time.Second, 51},
		{"at the limit", time.Minute, nil, 4, result.Run{Sending: result.Sending{Requests: 4, NotSent: 96}, EndedEarly: "interrupted"}, 7 * time.Second, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			start := time.Now()
			time.AfterFunc(5*time.Second+time.Millisecond, func() { cancel(c.cause) })
			f := &fake{hold: func(int32) time.Duration { return c.hold }}
			run, results := f.play(t, ctx, Options{Grace: 2*time.Second - time.Millisecond, MaxInFlight: c.limit}, workload(every(100*time.Millisecond, 100)...))
			if run.Requests != c.want.Requests || run.NotSent != c.want.NotSent || run.EndedEarly != c.want.EndedEarly {
				t.Errorf("%s: run %+v", c.name, run)
			}
			cut := 0
			for _, r := range results {
				if r.Error == openai.KindCancelled {
					cut++
				}
				if r.Failed() {
					t.Errorf("%s: a cut counts as a failure", c.name)
				}
			}
			if took := time.Since(start); took != c.end || cut != c.cut || int64(len(results)) != run.Requests {
				t.Errorf("%s: took %v, %d cut, %d results", c.name, took, cut, len(results))
			}
		})
	}
}

// Of rows without an end no number was left, but the time was: nobody is told of the few rows that waited.
func TestEarlyEndOfRowsWithoutEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		stop time.Duration
		opt  Options
		want string
	}{
		{"by times", 5 * time.Second, Options{}, "interrupted, after 5s of 20s"},
		{"in a closed loop", 5 * time.Second, Options{Concurrency: 3}, "interrupted, after 5s of 20s"},
		{"at its end", 20*time.Second + time.Millisecond, Options{}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(c.stop, cancel)
			c.opt.Endless, c.opt.Duration, c.opt.Grace = true, 20*time.Second, time.Second

			f := &fake{hold: func(int32) time.Duration { return 10 * time.Millisecond }}
			run, _ := f.play(t, ctx, c.opt, workload(every(100*time.Millisecond, 10_000)...))
			if run.NotSent != 0 || run.EndedEarly != c.want {
				t.Errorf("%s: %d not sent, ended early: %q, want %q", c.name, run.NotSent, run.EndedEarly, c.want)
			}
		})
	}
}

// A cancellation after the last request was sent ends nothing early if the
// requests still finish.
func TestCancelledAtTheVeryEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1500*time.Millisecond, cancel)
		f := &fake{hold: func(int32) time.Duration { return 2 * time.Second }}
		run, results := f.play(t, ctx, Options{}, workload(0, time.Second))
		if run.EndedEarly != "" || len(results) != 2 || results[1].Error != "" {
			t.Errorf("run %+v, results %+v", run, results)
		}
	})
}

func TestPreparedIsBounded(t *testing.T) {
	for _, c := range []struct{ size, most int }{
		{100 << 20, 4}, // two fit, one waits for room, and one has just been let go
		{1 << 40, 3},   // larger than all room: one at a time
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{size: c.size}
			run, _ := f.play(t, t.Context(), Options{Ahead: time.Hour}, workload(every(time.Second, 50)...))
			if f.peak > c.most || run.Requests != 50 {
				t.Errorf("size %d: %d calls were waiting", c.size, f.peak)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // no sooner than Ahead
		start := time.Now()
		f := &fake{prepare: func(row *trace.Request) error {
			if early := time.Duration(row.ArrivalNS) - time.Since(start); early > 3*time.Second {
				t.Errorf("a row is prepared %v before it is due", early)
			}
			return nil
		}}
		f.play(t, t.Context(), Options{Ahead: 3 * time.Second}, workload(every(time.Second, 50)...))
	})
}

func TestUnpreparedRowsHaveResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var known []int32
		f := &fake{prepare: func(row *trace.Request) error {
			if row.InputTokens%3 == 1 {
				return errors.New("shorter than the template")
			}
			return nil
		}}
		o := Options{Known: func(_ int64, row *trace.Request) int32 {
			known = append(known, row.InputTokens)
			return 10 * row.InputTokens
		}}
		var last Progress
		o.Progress = func(p Progress) { last = p }
		run, results := f.play(t, t.Context(), o, workload(every(time.Second, 9)...))
		if last.Done != 9 || last.Failed != 3 {
			t.Errorf("progress %+v", last)
		}
		if run.Requests != 6 || run.Unprepared != 3 || run.Unready != "shorter than the template" || run.NotSent != 0 || len(results) != 9 {
			t.Fatalf("run %+v, %d results", run, len(results))
		}
		for i, r := range results {
			bad := i%3 == 1
			if bad != (r.Error == result.KindPrepare) || bad != (r.SentNS == nil) || bad != (r.Known == nil) || !bad && *r.Known != int32(10*i) {
				t.Errorf("row %d: %+v", i, r)
			}
		}
		if !slices.Equal(known, []int32{0, 2, 3, 5, 6, 8}) {
			t.Errorf("Known was asked for %v", known)
		}
	})
}

// Whatever goes wrong, every row is accounted for once.
func TestRowsAreAccountedFor(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			rows := workload(every(time.Duration(rng.IntN(50))*time.Millisecond, rng.IntN(500))...)
			for i := range rows {
				rows[i].Status = []string{"", trace.StatusOK, trace.StatusFailed, trace.StatusCancelled}[rng.IntN(4)]
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(20))*time.Second)
			defer cancel()
			f := &fake{
				size: rng.IntN(1 << 26),
				hold: func(id int32) time.Duration { return time.Duration(id%100) * 100 * time.Millisecond },
				prepare: func(row *trace.Request) error {
					if row.InputTokens%17 == 5 {
						return errors.New("no prompt")
					}
					time.Sleep(time.Duration(row.InputTokens%7) * 10 * time.Millisecond)
					return nil
				},
			}
			run, results := f.play(t, ctx, Options{MaxInFlight: rng.IntN(20), Grace: time.Duration(rng.IntN(3)) * time.Second}, rows)
			if run.Requests+run.Excluded+run.NotSent+run.Unprepared != int64(len(rows)) || run.Requests+run.Unprepared != int64(len(results)) {
				t.Fatalf("seed %d: %d rows, %d results, run %+v", seed, len(rows), len(results), run)
			}
			if early := run.NotSent > 0 || slices.ContainsFunc(results, func(r result.Result) bool { return r.Error == openai.KindCancelled }); early != (run.EndedEarly != "") {
				t.Fatalf("seed %d: run %+v", seed, run)
			}
			for i, r := range results {
				if i > 0 && r.RowID == results[i-1].RowID || r.DoneNS == nil && r.Error != result.KindPrepare || rows[r.RowID].Status == trace.StatusFailed {
					t.Fatalf("seed %d: result %+v", seed, r)
				}
			}
		})
	}
}

// A writer that takes batches and notes how long each Result had waited.
type lateWriter struct {
	start time.Time
	worst time.Duration
	fail  int // batches until it fails; 0 is never
}

func (w *lateWriter) Write(rows []result.Result) (int, error) {
	if w.fail--; w.fail == 0 {
		return 0, errors.New("disk full")
	}
	for _, r := range rows {
		w.worst = max(w.worst, time.Since(w.start)-time.Duration(*r.DoneNS))
	}
	return len(rows), nil
}

func TestResultsWaitNoLongerThanASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &lateWriter{start: time.Now()}
		var seen []Progress
		o := Options{Progress: func(p Progress) { seen = append(seen, p) }}
		rows := workload(every(300*time.Millisecond, 100)...)
		run, err := (&Runner{Endpoint: &fake{hold: func(int32) time.Duration { return 40 * time.Second }}, Pacer: sleeper, Options: o}).Run(t.Context(), reader(rows), w)
		if err != nil || w.worst > time.Second || w.worst == 0 {
			t.Errorf("worst wait %v, error %v, run %+v", w.worst, err, run)
		}
		last := seen[len(seen)-1]
		if last.Done != 100 || last.InFlight != 0 || len(seen) < 65 || seen[34].InFlight != 100 || seen[34].Elapsed > 36*time.Second {
			t.Errorf("%d reports, %+v, last %+v", len(seen), seen[34], last)
		}
	})
}

func TestWriterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &lateWriter{fail: 3}
		run, err := (&Runner{Endpoint: &fake{}, Pacer: sleeper}).Run(t.Context(), reader(workload(every(time.Second, 5000)...)), w)
		if err == nil || run.EndedEarly != errWrite.Error() || run.NotSent < 4990 {
			t.Errorf("error %v, run %+v", err, run)
		}
	})
}

// A reader that fails after its rows.
type brokenReader struct{ trace.Reader[trace.Request] }

func (b brokenReader) Read(rows []trace.Request) (int, error) {
	n, err := b.Reader.Read(rows)
	if err == io.EOF {
		err = errors.New("damaged")
	}
	return n, err
}

func TestReaderFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out trace.SliceWriter[result.Result]
		run, err := (&Runner{Endpoint: &fake{}, Pacer: sleeper}).Run(t.Context(), brokenReader{reader(workload(every(time.Second, 5)...))}, &out)
		if err == nil || len(out.Rows) != 5 || run.EndedEarly == "" || run.Requests != 5 {
			t.Errorf("error %v, run %+v", err, run)
		}
	})
}

func TestPacerFails(t *testing.T) {
	boom := errors.New("no clock")
	for name, p := range map[string]func(time.Time) (pace.Pacer, error){
		"new":  func(time.Time) (pace.Pacer, error) { return nil, boom },
		"wait": func(time.Time) (pace.Pacer, error) { return badPacer{boom}, nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			var out trace.SliceWriter[result.Result]
			run, err := (&Runner{Endpoint: &fake{}, Pacer: p}).Run(t.Context(), reader(workload(every(time.Second, 50)...)), &out)
			if !errors.Is(err, boom) || run.NotSent != 50 || run.EndedEarly == "" {
				t.Errorf("%s: error %v, run %+v", name, err, run)
			}
		})
	}
}

type badPacer struct{ err error }

func (b badPacer) WaitUntil(context.Context, time.Duration) error { return b.err }

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{Speed: -1}, {MaxInFlight: -1}, {Ahead: -1}, {Grace: -1}} {
		if _, err := (&Runner{Options: o}).Run(t.Context(), reader(nil), nil); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		run, results := (&fake{}).play(t, t.Context(), Options{About: result.Run{Version: "v1"}}, nil)
		if run.Version != "v1" || run.Schema != result.Schema || len(results) != 0 || run.Cores == 0 || run.Started == "" {
			t.Errorf("an empty workload: %+v", run)
		}
	})
}
