package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// models lists the one model.
func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID          string `json:"id"`
		Object      string `json:"object"`
		Created     int64  `json:"created"`
		OwnedBy     string `json:"owned_by"`
		MaxModelLen int    `json:"max_model_len"`
	}
	writeJSON(w, map[string]any{"object": "list",
		"data": []model{{s.c.Model, "model", time.Now().Unix(), "reprise", s.c.MaxModelLen}}})
}

// tokenize counts the tokens of a text, as vLLM's endpoint of that name.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Prompt string `json:"prompt"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		refuse(w, r, nil, http.StatusBadRequest, fmt.Errorf("the body is not {\"prompt\": text}"))
		return
	}
	tokens := s.tok.Append([]uint32{}, req.Prompt)
	writeJSON(w, map[string]any{"count": len(tokens), "max_model_len": s.c.MaxModelLen, "tokens": tokens})
}

func writeJSON(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(b)
}

// metrics writes the counters in Prometheus' text form under vLLM's names.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	load, stats, queries, hits := s.engine.snapshot()
	var b bytes.Buffer
	put := func(kind, name, labels string, value int64) {
		fmt.Fprintf(&b, "# TYPE vllm:%s %s\nvllm:%s{model_name=%q%s} %d\n", name, kind, name, s.c.Model, labels, value)
	}
	caches, blocks := "True", "None" // as Python writes them
	if !s.c.Engine.PrefixCaching {
		caches = "False"
	}
	bounded := s.c.Engine.KVTokens > 0
	if bounded {
		blocks = strconv.Itoa(stats.CapacityBlocks)
	}
	put("gauge", "cache_config_info", fmt.Sprintf(",block_size=\"%d\",enable_prefix_caching=%q,num_gpu_blocks=%q",
		s.c.Engine.BlockSize, caches, blocks), 1)
	put("gauge", "num_requests_running", "", int64(load.Running))
	put("gauge", "num_requests_waiting", "", int64(load.Waiting))
	put("counter", "prompt_tokens_total", "", s.count.prompt.Load())
	put("counter", "generation_tokens_total", "", s.count.generated.Load())
	put("counter", "prefix_cache_queries_total", "", queries)
	put("counter", "prefix_cache_hits_total", "", hits)
	put("counter", "num_preemptions_total", "", stats.Preemptions)
	if bounded {
		fmt.Fprintf(&b, "# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{model_name=%q} %g\n",
			s.c.Model, float64(load.UsedBlocks)/float64(stats.CapacityBlocks))
	}
	fmt.Fprintf(&b, "# TYPE vllm:request_success_total counter\n")
	for _, c := range []struct {
		reason string
		n      int64
	}{{"stop", s.count.stopped.Load()}, {"length", s.count.cutShort.Load()}, {"abort", s.count.aborted.Load()}} {
		fmt.Fprintf(&b, "vllm:request_success_total{model_name=%q,finished_reason=%q} %d\n", s.c.Model, c.reason, c.n)
	}
	s.latencies.write(&b, s.c.Model)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(b.Bytes())
}
