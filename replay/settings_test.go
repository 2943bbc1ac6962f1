package replay

import (
	"math"
	"reflect"
	"testing"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// What options make no sense is said in full, at their bounds.
func TestOptionsRefusedInFull(t *testing.T) {
	const (
		speed    = "replay: speed must be a positive number, and no limit or duration negative"
		ramp     = "replay: a ramp-up needs a closed loop, and cannot be negative"
		negative = "replay: neither concurrency, duration, warm-up nor cool-down may be negative"
		arrivals = "replay: give arrivals or a speed, not both: arrivals replace the recorded times that a speed divides"
		endless  = "replay: a workload without an end needs a duration"
	)
	causal := lineageOf(t, workload(0))
	closed, thread, cooldown := errClosed.Error(), errThreadOpen.Error(), errCooldown.Error()
	for i, c := range []struct {
		o    Options
		want string
	}{
		{Options{Speed: -1}, speed}, {Options{Speed: math.NaN()}, speed}, {Options{Speed: math.Inf(1)}, speed}, {Options{Speed: 1e-9}, ""},
		{Options{MaxInFlight: -1}, speed}, {Options{MaxInFlight: 1}, ""}, {Options{Ahead: -1}, speed}, {Options{Grace: -1}, speed},
		{Options{RampUp: -1}, ramp}, {Options{RampUp: -1, Concurrency: 1}, ramp}, {Options{RampUp: 1}, ramp}, {Options{RampUp: 1, Concurrency: 1}, ""},
		{Options{Concurrency: -1}, negative}, {Options{Duration: -1}, negative}, {Options{Warmup: Span{Requests: -1}}, negative}, {Options{Warmup: Span{Time: -1}}, negative},
		{Options{Cooldown: Span{Requests: -1}}, negative}, {Options{Cooldown: Span{Time: -1}}, negative},
		{Options{Concurrency: 1, Causal: causal}, closed}, {Options{Concurrency: 1, Arrivals: fixedGaps(1)}, closed}, {Options{Concurrency: 1, Speed: 2}, closed},
		{Options{Concurrency: 1, KeepThink: true}, closed}, {Options{Concurrency: 1, MaxInFlight: 1}, closed}, {Options{Concurrency: 1, Speed: 1, Duration: 1}, ""},
		{Options{Arrivals: fixedGaps(1), Speed: 2}, arrivals}, {Options{Arrivals: fixedGaps(1), Speed: 2, Causal: causal}, ""}, {Options{Arrivals: fixedGaps(1)}, ""},
		{Options{Endless: true}, endless}, {Options{Endless: true, Duration: 1}, ""},
		{Options{Thread: &Threading{}}, thread}, {Options{Thread: &Threading{}, Causal: causal}, ""},
		{Options{Cooldown: Span{Requests: maxCooldown + 1}}, cooldown},
	} {
		got := ""
		if _, err := c.o.withDefaults(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
}

// What a run says of its options.
func TestRunSaysItsOptions(t *testing.T) {
	about := func(o Options) result.Run {
		t.Helper()
		o.About.Cores = 3
		o, err := o.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		o.About.Started = ""
		return o.About
	}
	var want result.Run
	want.Schema, want.Timing, want.Speed, want.Cores = result.Schema, result.OpenLoop, 1, 3
	if got := about(Options{}); !reflect.DeepEqual(got, want) {
		t.Errorf("by default %+v", got)
	}
	want.Timing, want.Concurrency, want.RampUp = result.ClosedLoop, 4, "1m0s"
	want.Plan = result.Asked{DurationNS: 9, WarmupRequests: 5, CooldownNS: 6}
	if got := about(Options{Concurrency: 4, RampUp: time.Minute, Duration: 9, Warmup: Span{Requests: 5}, Cooldown: Span{Time: 6}}); !reflect.DeepEqual(got, want) {
		t.Errorf("of a closed loop %+v, want %+v", got, want)
	}
	want = result.Run{}
	want.Schema, want.Timing, want.Speed, want.Cores = result.Schema, result.Causal, 2.5, 3
	want.KeepThink, want.InFlightLimit, want.Realtime = true, 8, true
	want.Plan = result.Asked{WarmupNS: 7, CooldownRequests: 6, IncludeFailed: true}
	want.Window = &result.Window{From: &result.Place{DueNS: 7}}
	if got := about(Options{Causal: lineageOf(t, workload(0)), Speed: 2.5, KeepThink: true, MaxInFlight: 8, Realtime: true, Warmup: Span{Time: 7}, Cooldown: Span{Requests: 6}, IncludeFailed: true}); !reflect.DeepEqual(got, want) {
		t.Errorf("of a causal run %+v, want %+v", got, want)
	}
	o, _ := Options{}.withDefaults()
	if o.Ahead != 2*time.Second || o.Grace != 5*time.Second || o.About.Cores == 0 {
		t.Errorf("the defaults are %+v", o)
	}
	o, _ = Options{Ahead: 3, Grace: 4, Duration: 10}.withDefaults()
	if o.Ahead != 3 || o.Grace != 4 || o.Duration != 10 || o.About.Plan.DurationNS != 10 {
		t.Errorf("what was asked for is %+v", o)
	}
}

// Recorded times are divided by the speed, and the user hangs up as recorded.
func TestTimesBySpeed(t *testing.T) {
	row := func(status string, e2e *int64) *trace.Request { return &trace.Request{Status: status, E2ENS: e2e} }
	id := trace.Ptr[int64]
	fast, keep, one := Options{Speed: 4}, Options{Speed: 4, KeepThink: true}, Options{Speed: 1, IncludeFailed: true}
	for name, c := range map[string][2]time.Duration{
		"scaled":                 {fast.scaled(10), 2},
		"scaled, at the speed":   {one.scaled(1<<62 + 1), 1<<62 + 1},
		"thinking":               {fast.thinking(8), 2},
		"thinking, kept":         {keep.thinking(8), 8},
		"length":                 {fast.recordedLength(row("", id(8))), 2},
		"length, negative":       {one.recordedLength(row("", id(-8))), 0},
		"length, unknown":        {one.recordedLength(row("", nil)), 0},
		"cut":                    {fast.cutAfter(row(trace.StatusCancelled, id(8))), 2},
		"cut at once":            {fast.cutAfter(row(trace.StatusCancelled, id(0))), 1},
		"cut, unknown":           {fast.cutAfter(row(trace.StatusCancelled, nil)), 0},
		"not cut":                {fast.cutAfter(row(trace.StatusOK, id(8))), 0},
		"thinking, at the speed": {one.thinking(8), 8},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %d, want %d", name, c[0], c[1])
		}
	}
	failed := row(trace.StatusFailed, nil)
	if !fast.excludes(failed) || one.excludes(failed) || fast.excludes(row(trace.StatusCancelled, nil)) {
		t.Error("which rows are left out")
	}
	class := "batch"
	o := Options{Origin: Origin(10, func(row int64) int64 { return row + 100 })}
	turn := &trace.Request{ArrivalNS: 8, Category: "cold", InputTokens: 5, OutputTokens: trace.Ptr[int32](6), Session: id(9), Turn: trace.Ptr(int32(3)), Parents: []int64{20, 22}, ThinkNS: id(30), ToolNS: id(31), E2ENS: id(32), Class: &class, User: id(41), Model: "m", Adapter: "a"}
	got := o.newResult(&pendingRow{id: 23, due: 77, row: turn})
	*turn = trace.Request{ArrivalNS: 9, Session: id(7), Parents: turn.Parents[:0], Class: turn.Class, User: id(42)} // read over
	turn.Parents = append(turn.Parents, 1, 1)
	if want := (result.Result{RowID: 103, Round: 2, Category: "cold", DueNS: 77, WantInput: 5, WantOutput: trace.Ptr[int32](6), Session: id(9), Class: "batch",
		Turn: trace.Ptr(int32(3)), Parents: []int64{100, 102}, ThinkNS: id(30), ToolNS: id(31), ArrivalNS: id(8), RecordedE2ENS: id(32), User: id(41), Model: "m", Adapter: "a"}); !reflect.DeepEqual(got, want) {
		t.Errorf("a result begins as %+v, want %+v", got, want)
	}
	if got := (&Options{}).newResult(&pendingRow{id: 23, row: &trace.Request{}}); !reflect.DeepEqual(got, result.Result{RowID: 23, ArrivalNS: id(0)}) {
		t.Errorf("a result of a bare row begins as %+v", got)
	}
}

// From when on the next row is read, and why it is not.
func TestNextRead(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		due  time.Duration
		want bool
	}{
		"recorded":     {Options{Ahead: 3}, 97, true},
		"by the speed": {Options{Ahead: 3, Speed: 2}, 47, true},
		"of arrivals":  {Options{Ahead: 3, Arrivals: fixedGaps(20)}, 17, true},
		"behind":       {Options{Ahead: 3, Duration: 100}, 0, false},
		"before":       {Options{Ahead: 3, Duration: 101}, 97, true},
	} {
		o, err := c.o.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		s := newScheduler(&o, reader(workload(100)), func() time.Duration { return 0 })
		if due, ok := s.nextRead(); due != c.due || ok != c.want {
			t.Errorf("%s: from %d, %v; want %d, %v", name, due, ok, c.due, c.want)
		}
	}
	o, _ := Options{Ahead: 3}.withDefaults()
	s := newScheduler(&o, reader(nil), nil)
	if _, ok := s.nextRead(); ok {
		t.Error("a row of an empty workload is read")
	}
	// At the bound of memory nothing is read, and that a row is late is noted.
	for now, blocked := range map[time.Duration]bool{96: false, 97: true} {
		o, _ := Options{Ahead: 3, pendingLimit: 10}.withDefaults()
		s := newScheduler(&o, reader(workload(100)), func() time.Duration { return now })
		s.bytes = 10
		if due, ok := s.nextRead(); !ok || due != 97 {
			t.Errorf("one row may always be pending: from %d, %v", due, ok)
		}
		s.due = append(s.due, &pendingRow{})
		s.bytes = 9
		if _, ok := s.nextRead(); !ok {
			t.Error("below the bound nothing is read")
		}
		s.bytes = 10
		if _, ok := s.nextRead(); ok || s.readBlocked != blocked {
			t.Errorf("at %d, at the bound: read %v, blocked %v", now, ok, s.readBlocked)
		}
	}
}

// fixedGaps are arrivals at even gaps.
type fixedGaps time.Duration

func (g fixedGaps) Next() time.Duration { return time.Duration(g) }
