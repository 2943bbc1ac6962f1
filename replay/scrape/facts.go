package scrape

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Facts are what an engine's metrics state of the engine itself. What they do not state
// is empty.
type Facts struct {
	Engine        string // vllm, sglang, llamacpp, dynamo or trtllm
	BlockSize     int    // tokens in a block of the prefix cache
	BlockFrom     string // what states it: a metric, with the label in braces
	KVTokens      int64  // that the KV cache holds, of all ranks together; at Dynamo, of one worker
	PrefixCaching *bool
	MaxLen        int  // tokens of the longest context
	Speculates    bool // decoding is speculative, or has been
}

// engines are the prefixes by which engines are known. Dynamo's frontend comes first,
// since a page of Dynamo can pass the metrics of its engine on.
var engines = []struct{ prefix, engine string }{
	{"dynamo_frontend_", "dynamo"}, {"vllm:", "vllm"}, {"sglang:", "sglang"}, {"llamacpp:", "llamacpp"},
	{"trtllm_", "trtllm"},
}

// FactsOf reads the facts from the samples of one page. A block size that two models or
// engines of the page state otherwise is not stated.
func FactsOf(samples []Sample) (f Facts) {
	for _, e := range engines {
		if f.Engine == "" && slices.ContainsFunc(samples, func(s Sample) bool {
			return strings.HasPrefix(s.Series.Metric, e.prefix)
		}) {
			f.Engine = e.engine
		}
	}
	var blocks int64 // where capacity is stated in blocks
	block := func(size int, from string) {
		switch {
		case size <= 0:
		case f.BlockSize == 0 && f.BlockFrom == "":
			f.BlockSize, f.BlockFrom = size, from
		case f.BlockSize != size:
			f.BlockSize = 0
		}
	}
	for _, s := range samples {
		if s.Series.Secondary() {
			continue
		}
		label := func(name string) int {
			n, _ := strconv.Atoi(s.Series.Label(name))
			return n
		}
		value := int(min(max(s.Value, 0), 1<<40))
		switch metric := s.Series.Metric; metric {
		case "vllm:cache_config_info", "sglang:cache_config_info", "trtllm_kv_cache_config_info":
			for _, name := range []string{"block_size", "page_size"} {
				block(label(name), metric+"{"+name+"}")
			}
			if tokens := label("kv_cache_size_tokens"); tokens > 0 {
				f.KVTokens += int64(tokens)
			} else {
				blocks += int64(label("num_gpu_blocks") + label("num_pages"))
			}
			for _, name := range []string{"enable_prefix_caching", "enable_block_reuse"} {
				if on := s.Series.Label(name); on != "" {
					f.PrefixCaching = new(strings.EqualFold(on, "true") || on == "1")
				}
			}
		case "sglang:page_size", "dynamo_frontend_model_kv_cache_block_size", "trtllm_kv_cache_tokens_per_block":
			block(value, metric)
		case "dynamo_frontend_model_total_kv_blocks", "trtllm_kv_cache_max_blocks":
			blocks += int64(value)
		case "sglang:max_total_num_tokens":
			f.KVTokens += int64(value)
		case "sglang:context_len", "dynamo_frontend_model_context_length":
			f.MaxLen = value
		case "vllm:spec_decode_num_drafts_total":
			f.Speculates = true // vLLM has the counter only then
		case "llamacpp:spec_decode_num_drafts_total", "sglang:spec_accept_length",
			"trtllm_spec_decode_num_draft_tokens_total":
			f.Speculates = f.Speculates || value > 0
		}
	}
	f.KVTokens = cmp.Or(f.KVTokens, blocks*int64(f.BlockSize))
	if f.BlockSize == 0 {
		f.BlockFrom = ""
	}
	return f
}

// Label is the value of a label of the series, "" where it has none of this name.
func (s *Series) Label(name string) string {
	for l := range strings.SplitSeq(s.Labels, ",") {
		if key, value, _ := strings.Cut(l, "="); key == name {
			return value
		}
	}
	return ""
}

// Secondary says that the series repeats what another says: the ranks of a model that is
// spread over GPUs count the same requests, and so do SGLang's series for each priority
// beside the one of all.
func (s *Series) Secondary() bool {
	repeats := slices.ContainsFunc([]string{"tp_rank", "pp_rank", "moe_ep_rank"}, func(rank string) bool {
		return !slices.Contains([]string{"", "0"}, s.Label(rank))
	})
	return repeats || s.Label("priority") != "" && strings.HasPrefix(s.Metric, "sglang:")
}
