package hardware

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"reprise/trace/doc"
)

// A Setup is a model on a number of GPUs that share each layer.
type Setup struct {
	Model       Model
	GPU         GPU
	TP          int     // GPUs that share each layer (tensor parallel)
	DType       string  // of the weights, one of [DTypes]
	KVDType     string  // of the KV cache: auto, fp8 or bf16
	Efficiency  float64 // share of the peaks that is reached; 1 is the bound
	Utilization float64 // share of a GPU's memory that the server may take
	BatchTokens int     // most tokens of a step
	Seqs        int     // most sequences of a step
}

// DTypes are the types of weights, by the names that vLLM has for them.
func DTypes() []string { return []string{"bf16", "fp16", "fp8", "fp4", "int4"} }

// weightBytes are those of a weight, without scales.
func (s *Setup) weightBytes() float64 {
	switch s.DType {
	case "fp8":
		return 1
	case "fp4", "int4":
		return 0.5
	}
	return 2
}

// headBytes are those of a weight of the embedding and of the output layer, which
// quantized models keep in 16 bits.
const headBytes = 2

// Peak is the arithmetic of one GPU for the weights' type. What a GPU has no units for is computed in 16
// bits, as is a type of weights alone.
func (s *Setup) Peak() float64 {
	switch {
	case s.DType == "fp8" && s.GPU.FP8 > 0:
		return s.GPU.FP8
	case s.DType == "fp4" && s.GPU.FP4 > 0:
		return s.GPU.FP4
	}
	return s.GPU.BF16
}

// KVBytesPerToken are those that all GPUs together keep of a token, copies included.
func (s *Setup) KVBytesPerToken() float64 {
	return float64(s.TP) * s.kvBytesOn()
}

// kvBytesOn are those of one GPU; index keys are copied.
func (s *Setup) kvBytesOn() float64 {
	return float64(s.Model.kvValuesOn(s.TP))*s.kvBytes() + s.Model.indexBytes()
}

// KVReadPerToken are the bytes that a step reads, at the least, for each token that a sequence has: its KV, or of
// sparse attention the index key alone, since only a fixed number of tokens is attended to.
func (s *Setup) KVReadPerToken() float64 { return float64(s.TP) * s.kvReadOn() }

func (s *Setup) kvReadOn() float64 {
	if s.Model.Index.Layers > 0 {
		return s.Model.indexBytes()
	}
	return s.kvBytesOn()
}

// kvBytes are those of one number of the KV cache.
func (s *Setup) kvBytes() float64 {
	if s.KVDType == "fp8" {
		return 1
	}
	return 2
}

// Check says what of a setup cannot be.
func (s *Setup) Check() error {
	switch {
	case !slices.Contains(DTypes(), s.DType):
		return fmt.Errorf("no such type of weights: want one of %s", strings.Join(DTypes(), ", "))
	case !slices.Contains([]string{"auto", "bf16", "fp8"}, s.KVDType):
		return errors.New("no such type of KV cache: want one of auto, bf16, fp8")
	case s.TP < 1 || s.TP > 64:
		return errors.New("1 to 64 GPUs share a layer")
	case s.Model.Heads%s.TP != 0:
		return fmt.Errorf("%d GPUs cannot share %d attention heads: take a number that divides them",
			s.TP, s.Model.Heads)
	case !(s.Efficiency > 0 && s.Efficiency <= 1):
		return errors.New("an efficiency is above 0 and at most 1")
	case !(s.Utilization > 0 && s.Utilization <= 1):
		return errors.New("the share of GPU memory to take is above 0 and at most 1")
	case s.BatchTokens < 1 || s.Seqs < 1:
		return errors.New("a step has at least 1 token and 1 sequence")
	}
	return nil
}

// String names the setup for people, such as "llama on 8 × H100 SXM, fp8".
func (s *Setup) String() string {
	text := fmt.Sprintf("%s on %d × %s, %s", s.Model.Name, s.TP, s.GPU.Label, s.DType)
	if s.KVDType == "fp8" {
		text += ", KV fp8"
	}
	return text
}

// Memory is how a GPU's memory is divided, in bytes of one GPU.
type Memory struct {
	Total   float64 `json:"total_bytes"`
	Usable  float64 `json:"usable_bytes"` // Utilization of it
	Weights float64 `json:"weight_bytes"` // the share of this GPU
	// activations of the largest step, logits of sampling, what libraries take: an estimate
	Headroom float64 `json:"headroom_bytes"`
	KV       float64 `json:"kv_bytes"` // what is left; below 0 it does not fit
	KVToken  float64 `json:"kv_bytes_per_token"`
	KVTokens int     `json:"kv_tokens"` // that fit; of all GPUs, since each holds its share of every token
	// State is what recurrent layers take of each sequence beside its KV, out of the same memory; 0 without them.
	State float64 `json:"state_bytes_per_sequence,omitempty"`

	BatchTokens int `json:"max_num_batched_tokens"` // most tokens of the step that Headroom is for
	Seqs        int `json:"max_num_seqs"`           // most sequences of it
}

const (
	// reserved is what the driver keeps of the memory that it shows.
	reserved = 500 << 20
	// alone and together are what libraries take on one GPU, and on each of several that share
	// layers, whose buffers of NCCL are most of it: 0.25, and 2.07 to 2.13 GiB by the logs of
	// vLLM 0.19 on H100.
	alone, together = 0.27e9, 2.25e9
	// logitBytes are what sampling takes at its peak for each token of the vocabulary and each
	// sequence: the logits, and copies that are sorted. By the same logs it is 15.3; those of
	// vLLM 0.11 have 38 to 40.
	logitBytes = 15.3
)

// StepLimits are the most tokens and the most sequences of a step that a server of vLLM has on a
// GPU unless it is told others (vllm/engine/arg_utils.py): of 70 GiB and more, but for an A100,
// more than of others.
func (g *GPU) StepLimits() (tokens, seqs int) {
	if g.MemoryMiB >= 70<<10 && !strings.HasPrefix(g.Name, "a100") {
		return 8192, 1024
	}
	return 2048, 256
}

// activations are the most that a GPU needs beside weights and KV in a step: while the tokens
// go through a layer, or while the sequences are sampled, whichever is more; and what a mixture
// has set aside for the tokens' ways through its experts.
func (s *Setup) activations() float64 {
	m, tokens, tp := &s.Model, float64(s.BatchTokens), float64(s.TP)
	width := float64(m.Experts.Shared)
	if m.denseLayers() > 0 {
		width = max(width, float64(m.Intermediate))
	}
	// Of each token the residual stream and what attention makes of it, some four times its
	// width, and the gate, up and product of an MLP, in 16 bits.
	layer := tokens * 2 * (4*float64(m.Hidden) + 3*width/tp)
	experts := 0.0
	if m.MoELayers > 0 { // the output of each expert that a token takes, and its gate and up
		experts = tokens * 2 * float64(m.Experts.PerToken) * (float64(m.Hidden) + 2*float64(m.Experts.Intermediate)/tp)
	}
	return max(layer, float64(s.Seqs)*float64(m.Vocab)*logitBytes) + experts
}

// Memory computes what is left for KV.
func (s *Setup) Memory() Memory {
	p, m := s.Model.Params(), &s.Model
	tp := float64(s.TP)
	body := p.Rest + float64(m.MoELayers)*float64(m.Experts.Routed)*p.Expert
	out := Memory{Total: float64(s.GPU.MemoryMiB)*(1<<20) - reserved}
	out.Usable = out.Total * s.Utilization
	out.Weights = ((p.Embedding+p.Head)*headBytes + body*s.weightBytes()) / tp
	out.BatchTokens, out.Seqs = s.BatchTokens, s.Seqs
	out.Headroom = s.activations() + alone
	if s.TP > 1 {
		out.Headroom = s.activations() + together
	}
	out.KV = out.Usable - out.Weights - out.Headroom
	out.KVToken, out.State = s.kvBytesOn(), m.StateBytes()/tp
	out.KVTokens = int(max(out.KV, 0) / out.KVToken)
	return out
}

// gb writes bytes in decimal gigabytes.
func gb(bytes float64) string { return fmt.Sprintf("%.1f GB", bytes/1e9) }

// String says how the memory is divided.
func (m *Memory) String() string {
	state := ""
	if m.State > 0 {
		state = fmt.Sprintf(" and %.1f MB of state a sequence, as much as %s tokens", m.State/1e6,
			doc.Count(int64(m.State/m.KVToken)))
	}
	return fmt.Sprintf("of %s, %s may be used; weights take %s, a step of %s tokens and %s sequences some %s, KV has "+
		"%s at %.1f kB a token%s",
		gb(m.Total), gb(m.Usable), gb(m.Weights), doc.Count(int64(m.BatchTokens)), doc.Count(int64(m.Seqs)),
		gb(m.Headroom), gb(max(m.KV, 0)), m.KVToken/1e3, state)
}

// Fit returns the memory, or as an error what is missing and what would fit: fewer
// bytes of a weight, or more GPUs.
func (s *Setup) Fit() (Memory, error) {
	m := s.Memory()
	const least = 16 // one block
	if m.KVTokens >= least {
		return m, nil
	}
	why := fmt.Sprintf("%s does not fit: of %s of each GPU, %s may be used; weights take %s and a step of %s tokens "+
		"and %s sequences some %s, so %s are missing for KV",
		s, gb(m.Total), gb(m.Usable), gb(m.Weights), doc.Count(int64(m.BatchTokens)), doc.Count(int64(m.Seqs)),
		gb(m.Headroom), gb(least*m.KVToken-m.KV))
	var fits []string
	for tp := s.TP + 1; tp <= 64; tp++ {
		more := *s
		more.TP = tp
		if more.Check() == nil && more.Memory().KVTokens >= least {
			fits = append(fits, fmt.Sprintf("%d GPUs", tp))
			break
		}
	}
	for _, d := range []string{"fp8", "int4"} {
		less := *s
		if less.DType = d; less.weightBytes() < s.weightBytes() && less.Memory().KVTokens >= least {
			fits = append(fits, d+" weights")
			break
		}
	}
	if len(fits) > 0 {
		why += "; what fits: " + strings.Join(fits, ", or ")
	}
	return m, errors.New(why)
}

// picos rounds seconds up to whole picoseconds: a bound is not to be undercut.
func picos(seconds float64) int64 { return int64(math.Ceil(seconds * 1e12)) }
