package engine

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"testing"

	"reprise/replay/openai"
)

// The defaults of a server, which its command's help and the documents tell.
func TestDefaultServer(t *testing.T) {
	model := Config{BlockSize: 16, MaxSeqs: 256, MaxBatchTokens: 2048, MaxWaiting: 100000, ChunkedPrefill: true,
		PrefixCaching: true, Batching: "continuous"}
	if got := DefaultConfig(); got != model {
		t.Errorf("got %+v, want %+v", got, model)
	}
	model.Costs, _ = ParseCosts("step=10ms,prefill-token=2.5us,request=5ms", Costs{})
	want := ServerConfig{Model: "sim", Tokenizer: "o200k_base", MaxModelLen: 1048576, Engine: model}
	if got := DefaultServerConfig(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// What is said of a server that cannot be, and the last values that can.
func TestServerConfigSaysWhat(t *testing.T) {
	for i, row := range []struct {
		change func(*ServerConfig)
		want   string
	}{
		{func(c *ServerConfig) {}, "<nil>"},
		{func(c *ServerConfig) { c.MaxModelLen = 1 },
			"simulated engine: a prompt and its answer have at least 2 tokens together"},
		{func(c *ServerConfig) { c.MaxModelLen = 2 }, "<nil>"},
		{func(c *ServerConfig) { c.Imitate = "none" },
			"simulated engine: unknown server to imitate: want one of vllm, llm-d, llama-server, ollama"},
		{func(c *ServerConfig) { c.Faults = "cut" },
			"simulated engine: fault 1 has no share of requests: write it as error=503:5%"},
		{func(c *ServerConfig) { c.Engine.KVTokens = 3 }, "simulated engine: a KV memory of 3 tokens holds no block of 16"},
	} {
		c := DefaultServerConfig()
		row.change(&c)
		s, err := NewServer(c)
		if fmt.Sprint(err) != row.want || (err == nil) != (s != nil) {
			t.Errorf("row %d: got %v, want %s", i, err, row.want)
		}
	}
	c := DefaultServerConfig()
	c.Tokenizer = "none"
	if s, err := NewServer(c); s != nil || err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("without a tokenizer: %v", err)
	}
}

// The words of an answer are drawn by SplitMix64, whose seed is the FNV-1a hash of the
// request's seed and the prompt's last 64 tokens: another version gives the same answers.
func TestWordsByDefinition(t *testing.T) {
	s, err := NewServer(DefaultServerConfig())
	if err != nil {
		t.Fatal(err)
	}
	long := make([]uint32, 100)
	for i := range long {
		long[i] = uint32(1000 + i*i)
	}
	seed := int64(-5)
	for _, row := range []struct {
		prompt []uint32
		seed   *int64
		chat   bool
	}{{long, nil, false}, {long[:64], &seed, false}, {long[:63], nil, true}, {long[:1], &seed, true}} {
		j := &serverJob{req: &openai.Request{PromptIDs: row.prompt, Seed: row.seed}, behaviour: new(behaviour)}
		if _, _, err := s.prepareJob(j); err != nil {
			t.Fatal(err)
		}
		j.chat = row.chat
		var bytes []byte
		if row.seed == nil {
			bytes = make([]byte, 8)
		} else {
			bytes = binary.LittleEndian.AppendUint64(bytes, uint64(*row.seed))
		}
		for _, id := range row.prompt[max(len(row.prompt)-64, 0):] {
			bytes = binary.LittleEndian.AppendUint32(bytes, id)
		}
		hash := fnv.New64a()
		hash.Write(bytes)
		state := hash.Sum64()
		for i := range 20 {
			state += 0x9e3779b97f4a7c15
			z := state
			z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
			z = (z ^ z>>27) * 0x94d049bb133111eb
			k := (z ^ z>>31) % uint64(len(s.words.Text))
			text, id := " "+s.words.Text[k], s.words.Spaced[k]
			if row.chat && i == 0 {
				text, id = s.words.Text[k], s.words.Bare[k]
			}
			if gotText, gotID := s.word(j, i); gotText != text || gotID != id {
				t.Fatalf("word %d of %d tokens is %q (%d), want %q (%d)", i, len(row.prompt), gotText, gotID, text, id)
			}
		}
	}
}

// A body that is too large is refused as such, whatever becomes of one that cannot be read.
func TestTooLargeBody(t *testing.T) {
	s, err := NewServer(DefaultServerConfig())
	if err != nil {
		t.Fatal(err)
	}
	tooLarge := fmt.Errorf("reading: %w", openai.ErrTooLarge)
	for err, want := range map[error]int{tooLarge: 413, io.ErrUnexpectedEOF: 500} {
		if j, status, got := s.newJob(&openai.Request{}, err,
			&behaviour{ofRequest: ofRequest{jsonFails: true}}); j != nil || status != want || got != err {
			t.Errorf("%v: status %d, %v", err, status, got)
		}
	}
}
