package scrape

import (
	"reflect"
	"testing"
)

func yes(v bool) *bool { return &v }

// What pages of real engines state of them.
func TestFactsOf(t *testing.T) {
	for _, c := range []struct {
		name, page string
		want       Facts
	}{
		{"vLLM 0.32, two engines", `# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="128",enable_prefix_caching="True",engine="0",kv_cache_size_tokens="1048576",num_gpu_blocks="8192",num_gpu_blocks_override="None"} 1.0
vllm:cache_config_info{block_size="128",enable_prefix_caching="True",engine="1",kv_cache_size_tokens="1048576",num_gpu_blocks="8192",num_gpu_blocks_override="None"} 1.0
`, Facts{Engine: "vllm", BlockSize: 128, BlockFrom: "vllm:cache_config_info{block_size}", KVTokens: 2 << 20, PrefixCaching: yes(true)}},
		{"an older vLLM, speculating, without prefix caching", `vllm:cache_config_info{block_size="16",enable_prefix_caching="False",num_gpu_blocks="100"} 1.0
vllm:spec_decode_num_drafts_total{engine="0"} 0
`, Facts{Engine: "vllm", BlockSize: 16, BlockFrom: "vllm:cache_config_info{block_size}", KVTokens: 1600, PrefixCaching: yes(false), Speculates: true}},
		{"SGLang, ranks and priorities", `sglang:page_size{tp_rank="0",priority=""} 1
sglang:page_size{tp_rank="1",priority=""} 1
sglang:max_total_num_tokens{tp_rank="0",moe_ep_rank="0"} 5000
sglang:max_total_num_tokens{tp_rank="1",moe_ep_rank="0"} 5000
sglang:context_len{tp_rank="0"} 4096
sglang:num_queue_reqs{priority="3"} 4
sglang:spec_accept_length{tp_rank="0"} 0
`, Facts{Engine: "sglang", BlockSize: 1, BlockFrom: "sglang:page_size", KVTokens: 5000, MaxLen: 4096}},
		{"Dynamo", `dynamo_frontend_model_kv_cache_block_size{model="tiny"} 16
dynamo_frontend_model_total_kv_blocks{model="tiny"} 16384
dynamo_frontend_model_context_length{model="tiny"} 0
`, Facts{Engine: "dynamo", BlockSize: 16, BlockFrom: "dynamo_frontend_model_kv_cache_block_size", KVTokens: 262144}},
		{"Dynamo with two models of different blocks", `dynamo_frontend_model_kv_cache_block_size{model="a"} 16
dynamo_frontend_model_kv_cache_block_size{model="b"} 64
dynamo_frontend_model_kv_cache_block_size{model="c"} 64
`, Facts{Engine: "dynamo"}},
		{"llama-server", "llamacpp:requests_deferred 0\nllamacpp:spec_decode_num_drafts_total 3\n",
			Facts{Engine: "llamacpp", Speculates: true}},
		{"TensorRT-LLM", "trtllm_kv_cache_tokens_per_block{model_name=\"m\"} 32\ntrtllm_kv_cache_max_blocks{model_name=\"m\"} 10\n",
			Facts{Engine: "trtllm", BlockSize: 32, BlockFrom: "trtllm_kv_cache_tokens_per_block", KVTokens: 320}},
		{"another page", "tgi_queue_size 3\n", Facts{}},
	} {
		points, err := decodeText([]byte(c.page), DefaultPrefixes(), false)
		if err != nil {
			t.Fatal(c.name, err)
		}
		if got := FactsOf(newTable(100).samples("t", at0, points)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
