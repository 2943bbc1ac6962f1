package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/textpage"
)

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		rate, highest                           float64
		low, high                               *float64
		gpus                                    int
		headroom                                float64
		instances, all, withHeadroom, gpusTotal int
		fewest, most                            *int
	}{
		{100, 22, trace.Ptr(20.), trace.Ptr(25.), 8, .2, 5, 40, 6, 48, trace.Ptr(4), trace.Ptr(5)}, // the documents' example
		{100, 25, nil, nil, 1, .2, 4, 4, 5, 5, nil, nil},
		{100, 20, trace.Ptr(19.), nil, 8, .2, 5, 40, 6, 48, nil, trace.Ptr(6)}, // 120 ÷ 20 is 6, not the next above
		{1, 50, nil, nil, 4, 0, 1, 4, 1, 4, nil, nil},
		{100, 33, nil, nil, 2, .5, 4, 8, 5, 10, nil, nil},
		{200, 94, nil, nil, 1, .2, 3, 3, 3, 3, nil, nil}, // 240 ÷ 94, and not 3 × 1.2
	} {
		r := SweepResult{Highest: Highest{Load: &c.highest, Low: c.low, High: c.high}}
		got, err := Plan(&r, Demand{Rate: c.rate, GPUsPerInstance: c.gpus, Headroom: c.headroom})
		same := func(a, b *int) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
		if err != nil || got.Instances != c.instances || got.GPUs != c.all || got.WithMargin != c.withHeadroom || got.GPUsTotal != c.gpusTotal ||
			!same(got.Fewest, c.fewest) || !same(got.Most, c.most) || got.Cost != nil {
			t.Errorf("%v at %v each: %+v, %v", c.rate, c.highest, got, err)
		}
	}
	if _, err := Plan(&SweepResult{Closed: true}, Demand{Rate: 1, GPUsPerInstance: 1}); !errors.Is(err, errClosedLoop) {
		t.Errorf("a closed loop: %v", err)
	}
	if _, err := Plan(&SweepResult{}, Demand{Rate: 1, GPUsPerInstance: 1}); !errors.Is(err, ErrNoHighest) {
		t.Errorf("no load meets the contract: %v", err)
	}
}

// 500 live sessions at 40 each take 13 instances; an instance with 40 ends 0.2 a second of 900
// output tokens, so that 500 end 2.5 a second. A target takes a sweep of its own kind.
func TestPlanSessions(t *testing.T) {
	h := Highest{Load: trace.Ptr(40.), Low: trace.Ptr(36.), High: trace.Ptr(44.), SessionsPerS: trace.Ptr(.2), OutputPerSession: trace.Ptr(900.)}
	live := SweepResult{Unit: unitLiveSessions, Closed: true, Highest: h}
	got, err := Plan(&live, Demand{Sessions: 500, GPUsPerInstance: 2, Headroom: .2, Prices: Prices{PerGPUHour: 2}})
	if err != nil {
		t.Fatal(err)
	}
	// 15 instances with headroom are 30 GPUs at 2 an hour, for 9,000 sessions of 900 tokens.
	if got.Instances != 13 || got.WithMargin != 15 || got.GPUsTotal != 30 || *got.Fewest != 12 || *got.Most != 14 || got.Unit != unitLiveSessions || got.Target != 500 || got.HighestRate != 0 {
		t.Errorf("%+v", got)
	}
	c := got.Cost
	for name, v := range map[string][2]float64{"sessions/s": {*c.SessionsPerS, 2.5}, "a session": {*c.PerSession, 60. / 9000}, "tokens/s": {c.OutputPerS, 2250}, "per million": {*c.PerMillion, 60 / 8.1}} {
		if math.Abs(v[0]-v[1]) > 1e-9*v[1] {
			t.Errorf("%s: %v, want %v", name, v[0], v[1])
		}
	}
	rate := SweepResult{Unit: unitSessionRate, Highest: h}
	rate.Highest.Load = trace.Ptr(.25)
	if got, err = Plan(&rate, Demand{SessionRate: 3, GPUsPerInstance: 1, Prices: Prices{PerGPUHour: 1}}); err != nil || got.Instances != 12 || *got.Cost.SessionsPerS != 3 || math.Abs(*got.Cost.PerSession-12./10800) > 1e-12 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, d := range []Demand{{Rate: 3}, {Sessions: 3}, {SessionRate: 3}, {Rate: 1, Sessions: 1}, {}} {
		for _, r := range []SweepResult{live, rate, {Unit: unitRate, Highest: h}, {Unit: unitInFlight, Closed: true, Highest: h}} {
			d.GPUsPerInstance = 1
			unit, _, terr := d.target()
			if _, err := Plan(&r, d); (err == nil) != (terr == nil && unit == r.Unit) {
				t.Errorf("%+v of a sweep over %s: %v", d, r.Unit, err)
			}
		}
	}
}

// 48 GPUs at 2.50 an hour are 120 an hour; 100 requests of 200 tokens a second are 72 M
// tokens an hour.
func TestCost(t *testing.T) {
	r := SweepResult{Highest: Highest{Load: trace.Ptr(22.), OutputPerRequest: trace.Ptr(200.), GoodShare: trace.Ptr(.8)}}
	d := Demand{Rate: 100, GPUsPerInstance: 8, Headroom: .2, Prices: Prices{PerGPUHour: 2.5, Watts: 500}}
	got, err := Plan(&r, d)
	if err != nil {
		t.Fatal(err)
	}
	c := got.Cost
	for name, v := range map[string][2]float64{
		"per hour": {*c.PerHour, 120}, "per million": {*c.PerMillion, 120. / 72}, "tokens for 1": {*c.TokensPerPrice, 600_000},
		"per million good": {*c.PerMillionGood, 120. / 72 / .8}, "good for 1": {*c.GoodPerPrice, 480_000}, "kWh": {*c.KilowattHours, 24}, "J": {*c.JoulesPerToken, 1.2},
	} {
		if math.Abs(v[0]-v[1]) > 1e-9*v[1] {
			t.Errorf("%s: %v, want %v", name, v[0], v[1])
		}
	}
	d.PerKWh = .1
	if got, err = Plan(&r, d); err != nil || math.Abs(*got.Cost.PerHour-122.4) > 1e-9 {
		t.Errorf("with energy: %v, %v", *got.Cost.PerHour, err)
	}
	d.Watts = 0
	if _, err = Plan(&r, d); err == nil {
		t.Error("a price of energy without watts is taken")
	}
}

func TestReadSweepSaysWhere(t *testing.T) {
	for doc, want := range map[string]string{
		"{\n  \"levels\": 5\n}": "s.json:2:13: ",
		"{\n":                   "s.json:1:2: ",
		"{}":                    "s.json:1:1: it is not the result of a sweep: its schema is not sweep/1",
		"{\"a\":1,}":            "s.json:1:8: ",
	} {
		if _, err := ReadSweep("s.json", strings.NewReader(doc)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", doc, err, want)
		}
	}
}

func FuzzReadSweep(f *testing.F) {
	good, err := json.Marshal(SweepResult{Schema: sweepSchema, Highest: Highest{Load: trace.Ptr(22.)}, Levels: []Level{{Name: "x", Role: roleLevel, Load: 1}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"schema":"sweep/1","highest":{"load":-1}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		r, err := ReadSweep("s.json", bytes.NewReader(doc))
		if err != nil {
			return
		}
		if c, err := Plan(&r, Demand{Rate: 100, GPUsPerInstance: 8, Headroom: .2, Prices: Prices{PerGPUHour: 1}}); err == nil && c.Instances < 1 {
			t.Errorf("%d instances", c.Instances)
		}
		if err := r.Page().WriteText(new(bytes.Buffer), textpage.Options{}); err != nil {
			t.Error(err)
		}
	})
}
