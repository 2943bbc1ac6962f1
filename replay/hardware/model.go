package hardware

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Model is the shape of a decoder: what its weights and its KV cache depend on.
type Model struct {
	Name   string // of a model or its type, for people
	Layers int
	Hidden int // width of the residual stream
	Heads  int
	Vocab  int
	Tied   bool // the output layer is the embedding

	KVHeads, HeadDim int // of grouped-query attention
	Latent           Latent

	Intermediate int // of a dense layer's gated MLP
	Experts      Experts
	MoELayers    int // layers whose MLP is Experts; the others are dense

	QKVBias, QKNorm, OutBias, MLPBias bool
}

// Latent is the shape of multi-head latent attention (DeepSeek-V2, arXiv:2405.04434); the
// zero value is a model without it.
type Latent struct {
	Query           int // rank of the query's low-rank factors; 0 is one full matrix
	KV              int // rank of keys and values together
	NoPE, RoPE, Out int // dimensions of a head: of its key without and with position, of its value
}

// Experts is the shape of a mixture-of-experts layer.
type Experts struct {
	Routed, PerToken int
	Intermediate     int // of one routed expert
	Shared           int // intermediate width of all shared experts together
	SharedGate       bool
	RouterBias       bool
}

// config is what is read of a config.json. Fields that families spell differently are
// all here.
type config struct {
	ModelType    string   `json:"model_type"`
	Name         string   `json:"_name_or_path"`
	Hidden       int      `json:"hidden_size"`
	Layers       int      `json:"num_hidden_layers"`
	Heads        int      `json:"num_attention_heads"`
	KVHeads      *int     `json:"num_key_value_heads"`
	HeadDim      *int     `json:"head_dim"`
	Intermediate int      `json:"intermediate_size"`
	Vocab        int      `json:"vocab_size"`
	Tied         bool     `json:"tie_word_embeddings"`
	AttnBias     bool     `json:"attention_bias"`
	MLPBias      bool     `json:"mlp_bias"`
	TextConfig   *nothing `json:"text_config"`

	LocalExperts    int    `json:"num_local_experts"`
	NumExperts      int    `json:"num_experts"`
	RoutedExperts   int    `json:"n_routed_experts"`
	ExpertsPerToken int    `json:"num_experts_per_tok"`
	MoEIntermediate int    `json:"moe_intermediate_size"`
	SharedWidth     int    `json:"shared_expert_intermediate_size"`
	SharedExperts   int    `json:"n_shared_experts"`
	FirstDense      int    `json:"first_k_dense_replace"`
	MoEEvery        *int   `json:"moe_layer_freq"`
	SparseStep      *int   `json:"decoder_sparse_step"`
	DenseLayers     []int  `json:"mlp_only_layers"`
	QueryRank       *int   `json:"q_lora_rank"`
	KVRank          int    `json:"kv_lora_rank"`
	NoPE            int    `json:"qk_nope_head_dim"`
	RoPE            int    `json:"qk_rope_head_dim"`
	Value           int    `json:"v_head_dim"`
	TopK            string `json:"topk_method"`
}

// nothing stands for an object whose fields do not matter.
type nothing struct{}

// most is the largest value that a dimension may have.
const most = 1 << 24

// maxConfig is how long a config.json may be.
const maxConfig = 1 << 20

// families are the values of model_type whose shapes are known.
var families = []string{"llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "deepseek_v2",
	"deepseek_v3", "kimi_k2"}

// ReadModel reads a config.json as Hugging Face publishes it with a model.
func ReadModel(r io.Reader) (Model, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxConfig+1))
	if err != nil {
		return Model{}, err
	}
	if len(text) > maxConfig {
		return Model{}, errors.New("it is longer than 1 MiB, and no config.json of a model")
	}
	var c config
	if err := json.Unmarshal(text, &c); err != nil {
		return Model{}, fmt.Errorf("it is not the config.json of a model: %w", err)
	}
	if !slices.Contains(families, c.ModelType) {
		if c.TextConfig != nil {
			return Model{}, errors.New("it describes a model of text and images: give the object under text_config " +
				"as a file of its own")
		}
		if c.ModelType == "" {
			return Model{}, errors.New(
				"it has no model_type: want the config.json that is published beside the weights")
		}
		return Model{}, fmt.Errorf("its model_type is not one whose shape is known: want one of %s",
			strings.Join(families, ", "))
	}
	m := Model{Name: c.Name, Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads, Vocab: c.Vocab, Tied: c.Tied,
		Intermediate: c.Intermediate,
		QKVBias:      c.AttnBias || strings.HasPrefix(c.ModelType, "qwen2"), QKNorm: strings.HasPrefix(c.ModelType,
			"qwen3"), OutBias: c.AttnBias, MLPBias: c.MLPBias}
	c.attention(&m)
	c.experts(&m)
	if err := m.check(); err != nil {
		return Model{}, err
	}
	if p := m.Params(); m.Name == "" {
		m.Name = fmt.Sprintf("%s of %.3gB parameters", c.ModelType, p.Total/1e9)
	}
	return m, nil
}

// attention fills in the shape of attention.
func (c *config) attention(m *Model) {
	if c.KVRank > 0 {
		m.Latent = Latent{KV: c.KVRank, NoPE: c.NoPE, RoPE: c.RoPE, Out: c.Value}
		if c.QueryRank != nil {
			m.Latent.Query = *c.QueryRank
		}
		return
	}
	m.KVHeads = c.Heads
	if c.KVHeads != nil {
		m.KVHeads = *c.KVHeads
	}
	if c.HeadDim != nil {
		m.HeadDim = *c.HeadDim
	} else if c.Heads > 0 {
		m.HeadDim = c.Hidden / c.Heads
	}
}

// experts fills in the shape of a mixture, where there is one.
func (c *config) experts(m *Model) {
	n := max(c.LocalExperts, c.NumExperts, c.RoutedExperts)
	if n == 0 {
		return
	}
	e := Experts{Routed: n, PerToken: c.ExpertsPerToken, Intermediate: c.MoEIntermediate, Shared: c.SharedWidth,
		SharedGate: c.SharedWidth > 0, RouterBias: c.TopK == "noaux_tc"}
	if e.Intermediate == 0 {
		e.Intermediate = c.Intermediate
	}
	if c.SharedExperts > 0 {
		e.Shared = c.SharedExperts * e.Intermediate
	}
	every := 1
	if c.MoEEvery != nil {
		every = *c.MoEEvery
	} else if c.SparseStep != nil {
		every = *c.SparseStep
	}
	m.Experts = e
	for i := 0; i < min(c.Layers, most); i++ {
		// DeepSeek counts from layer 0, Qwen from 1.
		at := i
		if c.SparseStep != nil {
			at = i + 1
		}
		if i >= c.FirstDense && every > 0 && at%every == 0 && !slices.Contains(c.DenseLayers, i) {
			m.MoELayers++
		}
	}
}

// A dimension is a number of a shape under its name in config.json.
type dimension struct {
	name  string
	value int
}

// check says what is missing of a shape, or is no shape.
func (m *Model) check() error {
	needed := []dimension{{"num_hidden_layers", m.Layers}, {"hidden_size", m.Hidden}, {"num_attention_heads", m.Heads},
		{"vocab_size", m.Vocab}}
	if m.Latent.KV > 0 {
		needed = append(needed, dimension{"kv_lora_rank", m.Latent.KV}, dimension{"qk_nope_head_dim", m.Latent.NoPE},
			dimension{"qk_rope_head_dim", m.Latent.RoPE}, dimension{"v_head_dim", m.Latent.Out})
	} else {
		needed = append(needed, dimension{"num_key_value_heads", m.KVHeads}, dimension{"head_dim", m.HeadDim})
	}
	if m.MoELayers > 0 {
		needed = append(needed, dimension{"the number of experts", m.Experts.Routed}, dimension{"num_experts_per_tok",
			m.Experts.PerToken}, dimension{"moe_intermediate_size", m.Experts.Intermediate})
	}
	if m.MoELayers < m.Layers {
		needed = append(needed, dimension{"intermediate_size", m.Intermediate})
	}
	for _, n := range needed {
		if n.value < 1 || n.value > most {
			return fmt.Errorf("%s is not there, or not from 1 to %d", n.name, most)
		}
	}
	switch {
	case m.Layers > 10_000:
		return errors.New("num_hidden_layers is above 10,000")
	case m.Experts.PerToken > m.Experts.Routed:
		return errors.New("num_experts_per_tok is above the number of experts")
	case m.Experts.Shared < 0 || m.Experts.Shared > most || m.Latent.Query < 0 || m.Latent.Query > most:
		return errors.New("the width of shared experts or q_lora_rank is below 0 or too large")
	}
	return nil
}
