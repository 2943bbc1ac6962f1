package hardware

// A Floor is the least time, in picoseconds, that the parts of a step take. A step takes
// at least
//
//	max(Weights + different experts × Expert + KV tokens × KVToken,
//	    prompt tokens × PrefillToken + sequences that decode × DecodeSeq + pairs × Attention ÷ 2^20)
//
// the time to read memory, and the time to compute. Pairs are those of a prompt token and
// a token that it attends to.
type Floor struct {
	Weights      int64 // reading all that every token needs, once
	Expert       int64 // reading one routed expert of every layer that has them
	KVToken      int64 // reading the KV of one token, or attending to it where that takes longer
	PrefillToken int64 // computing one token of a prompt, its all-reduces among the GPUs included
	DecodeSeq    int64 // computing one token of an answer, its output layer included
	Attention    int64 // attending to 2^20 tokens
}

// Floor computes the least times from the peaks and the efficiency. A weight takes two
// operations (Kaplan et al., "Scaling laws for neural language models", 2020), and memory
// and arithmetic overlap within a step (Williams, Waterman and Patterson, "Roofline",
// 2009). Attention, a state or an MLP ends in an all-reduce of its tokens' residual stream; every GPU sends
// and receives at least (GPUs − 1) ÷ GPUs of it, and nothing is computed meanwhile.
func (s *Setup) Floor() Floor {
	p, m := s.Model.Params(), &s.Model
	gpus := float64(s.TP) * s.Efficiency
	bandwidth, flops := s.GPU.Bandwidth*gpus, s.Peak()*gpus
	attention := s.GPU.BF16 * gpus
	if s.KVDType == "fp8" && s.GPU.FP8 > 0 {
		attention = s.GPU.FP8 * gpus
	}
	moe := float64(m.MoELayers)
	reduce := float64(m.blocks()) * float64(m.Hidden) * 2 * float64(s.TP-1) / float64(
		s.TP) / (s.GPU.Link * s.Efficiency)
	token := 2*(p.Rest+moe*float64(m.Experts.PerToken)*p.Expert)/flops + reduce
	head := 2 * p.sampled(m) / (s.GPU.BF16 * gpus)
	f := Floor{
		Weights:      picos((p.sampled(m)*headBytes + p.Rest*s.weightBytes()) / bandwidth),
		Expert:       picos(moe * p.Expert * s.weightBytes() / bandwidth),
		PrefillToken: picos(token),
		DecodeSeq:    picos(token + head),
		Attention:    picos(m.pairFLOPs() * (1 << 20) / attention),
	}
	read := s.kvReadOn() / (s.GPU.Bandwidth * s.Efficiency)
	f.KVToken = picos(max(read, m.decodePairFLOPs()/attention))
	return f
}

// Bytes of what a token reads, on average: of the weights of all GPUs together, for so
// many tokens in a step.
func (s *Setup) ReadBytes(tokens int) float64 {
	p, m := s.Model.Params(), &s.Model
	return p.sampled(m)*headBytes + (p.Rest+p.routed(m, tokens))*s.weightBytes()
}
