package bench

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"reprise/replay/engine"
	"reprise/trace/sample"
)

// An engineLoad is a load of the engine model l4-qwen2.5-0.5b, which batches: prompts of 500 and
// answers of 100 tokens on average, lognormally distributed.
type engineLoad struct {
	arrivals string  // as of a [prefillQueue]; sessions think for a second
	share    float64 // of its capacity that is offered
}

// engineCapacity is how many of these requests the engine answers in a second when thousands wait.
const engineCapacity = 70.7

// The truths of [engineLoad], in ms: p50, p95 and p99 of TTFT over 3.4 to 6.2
// million requests. Their standard errors are below 0.6 % up to 80 % of capacity, but 1.8 and 2.1 %
// of the p95 and p99 of gamma, and up to 5.1 % at 95 %.
var engineTruths = map[engineLoad][3]float64{
	{"poisson", 0.5}:   {44.33, 93.74, 129.2},
	{"poisson", 0.8}:   {66.07, 142.4, 189.3},
	{"poisson", 0.95}:  {96.22, 464.1, 897},
	{"gamma", 0.5}:     {125.5, 398.7, 582.9},
	{"gamma", 0.8}:     {227.4, 1077, 1919},
	{"gamma", 0.95}:    {910.7, 5153, 9841},
	{"sessions", 0.5}:  {44.23, 93.42, 128.4},
	{"sessions", 0.8}:  {65.66, 140.9, 187},
	{"sessions", 0.95}: {89.61, 320.7, 712},
}

// run is the TTFT of the requests that are due in some seconds after a warm-up, from an idle
// engine, in nanoseconds, and how long a request took on average, or a session.
func (e engineLoad) run(t *testing.T, seed uint64, warm, seconds float64) (ttft []int64, takes time.Duration) {
	preset, err := engine.OpenPreset("l4-qwen2.5-0.5b")
	if err != nil {
		t.Fatal(err)
	}
	type answered struct{ due, ttft int64 }
	type session struct {
		from int64
		left int
	}
	const turns = 5.0
	r := rand.New(rand.NewPCG(seed, 17))
	sessions := map[int64]session{} // by the job that is its next turn
	var all []answered
	var later queuedTurns // at is in ns, and left the number in waiting
	var waiting []session
	var spans sample.Moments
	fleet, err := engine.NewFleet(engine.FleetConfig{Engine: preset.Engine, Replicas: 1, Router: engine.RouterRoundRobin}, func(a *engine.Answer) error {
		done := int64(a.Done.Duration())
		all = append(all, answered{int64(a.At.Duration()), int64((a.Tokens[0] - a.At).Duration())})
		s := sessions[a.Job.ID]
		delete(sessions, a.Job.ID)
		if s.left == 0 {
			spans.Add(done - s.from)
			return a.Err
		}
		heap.Push(&later, queuedTurn{float64(done) + r.ExpFloat64()*1e9, len(waiting)})
		waiting = append(waiting, session{s.from, s.left - 1})
		return a.Err
	})
	if err != nil {
		t.Fatal(err)
	}
	gap := func() float64 { // ns
		mean := 1e9 / (e.share * engineCapacity)
		switch e.arrivals {
		case "gamma":
			return gammaOf(r, 1.0/16) * 16 * mean
		case "sessions":
			return r.ExpFloat64() * mean * turns
		}
		return r.ExpFloat64() * mean
	}
	for id, next := int64(0), gap(); ; id++ {
		at := next
		for {
			if at = next; len(later) > 0 {
				at = min(at, later[0].at)
			}
			if e.arrivals != "sessions" || !fleet.Advance(engine.Picos(at)*1000) {
				break
			}
		}
		if at >= (warm+seconds)*1e9 {
			break
		}
		s := session{from: int64(at)}
		if len(later) > 0 && later[0].at <= next {
			s = waiting[heap.Pop(&later).(queuedTurn).left]
		} else {
			next += gap()
			for e.arrivals == "sessions" && r.Float64() >= 1/turns {
				s.left++
			}
		}
		sessions[id] = s
		job := engine.Job{ID: id, Prompt: int(lognormal(r, 500, 50, 4000)), Output: int(lognormal(r, 100, 10, 800))}
		if err := fleet.Send(engine.Arrival{At: engine.Picos(at) * 1000, Job: job}); err != nil {
			t.Fatal(err)
		}
	}
	if err := fleet.Finish(); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b answered) int { return cmp.Compare(a.due, b.due) })
	for _, a := range all {
		if float64(a.due) >= warm*1e9 && float64(a.due) < (warm+seconds)*1e9 {
			ttft = append(ttft, a.ttft)
		}
	}
	return ttft, time.Duration(spans.Mean())
}

// Of the intervals of a level of an engine that batches, measured by the runs that a sweep would
// make of it, as many hold the truth. The long form has all loads, and as many seeds as some
// 15 minutes of a core give. docs/sweep.md has its table.
func TestIntervalsCoverOfTheEngine(t *testing.T) {
	loads, seeds, budget := []engineLoad{{"poisson", .5}, {"sessions", .5}}, 60, int64(8_000)
	long := os.Getenv("REPRISE_TEST_STATISTICS") != ""
	if long {
		loads, seeds, budget = nil, 60, 50_000
		for _, q := range queues {
			loads = append(loads, engineLoad(q))
		}
	}
	for _, e := range loads {
		t.Run(fmt.Sprintf("%s-%g", e.arrivals, 100*e.share), func(t *testing.T) {
			s := Sweep{Process: "poisson", Duration: 60 * time.Second, Requests: 150, Precision: .1, Budget: budget, Dir: t.TempDir()}
			cells := cover(seeds, budget, engineTruths[e], func(m *measurement, seed uint64) {
				trial, err := s.trial(roleLevel, e.share*engineCapacity, s.Duration, m)
				if err != nil {
					t.Fatal(err)
				}
				warm, err := time.ParseDuration(trial.Warmup)
				if err != nil {
					t.Fatal(err)
				}
				measured := trial.Duration - warm
				values, takes := e.run(t, 1<<50|seed, warm.Seconds(), measured.Seconds())
				m.take(values)
				if m.lasted, m.takes = m.lasted+measured, takes; s.cold(trial, m) {
					m.forget()
				}
			})
			least, mostWrong := .82, .15 // of 60
			if long {
				least, mostWrong = .75, .25 // the worst that was measured, at 95 % of capacity
			}
			hold(t, e.arrivals, e.share, seeds, cells, least, 1, mostWrong)
		})
	}
}
