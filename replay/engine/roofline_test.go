package engine

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

// The warning of a preset is what capacity predict says of its hardware: nothing but
// document-h100-llama-70b decodes at less than half the speed that memory allows, and nothing
// decodes faster.
func TestPresetWarning(t *testing.T) {
	for _, p := range Presets() {
		floor, err := p.Hardware.Predict()
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		one, err := closedLoop{Concurrency: 1, Requests: 1, Prompt: exactly(1), Output: exactly(50)}.Run(p.Engine)
		if err != nil {
			t.Fatal(err)
		}
		times := one.ITLP50 / floor.TPOTMS
		t.Logf("%s: %.3g ms a token, floor %.3g ms", p.Name, one.ITLP50, floor.TPOTMS)
		switch {
		case p.Setup != nil: // it is the floor, and its warning says so
		case times < 1:
			t.Errorf("%s takes %.3g ms a token; memory allows no less than %.3g ms", p.Name, one.ITLP50, floor.TPOTMS)
		case (times > 2) != (p.Warning != "") || p.Warning != p.Warn(p.Engine.Costs):
			t.Errorf("%s takes %.2g times its floor, and its warning is %q", p.Name, times, p.Warning)
		case times > 2 && !strings.Contains(p.Warning, fmt.Sprintf("decodes %.2g times slower", times)):
			t.Errorf("%s takes %.2g times its floor, and its warning says %q", p.Name, times, p.Warning)
		}
	}
	p, err := OpenPreset("document-h100-llama-70b")
	if err != nil || !strings.Contains(p.Warning, "6.9 times slower than the memory of its 8 × H100") {
		t.Errorf("%v: %q", err, p.Warning)
	}
	p.Hardware.GPUs = 1 // the speed that its source gives is that of one
	if p.Warning = p.Warn(p.Engine.Costs); p.Warning != "" {
		t.Errorf("of one H100: %q", p.Warning)
	}
}

// What is said of a roofline that cannot be, and the last values that can.
func TestRooflineLimits(t *testing.T) {
	usual := Roofline{Params: 1e9, BytesPerParam: 2, Bandwidth: 1e12, GPUs: 1, Efficiency: 1, Batch: 1}
	const above, most = "parameters, their bytes, bandwidth, efficiency and batch are above 0", "an efficiency is at most 1, GPUs are 1 or more, and nothing is below 0"
	for _, row := range []struct {
		change func(*Roofline)
		want   string
	}{
		{func(r *Roofline) {}, "<nil>"},
		{func(r *Roofline) { r.Params = 0 }, above},
		{func(r *Roofline) { r.Params = math.Inf(1) }, above},
		{func(r *Roofline) { r.BytesPerParam = -1 }, above},
		{func(r *Roofline) { r.Bandwidth = math.Inf(1) }, above},
		{func(r *Roofline) { r.Efficiency = math.NaN() }, above},
		{func(r *Roofline) { r.Batch = 0 }, above},
		{func(r *Roofline) { r.GPUs = 0 }, most},
		{func(r *Roofline) { r.GPUs = 2 }, "<nil>"},
		{func(r *Roofline) { r.Efficiency = 1.01 }, most},
		{func(r *Roofline) { r.FLOPS = -1 }, most},
		{func(r *Roofline) { r.FLOPS = math.NaN() }, most},
		{func(r *Roofline) { r.KVPerToken = -1 }, most},
		{func(r *Roofline) { r.Context = -1 }, most},
		{func(r *Roofline) { r.Prompt = -1 }, most},
		{func(r *Roofline) { r.Params = 1e-9 }, "<nil>"},
	} {
		r := usual
		row.change(&r)
		if p, err := r.Predict(); fmt.Sprint(err) != row.want || err != nil && !reflect.DeepEqual(p, Prediction{}) {
			t.Errorf("%+v: got %+v, %v; want %s", r, p, err, row.want)
		}
	}
}

// The whole of predictions, worked out by hand.
func TestPredictions(t *testing.T) {
	number := func(v float64) *float64 { return &v }
	for name, row := range map[string]struct{ r, want Prediction }{
		// 2 GB of weights and 4 × 500 × 250 kB of KV at 2 × 1 TB/s × 0.5 take 2.5 ms; 4 × 2 GFLOP
		// at 2 × 10 TFLOPS × 0.5 take 0.8 ms, and 1,000 tokens of prompt 200 ms. Each sequence adds
		// 0.2 ms of compute and 0.125 ms of KV, so compute leads from 2 ms ÷ 0.075 ms.
		"bound by memory": {Prediction{Roofline: Roofline{Params: 1e9, BytesPerParam: 2, Bandwidth: 1e12, FLOPS: 1e13, GPUs: 2, Efficiency: 0.5, KVPerToken: 250e3, Context: 500, Batch: 4, Prompt: 1000}},
			Prediction{WeightBytes: 2e9, KVBytes: 5e8, TPOTMS: 2.5, StreamPerS: 400, OutputPerS: 1600, Bound: "memory", TTFTMS: number(200), PromptPerS: number(5000), ComputeBoundB: number(2 / 0.075)}},
		// 100 of them: 20 ms of compute, 2 + 12.5 of memory.
		"bound by compute": {Prediction{Roofline: Roofline{Params: 1e9, BytesPerParam: 2, Bandwidth: 1e12, FLOPS: 1e13, GPUs: 2, Efficiency: 0.5, KVPerToken: 250e3, Context: 500, Batch: 100, Prompt: 1}},
			Prediction{WeightBytes: 2e9, KVBytes: 12.5e9, TPOTMS: 20, StreamPerS: 50, OutputPerS: 5000, Bound: "compute", TTFTMS: number(20), PromptPerS: number(5000), ComputeBoundB: number(2 / 0.075)}},
		// KV alone takes as long as compute: it never leads.
		"never by compute": {Prediction{Roofline: Roofline{Params: 1e9, BytesPerParam: 2, Bandwidth: 1e12, FLOPS: 1e13, GPUs: 1, Efficiency: 1, KVPerToken: 200e3, Context: 1000, Batch: 10}},
			Prediction{WeightBytes: 2e9, KVBytes: 2e9, TPOTMS: 4, StreamPerS: 250, OutputPerS: 2500, Bound: "memory"}},
		"without arithmetic": {Prediction{Roofline: Roofline{Params: 1e9, BytesPerParam: 1, Bandwidth: 1e12, GPUs: 1, Efficiency: 1, Batch: 1, Prompt: 10}},
			Prediction{WeightBytes: 1e9, TPOTMS: 1, StreamPerS: 1000, OutputPerS: 1000, Bound: "memory"}},
	} {
		got, err := row.r.Roofline.Predict()
		if err != nil {
			t.Fatal(err)
		}
		row.want.Roofline = row.r.Roofline
		show := func(p Prediction) string {
			text := fmt.Sprintf("%+v %.6g %.6g %.6g %.6g %.6g %s", p.Roofline, p.WeightBytes, p.KVBytes, p.TPOTMS, p.StreamPerS, p.OutputPerS, p.Bound)
			for _, v := range []*float64{p.TTFTMS, p.PromptPerS, p.ComputeBoundB} {
				if v == nil {
					text += " null"
				} else {
					text += fmt.Sprintf(" %.6g", *v)
				}
			}
			return text
		}
		if show(got) != show(row.want) {
			t.Errorf("%s: got %s\nwant %s", name, show(got), show(row.want))
		}
	}
}
