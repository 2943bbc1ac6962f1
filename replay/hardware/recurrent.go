package hardware

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// recurrent are the fields of layers that keep a state.
type recurrent struct {
	// Gated delta nets.
	KeyHeads   int `json:"linear_num_key_heads"`
	ValueHeads int `json:"linear_num_value_heads"`
	KeyDim     int `json:"linear_key_head_dim"`
	ValueWidth int `json:"linear_value_head_dim"`
	Kernel     int `json:"linear_conv_kernel_dim"`
	FullEvery  int `json:"full_attention_interval"`

	// Mamba-2.
	StateHeads int  `json:"mamba_num_heads"`
	StateDim   int  `json:"mamba_head_dim"`
	Groups     int  `json:"n_groups"`
	StateSize  int  `json:"ssm_state_size"`
	Conv       int  `json:"conv_kernel"`
	ConvBias   bool `json:"use_conv_bias"`

	StateType string `json:"mamba_ssm_dtype"`
	CacheType string `json:"mamba_ssm_cache_dtype"`

	// Which layer is which, of models whose layers are a state, attention or an MLP each.
	Pattern string   `json:"hybrid_override_pattern"`
	Blocks  []string `json:"layers_block_type"`

	LatentWidth int `json:"moe_latent_size"`
	EachShared  int `json:"moe_shared_expert_intermediate_size"`
}

// layers counts the layers of each kind.
func (c *config) layers(m *Model) error {
	for _, kind := range c.LayerTypes {
		switch kind {
		case "sliding_attention":
			m.Sliding++
		case "linear_attention":
			m.Recurrent.Layers++
		case "full_attention", "attention", "chunked_attention", "deepseek_sparse_attention", "":
		default:
			return fmt.Errorf("it has layers of the kind %.40q, whose size is not computed here: %s", kind, inPlace)
		}
	}
	if m.Recurrent.Layers > 0 && c.KeyHeads == 0 {
		return errors.New("it has layers of linear attention, and no linear_num_key_heads that sizes them: " + inPlace)
	}
	for _, slides := range c.Slides {
		m.Sliding += slides
	}
	if c.WindowHeads > 0 && c.WindowHeads != c.Heads {
		return errors.New("its layers have two numbers of heads (swa_num_attention_heads), whose size is not " +
			"computed here: " + inPlace)
	}
	if c.KeyHeads > 0 {
		if len(c.LayerTypes) == 0 && c.FullEvery > 0 {
			m.Recurrent.Layers = c.Layers - c.Layers/c.FullEvery
		}
		return c.deltaNet(m)
	}
	if c.Pattern == "" && len(c.Blocks) == 0 {
		return nil
	}
	return c.alternating(m)
}

// deltaNet sizes the layers of linear attention: matrices to queries, keys, values and gates, two rates for each head, a
// convolution over queries, keys and values, and a matrix back. A state is a matrix for each head of values.
func (c *config) deltaNet(m *Model) error {
	for _, d := range []dimension{{"linear_num_key_heads", c.KeyHeads}, {"linear_num_value_heads", c.ValueHeads},
		{"linear_key_head_dim", c.KeyDim}, {"linear_value_head_dim", c.ValueWidth},
		{"linear_conv_kernel_dim", c.Kernel}} {
		if err := d.check(); err != nil {
			return err
		}
	}
	h, heads, dim := float64(c.Hidden), float64(c.ValueHeads), float64(c.ValueWidth)
	key, value := float64(c.KeyHeads)*float64(c.KeyDim), heads*dim
	kept := 2*key + value // of a token, by the convolution

	m.Recurrent.Params = h*(kept+2*value+2*heads) + kept*float64(c.Kernel) + 2*heads + dim
	m.Recurrent.State = heads*float64(c.KeyDim)*dim*c.stateBytes() + kept*float64(c.Kernel-1)*2
	return nil
}

// alternating reads the kinds of layers that are a state of Mamba-2, attention, a mixture or a dense MLP each.
func (c *config) alternating(m *Model) error {
	kinds := map[string]int{}
	for _, kind := range strings.Split(c.Pattern, "") {
		kinds[kind]++
	}
	for _, kind := range c.Blocks {
		kinds[kind]++
	}
	states, attention := kinds["M"]+kinds["mamba"], kinds["*"]+kinds["attention"]
	mixtures, dense := kinds["E"]+kinds["moe"], kinds["-"]+kinds["mlp"]
	m.Layers = cmp.Or(m.Layers, len(c.Blocks))
	if states+attention+mixtures+dense != m.Layers {
		return fmt.Errorf("its list of layers has kinds that are not computed here, or not %d layers: %s", m.Layers,
			inPlace)
	}
	m.Recurrent.Layers, m.MLPAlone, m.NoMLP, m.MoELayers = states, mixtures+dense, states+attention, mixtures
	if states == 0 {
		return nil
	}

	for _, d := range []dimension{{"mamba_num_heads", c.StateHeads}, {"mamba_head_dim", c.StateDim},
		{"n_groups", c.Groups}, {"ssm_state_size", c.StateSize}, {"conv_kernel", c.Conv}} {
		if err := d.check(); err != nil {
			return err
		}
	}
	h, heads, kernel := float64(c.Hidden), float64(c.StateHeads), float64(c.Conv)
	inner, inputs := heads*float64(c.StateDim), 2*float64(c.Groups)*float64(c.StateSize)
	m.Recurrent.State = inner*float64(c.StateSize)*c.stateBytes() + (inner+inputs)*(kernel-1)*2
	if c.ConvBias {
		kernel++
	}
	m.Recurrent.Params = h*(2*inner+inputs+heads) + (inner+inputs)*kernel + 3*heads + inner + inner*h
	return nil
}

// stateBytes is the size of a number in a state, which is kept in 32 bits where the config says so.
func (c *config) stateBytes() float64 {
	if c.StateType == "float32" || c.CacheType == "float32" {
		return 4
	}
	return 2
}
