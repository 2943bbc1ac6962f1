package runs

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"

	"reprise/replay/result"
)

// The block size is that of the flag, what the servers state, or 16, and a line says what they state.
func TestBlockSize(t *testing.T) {
	vllm := result.ServerModels{Engine: "vllm", BlockSize: 128, BlockFrom: "vllm:cache_config_info{block_size}"}
	for _, c := range []struct {
		name    string
		given   int
		servers []result.ServerModels
		size    int
		from    string
		says    string
	}{
		{"stated", 0, []result.ServerModels{vllm, {}, vllm}, 128, vllm.BlockFrom, "endpoint: prefix cache blocks of 128 tokens (vllm:cache_config_info{block_size})\n"},
		{"given", 128, []result.ServerModels{vllm}, 128, "flag", ""},
		{"given, and stated otherwise", 16, []result.ServerModels{vllm}, 16, "flag",
			"endpoint: --server-block-size 16 is not what the server states, 128 (vllm:cache_config_info{block_size}); the expected hit ratio is for 16\n"},
		{"not stated", 0, []result.ServerModels{{Engine: "vllm"}}, 16, "", ""},
		{"servers that differ", 0, []result.ServerModels{vllm, {BlockSize: 16, BlockFrom: "b"}}, 16, "b",
			"endpoint: the servers state prefix caches of different block sizes (16 to 128 tokens); the expected hit ratio is for 16, and --server-block-size names another\n"},
		{"slots", 0, []result.ServerModels{{Engine: "llamacpp", BlockSize: 1, BlockFrom: "llama.cpp", Slots: 4}}, 1, "llama.cpp",
			"endpoint: llama.cpp keeps the latest prompt of each of its 4 slots, so there may be fewer cache hits " +
				"than expected, which is for a cache that keeps all prompts\n"},
	} {
		var stderr bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetErr(&stderr)
		if size, from := blockSize(cmd, c.given, c.servers); size != c.size || from != c.from || stderr.String() != c.says {
			t.Errorf("%s: %d from %q, says %q", c.name, size, from, stderr.String())
		}
	}
}
