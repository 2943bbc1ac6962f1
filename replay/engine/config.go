package engine

import (
	"errors"
	"fmt"
	"time"
)

// A ServerConfig says what the engine is like. Begin with [DefaultServerConfig].
type ServerConfig struct {
	Model       string        // name it answers to; other names are accepted too, as llama.cpp and others do
	Tokenizer   string        // of text prompts
	BlockSize   int           // tokens in a block of the prefix cache
	CacheTokens int           // capacity of the prefix cache; 0 is without bound
	MaxSeqs     int           // requests that run at once
	MaxWaiting  int           // requests that wait
	MaxModelLen int           // tokens of a prompt and its answer together
	Base        time.Duration // of a prefill, whatever its length
	PrefillRate float64       // tokens per second, beyond the base
	ITL         time.Duration // between two tokens
	// ParallelPrefill lets prompts be computed at the same time, so that the time to
	// the first token is known beforehand and a client can be checked against it.
	ParallelPrefill bool

	// Engine, when it is given, takes the place of the timeline that the last
	// four make, and of BlockSize, CacheTokens, MaxSeqs and MaxWaiting.
	Engine *Config

	// How answers differ from the usual, and fail. Quirks are names of [Quirks]
	// for every request, such as "crlf,usage-missing". Imitate is one of
	// [Imitations], whose quirks are applied first. Faults are drawn for each
	// request, from its number and FaultSeed alone: "error=503:5%,stall=5s:1%".
	Imitate, Quirks, Faults string
	FaultSeed               uint64
	FaultHeader             bool // requests choose their own, by [FaultHeader]
	Admin                   bool // /admin/config is served
}

// DefaultServerConfig returns an engine of middling size, with vLLM's block size.
func DefaultServerConfig() ServerConfig {
	return ServerConfig{Model: "sim", Tokenizer: "o200k_base", BlockSize: 16, MaxSeqs: 256, MaxWaiting: 100_000,
		MaxModelLen: 1 << 20, Base: 5 * time.Millisecond, PrefillRate: 400_000, ITL: 10 * time.Millisecond}
}

func (c *ServerConfig) check() error {
	switch {
	case c.BlockSize < 1 || c.MaxSeqs < 1 || c.MaxWaiting < 0 || c.MaxModelLen < 2 || c.CacheTokens < 0:
		return errors.New("simulated engine: sizes and counts must be positive")
	case c.Base < 0 || c.ITL < 0 || !(c.PrefillRate > 0):
		return errors.New("simulated engine: times must not be negative and the prefill rate must be positive")
	case c.CacheTokens > 0 && c.CacheTokens < c.BlockSize:
		return fmt.Errorf("simulated engine: a cache of %d tokens holds no block of %d", c.CacheTokens, c.BlockSize)
	}
	return nil
}
