package simserver

import (
	"math"
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
