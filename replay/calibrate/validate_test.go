package calibrate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"reprise/replay/engine"
	"reprise/trace/textpage"
)

// Three runs of a load are averaged: an error above the limit counts where it is above twice
// their spread, and a percentile with few values above it is not judged.
func TestValidationHoldsAgainstLimitAndSpread(t *testing.T) {
	c := engine.DefaultConfig()
	c.Costs = knownCosts
	var records []*Record
	for i := range 3 {
		records = append(records, level(t, c, fmt.Sprintf("r%d", i), 60, 5, 0, uint64(i+1)))
	}
	same := &Calibration{Engine: c}
	v, err := same.Validate(records, 0.01)
	if err != nil || !v.Holds() || len(v.Levels) != 1 || v.Levels[0].Runs != 3 || v.Levels[0].Requests != 180 {
		t.Fatalf("of the same engine: %+v, %v", v, err)
	}
	l := v.Levels[0]
	if slices.Contains(l.Judged, "p95_ttft") || !slices.Contains(l.Judged, "p50_ttft") || !slices.Contains(l.Judged, "p99_itl") {
		t.Errorf("of 60 requests a run, with thousands of gaps, are judged: %v", l.Judged)
	}
	// The spread is that of three means, computed again.
	var means []float64
	for _, r := range records {
		sum := 0.0
		for _, q := range r.requests {
			sum += q.ttft / 60
		}
		means = append(means, sum)
	}
	m := (means[0] + means[1] + means[2]) / 3
	want := ((means[0]-m)*(means[0]-m) + (means[1]-m)*(means[1]-m) + (means[2]-m)*(means[2]-m)) / 2 / (m * m)
	f, _ := l.Figure("mean_ttft")
	if got := f.Spread * f.Spread; got < want*0.999 || got > want*1.001 {
		t.Errorf("the spread is %g², want %g²", got, want)
	}
	slower := &Calibration{Engine: c}
	slower.Engine.Costs.Step = c.Costs.Step * 3 / 2
	if v, err = slower.Validate(records, 0.1); err != nil || v.Holds() || !slices.Contains(v.Levels[0].Beyond, "p50_itl") {
		t.Fatalf("of an engine with steps half as long again: %+v, %v", v, err)
	}
	var b strings.Builder
	if err := v.Document().WriteText(&b, textpage.Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(b.String(), "\n"); lines > textpage.AnswerLines || !strings.HasPrefix(b.String(), "The engine predicts these runs not within 10 % or twice the spread between them;") || !strings.Contains(b.String(), "beyond") {
		t.Errorf("%d lines:\n%s", lines, &b)
	}
	// An error that is smaller than the runs differ is not beyond.
	wide := Validated{Level: Level{Runs: 3, Figures: []Figure{{Metric: "mean_ttft", Measured: 100, Predicted: 120, Values: 300, Spread: 0.11}}}}
	if off := wide.Figures[0]; off.Error() <= 0.1 || off.Error() > spreads*off.Spread {
		t.Errorf("%+v", off)
	}
}

// One request at a time does not tell what decoding many costs: the cost is 0, and the design
// asks for higher loads, with a command.
func TestMissingLoads(t *testing.T) {
	c := engine.DefaultConfig()
	c.Costs = knownCosts
	low := []*Record{level(t, c, "low", 40, 0, 1, 1)}
	cal, err := Fit(t.Context(), low, Stated{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", cal.Design)
	for _, p := range cal.Parameters {
		t.Logf("%+v", p)
	}
	if len(cal.Design.Rates) == 0 || len(cal.Design.Commands) == 0 || !strings.HasPrefix(cal.Design.Commands[0], "reprise sweep ") {
		t.Fatalf("%+v", cal.Design)
	}
	if top := slices.Max(cal.Design.Rates); top < 5 {
		t.Errorf("the highest rate that is asked for is %g, and the engine can do some 20", top)
	}
	i := slices.IndexFunc(cal.Parameters, func(p Parameter) bool { return p.Name == "decode-seq" })
	if p := cal.Parameters[i]; p.From != fromDefault || p.Value != "0ps" {
		t.Errorf("one request at a time tells what decoding many costs: %+v", p)
	}
}
