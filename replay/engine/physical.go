package engine

import (
	"fmt"
	"math"

	"reprise/replay/hardware"
)

// newRoofline is an engine that takes exactly the least time that the data sheet of its
// hardware allows for each step, at the setup's efficiency, with the KV memory that is
// left beside the weights. Everything else is as in like. A real engine also has a host,
// kernels to launch and a network: no real one is faster than one at efficiency 1.
func newRoofline(s hardware.Setup, like Config) (Config, hardware.Memory, error) {
	s.BatchTokens, s.Seqs = like.MaxBatchTokens, like.MaxSeqs
	if err := s.Check(); err != nil {
		return like, hardware.Memory{}, err
	}
	m, err := s.Fit()
	if err != nil {
		return like, m, err
	}
	f := s.Floor()
	like.KVTokens = m.KVTokens
	like.Experts, like.ExpertsPerToken = 0, 0
	if f.Expert > 0 {
		like.Experts, like.ExpertsPerToken = s.Model.Experts.Routed, s.Model.Experts.PerToken
	}
	like.Costs = Costs{Step: Picos(f.Weights), KVToken: Picos(f.KVToken), PrefillToken: Picos(f.PrefillToken),
		DecodeSeq: Picos(f.DecodeSeq), Attention: Picos(f.Attention), Expert: Picos(f.Expert)}
	return like, m, like.check()
}

// RooflinePreset is a preset that nothing was measured for: an engine made by
// [newRoofline].
func RooflinePreset(name string, s hardware.Setup, like Config) (Preset, error) {
	c, _, err := newRoofline(s, like)
	if err != nil {
		return Preset{}, err
	}
	p := Preset{Name: name, Model: s.Model.Name, Hardware: FloorOf(&s, 1),
		Cards: fmt.Sprintf("%d × %s", s.TP, s.GPU.Label), GPU: s.GPU.Name, Setup: &s, Engine: c,
		About: "The least time that the data sheet allows: no measurement, and no published figure to fit. KV is " +
			"what a server would have left beside the weights."}
	p.Warning = p.Warn(c.Costs)
	return p, nil
}

// FloorOf is the setup as [Roofline.Predict] takes it, decoding so many sequences: of a
// mixture, more of them read more experts.
func FloorOf(s *hardware.Setup, batch int) Roofline {
	p := s.Model.Params()
	read, head := s.ReadBytes(max(batch, 1)), p.Embedding
	if !s.Model.Tied {
		head = p.Head
	}
	active := p.Active(&s.Model)
	return Roofline{Params: active, Head: head, BytesPerParam: read / active, Bandwidth: s.GPU.Bandwidth, GPUs: s.TP,
		Efficiency: s.Efficiency, Batch: float64(max(batch, 1)),
		FLOPS: s.Peak(), KVPerToken: s.KVReadPerToken(), State: s.Model.StateBytes()}
}

// A measured engine is a real one whose share of its roofline is known.
type measured struct {
	Name       string  // of the preset or of the data
	GPU        string  // as in [hardware.GPUs]
	Weights    float64 // bytes that a token reads
	Efficiency float64
	What       string // what was measured, and how the share was found
}

// measuredEngines lists them.
func measuredEngines() []measured {
	const decoding = "median ITL of one sequence, of the bandwidth that reads its weights"
	const trace = "mean E2E of 300 ShareGPT requests at 10 req/s through vLLM 0.19: the efficiency at which the " +
		"roofline engine takes as long"
	return []measured{
		{"Qwen2.5-0.5B on an L4", "l4", 0.98e9, 0.64, decoding},
		{"Llama-3.2-3B on a T4", "t4", 6.42e9, 0.74, decoding + ", from tokens/s"},
		{"Llama-3.2-3B on an RTX 5080", "rtx5080", 6.42e9, 0.61, decoding},
		{"Llama-3.1-8B on an RTX 4090", "rtx4090", 15.0e9, 0.854, trace},
		{"Llama-3.1-8B on an RTX PRO 6000", "rtxpro6000", 15.0e9, 0.609, trace},
	}
}

// nearestMeasured is the measured engine whose hardware and model are nearest: that of
// the same GPU, else by the ratios of bandwidth and of the bytes that one GPU reads for
// a token.
func nearestMeasured(s *hardware.Setup) measured {
	var best measured
	least := math.Inf(1)
	for _, m := range measuredEngines() {
		g, err := hardware.FindGPU(m.GPU)
		if err != nil {
			continue
		}
		far := math.Abs(math.Log(m.Weights / (s.ReadBytes(1) / float64(s.TP))))
		if m.GPU != s.GPU.Name {
			far += 1 + math.Abs(math.Log(g.Bandwidth/s.GPU.Bandwidth))
		}
		if far < least {
			best, least = m, far
		}
	}
	return best
}

// boundOf says of an engine made by [newRoofline] what it is, for all that uses it.
func boundOf(s *hardware.Setup) string {
	near := nearestMeasured(s)
	what := "a bound from the data sheet, not a measurement: no real engine is faster"
	if s.Efficiency < 1 {
		what = fmt.Sprintf("%.0f %% of the data sheet, not a measurement", 100*s.Efficiency)
	}
	if s.Model.Recurrent.Layers > 0 {
		what += "; the states of its recurrent layers are left out"
	}
	return fmt.Sprintf("%s: %s. The nearest measured engine, %s, reaches %.0f %% of its own bound", s, what, near.Name,
		100*near.Efficiency)
}
