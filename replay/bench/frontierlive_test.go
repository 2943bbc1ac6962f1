package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"reprise/replay"
	"reprise/replay/engine"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
)

// A virtualServer is a target: a server that is an engine in virtual time.
type virtualServer struct {
	fleet  engine.FleetConfig
	lateMS int64 // the client sends so late
	heals  bool  // but only once
	fails  int64 // so many of the requests are refused
	runs   []string
}

func (a *virtualServer) Run(ctx context.Context, t Trial) error {
	a.runs = append(a.runs, t.Name)
	w, err := trace.Open(t.Workload)
	if err != nil {
		return err
	}
	defer w.Close()
	rows, err := w.Reader()
	if err != nil {
		return err
	}
	o := replay.Options{Concurrency: t.Load.Concurrency}
	if o.Warmup, err = replay.ParseSpan(t.Warmup); err != nil {
		return err
	}
	if t.Load.Rate != "" {
		p, err := arrival.ParseProcess(t.Load.Rate)
		if err != nil {
			return err
		}
		o.Arrivals = p.New(arrival.Stream(7, t.Name))
	}
	kept := keptResults{}
	_, run, err := Simulation{Fleet: a.fleet, Rows: rows, Options: o, Results: &kept}.Run(ctx)
	if err != nil {
		return err
	}
	for i := range kept.rows {
		r := &kept.rows[i]
		for _, at := range []**int64{&r.SentNS, &r.FirstEventNS, &r.FirstTokenNS, &r.LastTokenNS, &r.DoneNS} {
			*at = trace.Ptr(**at + a.lateMS*1e6)
		}
		if int64(i) < a.fails {
			r.Error = "server_error"
		}
	}
	if a.heals {
		a.lateMS = 0
	}
	run.Schema, run.Version, run.Cores, run.Model, run.ServerVersion = result.Schema, "test", 1, "tiny", "v1"
	return result.Write(t.Results, run, &rowReader{kept.rows})
}

// keptResults keeps all rows.
type keptResults struct{ rows []result.Result }

func (k *keptResults) Write(rows []result.Result) (int, error) {
	k.rows = append(k.rows, rows...)
	return len(rows), nil
}

// liveFrontier has the same engine in virtual time and as a server.
func liveFrontier(t *testing.T, a *virtualServer) Frontier {
	e := stepping("virtual", 4)
	a.fleet = e.Fleet
	live := e
	live.Name, live.Target, live.GPUs = "127.0.0.1:8000", a, 2
	return Frontier{Engines: []FrontierEngine{e, live}, Classes: []LengthClass{fixedLengths}, Concurrencies: []int{1, 4, 8}, Seed: 3,
		Requests: leastMeasured, Report: report.Options{Limits: report.DefaultLimits()}, Dir: dirOf(t)}
}

// A server has the curve of the engine that it is, half of it for each of two GPUs; what was
// measured is not measured again.
func TestFrontierOfAServer(t *testing.T) {
	a := &virtualServer{}
	f := liveFrontier(t, a)
	r, err := f.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	curves := r.Classes[0].Curves
	for i, p := range curves[0].Points {
		q := curves[1].Points[i]
		if p.PerUser != q.PerUser || math.Abs(p.OutputPerGPU/q.OutputPerGPU-2) > 1e-9 || p.Requests != q.Requests || p.TTFT != q.TTFT || p.E2E != q.E2E {
			t.Errorf("%+v, as a server %+v", p, q)
		}
	}
	if len(curves[1].Points) != 3 || len(a.runs) != 3 || r.Engines[1].Model != "tiny" || r.Engines[1].Server != "v1" {
		t.Errorf("%d levels by %d runs of %+v", len(curves[1].Points), len(a.runs), r.Engines[1])
	}
	again, err := f.Run(t.Context())
	if err != nil || len(a.runs) != 3 || again.Classes[0].Curves[1].Points[2].PerUser != curves[1].Points[2].PerUser {
		t.Errorf("%d runs, %v", len(a.runs), err)
	}
	f.Engines[1].About = "another tokenizer"
	if _, err := f.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "results of another trial") {
		t.Errorf("results of another target are taken: %v", err)
	}
}

// A client that was the limit has a second try; then its level is no point of the curve. What
// the server is the limit of ends the curve.
func TestFrontierOfALateClient(t *testing.T) {
	a := &virtualServer{lateMS: 3000, heals: true}
	f := liveFrontier(t, a)
	if r, err := f.Run(t.Context()); err != nil || r.Untrusted() != "" || len(a.runs) != 4 {
		t.Errorf("%s, %d runs, %v", r.Untrusted(), len(a.runs), err)
	}
	a = &virtualServer{lateMS: 3000}
	f = liveFrontier(t, a)
	r, err := f.Run(t.Context())
	if err != nil || !strings.Contains(r.Untrusted(), "with 1 in flight the client was the limit") || len(r.Classes[0].Curves[1].Points) != 0 || len(a.runs) != 2 {
		t.Errorf("%q, %d runs, %v", r.Untrusted(), len(a.runs), err)
	}
	a = &virtualServer{fails: 20}
	f = liveFrontier(t, a)
	if r, err = f.Run(t.Context()); err != nil || !strings.Contains(r.Classes[0].Curves[1].Unserved, "failed") {
		t.Errorf("%+v, %v", r.Classes[0].Curves[1], err)
	}
}

// Frontiers are laid over each other as they were written: classes and engines of both, the
// best of all, and other prices.
func TestFrontierOverlay(t *testing.T) {
	run := func(e FrontierEngine, classes ...LengthClass) FrontierResult {
		f := Frontier{Engines: []FrontierEngine{e}, Classes: classes, Concurrencies: []int{1, 4}, Seed: 1}
		r, err := f.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if r, err = ReadFrontier("f.json", bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		return r
	}
	other := LengthClass{"other", "10", "20"}
	slow, fast := stepping("e", 1), stepping("e", 1)
	fast.Fleet.Engine.Costs.Step /= 2
	fast.GPU, fast.Prices = "l4", Prices{PerGPUHour: 1}
	r, second := run(slow, fixedLengths), run(fast, fixedLengths, other)
	second.Reprice(func(gpu string) Prices { return map[string]Prices{"l4": {PerGPUHour: 2, Watts: 72}}[gpu] })
	if err := r.Overlay(second, "b"); err != nil {
		t.Fatal(err)
	}
	if len(r.Engines) != 2 || r.Engines[1].Name != "b: e" || len(r.Classes) != 2 || len(r.Classes[1].Curves) != 2 || r.Classes[1].Curves[0].Unserved != unmeasured {
		t.Fatalf("%+v", r)
	}
	if b := r.Classes[0].Best; len(b) != 1 || b[0].Engine != "b: e" || math.Abs(b[0].To-200) > 1e-9 {
		t.Errorf("best: %+v", b)
	}
	p := r.Classes[0].Curves[1].Points[0]
	if math.Abs(*p.PerMillion-2.0/3600/200*1e6) > 1e-9 || math.Abs(*p.JoulesPerToken-72.0/200) > 1e-9 {
		t.Errorf("%+v", p)
	}
	changed := run(fast, LengthClass{"fixed", "100", "60"})
	const says = "fixed has other lengths than here"
	if err := r.Overlay(changed, "c"); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%v", err)
	}
	for text, want := range map[string]string{
		`{}`: "its schema is not frontier/1", `[`: "not the result of a frontier",
		`{"schema":"frontier/1","engines":[{"name":"e"}]}`:                                                                "e has no GPU",
		`{"schema":"frontier/1","classes":[{"curves":[{"engine":"x"}]}]}`:                                                 "a curve is of x",
		`{"schema":"frontier/1","engines":[{"name":"e","gpus":1}],"classes":[{"curves":[{"engine":"e","points":[{}]}]}]}`: "without throughput",
	} {
		if _, err := ReadFrontier("f.json", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzReadFrontier looks for a file that is read and cannot be shown.
func FuzzReadFrontier(f *testing.F) {
	f.Add([]byte(`{"schema":"frontier/1","engines":[{"name":"e","gpus":1}],"classes":[{"name":"c","curves":[{"engine":"e","points":[{"concurrency":1,"output_tokens_per_s_per_user":1,"output_tokens_per_s_per_gpu":2,"on_front":true}]}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ReadFrontier("f.json", bytes.NewReader(text))
		if err != nil {
			return
		}
		var all FrontierResult
		if err := all.Overlay(r, "f"); err != nil {
			return
		}
		all.Reprice(func(string) Prices { return Prices{PerGPUHour: 1, Watts: 1} })
		var out bytes.Buffer
		if err := all.Page().Write(&out); err != nil {
			t.Error(err)
		}
	})
}

// What an engine was fitted to is held against each level.
func TestFrontierExtrapolates(t *testing.T) {
	e := stepping("e", 4)
	e.Covers = &engine.Covers{MaxPromptTokens: 100, MaxOutputTokens: 50, MaxInFlight: 2, MaxDecoding: 2, MaxKVTokens: 1 << 20}
	f := Frontier{Engines: []FrontierEngine{e}, Classes: []LengthClass{fixedLengths}, Concurrencies: []int{1, 2, 8}, Seed: 1}
	r, err := f.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	points := r.Classes[0].Curves[0].Points
	want := []result.Beyond{{Bound: "max_in_flight", Covers: 2, Reached: 8}, {Bound: "max_decoding", Covers: 2, Reached: 4}}
	if len(points[1].Extrapolates) != 0 || len(points[2].Extrapolates) != 2 || points[2].Extrapolates[0] != want[0] || points[2].Extrapolates[1] != want[1] {
		t.Errorf("%+v", points)
	}
	if got := r.cautions()[0].Text; got != "e: at 1 of 3 levels the engine extrapolates, beyond the records that it was fitted to: 8 requests in flight (4 × 2), 4 requests that decode at once (2 × 2)." {
		t.Error(got)
	}
}
