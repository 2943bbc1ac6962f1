package hardware

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// readModel reads a shape of testdata.
func readModel(t testing.TB, name string) Model {
	t.Helper()
	in, err := os.Open(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	m, err := ReadModel(in)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// The parameters of public models are those that their pages give (safetensors totals on
// Hugging Face; for DeepSeek-V3 its report, arXiv:2412.19437, and for active parameters the
// reports of Mixtral, arXiv:2401.04088, Qwen3, arXiv:2505.09388, and DeepSeek-V3), and a
// token's KV is what their shapes make of it, in BF16.
func TestPublishedParameters(t *testing.T) {
	for name, want := range map[string]struct {
		total, exact  float64 // exact is how near: 0 is to the parameter
		active, share float64
		kvBytes       int
	}{
		"llama-3.1-8b":  {8_030_261_248, 0, 8.03e9 - 128256*4096, 0.001, 131_072},
		"llama-3.1-70b": {70_553_706_496, 0, 70.55e9 - 128256*8192, 0.001, 327_680},
		"qwen2.5-0.5b":  {494_032_768, 0, 494_032_768, 0, 12_288},
		"mixtral-8x7b":  {46_702_792_704, 0, 12.9e9, 0.02, 131_072},
		"qwen3-30b-a3b": {30_532_122_624, 0, 3.3e9, 0.1, 98_304},
		"deepseek-v3":   {671e9, 0.001, 37e9, 0.02, 70_272},
	} {
		m := readModel(t, name)
		p := m.Params()
		if math.Abs(p.Total-want.total) > want.exact*want.total {
			t.Errorf("%s: %.0f parameters, published %.0f", name, p.Total, want.total)
		}
		if active := p.Active(&m); math.Abs(active/want.active-1) > want.share {
			t.Errorf("%s: a token reads %.4g parameters, published %.4g", name, active, want.active)
		}
		if got := m.KVValues() * 2; got != want.kvBytes {
			t.Errorf("%s: %d bytes of KV a token, want %d", name, got, want.kvBytes)
		}
	}
}

// What vLLM 0.19 logged for a step on H100 80 GB, in GiB, with its own limits of 8,192 tokens
// and 1,024 sequences: by the accuracy report of llm-d-planner
// (docs/accuracy/vllm-v0.19.0-accuracy-report.md, commit 2d557dc), beside what is computed.
func TestPublishedActivations(t *testing.T) {
	g, err := FindGPU("h100")
	if err != nil {
		t.Fatal(err)
	}
	tokens, seqs := g.StepLimits()
	dense := func(hidden, inter, vocab int) Model {
		return Model{Layers: 1, Hidden: hidden, Intermediate: inter, Vocab: vocab}
	}
	mixture := func(hidden, inter, each, vocab int) Model {
		return Model{Layers: 1, Hidden: hidden, Vocab: vocab, MoELayers: 1, Experts: Experts{Routed: 64, PerToken: each, Intermediate: inter}}
	}
	for name, row := range map[string]struct {
		m    Model
		logs float64
	}{
		"Llama-3.1-8B":     {dense(4096, 14336, 128256), 1.89},
		"Qwen2.5-7B":       {dense(3584, 18944, 152064), 2.21},
		"Qwen3-8B":         {dense(4096, 12288, 151936), 2.21},
		"CodeLlama-7b":     {dense(4096, 11008, 32016), 0.77},
		"granite-3.1-8b":   {dense(4096, 12800, 49155), 0.85},
		"phi-4":            {dense(5120, 17920, 100352), 1.52},
		"Qwen3-30B-A3B":    {mixture(2048, 768, 8, 151936), 2.68},
		"Qwen1.5-MoE-2.7B": {mixture(2048, 1408, 4, 151936), 2.47},
		"DeepSeek-V2-Lite": {mixture(2048, 1408, 6, 102400), 1.93},
	} {
		s := Setup{Model: row.m, GPU: g, TP: 1, BatchTokens: tokens, Seqs: seqs}
		got := s.activations() / (1 << 30)
		t.Logf("%s: %.2f GiB, logged %.2f", name, got, row.logs)
		if ratio := got / row.logs; ratio < 0.96 || ratio > 1.04 {
			t.Errorf("%s: %.2f GiB, logged %.2f", name, got, row.logs)
		}
	}
}

// The KV tokens that real servers of vLLM said they had room for, beside those computed: of
// vLLM 0.19 on H100 by the report of [TestPublishedActivations]; from the metadata of public
// per-request data (LLMServingSim, RTX 4090, vLLM 0.19); and from vLLM's issue 21348 (July
// 2025), when sampling took 38 bytes for a logit.
func TestPublishedKVTokens(t *testing.T) {
	for _, row := range []struct {
		model, gpu, dtype string
		share             float64
		tp, batch, seqs   int
		published         float64
		low, high         float64 // of computed over published
	}{
		{"llama-3.1-8b", "h100", "bf16", 0.95, 1, 8192, 1024, 476_016, 0.995, 1.005},
		{"llama-3.1-8b", "rtx4090", "bf16", 0.9, 1, 2048, 256, 41_408, 1, 1.09},
		{"qwen3-235b-a22b", "h100", "fp8", 0.9, 4, 8192, 1024, 178_880, 1, 1.45},
	} {
		g, err := FindGPU(row.gpu)
		if err != nil {
			t.Fatal(err)
		}
		s := Setup{Model: readModel(t, row.model), GPU: g, TP: row.tp, DType: row.dtype, KVDType: "auto", Efficiency: 1, Utilization: row.share, BatchTokens: row.batch, Seqs: row.seqs}
		m, err := s.Fit()
		if err != nil {
			t.Fatal(err)
		}
		ratio := float64(m.KVTokens) / row.published
		t.Logf("%s: %d tokens of KV, published %.0f (%.2f): %+v", &s, m.KVTokens, row.published, ratio, m)
		if ratio < row.low || ratio > row.high {
			t.Errorf("%s: %d tokens of KV, published %.0f", &s, m.KVTokens, row.published)
		}
	}
}

// What is no config.json says so, and names what is missing.
func TestReadModelRefuses(t *testing.T) {
	const good = `{"model_type":"llama","hidden_size":8,"num_hidden_layers":2,"num_attention_heads":2,"intermediate_size":16,"vocab_size":100}`
	if m, err := ReadModel(strings.NewReader(good)); err != nil || m.KVHeads != 2 || m.HeadDim != 4 {
		t.Errorf("%+v, %v", m, err)
	}
	for text, want := range map[string]string{
		"":                                     "not the config.json of a model",
		"[1]":                                  "not the config.json of a model",
		`{"hidden_size":"x"}`:                  "not the config.json of a model",
		"{}":                                   "no model_type",
		`{"model_type":"gpt2"}`:                "is none of llama",
		`{"model_type":"x","text_config":[1]}`: "text_config",
		strings.Replace(good, `8`, `0`, 1):     "hidden_size",
		strings.Replace(good, `2,`, `-2,`, 1):  "num_hidden_layers",
		strings.Replace(good, `16`, `99999999`, 1):                                                 "intermediate_size",
		strings.Replace(good, `"llama"`, `"qwen3_moe","num_experts":8,"num_experts_per_tok":9`, 1): "above the number of experts",
		strings.Replace(good, `"llama"`, `"deepseek_v3","kv_lora_rank":4`, 1):                      "qk_nope_head_dim",
		`{"model_type":"` + strings.Repeat("a", 1<<20) + `"}`:                                      "longer than 1 MiB",
	} {
		if _, err := ReadModel(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
}

// Whatever is read is a shape that can be computed with, or refused.
func FuzzReadModel(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal("no config.json", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, shape := range shapesByStructure {
		f.Add(shape.config)
	}
	g, err := FindGPU("h100")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ReadModel(strings.NewReader(text))
		if err != nil {
			return
		}
		p := m.Params()
		if active := p.Active(&m); !(p.Total > 0) || math.IsInf(p.Total, 0) || !(active > 0) || active > p.Total || m.KVValues() < 1 {
			t.Errorf("%+v: %+v", m, p)
		}
		s := Setup{Model: m, GPU: g, TP: 1, DType: "bf16", KVDType: "auto", Efficiency: 1, Utilization: 1, BatchTokens: 1, Seqs: 1}
		if floor := s.Floor(); floor.Weights < 1 || floor.KVToken < 1 || floor.PrefillToken < 1 || s.Memory().KVTokens < 0 {
			t.Errorf("%+v: %+v", m, floor)
		}
	})
}

// common is what the configs below have in common.
const common = `"rms_norm_eps":1e-5,"hidden_act":"silu",`

// shapesByStructure are models whose types are not listed, by the fields that size them, beside the totals that their
// makers publish; of models of text and images without the encoder of images.
var shapesByStructure = map[string]struct {
	config  string
	total   float64 // published, in billions
	within  float64
	kvBytes float64 // of a token, by hand: BF16, and FP8 keys with a scale of an indexer
}{
	"MiniMax-M2.5": {`{"model_type":"minimax_m2",` + common + `"num_hidden_layers":62,"hidden_size":3072,
		"num_attention_heads":48,
		"num_key_value_heads":8,"head_dim":128,"intermediate_size":1536,"vocab_size":200064,
		"num_experts_per_tok":8,
		"num_local_experts":256,"use_routing_bias":true}`, 229, 0.01, 2 * 2 * 62 * 8 * 128},
	"GLM-5": {`{"model_type":"glm_moe_dsa",` + common + `"num_hidden_layers":78,"hidden_size":6144,
		"num_attention_heads":64,
		"num_key_value_heads":64,"intermediate_size":12288,"vocab_size":154880,"first_k_dense_replace":3,
		"moe_layer_freq":1,
		"n_routed_experts":256,"n_shared_experts":1,"num_experts_per_tok":8,"moe_intermediate_size":2048,
		"topk_method":"noaux_tc",
		"kv_lora_rank":512,"q_lora_rank":2048,"qk_nope_head_dim":192,"qk_rope_head_dim":64,"v_head_dim":256,
		"index_n_heads":32,"index_head_dim":128}`, 744, 0.005, 78 * (2*(512+64) + 128 + 4)},
	"gpt-oss-20b": {`{"model_type":"gpt_oss",` + common + `"num_hidden_layers":24,"hidden_size":2880,
		"num_attention_heads":64,
		"num_key_value_heads":8,"head_dim":64,"intermediate_size":2880,"vocab_size":201088,"num_local_experts":32,
		"num_experts_per_tok":4,"attention_bias":true,"sliding_window":128,
		"quantization_config":{"quant_method":"mxfp4"},
		"layer_types":["sliding_attention","full_attention","sliding_attention","full_attention",
		"sliding_attention",
		"full_attention","sliding_attention","full_attention","sliding_attention","full_attention",
		"sliding_attention",
		"full_attention","sliding_attention","full_attention","sliding_attention","full_attention",
		"sliding_attention",
		"full_attention","sliding_attention","full_attention","sliding_attention","full_attention",
		"sliding_attention",
		"full_attention"]}`, 20.9, 0.002, 2 * 2 * 12 * 8 * 64},
	"Llama-4-Maverick": {`{"model_type":"llama4",
		"text_config":{"model_type":"llama4_text",` + common + `"num_hidden_layers":48,
		"hidden_size":5120,"num_attention_heads":40,"num_key_value_heads":8,"head_dim":128,
		"intermediate_size":8192,
		"intermediate_size_mlp":16384,"vocab_size":202048,"num_local_experts":128,"num_experts_per_tok":1,
		"interleave_moe_layer_step":2}}`, 400.7, 0.005, 2 * 2 * 48 * 8 * 128},
	"Qwen3.5-27B": {`{"model_type":"qwen3_5","text_config":{"model_type":"qwen3_5_text",` + common + `
		"num_hidden_layers":64,"hidden_size":5120,"num_attention_heads":24,"num_key_value_heads":4,"head_dim":256,
		"intermediate_size":17408,"vocab_size":248320,"attn_output_gate":true,"full_attention_interval":4,
		"linear_conv_kernel_dim":4,"linear_key_head_dim":128,"linear_num_key_heads":16,"linear_num_value_heads":48,
		"linear_value_head_dim":128,"mamba_ssm_dtype":"float32"}}`, 27, 0.01, 2 * 2 * 16 * 4 * 256},
	"Qwen3.6-35B-A3B": {`{"model_type":"qwen3_5_moe_text",` + common + `"num_hidden_layers":40,"hidden_size":2048,
		"num_attention_heads":16,"num_key_value_heads":2,"head_dim":256,"vocab_size":248320,"num_experts":256,
		"num_experts_per_tok":8,"moe_intermediate_size":512,"shared_expert_intermediate_size":512,
		"attn_output_gate":true,"layer_types":[` + list(10, `"linear_attention","linear_attention",
		"linear_attention","full_attention"`) + `],"linear_conv_kernel_dim":4,"linear_key_head_dim":128,
		"linear_num_key_heads":16,"linear_num_value_heads":32,"linear_value_head_dim":128}`, 35, 0.01,
		2 * 2 * 10 * 2 * 256},
	"Nemotron-3-Nano-30B-A3B": {`{"model_type":"nemotron_h","mlp_hidden_act":"relu2","norm_eps":1e-5,
		"hybrid_override_pattern":"MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME","num_hidden_layers":52,
		"hidden_size":2688,"num_attention_heads":32,"num_key_value_heads":2,"head_dim":128,"vocab_size":131072,
		"intermediate_size":1856,"n_routed_experts":128,"n_shared_experts":1,"num_experts_per_tok":6,
		"moe_intermediate_size":1856,"moe_shared_expert_intermediate_size":3712,"mamba_num_heads":64,
		"mamba_head_dim":64,"n_groups":8,"ssm_state_size":128,"conv_kernel":4,"use_conv_bias":true}`, 31.6, 0.001,
		2 * 2 * 6 * 2 * 128},
	"Nemotron-3-Super-120B-A12B": {`{"model_type":"nemotron_h","mlp_hidden_act":"relu2","norm_eps":1e-5,
		"layers_block_type":[` + list(40, `"mamba","moe"`) + "," + list(8, `"attention"`) + `],
		"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":2,"head_dim":128,"vocab_size":131072,
		"n_routed_experts":512,"n_shared_experts":1,"num_experts_per_tok":22,"moe_latent_size":1024,
		"moe_intermediate_size":2688,"moe_shared_expert_intermediate_size":5376,"mamba_num_heads":128,
		"mamba_head_dim":64,"n_groups":8,"ssm_state_size":128,"conv_kernel":4,"use_conv_bias":true}`, 120.6, 0.001,
		2 * 2 * 8 * 2 * 128},
	"Gemma-4-31B": {`{"model_type":"gemma4","tie_word_embeddings":true,"text_config":{"model_type":"gemma4_text",
		"rms_norm_eps":1e-6,"hidden_activation":"gelu_pytorch_tanh","num_hidden_layers":60,"hidden_size":5376,
		"num_attention_heads":32,"num_key_value_heads":16,"head_dim":256,"num_global_key_value_heads":4,
		"global_head_dim":512,"attention_k_eq_v":true,"intermediate_size":21504,"vocab_size":262144,
		"layer_types":[` + list(10, list(5, `"sliding_attention"`)+`,"full_attention"`) + `]}}`, 30.7, 0.005,
		2 * 2 * 10 * 4 * 512},
	"MiMo-V2-Flash": {`{"model_type":"mimo_v2_flash","layernorm_epsilon":1e-5,"hidden_act":"silu",
		"num_hidden_layers":48,"hidden_size":4096,"num_attention_heads":64,"num_key_value_heads":4,"head_dim":192,
		"v_head_dim":128,"intermediate_size":16384,"vocab_size":152576,"swa_num_attention_heads":64,
		"swa_num_key_value_heads":8,"swa_head_dim":192,"swa_v_head_dim":128,
		"hybrid_layer_pattern":[0,1,1,1,1,` + list(7, "0,1,1,1,1,1") + `,0],"moe_layer_freq":[0,` + list(47, "1") + `],
		"moe_intermediate_size":2048,"n_routed_experts":256,"num_experts_per_tok":8,"topk_method":"noaux_tc"}`, 309,
		0.005, 2 * 9 * 4 * (192 + 128)},
	"Step-3.5-Flash": {`{"model_type":"step3p5","num_hidden_layers":45,"hidden_size":4096,"num_attention_heads":64,
		"num_key_value_heads":8,"head_dim":128,"vocab_size":128896,"intermediate_size":11264,
		"layer_types":[` + list(11, `"full_attention","sliding_attention","sliding_attention","sliding_attention"`) + `,
		"full_attention"],"first_k_dense_replace":3,"num_experts":288,"num_experts_per_tok":8,
		"moe_intermediate_size":1280,"share_expert_dim":1280,"n_shared_experts":1}`, 196, 0.01,
		2 * 2 * 12 * 8 * 128},
	"Qwen3-VL-4B": {`{"model_type":"qwen3_vl","tie_word_embeddings":true,
		"text_config":{"model_type":"qwen3_vl_text",` + common + `
		"num_hidden_layers":36,"hidden_size":2560,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,
		"intermediate_size":9728,"vocab_size":151936}}`, 4.02, 0.005, 2 * 2 * 36 * 8 * 128},
}

func TestShapesByStructure(t *testing.T) {
	for name, c := range shapesByStructure {
		m, err := ReadModel(strings.NewReader(c.config))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if total := m.Params().Total / 1e9; math.Abs(total/c.total-1) > c.within {
			t.Errorf("%s: %.1f billion parameters, published %.1f", name, total, c.total)
		}
		if s := (Setup{Model: m, TP: 1}); s.KVBytesPerToken() != c.kvBytes {
			t.Errorf("%s: %.0f bytes of KV a token, want %.0f", name, s.KVBytesPerToken(), c.kvBytes)
		}
	}
}

// list is a text so many times, with commas between.
func list(times int, text string) string {
	return strings.TrimSuffix(strings.Repeat(text+",", times), ",")
}

// A state is what its dimensions make of it: of each of 48 layers of Qwen3.5-27B 48 matrices of 128 by 128 in 32 bits,
// and of the three tokens before the last the 10,240 values that a convolution takes, in 16 bits.
func TestStateOfASequence(t *testing.T) {
	m, err := ReadModel(strings.NewReader(`{"model_type":"x","rms_norm_eps":1,"hidden_act":"silu",
		"num_hidden_layers":64,"hidden_size":5120,"num_attention_heads":24,"num_key_value_heads":4,"head_dim":256,
		"intermediate_size":17408,
		"vocab_size":248320,"full_attention_interval":4,"linear_conv_kernel_dim":4,"linear_key_head_dim":128,
		"linear_num_key_heads":16,"linear_num_value_heads":48,"linear_value_head_dim":128,
		"mamba_ssm_dtype":"float32"}`))
	if want := 48.0 * (48*128*128*4 + 10240*3*2); err != nil || m.StateBytes() != want {
		t.Errorf("%.0f bytes, %v, want %.0f", m.StateBytes(), err, want)
	}
	g, err := FindGPU("h200")
	if err != nil {
		t.Fatal(err)
	}
	s := Setup{Model: m, GPU: g, TP: 2, DType: "bf16", KVDType: "auto", Efficiency: 1, Utilization: 0.9,
		BatchTokens: 8192, Seqs: 64}
	const says = "77.0 MB of state a sequence, as much as 2,349 tokens"
	fits, err := s.Fit()
	if err != nil || fits.State != m.StateBytes()/2 || !strings.Contains(fits.String(), says) {
		t.Errorf("%v, %v", &fits, err)
	}
}

// A structure that is not computed is named, with the flags that state its size.
func TestShapesNotComputed(t *testing.T) {
	const slides = `"rms_norm_eps":1,"hidden_act":"silu","num_hidden_layers":2,"hidden_size":8,"vocab_size":9,
		"num_attention_heads":2,"num_key_value_heads":2,"intermediate_size":8,
		"layer_types":["sliding_attention","sliding_attention"]`
	for field, want := range map[string]string{
		`"linear_attn_config":{"a":1}`:                        "linear attention or of a state space of another kind",
		`"mamba_d_state":16`:                                  "another kind (mamba_d_state)",
		`"num_attention_heads":8,"swa_num_attention_heads":9`: "two numbers of heads",
		`"layer_types":["conv"]`:                              "layers of the kind \"conv\"",
		`"layer_types":["linear_attention"]`:                  "no linear_num_key_heads",
		`"num_hidden_layers":2`:                               "hidden_size is not there",
		`"hybrid_override_pattern":"M?"`:                      "kinds that are not computed here",
		strings.Replace(slides, `["sliding_attention","sliding_attention"]`, `["linear_attention","linear_attention"],
			"linear_num_key_heads":1,"linear_num_value_heads":1,"linear_key_head_dim":1,"linear_value_head_dim":1,
			"linear_conv_kernel_dim":1`, 1): "no layer attends to every token",
		`"compress_ratios":[128,4]`:        "compressed attention (compress_ratios)",
		`"num_kv_shared_layers":20`:        "share KV",
		`"engram_layer_ids":[1,14]`:        "embeddings of their own",
		slides:                             "every layer slides",
		`"routed_expert_hidden_size":3584`: "experts of another width",
	} {
		_, err := ReadModel(strings.NewReader(`{"model_type":"x","rms_norm_eps":1,"hidden_act":"silu",
			"num_key_value_heads":1,` + field + `}`))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), inPlace) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// The types of weights that tools of quantisation write.
func TestQuantisations(t *testing.T) {
	for want, configs := range map[string][]string{
		"": {`{}`},
		"fp8": {`{"quant_method":"fp8","weight_block_size":[128,128]}`,
			`{"quant_algo":"FP8","config_groups":{"group_0":{"weights":{"num_bits":8,"type":"float"}}}}`},
		"fp4": {`{"quant_method":"mxfp4"}`, `{"quant_method":"modelopt","quant_algo":"NVFP4"}`,
			`{"quant_method":"fp8","quant_algo":"MIXED_PRECISION","moe_quant_algo":"NVFP4"}`,
			`{"config_groups":{"a":{"weights":{"num_bits":8,"type":"float"}},
				"b":{"weights":{"num_bits":4,"type":"float"}}}}`},
		"int4": {`{"quant_method":"gptq","bits":4}`, `{"quant_method":"awq","bits":4}`,
			`{"config_groups":{"group_0":{"weights":{"num_bits":4,"type":"int"}}}}`},
	} {
		for _, config := range configs {
			m, err := ReadModel(strings.NewReader(`{"model_type":"llama","hidden_size":8,"num_hidden_layers":2,
				"num_attention_heads":2,"intermediate_size":16,"vocab_size":100,
			"quantization_config":` + config + `}`))
			if err != nil || m.WeightsAs != want {
				t.Errorf("%s: %q, %v, want %q", config, m.WeightsAs, err, want)
			}
			got, err := ReadQuantisation(strings.NewReader(`{"quantization":` + config + `}`))
			if err != nil || got != want {
				t.Errorf("%s beside it: %q, %v, want %q", config, got, err, want)
			}
		}
	}
}

// Published configs have the parameters and the KV that a script counts by formulas of its own, which leave out norms
// and biases.
func TestPublishedConfigs(t *testing.T) {
	configs, _ := filepath.Glob("../../../shared/data/models/*_config.json")
	python, err := exec.LookPath("python3")
	if err != nil || len(configs) == 0 {
		t.Skip("there are no published configs, or no python3, which counts them")
	}
	var models []Model
	var read []string
	for _, path := range configs {
		in, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := ReadModel(in)
		in.Close()
		if err == nil {
			models, read = append(models, m), append(read, path)
		} else if !strings.Contains(err.Error(), "--params") {
			t.Errorf("%s: no flag in %v", path, err)
		}
	}
	out, err := exec.Command(python, append([]string{"testdata/count.py"}, read...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	counts := strings.NewReader(string(out))
	for i := range models {
		var total, active, kept float64
		if _, err := fmt.Fscan(counts, &total, &active, &kept); err != nil {
			t.Fatalf("%s: %v", read[i], err)
		}
		p := models[i].Params()
		one := Setup{Model: models[i], TP: 1}
		for _, c := range [][2]float64{{p.Total / 1e9, total}, {p.Active(&models[i]) / 1e9, active},
			{one.KVBytesPerToken(), kept}} {
			if math.Abs(c[0]/c[1]-1) > 0.001 {
				t.Errorf("%s: %g, and the script counts %g", filepath.Base(read[i]), c[0], c[1])
			}
		}
	}
	if len(read) < 50 {
		t.Errorf("%d of %d configs are read", len(read), len(configs))
	}
}
