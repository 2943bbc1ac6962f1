package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"reprise/replay/engine"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/fleet"
	"reprise/trace/longtest"
)

// level simulates a load with an engine, as the results of a server with these requests:
// open at a rate, or closed with so many in flight.
func level(t *testing.T, c engine.Config, name string, n int, rate float64, closed int, seed uint64) *Record {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	rows := make([]result.Result, n)
	at := 0.0
	for i := range rows {
		in, out := int32(50+rng.IntN(900)), int32(10+rng.IntN(150))
		rows[i] = result.Result{RowID: int64(i), WantInput: in, WantOutput: trace.Ptr(out), Input: &in, Output: &out, DueNS: int64(at * 1e9), HTTPStatus: trace.Ptr(int32(200)), FinishReason: "length"}
		if rate > 0 {
			at += rng.ExpFloat64() / rate
		}
	}
	next := closed
	var served *engine.Fleet
	send := func(i int, now engine.Picos) error {
		r := &rows[i]
		r.SentNS = trace.Ptr(int64(now.Duration()))
		return served.Send(engine.Arrival{At: now, Job: engine.Job{ID: int64(i), Prompt: int(r.WantInput), Output: int(*r.WantOutput)}})
	}
	var waiting []engine.Picos
	over := func(a *engine.Answer) error {
		r := &rows[a.Job.ID]
		for k, tok := range a.Tokens {
			ns := int64(tok.Duration())
			if k == 0 {
				r.FirstEventNS, r.FirstTokenNS = trace.Ptr(ns), trace.Ptr(ns)
			} else {
				r.GapsNS = append(r.GapsNS, ns-*r.LastTokenNS)
			}
			r.LastTokenNS = trace.Ptr(ns)
		}
		r.Events, r.DoneNS = int32(len(a.Tokens)), trace.Ptr(int64(a.Done.Duration()))
		waiting = append(waiting, a.Done)
		return nil
	}
	var err error
	if served, err = engine.NewFleet(engine.FleetConfig{Engine: c, Replicas: 1, Router: fleet.RoundRobin}, over); err != nil {
		t.Fatal(err)
	}
	if closed > 0 {
		for i := range closed {
			if err := send(i, 0); err != nil {
				t.Fatal(err)
			}
		}
		for served.Advance(engine.Never) {
			for ; len(waiting) > 0 && next < n; next++ {
				if err := send(next, waiting[0]); err != nil {
					t.Fatal(err)
				}
				waiting = waiting[1:]
			}
		}
	} else {
		for i := range rows {
			if err := send(i, engine.Picos(rows[i].DueNS)*1000); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := served.Finish(); err != nil {
		t.Fatal(err)
	}
	run := result.Run{Sending: result.Sending{Requests: int64(n)}, Simulation: result.Simulation{Simulated: "known"}, Load: result.Load{Timing: result.OpenLoop, Model: "known", Rate: fmt.Sprintf("poisson:%g", rate)}}
	if closed > 0 {
		run.Load = result.Load{Timing: result.ClosedLoop, Concurrency: closed, Model: "known"}
	}
	r, err := Read(name, result.Held(name, run, rows), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// knownCosts all have an effect: decoding takes compute from 23 sequences on, and the KV of
// some ten requests as long as a quarter of the weights.
var knownCosts = engine.Costs{Step: 8e9, KVToken: 300e3, PrefillToken: 40e6, DecodeSeq: 500e6, Request: 6e9}

// An engine with known costs is recovered from one sweep within 3 %, and its intervals are
// narrow. The long form has more requests and levels.
func TestKnownCostsAreRecovered(t *testing.T) {
	c := engine.DefaultConfig()
	c.Costs = knownCosts
	n, rates := 80, []float64{2, 12, 18}
	if longtest.On() {
		n, rates = 300, []float64{1, 2, 5, 8, 12, 15, 18}
	}
	var records []*Record
	for i, rate := range rates {
		records = append(records, level(t, c, fmt.Sprintf("r%d", i), n, rate, 0, uint64(i+1)))
	}
	near, ok := stepCosts(records, whole)
	t.Logf("by the gaps alone: %s, %v", near, ok)
	f, err := fitEngine(t.Context(), records, Stated{MaxSeqs: 256, MaxBatchTokens: 2048}, whole)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("root mean square %.5f: %s", math.Sqrt(f.loss), f.config.Costs)
	for _, p := range f.parameters() {
		t.Logf("%+v", p)
	}
	for _, name := range f.config.Costs.Names() {
		got, want := float64(*f.config.Costs.Of(name)), float64(*c.Costs.Of(name))
		if !(math.Abs(got/want-1) <= 0.03) {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
}
