package engine

import (
	"flag"
	"math"
	"slices"
	"strings"
	"testing"
)

var refit = flag.String("refit", "", "name of a preset to fit anew; logs the costs")

var refitStatic = flag.Bool("static", false, "with -refit: the costs of static batching, from the rows of it")

var evaluations = flag.Int("evaluations", 150, "of each of the three rounds of -refit")

// Fitting begins at the costs of the preset. It runs on demand; what it gives stands in
// presets.go.
func TestRefit(t *testing.T) {
	if *refit == "" {
		t.Skip("no -refit NAME")
	}
	p, err := OpenPreset(*refit)
	if err != nil {
		t.Fatal(err)
	}
	start := p.Engine.Costs
	if *refitStatic {
		start = *p.Static
	}
	p.published = slices.DeleteFunc(slices.Clone(p.published), func(of published) bool {
		c := p.Engine
		if of.engine != nil {
			of.engine(&c)
		}
		return of.beyond || p.Static != nil && *refitStatic != (c.Batching == staticBatching)
	})
	at := func(c Costs) Preset {
		q := p
		q.Engine.Costs = c
		if *refitStatic {
			q.Static = &c
		}
		return q
	}
	costs, rmse, err := FitCosts(start, start.Names(), *evaluations, 0.6, func(c Costs) float64 {
		points, err := at(c).Fit()
		if err != nil {
			return 1e9
		}
		return RMSE(Fitted(points))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("rmse %.4f: %s", rmse, costs)
	points, _ := at(costs).Fit()
	for _, f := range points {
		t.Logf("%-70s %-16s %8.1f %8.1f %+6.1f %%", f.Load, f.Metric, f.Published, f.Simulated, 100*f.Error())
	}
}

// What the fit of each preset comes to, over all figures and over the fitted ones; the
// sweep of concurrency is held more tightly, metric by metric.
func TestPresetFit(t *testing.T) {
	limits := map[string]struct{ all, rmse, worst float64 }{
		"l4-qwen2.5-0.5b": {0.267, 0.065, 0.20}, "document-h100-llama-70b": {0.849, 0.22, 0.50}, "t4-llama-3.2-3b": {0.060, 0.023, 0.04},
		"rtx5080-llama-3.2-3b": {0.144, 0.144, 0.37}, "rtx5080-llama-3.2-3b-paged": {1.145, 0.181, 0.39},
		"roofline-8xh100-llama-70b": {}, // a bound: nothing was published to fit it to
	}
	for _, p := range Presets() {
		points, err := p.Fit()
		if err != nil {
			t.Fatal(err)
		}
		limit, ok := limits[p.Name]
		if all, rmse := RMSE(points), RMSE(Fitted(points)); !ok || math.Abs(all-limit.all) > 0.001 || math.Abs(rmse-limit.rmse) > 0.001 {
			t.Errorf("%s: root mean square error %.4f, of the fitted points %.4f", p.Name, all, rmse)
		}
		for _, f := range points {
			if f.Fitted && !(math.Abs(f.Error()) <= limit.worst) {
				t.Errorf("%s, %s: %s is %.1f; published is %.1f", p.Name, f.Load, f.Metric, f.Simulated, f.Published)
			}
			if p.Name == "l4-qwen2.5-0.5b" && f.Fitted && f.Metric != "TTFT p50, ms" && math.Abs(f.Error()) > 0.15 {
				t.Errorf("%s: %s is %.1f; published is %.1f", f.Load, f.Metric, f.Simulated, f.Published)
			}
		}
		if again, err := OpenPreset(p.Name); err != nil || again.Engine != p.Engine {
			t.Errorf("%s is not found by its name: %v", p.Name, err)
		}
	}
	if _, err := OpenPreset("none"); err == nil {
		t.Error("a preset that there is not is found")
	}
}

// The log that the RTX 5080's presets are from has five workloads, under static and
// continuous batching and with paged memory: all are shown, and all but one fitted.
func TestEveryWorkloadOfTheSourceIsShown(t *testing.T) {
	for name, fitted := range map[string]int{"rtx5080-llama-3.2-3b": 60, "rtx5080-llama-3.2-3b-paged": 24} {
		p, err := OpenPreset(name)
		if err != nil {
			t.Fatal(err)
		}
		points, err := p.Fit()
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string]int{}
		for _, f := range points {
			rows[strings.TrimSuffix(f.Load, ", static")]++
		}
		if n := len(Fitted(points)); len(rows) != 5 || n != fitted || name == "rtx5080-llama-3.2-3b" && RMSE(points) > 0.16 {
			t.Errorf("%s: %d figures of %v, %d fitted, error %.3f", name, len(points), rows, n, RMSE(points))
		}
		for load, n := range rows {
			if n != len(points)/5 {
				t.Errorf("%s, %s has %d figures: one way of batching is not there", name, load, n)
			}
		}
	}
}

// Static batching has the costs that were fitted to it, and other costs stay as they are.
func TestStaticBatchingHasItsCosts(t *testing.T) {
	p, err := OpenPreset("rtx5080-llama-3.2-3b")
	if err != nil {
		t.Fatal(err)
	}
	c := p.Engine
	if got := p.Batched(c); got != c {
		t.Errorf("continuous batching: %+v", got)
	}
	c.Batching = staticBatching
	if got := p.Batched(c); got.Costs != *p.Static || got.Costs == p.Engine.Costs {
		t.Errorf("static batching: %s", got.Costs)
	}
	p.Static = nil
	if got := p.Batched(c); got != c {
		t.Errorf("without costs of static batching: %+v", got)
	}
}

// A closed loop hides what an open one shows: with up to as many clients as the
// engine has places, the time to the first token stays flat, while in the
// open loop its p99 leaves 500 ms between 20 and 25 requests a second and goes on
// rising.
func TestOpenAndClosedLoop(t *testing.T) {
	p, err := OpenPreset("document-h100-llama-70b")
	if err != nil {
		t.Fatal(err)
	}
	points, err := p.Fit()
	if err != nil {
		t.Fatal(err)
	}
	var p99 []float64 // by rate: 1, 5, 10, 15, 20, 25, 30, 35, 40
	for _, f := range points {
		if f.Metric == "TTFT p99, ms" && len(p99) < 9 { // the second curve comes after
			p99 = append(p99, f.Simulated)
		}
	}
	if len(p99) != 9 || !slices.IsSorted(p99) || p99[4] > 500 || p99[5] < 500 || p99[6] < 5*p99[5] || p99[8] < 20_000 {
		t.Errorf("the p99 of TTFT in the open loop is %.0f ms", p99)
	}
	for _, concurrency := range []int{1, 16, 64, 128, 256} {
		r, err := closedLoop{Concurrency: concurrency, Requests: max(12*concurrency, 100), Prompt: chatPrompt, Output: chatOutput, Seed: 1}.Run(p.Engine)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("closed loop of %d: TTFT p50 %.0f ms at %.0f output tokens/s", concurrency, r.TTFTP50, r.OutputPerS)
		if r.TTFTP50 > 130 {
			t.Errorf("in a closed loop of %d the p50 of TTFT is %.0f ms", concurrency, r.TTFTP50)
		}
	}
}
