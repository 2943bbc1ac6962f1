package bench

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"reprise/replay/engine"
	"reprise/trace/fleet"
	"reprise/trace/textpage"
)

// stepping is an engine whose every step takes 10 ms, for at most so many sequences.
func stepping(name string, seqs int) FrontierEngine {
	c := engine.DefaultConfig()
	c.KVTokens, c.MaxSeqs, c.MaxBatchTokens, c.MaxWaiting = 0, seqs, 1<<20, 1000
	c.Costs = engine.Costs{Step: engine.Picos(10*time.Millisecond) * 1000}
	return FrontierEngine{Name: name, Model: "m", GPUs: 1, Fleet: engine.FleetConfig{Engine: c, Replicas: 1, Router: fleet.RoundRobin}}
}

var fixedLengths = LengthClass{"fixed", "100", "50"}

// All figures of an engine whose requests take 50 steps of 10 ms, four at a time, on two
// GPUs at 3.6 an hour and 400 W.
func TestFrontierByHand(t *testing.T) {
	e := stepping("e", 4)
	e.GPUs, e.Prices = 2, Prices{PerGPUHour: 3.6, Watts: 400}
	f := Frontier{Engines: []FrontierEngine{e}, Classes: []LengthClass{fixedLengths}, Seed: 1}
	r, err := f.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := r.Classes[0].Curves[0]
	if len(c.Points) != 4 || !strings.Contains(c.Stopped, "with 8 in flight") {
		t.Fatalf("%d levels, stopped %q", len(c.Points), c.Stopped)
	}
	for i, n := range []int{1, 2, 4, 8} {
		p := c.Points[i]
		perGPU := 100 * float64(min(n, 4)) / 2
		wait := 500 * float64(n/4-1) // behind those before
		for what, of := range map[string][2]float64{
			"in flight":          {float64(p.Concurrency), float64(n)},
			"requests":           {float64(p.Requests), float64(max(8*n, 64))},
			"seconds":            {p.Seconds, float64(max(8*n, 64)) / float64(min(n, 4)) * 0.5},
			"per user":           {p.PerUser, 100},
			"per GPU":            {p.OutputPerGPU, perGPU},
			"with prompts":       {p.TotalPerGPU, 3 * perGPU},
			"TTFT":               {p.TTFT, 10 + max(wait, 0)},
			"TPOT":               {p.TPOT, 10},
			"E2E":                {p.E2E, 500 + max(wait, 0)},
			"per million":        {*p.PerMillion, 1000 / perGPU},
			"per million of all": {*p.PerMillionTotal, 1000 / perGPU / 3},
			"joules":             {*p.JoulesPerToken, 400 / perGPU},
		} {
			if math.Abs(of[0]-of[1]) > 1e-9*of[1] {
				t.Errorf("%d in flight, %s: %v, want %v", n, what, of[0], of[1])
			}
		}
		if p.OnFront != (n >= 4) {
			t.Errorf("%d in flight: on the front: %v", n, p.OnFront)
		}
	}
	if b := r.Classes[0].Best; len(b) != 1 || b[0].Above != 0 || b[0].To != 100 || b[0].At.OutputPerGPU != 200 {
		t.Errorf("best: %+v", b)
	}
}

// An engine that is slower for more is beaten by another from some interactivity on.
func TestFrontierOfTwo(t *testing.T) {
	small, large := stepping("small", 1), stepping("large", 64)
	large.Fleet.Engine.Costs.DecodeSeq = engine.Picos(3*time.Millisecond) * 1000 // 4 take 12 ms a step, 64 take 192
	small.Fleet.Engine.Costs.Step /= 2
	f := Frontier{Engines: []FrontierEngine{small, large}, Classes: []LengthClass{fixedLengths}, Concurrencies: []int{1, 4, 64}, Seed: 1}
	r, err := f.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	best := r.Classes[0].Best
	if len(best) != 2 || best[0].Engine != "large" || best[1].Engine != "small" || best[1].Above != best[0].To || math.Abs(best[1].To-200) > 1e-9 {
		t.Errorf("best: %+v", best)
	}
	if n := len(r.Classes[0].Curves[0].Points); n != 3 {
		t.Errorf("%d levels of three that were given", n)
	}
	if got, want := fmt.Sprint(r.says()), "[Highest throughput per GPU: small at some; large at some.]"; got != want {
		t.Error(got)
	}
}

// The front and the best engine at each interactivity, by trying every pair of points.
func TestFrontByBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var curves []FrontierCurve
		for e := range 1 + rng.IntN(4) {
			c := FrontierCurve{Engine: fmt.Sprint(e)}
			for range rng.IntN(8) {
				c.Points = append(c.Points, FrontierPoint{PerUser: float64(1 + rng.IntN(9)), OutputPerGPU: float64(1 + rng.IntN(9))})
			}
			markFront(c.Points)
			for _, p := range c.Points {
				beaten := false
				for _, q := range c.Points {
					beaten = beaten || q.PerUser >= p.PerUser && q.OutputPerGPU >= p.OutputPerGPU && (q.PerUser > p.PerUser || q.OutputPerGPU > p.OutputPerGPU)
				}
				if p.OnFront == beaten {
					t.Fatalf("%+v of %+v", p, c.Points)
				}
			}
			curves = append(curves, c)
		}
		best := bestStretches(curves, func(p *FrontierPoint) float64 { return p.OutputPerGPU })
		for x := 0.5; x < 11; x += 0.5 {
			most, by := 0.0, map[string]bool{}
			for _, c := range curves {
				for _, p := range c.Points {
					switch {
					case p.PerUser < x || p.OutputPerGPU < most:
					case p.OutputPerGPU > most:
						most, by = p.OutputPerGPU, map[string]bool{c.Engine: true}
					default:
						by[c.Engine] = true
					}
				}
			}
			at := ""
			for _, s := range best {
				if x > s.Above && x <= s.To {
					at += s.Engine
				}
			}
			if most == 0 && at != "" || most > 0 && !by[at] {
				t.Fatalf("at %v the best is %q, want one of %v of %+v: %+v", x, at, by, curves, best)
			}
		}
	}
}

// Of engines that are equal the first one is best, alone.
func TestEqualEngines(t *testing.T) {
	points := []FrontierPoint{{PerUser: 10, OutputPerGPU: 5, OnFront: true}, {PerUser: 5, OutputPerGPU: 10, OnFront: true}}
	best := bestStretches([]FrontierCurve{{Engine: "a", Points: points}, {Engine: "b", Points: points}}, func(p *FrontierPoint) float64 { return p.OutputPerGPU })
	if len(best) != 1 || best[0].Engine != "a" || best[0].Above != 0 || best[0].To != 10 || best[0].At.PerUser != 5 {
		t.Errorf("%+v", best)
	}
}

// Lengths are those of the class, the same for every engine, and others at another level.
func TestLengthClasses(t *testing.T) {
	for text, want := range map[string]string{"1024/8192": "uniform:820..1024 uniform:6554..8192", "8k/2": "uniform:6400..8000 uniform:2..2", "chat": chatLengths.Prompt + " " + chatLengths.Output} {
		c, err := ParseLengthClass(text)
		if got := c.Prompt + " " + c.Output; err != nil || got != want || c.Name != text {
			t.Errorf("%s: %s, %v", text, got, err)
		}
		a, err := c.rows(500, 1, 4)
		b, _ := c.rows(500, 1, 4)
		other, _ := c.rows(500, 1, 8)
		if err != nil || !reflect.DeepEqual(a, b) || text == "1024/8192" && reflect.DeepEqual(a, other) {
			t.Errorf("%s: rows differ, or do not: %v", text, err)
		}
		for _, r := range a {
			if text == "1024/8192" && (r.InputTokens < 820 || r.InputTokens > 1024 || *r.OutputTokens < 6554 || *r.OutputTokens > 8192) {
				t.Errorf("%d/%d tokens", r.InputTokens, *r.OutputTokens)
			}
		}
	}
	for _, text := range []string{"", "1024", "0/5", "5/1", "a/b", "5/", "1/2/3", "-5/5", "2M/5"} {
		if _, err := ParseLengthClass(text); err == nil || !strings.Contains(err.Error(), "PROMPT/OUTPUT") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestFrontierRefuses(t *testing.T) {
	tight := stepping("tight", 4)
	tight.Fleet.Engine.KVTokens = 128
	free := stepping("free", 4)
	free.Fleet.Engine.Costs = engine.Costs{}
	busy := stepping("busy", 2)
	busy.Fleet.Engine.MaxWaiting = 1
	one := func(e ...FrontierEngine) Frontier { return Frontier{Engines: e, Classes: []LengthClass{fixedLengths}} }
	for want, f := range map[string]Frontier{
		"engines and classes": {},
		"ascending order":     {Engines: []FrontierEngine{tight}, Classes: []LengthClass{fixedLengths}, Concurrencies: []int{2, 1}},
		"no engine serves any of these lengths: tight, fixed: requests are longer than the KV memory": one(tight),
		"free, fixed: the engine takes no time":                                                       one(free),
	} {
		if _, err := f.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	// What one engine does not serve is said, and the others go on.
	f := one(tight, busy)
	f.Concurrencies = []int{1, 3, 4, 5}
	r, err := f.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	curves := r.Classes[0].Curves
	if curves[0].Unserved == "" || len(curves[0].Points) != 0 || len(curves[1].Points) != 2 || curves[1].Stopped != "with 4 in flight the queue is full" {
		t.Errorf("%+v", curves)
	}
	if got := fmt.Sprint(r.cautions()); !strings.Contains(got, "fixed by tight: requests are longer than the KV memory") {
		t.Error(got)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	f = one(busy)
	if _, err := f.Run(ctx); err == nil {
		t.Error("a context that is over is not noticed")
	}
}

// The answer has few rows, whatever was crossed, and all there is to warn of; the page has a curve
// of every engine for every class.
func TestFrontierTextAndPage(t *testing.T) {
	var f Frontier
	for i := range 6 {
		e := stepping(fmt.Sprintf("roofline-of-a-long-name-%d", i), 1<<i)
		e.Fleet.Engine.Costs.DecodeSeq = engine.Picos(time.Millisecond) * engine.Picos(200*(7-i))
		e.Fleet.Engine.Costs.Step -= engine.Picos(time.Millisecond) * engine.Picos(1000*(5-i))
		e.Prices = Prices{PerGPUHour: 1, Watts: 100}
		e.Model, e.Bound, e.Assumed, e.DataSheet = fmt.Sprint(i), i%2 == 0, true, true
		if i%2 == 1 {
			e.Warning = strings.Repeat("slower than it could be ", 20)
		}
		f.Engines = append(f.Engines, e)
		f.Classes = append(f.Classes, LengthClass{fmt.Sprintf("%d/%d", 10+i, 20+i), fmt.Sprint(10 + i), fmt.Sprint(20 + i)})
	}
	r, err := f.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var short, long bytes.Buffer
	if err := r.Page().WriteText(&short, textpage.Options{Width: 80, Rest: "All levels: --details."}); err != nil {
		t.Fatal(err)
	}
	if err := r.Page().WriteText(&long, textpage.Options{Width: 80, Details: true}); err != nil {
		t.Fatal(err)
	}
	if strings.Count(short.String(), "\n10/20 ") == 0 || strings.Count(short.String(), "\n1") > 8 {
		t.Errorf("no rows, or too many\n%s", short.String())
	}
	if said := strings.Join(strings.Fields(short.String()), " "); strings.Count(said, strings.TrimSpace(f.Engines[1].Warning)) != 3 || strings.Contains(said, "…") {
		t.Errorf("a warning is cut\n%s", short.String())
	}
	for line := range strings.SplitSeq(short.String(), "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("more than 80 columns: %s", line)
		}
	}
	for _, want := range []string{"best at", "All levels: --details.", "and ", " more rows", "Bounds: ", "data sheet"} {
		if !strings.Contains(short.String(), want) {
			t.Errorf("no %q in\n%s", want, short.String())
		}
	}
	if n := strings.Count(long.String(), "with "); n < len(f.Engines)*len(f.Classes) {
		t.Errorf("details do not say why each curve ended\n%s", long.String())
	}
	p := r.Page()
	var html bytes.Buffer
	if err := p.Write(&html); err != nil {
		t.Fatal(err)
	}
	plots := p.Plots()
	if len(plots) != 4*len(f.Classes) {
		t.Errorf("%d plots", len(plots))
	}
	for _, plot := range plots {
		if len(plot.Series) != len(f.Engines) {
			t.Errorf("%s has %d curves", plot.Title, len(plot.Series))
		}
	}
}
