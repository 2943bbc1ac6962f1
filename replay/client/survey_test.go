package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"

	"reprise/replay/result"
)

func TestLocalHost(t *testing.T) {
	own := func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.IPv4(10, 1, 2, 3), Mask: net.CIDRMask(8, 32)}, &net.IPNet{IP: net.ParseIP("fd00::1"), Mask: net.CIDRMask(64, 128)}}, nil
	}
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "0.0.0.0": true, "10.1.2.3": true, "fd00::1": true,
		"10.1.2.4": false, "gpu1": false, "example.com": false, "8.8.8.8": false, "": false,
	} {
		if localHost(host, own) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
	if localHost("10.1.2.3", func() ([]net.Addr, error) { return nil, errors.New("no") }) {
		t.Error("an address that is not known is taken for one of this host")
	}
	if !adminOf(t, "unix:///x.sock", "http://127.0.0.1:1").local() || adminOf(t, "http://127.0.0.1:1", "http://192.0.2.1").local() {
		t.Error("of several servers, all must be on this host")
	}
}

// Servers say who they are as far as they do, in bounds, and never fail a run.
func TestSurvey(t *testing.T) {
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf(`{"id":"adapter-%d","parent":"m"}`, i))
	}
	vllm := (&adminServer{gets: map[string]string{"/version": `{"version":"0.11.0"}`,
		"/v1/models": `{"data":[` + strings.Join(many, ",") + `,{"id":"m","owned_by":"vllm","root":"models/SECRET/m","max_model_len":4096}]}`}}).start(t)
	llama := (&adminServer{gets: map[string]string{"/v1/models": `{"data":[{"id":"q\u001b","owned_by":"` + strings.Repeat("x", 1000) + `","meta":{"n_params":494032768,"size":987654}}]}`}}).start(t)
	other := (&adminServer{gets: map[string]string{"/version": `<html>`, "/v1/models": `[]`}}).start(t)
	got := adminOf(t, vllm, llama, other).Survey(t.Context(), "m")
	if len(got) != 3 || got[0].Version != "0.11.0" || len(got[0].Models) != mostModels || got[0].Unlisted != 11 ||
		got[0].Models[0] != (result.ServedModel{ID: "m", OwnedBy: "vllm", Root: "models/SECRET/m", MaxLen: 4096}) ||
		got[0].Models[1].Parent != "m" {
		t.Errorf("%+v", got)
	}
	if m := got[1].Models[0]; m.ID != "q?" || len([]rune(m.OwnedBy)) != 200 || m.Parameters != 494032768 || m.Bytes != 987654 {
		t.Errorf("%+v", m)
	}
	if !reflect.DeepEqual(got[2], result.ServerModels{}) {
		t.Errorf("%+v", got[2])
	}
	if doc, _ := json.Marshal(got); strings.Contains(string(doc), "SECRET") {
		t.Error("where the model lies is told")
	}
	if got := adminOf(t, other).Survey(t.Context(), "m"); got != nil {
		t.Errorf("a server that says nothing: %+v", got)
	}
}

// Servers state the block size and the capacity of their caches in metrics and settings,
// under the names of their engines; reprise serve has those of vLLM.
func TestSurveyFacts(t *testing.T) {
	models := func(owner, more string) string {
		return `{"data":[{"id":"m","owned_by":"` + owner + `"` + more + `}]}`
	}
	vllm := (&adminServer{gets: map[string]string{"/version": `{"version":"0.32.0"}`, "/v1/models": models("vllm", `,"max_model_len":4096`),
		"/metrics": `vllm:cache_config_info{block_size="128",enable_prefix_caching="True",num_gpu_blocks="8",kv_cache_size_tokens="1024"} 1`}}).start(t)
	dynamo := (&adminServer{gets: map[string]string{"/v1/models": models("nvidia", `,"context_window":0`), "/openapi.json": `{"info":{"version":"1.6.0"}}`,
		"/metrics": "dynamo_frontend_model_kv_cache_block_size{model=\"m\"} 16\ndynamo_frontend_model_context_length{model=\"m\"} 8192\n"}}).start(t)
	llama := (&adminServer{gets: map[string]string{"/v1/models": models("llamacpp", `,"meta":{"n_ctx":2048}`),
		"/props": `{"total_slots":4,"build_info":"b1-7e4c0a9","model_path":"/SECRET","default_generation_settings":{"params":{"speculative.types":"draft"}}}`}}).start(t)
	sglang := (&adminServer{gets: map[string]string{"/v1/models": models("sglang", ""),
		"/get_server_info": `{"api_key":"SECRET","version":"0.5.6","page_size":64,"disable_radix_cache":true,"max_total_num_tokens":9000,"speculative_algorithm":null}`}}).start(t)
	trtllm := (&adminServer{gets: map[string]string{"/v1/models": models("tensorrt_llm", ""), "/metrics": `[{"iter":1}]`, "/prometheus/metrics": "trtllm_kv_cache_tokens_per_block 32\n"}}).start(t)
	own := (&adminServer{gets: map[string]string{"/v1/models": models("reprise", ""), "/metrics": "vllm:num_requests_running 0\n"}}).start(t)
	yes, no := true, false
	// What others call an owner is no engine.
	gateway := (&adminServer{gets: map[string]string{"/v1/models": models("vllm", "")}}).start(t)
	likeLlama := (&adminServer{gets: map[string]string{"/v1/models": models("llamacpp", ""), "/props": `{"name":"x"}`}}).start(t)
	likeSGLang := (&adminServer{gets: map[string]string{"/v1/models": models("sglang", ""), "/server_info": `{"name":"x"}`}}).start(t)
	for _, one := range adminOf(t, gateway, likeLlama, likeSGLang).Survey(t.Context(), "m") {
		if one.Engine != "" || one.BlockSize != 0 {
			t.Errorf("an engine by its owner alone: %+v", one)
		}
	}
	got := adminOf(t, vllm, dynamo, llama, sglang, trtllm, own).Survey(t.Context(), "m")
	for i, want := range []result.ServerModels{
		{Engine: "vllm", Version: "0.32.0", BlockSize: 128, BlockFrom: "vllm:cache_config_info{block_size}", KVTokens: 1024, PrefixCaching: &yes, Models: []result.ServedModel{{ID: "m", OwnedBy: "vllm", MaxLen: 4096}}},
		{Engine: "dynamo", Version: "1.6.0", BlockSize: 16, BlockFrom: "dynamo_frontend_model_kv_cache_block_size", Models: []result.ServedModel{{ID: "m", OwnedBy: "nvidia", MaxLen: 8192}}},
		{Engine: "llamacpp", Version: "b1-7e4c0a9", BlockSize: 1, BlockFrom: "llama.cpp, which reuses a slot by token", Slots: 4, Speculates: true, Models: []result.ServedModel{{ID: "m", OwnedBy: "llamacpp", MaxLen: 2048}}},
		{Engine: "sglang", Version: "0.5.6", BlockSize: 64, BlockFrom: "/server_info", KVTokens: 9000, PrefixCaching: &no, Models: []result.ServedModel{{ID: "m", OwnedBy: "sglang"}}},
		{Engine: "trtllm", BlockSize: 32, BlockFrom: "trtllm_kv_cache_tokens_per_block", Models: []result.ServedModel{{ID: "m", OwnedBy: "tensorrt_llm"}}},
		{Engine: "reprise", Models: []result.ServedModel{{ID: "m", OwnedBy: "reprise"}}},
	} {
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("%s: %+v, want %+v", want.Engine, got[i], want)
		}
	}
}

// A model's files may be at hand under its own name, where a server loaded it from, and under those of the model that
// an adapter is of.
func TestNamesOfModels(t *testing.T) {
	servers := []result.ServerModels{{}, {Models: []result.ServedModel{
		{ID: "chat", Root: "/models/llama"}, {ID: "sql", Parent: "chat", Root: "/adapters/sql"}, {ID: "bare"}}}}
	for model, want := range map[string][]string{
		"chat":  {"chat", "chat", "/models/llama"},
		"sql":   {"sql", "sql", "/adapters/sql", "chat", "/models/llama"},
		"bare":  {"bare", "bare"},
		"other": {"other"},
	} {
		if got := NamesOf(servers, model); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", model, got, want)
		}
	}
}
