package engine

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// The documents' example: 8 B parameters of 2 bytes at 600 GB/s are 37 tokens a second.
func TestPredict(t *testing.T) {
	r := Roofline{Params: 8e9, BytesPerParam: 2, Bandwidth: 600e9, GPUs: 1, Efficiency: 1, Batch: 1}
	p, err := r.Predict()
	if err != nil || math.Abs(p.StreamPerS-37.5) > 1e-9 || p.Bound != "memory" || p.TTFTMS != nil {
		t.Errorf("%+v, %v", p, err)
	}
	r.KVPerToken, r.Context, r.Batch = 100e3, 2000, 40 // 8 GB of KV beside 16 GB of weights
	if p, _ = r.Predict(); math.Abs(p.TPOTMS-40) > 1e-9 || math.Abs(p.OutputPerS-1000) > 1e-9 {
		t.Errorf("with KV: %+v", p)
	}
	r.GPUs, r.Efficiency = 4, .5
	if p, _ = r.Predict(); math.Abs(p.TPOTMS-20) > 1e-9 {
		t.Errorf("of 4 GPUs at half: %+v", p)
	}
	// At 100 TFLOPS 16 GFLOP take 0.16 ms a sequence, and 16 GB take 26.7 ms: 167 sequences.
	r = Roofline{Params: 8e9, BytesPerParam: 2, Bandwidth: 600e9, FLOPS: 100e12, GPUs: 1, Efficiency: 1, Batch: 200, Prompt: 1000}
	if p, _ = r.Predict(); p.Bound != "compute" || math.Abs(p.TPOTMS-32) > 1e-9 || math.Abs(*p.ComputeBoundB-500./3) > 1e-9 || math.Abs(*p.TTFTMS-160) > 1e-9 {
		t.Errorf("bound by compute: %+v", p)
	}
	for _, bad := range []Roofline{{}, {Params: math.NaN(), BytesPerParam: 1, Bandwidth: 1, GPUs: 1, Efficiency: 1, Batch: 1}, {Params: 1, BytesPerParam: 1, Bandwidth: 1, GPUs: 1, Efficiency: 1.1, Batch: 1}} {
		if _, err := bad.Predict(); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// The warning of a preset is what capacity predict says of its hardware: nothing but
// h100-llama-70b decodes at less than half the speed that memory allows, and nothing
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
		case times < 1:
			t.Errorf("%s takes %.3g ms a token; memory allows no less than %.3g ms", p.Name, one.ITLP50, floor.TPOTMS)
		case (times > 2) != (p.Warning != "") || p.Warning != p.Warn(p.Engine.Costs):
			t.Errorf("%s takes %.2g times its floor, and its warning is %q", p.Name, times, p.Warning)
		case times > 2 && !strings.Contains(p.Warning, fmt.Sprintf("decodes %.2g times slower", times)):
			t.Errorf("%s takes %.2g times its floor, and its warning says %q", p.Name, times, p.Warning)
		}
	}
	p, err := OpenPreset("h100-llama-70b")
	if err != nil || !strings.Contains(p.Warning, "6.9 times slower than the memory of its 8 × H100") {
		t.Errorf("%v: %q", err, p.Warning)
	}
	p.Hardware.GPUs = 1 // the speed that its source gives is that of one
	if p.Warning = p.Warn(p.Engine.Costs); p.Warning != "" {
		t.Errorf("of one H100: %q", p.Warning)
	}
}
