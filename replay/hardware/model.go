package hardware

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"reprise/trace/nonfinite"
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

	Sliding   int    // layers that attend to a window alone, and keep no more
	Index     Index  // of sparse attention
	WeightsAs string // one of [DTypes], by the quantisation that the config states; empty without one

	QKVBias, QKNorm, OutBias, MLPBias bool
}

// Index is the shape of the indexer of sparse attention, which finds the few tokens that a token attends to
// (DeepSeek-V3.2, arXiv:2512.02556); the zero value is a model that attends to all.
type Index struct {
	Layers, Heads, Dim int
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
	ModelType    string       `json:"model_type"`
	Name         string       `json:"_name_or_path"`
	Hidden       int          `json:"hidden_size"`
	Layers       int          `json:"num_hidden_layers"`
	Heads        int          `json:"num_attention_heads"`
	KVHeads      *int         `json:"num_key_value_heads"`
	HeadDim      *int         `json:"head_dim"`
	Intermediate int          `json:"intermediate_size"`
	Vocab        int          `json:"vocab_size"`
	Tied         bool         `json:"tie_word_embeddings"`
	AttnBias     bool         `json:"attention_bias"`
	MLPBias      bool         `json:"mlp_bias"`
	HiddenAct    string       `json:"hidden_act"`
	NormEps      float64      `json:"rms_norm_eps"`
	LayerTypes   []string     `json:"layer_types"`
	Quantisation quantisation `json:"quantization_config"`

	LocalExperts    int      `json:"num_local_experts"`
	NumExperts      int      `json:"num_experts"`
	RoutedExperts   int      `json:"n_routed_experts"`
	ExpertsPerToken int      `json:"num_experts_per_tok"`
	MoEIntermediate int      `json:"moe_intermediate_size"`
	SharedWidth     int      `json:"shared_expert_intermediate_size"`
	SharedExperts   int      `json:"n_shared_experts"`
	FirstDense      int      `json:"first_k_dense_replace"`
	SharedDim       int      `json:"share_expert_dim"`
	MoEEvery        mixtures `json:"moe_layer_freq"`
	Interleave      int      `json:"interleave_moe_layer_step"`
	DenseWidth      int      `json:"intermediate_size_mlp"`
	MLPTypes        []string `json:"mlp_layer_types"`
	RoutingBias     bool     `json:"use_routing_bias"`
	IndexHeads      int      `json:"index_n_heads"`
	IndexDim        int      `json:"index_head_dim"`
	IndexTypes      []string `json:"indexer_types"`
	SparseStep      *int     `json:"decoder_sparse_step"`
	DenseLayers     []int    `json:"mlp_only_layers"`
	QueryRank       *int     `json:"q_lora_rank"`
	KVRank          int      `json:"kv_lora_rank"`
	NoPE            int      `json:"qk_nope_head_dim"`
	RoPE            int      `json:"qk_rope_head_dim"`
	Value           int      `json:"v_head_dim"`
	TopK            string   `json:"topk_method"`
}

// mixtures says which layers are mixtures: one in so many, or a list with 1 for each layer that is one.
type mixtures struct {
	oneIn *int
	list  []int
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *mixtures) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &m.oneIn) == nil {
		return nil
	}
	m.oneIn = nil
	return json.Unmarshal(text, &m.list)
}

// A quantisation says how weights are stored, in the words of the tools that make such files.
type quantisation struct {
	Method string `json:"quant_method"` // fp8, mxfp4, gptq, awq, …
	Algo   string `json:"quant_algo"`   // of ModelOpt: FP8, NVFP4
	MoE    string `json:"moe_quant_algo"`
	Bits   int    `json:"bits"`
	Groups map[string]struct {
		Weights struct {
			Bits int    `json:"num_bits"`
			Type string `json:"type"`
		} `json:"weights"`
	} `json:"config_groups"`
}

// dtype is the type of most weights; empty where nothing says it.
func (q *quantisation) dtype() string {
	for _, says := range []string{q.MoE, q.Algo, q.Method} { // experts are nearly all of a mixture's weights
		switch says = strings.ToLower(says); {
		case strings.Contains(says, "fp4"):
			return "fp4"
		case says == "fp8":
			return "fp8"
		}
	}
	bits, float := q.Bits, false
	for _, g := range q.Groups {
		if bits == 0 || g.Weights.Bits < bits {
			bits, float = g.Weights.Bits, g.Weights.Type == "float"
		}
	}
	switch {
	case bits == 4 && float:
		return "fp4"
	case bits == 4:
		return "int4"
	case bits == 8:
		return "fp8" // as large as int8
	}
	return ""
}

// most is the largest value that a dimension may have.
const most = 1 << 24

// maxConfig is how long a config.json may be.
const maxConfig = 1 << 20

// families are the values of model_type whose shapes are known.
var families = []string{"llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "deepseek_v2",
	"deepseek_v3", "kimi_k2"}

// uncounted are fields of structures whose parameters and KV are not computed here, or not by one rule.
var uncounted = []struct {
	what   string
	fields []string
}{
	{"layers of linear attention or of a state space", []string{"linear_attn_config", "linear_num_key_heads",
		"linear_num_heads", "mamba_num_heads", "mamba_d_state", "ssm_state_size", "hybrid_override_pattern",
		"layers_block_type"}},
	{"compressed attention", []string{"compress_ratios", "o_lora_rank"}},
	{"layers with attention of two shapes", []string{"swa_head_dim", "swa_num_key_value_heads",
		"hybrid_layer_pattern", "global_head_dim", "num_global_key_value_heads", "attention_k_eq_v"}},
	{"layers that share KV or have embeddings of their own", []string{"num_kv_shared_layers",
		"hidden_size_per_layer_input", "engram_layer_ids", "hc_mult"}},
	{"experts of another width than the model", []string{"routed_expert_hidden_size"}},
	{"gates of attention", []string{"attn_output_gate", "mla_use_output_gate"}},
}

const inPlace = "capacity predict takes --params, --bytes-per-param, --kv-bytes-per-token and --bandwidth in its place"

// ReadQuantisation reads the hf_quant_config.json that lies beside the config.json of some quantised models, and
// returns the type of their weights; empty where it does not say.
func ReadQuantisation(r io.Reader) (dtype string, err error) {
	var file struct {
		Quantisation quantisation `json:"quantization"`
	}
	if err := json.NewDecoder(io.LimitReader(r, maxConfig)).Decode(&file); err != nil {
		return "", fmt.Errorf("it does not say how weights are quantised: %w", err)
	}
	return file.Quantisation.dtype(), nil
}

// isSet tells whether a field says anything.
func isSet(value json.RawMessage) bool {
	return !slices.Contains([]string{"", "null", "0", "false", `""`, "[]", "{}"}, string(value))
}

// ReadModel reads a config.json as Hugging Face publishes it with a model. Of a model of text and images it is the text
// model. A shape is read from its fields, whatever the model's type: one that has parts that are not computed here is
// an error that names them.
func ReadModel(r io.Reader) (Model, error) {
	text, err := io.ReadAll(io.LimitReader(nonfinite.NewReader(r), maxConfig+1)) // Python writes Infinity
	if err != nil {
		return Model{}, err
	}
	if len(text) > maxConfig {
		return Model{}, errors.New("it is longer than 1 MiB, and no config.json of a model")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return Model{}, fmt.Errorf("it is not the config.json of a model: %w", err)
	}
	var c config
	whole := text
	if inner := fields["text_config"]; isSet(inner) {
		if fields = nil; json.Unmarshal(inner, &fields) != nil {
			return Model{}, errors.New("its text_config is not an object")
		}
		text = inner
	}
	for _, part := range [][]byte{whole, text} { // the quantisation is stated for the whole
		if err := json.Unmarshal(part, &c); err != nil {
			return Model{}, fmt.Errorf("it is not the config.json of a model: %w", err)
		}
	}
	for _, u := range uncounted {
		for _, name := range u.fields {
			if isSet(fields[name]) {
				return Model{}, fmt.Errorf("it has %s (%s), whose size is not computed here: %s", u.what, name,
					inPlace)
			}
		}
	}
	switch gated := slices.Contains([]string{"silu", "swish", "gelu_pytorch_tanh"}, c.HiddenAct); {
	case c.ModelType == "":
		return Model{}, errors.New("it has no model_type: want the config.json that is published beside the weights")
	case slices.Contains(families, c.ModelType):
	case c.NormEps == 0 || !gated || c.KVHeads == nil && c.KVRank == 0:
		return Model{}, fmt.Errorf("its model_type is none of %s, and its fields do not show a decoder of their "+
			"shape: want rms_norm_eps, hidden_act of a gated MLP such as silu, and num_key_value_heads or "+
			"kv_lora_rank. Else %s", strings.Join(families, ", "), inPlace)
	}
	m := Model{Name: c.Name, Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads, Vocab: c.Vocab, Tied: c.Tied,
		Intermediate: c.Intermediate, WeightsAs: c.Quantisation.dtype(),
		QKVBias: c.AttnBias || strings.HasPrefix(c.ModelType, "qwen2"), QKNorm: strings.HasPrefix(c.ModelType,
			"qwen3"), OutBias: c.AttnBias, MLPBias: c.MLPBias || c.ModelType == "gpt_oss"}
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
	for _, kind := range c.LayerTypes {
		if kind == "sliding_attention" {
			m.Sliding++
		}
	}
	if c.IndexHeads > 0 {
		m.Index = Index{Layers: c.Layers, Heads: c.IndexHeads, Dim: c.IndexDim}
		for _, kind := range c.IndexTypes {
			if kind == "shared" {
				m.Index.Layers--
			}
		}
	}
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
	e := Experts{Routed: n, PerToken: c.ExpertsPerToken, Intermediate: c.MoEIntermediate,
		Shared: c.SharedWidth, SharedGate: c.SharedWidth > 0,
		RouterBias: c.TopK == "noaux_tc" || c.RoutingBias || m.MLPBias}
	if e.Intermediate == 0 {
		e.Intermediate = c.Intermediate
	}
	if c.SharedExperts > 0 {
		e.Shared = c.SharedExperts * cmp.Or(c.SharedDim, e.Intermediate)
	}
	if c.Interleave > 0 { // Llama 4: each mixture has a shared expert, and dense layers another width
		e.Shared, m.Intermediate = c.Intermediate, c.DenseWidth
		c.SparseStep = &c.Interleave
	}
	every := 1
	if c.MoEEvery.oneIn != nil {
		every = *c.MoEEvery.oneIn
	} else if c.SparseStep != nil {
		every = *c.SparseStep
	}
	m.Experts = e
	for _, kind := range c.MLPTypes {
		if kind == "sparse" {
			m.MoELayers++
		}
	}
	if len(c.MLPTypes) > 0 {
		return
	}
	for _, is := range c.MoEEvery.list {
		m.MoELayers += is
	}
	if len(c.MoEEvery.list) > 0 {
		return
	}
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
	case m.MoELayers < 0 || m.MoELayers > m.Layers || m.Sliding > m.Layers || m.Index.Layers < 0:
		return errors.New("a list of layers has more of them than num_hidden_layers")
	case m.Sliding == m.Layers:
		return errors.New("every layer slides, so that the KV of a token ends with its window: " + inPlace)
	case m.Index.Heads > most || m.Index.Dim < 0 || m.Index.Dim > most:
		return fmt.Errorf("index_n_heads or index_head_dim is not from 0 to %d", most)
	case m.Layers > 10_000:
		return errors.New("num_hidden_layers is above 10,000")
	case m.Experts.PerToken > m.Experts.Routed:
		return errors.New("num_experts_per_tok is above the number of experts")
	case m.Experts.Shared < 0 || m.Experts.Shared > most || m.Latent.Query < 0 || m.Latent.Query > most:
		return errors.New("the width of shared experts or q_lora_rank is below 0 or too large")
	}
	return nil
}
