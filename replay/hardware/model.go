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

	Attention           // of the layers that attend to every token
	Sliding   int       // layers that attend to a window alone, and keep no more
	Window    Attention // of the layers that slide; the zero value is the same as Attention
	Latent    Latent
	Index     Index // of sparse attention
	Recurrent Recurrent

	Intermediate int // of a dense layer's MLP
	Experts      Experts
	MoELayers    int // layers whose MLP is Experts; the others are dense

	// Layers that are an MLP alone, and that have none, of models that alternate them.
	MLPAlone, NoMLP int

	WeightsAs string // one of [DTypes], by the quantisation that the config states; empty without one

	QKVBias, QKNorm, OutBias, MLPBias bool
	Ungated                           bool // an MLP has two matrices and not three
}

// An Attention is the shape of grouped-query attention.
type Attention struct {
	KVHeads, HeadDim int
	ValueDim         int  // of a head's value; 0 is HeadDim
	Gated            bool // the query's matrix makes a gate of the output as well
	KeyIsValue       bool // values are made of the keys, without a matrix of their own
}

// Recurrent is the shape of layers that keep a state of fixed size, and not the KV of every token: gated delta nets
// (arXiv:2412.06464) and state spaces (Mamba-2, arXiv:2405.21060). The zero value is a model without them.
type Recurrent struct {
	Layers int
	Params float64 // of a layer
	State  float64 // bytes that a layer keeps of a sequence
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
	Latent           int // width that routed experts work in, between two matrices of the layer; 0 is the model's
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

	// Spellings of an activation, and of what a norm adds.
	Activation string  `json:"hidden_activation"`
	MLPAct     string  `json:"mlp_hidden_act"`
	RMSNormEps float64 `json:"rms_norm_eps"`
	NormEps    float64 `json:"norm_eps"`
	LayerEps   float64 `json:"layernorm_epsilon"`

	shapes
	recurrent
}

// shapes are the fields of attention of two shapes.
type shapes struct {
	OutputGate    bool  `json:"attn_output_gate"`
	KeyIsValue    bool  `json:"attention_k_eq_v"`
	GlobalDim     int   `json:"global_head_dim"`
	GlobalKVHeads int   `json:"num_global_key_value_heads"`
	WindowHeads   int   `json:"swa_num_attention_heads"`
	WindowKVHeads int   `json:"swa_num_key_value_heads"`
	WindowDim     int   `json:"swa_head_dim"`
	WindowValue   int   `json:"swa_v_head_dim"`
	Slides        []int `json:"hybrid_layer_pattern"` // 1 for each layer that slides
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
	{"layers of linear attention or of a state space of another kind", []string{"linear_attn_config",
		"linear_num_heads", "mamba_d_state"}},
	{"compressed attention", []string{"compress_ratios", "o_lora_rank"}},
	{"layers that share KV or have embeddings of their own", []string{"num_kv_shared_layers",
		"hidden_size_per_layer_input", "engram_layer_ids", "hc_mult"}},
	{"experts of another width than the model", []string{"routed_expert_hidden_size"}},
	{"gates of latent attention", []string{"mla_use_output_gate"}},
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
	act := cmp.Or(c.HiddenAct, c.Activation, c.MLPAct)
	known := slices.Contains([]string{"silu", "swish", "gelu_pytorch_tanh", ungated}, act)
	eps := max(c.RMSNormEps, c.NormEps, c.LayerEps)
	if act == "" && eps == 0 && c.MoEIntermediate > 0 { // a mixture of this kind has gates unless it says otherwise
		known, eps = true, 1
	}
	switch {
	case c.ModelType == "":
		return Model{}, errors.New("it has no model_type: want the config.json that is published beside the weights")
	case slices.Contains(families, c.ModelType):
	case eps == 0 || !known || c.KVHeads == nil && c.KVRank == 0:
		return Model{}, fmt.Errorf("its model_type is none of %s, and its fields do not show a decoder of their "+
			"shape: want rms_norm_eps, hidden_act of a gated MLP such as silu, and num_key_value_heads or "+
			"kv_lora_rank. Else %s", strings.Join(families, ", "), inPlace)
	}
	m := Model{Name: c.Name, Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads, Vocab: c.Vocab, Tied: c.Tied,
		Intermediate: c.Intermediate, WeightsAs: c.Quantisation.dtype(),
		QKVBias: c.AttnBias || strings.HasPrefix(c.ModelType, "qwen2"), QKNorm: strings.HasPrefix(c.ModelType,
			"qwen3"), OutBias: c.AttnBias, MLPBias: c.MLPBias || c.ModelType == "gpt_oss", Ungated: act == ungated}
	if err := c.layers(&m); err != nil {
		return Model{}, err
	}
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

// ungated is the activation of MLPs without a gate.
const ungated = "relu2"

// attention fills in the shape of attention.
func (c *config) attention(m *Model) {
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
	m.ValueDim, m.Gated = c.Value, c.OutputGate

	if c.WindowDim > 0 || c.WindowKVHeads > 0 {
		m.Window = Attention{KVHeads: cmp.Or(c.WindowKVHeads, m.KVHeads), HeadDim: cmp.Or(c.WindowDim, m.HeadDim),
			ValueDim: cmp.Or(c.WindowValue, c.WindowDim, m.ValueDim), Gated: m.Gated}
	}
	if c.GlobalDim > 0 || c.GlobalKVHeads > 0 { // what stands without a prefix is of the layers that slide
		m.Window = m.Attention
		m.KVHeads, m.HeadDim = cmp.Or(c.GlobalKVHeads, m.KVHeads), cmp.Or(c.GlobalDim, m.HeadDim)
	}
	m.KeyIsValue = c.KeyIsValue
}

// experts fills in the shape of a mixture, where there is one.
func (c *config) experts(m *Model) {
	n := max(c.LocalExperts, c.NumExperts, c.RoutedExperts)
	if n == 0 {
		return
	}
	e := Experts{Routed: n, PerToken: c.ExpertsPerToken,
		Intermediate: cmp.Or(c.MoEIntermediate, c.Intermediate),
		Latent:       c.LatentWidth, Shared: c.SharedWidth, SharedGate: c.SharedWidth > 0,
		RouterBias: c.TopK == "noaux_tc" || c.RoutingBias || m.MLPBias}
	if c.SharedExperts > 0 {
		e.Shared = c.SharedExperts * cmp.Or(c.SharedDim, c.EachShared, e.Intermediate)
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
	if m.NoMLP > 0 { // a list of layers has said which are mixtures
		return
	}
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

func (d *dimension) check() error {
	if d.value < 1 || d.value > most {
		return fmt.Errorf("%s is not there, or not from 1 to %d: give a config.json that has it, else %s", d.name, most,
			inPlace)
	}
	return nil
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
	if w := m.Window; w != (Attention{}) {
		needed = append(needed, dimension{"the key-value heads of layers that slide", w.KVHeads},
			dimension{"the head size of layers that slide", w.HeadDim},
			dimension{"the value size of layers that slide", w.value()})
	}
	if m.MoELayers > 0 {
		needed = append(needed, dimension{"the number of experts", m.Experts.Routed}, dimension{"num_experts_per_tok",
			m.Experts.PerToken}, dimension{"moe_intermediate_size", m.Experts.Intermediate})
	}
	if m.denseLayers() > 0 {
		needed = append(needed, dimension{"intermediate_size", m.Intermediate})
	}
	for _, n := range needed {
		if err := n.check(); err != nil {
			return err
		}
	}
	switch {
	case min(m.MoELayers, m.Sliding, m.Recurrent.Layers, m.denseLayers(), m.keepers(), m.Index.Layers) < 0:
		return errors.New("a list of layers has more of them than num_hidden_layers")
	case m.keepers() == 0 && m.Sliding > 0:
		return errors.New("every layer slides, so that the KV of a token ends with its window: " + inPlace)
	case m.keepers() == 0:
		return errors.New("no layer attends to every token, so that no token has KV: " + inPlace)
	case m.Index.Heads > most || m.Index.Dim < 0 || m.Index.Dim > most:
		return fmt.Errorf("index_n_heads or index_head_dim is not from 0 to %d", most)
	case m.Layers > 10_000:
		return errors.New("num_hidden_layers is above 10,000")
	case m.Experts.PerToken > m.Experts.Routed:
		return errors.New("num_experts_per_tok is above the number of experts")
	case m.ValueDim < 0 || m.ValueDim > most || m.Experts.Latent < 0 || m.Experts.Latent > most:
		return fmt.Errorf("v_head_dim or moe_latent_size is not from 0 to %d", most)
	case m.Experts.Shared < 0 || m.Experts.Shared > most || m.Latent.Query < 0 || m.Latent.Query > most:
		return errors.New("the width of shared experts or q_lora_rank is below 0 or too large")
	}
	return nil
}
