package engine

import (
	"errors"
	"math"
)

// A Roofline is what is known of a model and of the hardware it runs on. Bytes and
// rates are decimal: 1 GB/s is 1e9 bytes per second.
type Roofline struct {
	// of the weights that a token reads; of a mixture of experts, the active ones
	Params float64 `json:"params"`
	// of Params, those of the output layer, which only the last token of a prompt needs; 0 is not known: all need all
	Head          float64 `json:"head_params,omitempty"`
	BytesPerParam float64 `json:"bytes_per_param"`       // 2 of BF16, 1 of FP8
	Bandwidth     float64 `json:"bandwidth_bytes_per_s"` // of one GPU's memory, peak
	// of one GPU, peak at the precision of the weights; 0 is not known
	FLOPS      float64 `json:"flops,omitempty"`
	GPUs       int     `json:"gpus"`                         // that share each layer (tensor parallel)
	Efficiency float64 `json:"efficiency"`                   // share of the peaks that is reached
	KVPerToken float64 `json:"kv_bytes_per_token,omitempty"` // of all layers
	Context    float64 `json:"context_tokens,omitempty"`     // of a sequence, on average
	// that recurrent layers keep of a sequence; each token reads and writes them
	State  float64 `json:"state_bytes_per_sequence,omitempty"`
	Batch  float64 `json:"batch"` // sequences that decode together
	Prompt float64 `json:"prompt_tokens,omitempty"`
}

// A Prediction is what bandwidth and arithmetic allow. Decoding a token reads all
// weights once for the whole batch, and the KV of each sequence:
//
//	TPOT = (params × bytes + batch × (context × KV bytes + 2 × state)) ÷ (GPUs × bandwidth × efficiency)
//	TPOT = 2 × params × batch ÷ (GPUs × FLOPS × efficiency), where that is more
//	TTFT = 2 × ((params − head) × prompt + head) ÷ (GPUs × FLOPS × efficiency), but no less than a TPOT
//
// It has no attention arithmetic, no communication between GPUs, no queue and no host:
// it is a floor. The form is of Williams, Waterman and Patterson, "Roofline: an
// insightful visual performance model" (2009), and the 2 FLOP per parameter and token
// of Kaplan et al., "Scaling laws for neural language models" (2020).
type Prediction struct {
	Roofline
	WeightBytes float64  `json:"weight_bytes"`
	KVBytes     float64  `json:"kv_bytes"` // of the batch, and twice its states: each is read and written
	TPOTMS      float64  `json:"tpot_ms"`
	StreamPerS  float64  `json:"output_tokens_per_s_per_stream"`
	OutputPerS  float64  `json:"output_tokens_per_s"`
	Bound       string   `json:"decode_bound"` // memory or compute
	TTFTMS      *float64 `json:"ttft_ms"`      // null without FLOPS and a prompt
	PromptPerS  *float64 `json:"prompt_tokens_per_s"`
	// sequences from which decoding is bound by compute; null without FLOPS, and where KV alone takes longer
	ComputeBoundB *float64 `json:"compute_bound_batch"`
}

// Predict computes the floor.
func (r Roofline) Predict() (Prediction, error) {
	for _, v := range []float64{r.Params, r.BytesPerParam, r.Bandwidth, r.Efficiency, r.Batch} {
		if !(v > 0) || math.IsInf(v, 0) {
			return Prediction{}, errors.New("parameters, their bytes, bandwidth, efficiency and batch are above 0")
		}
	}
	if r.GPUs < 1 || r.Efficiency > 1 || !(r.FLOPS >= 0) || !(r.KVPerToken >= 0) || !(r.Context >= 0) ||
		!(r.Prompt >= 0) || !(r.Head >= 0 && r.Head < r.Params) {
		return Prediction{}, errors.New("an efficiency is at most 1, GPUs are 1 or more, and nothing is below 0")
	}
	p := Prediction{Roofline: r, WeightBytes: r.Params * r.BytesPerParam,
		KVBytes: r.Batch * (r.Context*r.KVPerToken + 2*r.State), Bound: "memory"}
	bandwidth, flops := float64(r.GPUs)*r.Bandwidth*r.Efficiency, float64(r.GPUs)*r.FLOPS*r.Efficiency
	tpot := (p.WeightBytes + p.KVBytes) / bandwidth
	if flops > 0 {
		if compute := 2 * r.Params * r.Batch / flops; compute > tpot {
			tpot, p.Bound = compute, "compute"
		}
		if each := 2*r.Params/flops - (r.Context*r.KVPerToken+2*r.State)/bandwidth; each > 0 {
			p.ComputeBoundB = new(p.WeightBytes / bandwidth / each)
		}
		if r.Prompt > 0 {
			perS := flops / (2 * (r.Params - r.Head))
			ms := max(r.Prompt/perS+2*r.Head/flops, tpot) * 1e3
			p.PromptPerS, p.TTFTMS = &perS, &ms
		}
	}
	p.TPOTMS, p.StreamPerS, p.OutputPerS = tpot*1e3, 1/tpot, r.Batch/tpot
	return p, nil
}
