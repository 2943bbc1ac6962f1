package replay

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
)

// planRows are rows of sessions and others, some of which failed in the source or
// were cancelled.
func planRows(seed uint64, n int) []trace.Request {
	r := rand.New(rand.NewPCG(seed, 5))
	var at []time.Duration
	now := time.Duration(0)
	for range n {
		at = append(at, now)
		now += time.Duration(r.ExpFloat64()*200) * time.Millisecond
	}
	rows := workload(at...)
	for i := range rows {
		if i > 5 && r.IntN(2) == 0 {
			rows[i].Parents = []int64{int64(i - 1 - r.IntN(5))}
			if r.IntN(3) == 0 {
				rows[i].Parents = append(rows[i].Parents, int64(i-1-r.IntN(5)))
			}
			if r.IntN(4) > 0 {
				rows[i].ThinkNS = trace.Ptr(r.Int64N(5e9))
			}
		}
		if r.IntN(10) == 0 {
			rows[i].Status, rows[i].E2ENS = trace.StatusFailed, trace.Ptr(r.Int64N(3e9))
		} else if r.IntN(10) == 0 {
			rows[i].Status, rows[i].E2ENS = trace.StatusCancelled, trace.Ptr(r.Int64N(3e9)+1)
		}
	}
	return rows
}

// planLength is how long a request takes of a server, and of one that is faster.
func planLength(fast time.Duration) func(id int32) time.Duration {
	return func(id int32) time.Duration { return time.Duration(id%7) * 300 * time.Millisecond / fast }
}

// A plan is what a run does, due times and counts, when requests take as long as
// it is told.
func TestPlanIsTheRun(t *testing.T) {
	rows := planRows(1, 400)
	rate := func() arrival.Process {
		p, err := arrival.ParseProcess("gamma:8,cv=3")
		if err != nil {
			t.Fatal(err)
		}
		return p.New(arrival.Stream(1, "test"))
	}
	for i, make := range []func() Options{
		func() Options { return Options{} },
		func() Options { return Options{Speed: 3, IncludeFailed: true, Duration: 20 * time.Second} },
		func() Options { return Options{Causal: lineageOf(t, rows)} },
		func() Options { return Options{Causal: lineageOf(t, rows), Speed: 2.5, Duration: 15 * time.Second} },
		func() Options {
			return Options{Causal: lineageOf(t, rows), Speed: 2, KeepThink: true, IncludeFailed: true}
		},
		func() Options { return Options{Arrivals: rate()} },
		func() Options { return Options{Causal: lineageOf(t, rows), Arrivals: rate(), Speed: 2} },
		func() Options { return Options{Concurrency: 5} },
		func() Options { return Options{Concurrency: 3, Duration: 30 * time.Second} },
	} {
		for _, fast := range []time.Duration{1, 100} {
			length := planLength(fast)
			synctest.Test(t, func(t *testing.T) {
				f := &fake{hangUp: true, hold: length}
				run, results := f.play(t, t.Context(), make(), rows)
				p, err := NewPlanner(make(), func(r *trace.Request) (time.Duration, bool) { return length(r.InputTokens), true })
				if err != nil {
					t.Fatal(err)
				}
				planCheck(t, fmt.Sprint("case ", i, ", fast ", int(fast)), p, rows, run, results)
			})
		}
	}
}

func planCheck(t *testing.T, name string, p *Planner, rows []trace.Request, run result.Run, results []result.Result) {
	t.Helper()
	var end int64
	level := map[int64]float64{}
	for i := range rows {
		due, sent := p.Add(&rows[i])
		if !sent {
			continue
		}
		if len(results) == 0 || results[0].RowID != int64(i) || results[0].DueNS != int64(due) {
			t.Fatalf("%s: row %d is planned for %v, the run has %+v", name, i, due, results[:min(1, len(results))])
		}
		r := results[0]
		results = results[1:]
		end = max(end, *r.DoneNS)
		for at := r.DueNS; at < *r.DoneNS; { // the share of each second
			second := at / 1e9
			until := min((second+1)*1e9, *r.DoneNS)
			level[second] += float64(until-at) / 1e9
			at = until
		}
	}
	plan := p.Plan()
	most := *plan.MeanInFlight // where all is over within a second
	if plan.EndNS-plan.FirstNS >= 1e9 {
		most = 0
	}
	for _, v := range level {
		most = max(most, v)
	}
	if len(results) > 0 || plan.Requests != run.Requests || plan.Excluded+plan.Beyond != run.Excluded+run.Beyond || plan.EndNS != end || plan.LastNS-plan.FirstNS != run.PlannedNS && run.Concurrency == 0 {
		t.Errorf("%s: plan %+v, run %+v, %d results too many", name, plan, run, len(results))
	}
	if plan.Beyond != run.Beyond && run.Timing == result.OpenLoop {
		t.Errorf("%s: %d rows beyond, the run has %d", name, plan.Beyond, run.Beyond)
	}
	if plan.PeakInFlight == nil || math.Abs(*plan.PeakInFlight-most) > 1e-6 || *plan.MeanInFlight > most+1e-6 || *plan.Peak1S < *plan.Peak10S {
		t.Errorf("%s: %g in flight at most, the run has %g; %+v", name, *plan.PeakInFlight, most, plan)
	}
}

// Rates are of whole windows, and null where nothing tells.
func TestPlanRates(t *testing.T) {
	rows := workload(every(250*time.Millisecond, 9)...)
	rows = append(rows, workload(7*time.Second, 7*time.Second, 7*time.Second, 7*time.Second, 7*time.Second, 14*time.Second)...)
	p, err := NewPlanner(Options{}, func(*trace.Request) (time.Duration, bool) { return 0, false })
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		p.Add(&rows[i])
	}
	if s := p.Plan(); *s.Peak1S != 5 || *s.Peak10S != 1.4 || *s.MeanRate != 1 || s.PeakInFlight != nil || s.Timed != 0 {
		t.Errorf("%+v", s)
	}
	late := trace.Request{ArrivalNS: planSeconds * 1e9}
	p.Add(&late)
	if s := p.Plan(); s.Peak1S != nil || s.Requests != 16 {
		t.Errorf("%+v", s)
	}
	first, err := NewPlanner(Options{}, func(*trace.Request) (time.Duration, bool) { return 0, false })
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range workload(0, 100*time.Millisecond, 200*time.Millisecond, 5*time.Second) {
		first.Add(&r)
	}
	if s := first.Plan(); *s.Peak1S != 3 || *s.Peak10S != 0.4 {
		t.Errorf("the first second has the peak: %+v", s)
	}
	empty, _ := NewPlanner(Options{}, nil)
	if s := empty.Plan(); s.MeanRate != nil || s.Requests != 0 {
		t.Errorf("%+v", s)
	}
	if _, err := NewPlanner(Options{Concurrency: 1, Speed: 2}, nil); err == nil {
		t.Error("a closed loop with a speed")
	}
}

// The plan of a loop without an end ends, with what the run sends.
func TestPlanOfEndlessLoop(t *testing.T) {
	for _, o := range []Options{{}, {Concurrency: 2}, {Causal: lineageOf(t, loopRows())}} {
		o.Duration, o.Endless, o.Origin = 60*time.Second, true, Origin(3, func(i int64) int64 { return i })
		if o.Causal != nil {
			o.Causal.Repeat()
		}
		synctest.Test(t, func(t *testing.T) {
			f := &fake{hold: func(int32) time.Duration { return time.Second }}
			var out trace.SliceWriter[result.Result]
			run, err := (&Runner{Endpoint: f, Pacer: sleeper, Options: o}).Run(t.Context(), loopOf(0, 0), &out)
			if err != nil {
				t.Fatal(err)
			}
			p, err := NewPlanner(o, func(*trace.Request) (time.Duration, bool) { return time.Second, true })
			if err != nil {
				t.Fatal(err)
			}
			src, one := loopOf(0, 0), make([]trace.Request, 1)
			for !p.Over() {
				if _, err := src.Read(one); err != nil {
					t.Fatal(err)
				}
				p.Add(&one[0])
			}
			if got := p.Plan().Requests; got != run.Requests {
				t.Errorf("%d requests, the run has %d", got, run.Requests)
			}
		})
	}
}

// The plan of a few rows, in full: what is sent, when, and what is in flight.
func TestPlanOfAFewRows(t *testing.T) {
	const ms = time.Millisecond
	rows := workload(time.Second, 1250*ms, 2*time.Second, 4*time.Second, 5*time.Second, 6*time.Second)
	took := []time.Duration{500 * ms, 2 * time.Second, time.Hour, 3 * time.Second, -time.Second, time.Second}
	rows[2].Status, rows[2].E2ENS = trace.StatusFailed, trace.Ptr(int64(time.Second))
	rows[3].Status, rows[3].E2ENS = trace.StatusCancelled, trace.Ptr(int64(time.Second))
	for known, want := range map[bool]string{
		// The third row failed, and the user of the fourth hung up after a second. In
		// flight is 0.5 and 0.75 of the second second, and 4.5 - 1 s together of 4 s.
		true: `{"requests":4,"excluded":1,"beyond":1,"first_due_ns":1000000000,"last_due_ns":5000000000,"end_ns":5000000000,"mean_rate":0.75,"peak_rate_1s":2,"peak_rate_10s":0.4,` +
			`"requests_with_known_length":4,"mean_in_flight":0.875,"peak_in_flight":1.25}`,
		false: `{"requests":4,"excluded":1,"beyond":1,"first_due_ns":1000000000,"last_due_ns":5000000000,"end_ns":5000000000,"mean_rate":0.75,"peak_rate_1s":2,"peak_rate_10s":0.4,` +
			`"requests_with_known_length":1,"mean_in_flight":null,"peak_in_flight":null}`,
	} {
		i := -1
		p, err := NewPlanner(Options{Duration: 6 * time.Second}, func(*trace.Request) (time.Duration, bool) { return took[i], known })
		if err != nil {
			t.Fatal(err)
		}
		var sent []bool
		for i = range rows {
			due, ok := p.Add(&rows[i])
			if due != time.Duration(rows[i].ArrivalNS) || p.Over() != (i == 5) {
				t.Errorf("row %d is due at %v, and the plan is over: %v", i, due, p.Over())
			}
			sent = append(sent, ok)
		}
		doc, err := json.Marshal(p.Plan())
		if err != nil || string(doc) != want || !slices.Equal(sent, []bool{true, true, false, true, true, false}) {
			t.Errorf("known %v: sent %v, %v\n%s, want\n%s", known, sent, err, doc, want)
		}
	}
}

// Turns are due after their parents and their pause, or else at their recorded time,
// moved as their session was.
func TestPlanOfTurns(t *testing.T) {
	rows := workload(10, 20, 30, 500, 600, 700)
	rows[2].Parents, rows[2].ThinkNS, rows[2].ToolNS = []int64{0, 1}, trace.Ptr(int64(40)), trace.Ptr(int64(2))
	rows[3].Parents = []int64{2}
	rows[4].Parents = []int64{1}
	rows[5].Parents = []int64{-1, 7}
	took := func(*trace.Request) (time.Duration, bool) { return 100, true }
	for name, c := range map[string]struct {
		o    Options
		want []time.Duration
	}{
		"causal":           {Options{Causal: lineageOf(t, rows)}, []time.Duration{10, 20, 162, 500, 600, 700}},
		"twice as fast":    {Options{Causal: lineageOf(t, rows), Speed: 2}, []time.Duration{5, 10, 131, 250, 300, 350}},
		"with arrivals":    {Options{Causal: lineageOf(t, rows), Arrivals: fixedGaps(1000)}, []time.Duration{1000, 2000, 2142, 2480, 2580, 3000}},
		"parents count no": {Options{}, []time.Duration{10, 20, 30, 500, 600, 700}},
		"two at once":      {Options{Concurrency: 2}, []time.Duration{0, 0, 100, 100, 200, 200}},
		"ramped up":        {Options{Concurrency: 2, RampUp: 60}, []time.Duration{0, 30, 100, 130, 200, 230}},
	} {
		p, err := NewPlanner(c.o, took)
		if err != nil {
			t.Fatal(err)
		}
		var got []time.Duration
		for i := range rows {
			due, _ := p.Add(&rows[i])
			got = append(got, due)
		}
		if !slices.Equal(got, c.want) || len(p.parents) != 0 {
			t.Errorf("%s: due at %d, want %d; %d parents are kept", name, got, c.want, len(p.parents))
		}
		if p.Over() {
			t.Errorf("%s: over, though nothing ends it", name)
		}
		if p.Timing() != p.opt.About.Timing || p.Timing() == "" {
			t.Errorf("%s: the timing is %q", name, p.Timing())
		}
	}
}

// Rows that are all due at one instant have no rate: a plan says nothing, which JSON
// can hold, and not infinity.
func TestPlanOfOneInstant(t *testing.T) {
	p, err := NewPlanner(Options{}, func(*trace.Request) (time.Duration, bool) { return time.Second, true })
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range workload(time.Second, time.Second) {
		p.Add(&row)
	}
	if plan := p.Plan(); plan.Requests != 2 || plan.MeanRate != nil {
		t.Errorf("%d requests at a rate of %v", plan.Requests, *plan.MeanRate)
	}
}

// What is in flight on average is over the time from the first due time to the last end,
// not from the start of the clock.
func TestPlanMeanInFlight(t *testing.T) {
	p, err := NewPlanner(Options{}, func(*trace.Request) (time.Duration, bool) { return time.Second, true })
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range workload(10*time.Second, 11*time.Second) {
		p.Add(&row)
	}
	if plan := p.Plan(); plan.MeanInFlight == nil || *plan.MeanInFlight != 1 || *plan.MeanRate != 1 {
		t.Errorf("%+v", plan)
	}
}

// The longest cool-down is allowed, and one request more is not.
func TestLongestCooldown(t *testing.T) {
	for requests, ok := range map[int64]bool{maxCooldown: true, maxCooldown + 1: false} {
		if _, err := (Options{Cooldown: Span{Requests: requests}}).withDefaults(); (err == nil) != ok {
			t.Errorf("a cool-down of %d requests: %v", requests, err)
		}
	}
}
