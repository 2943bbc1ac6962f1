package engine

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"reprise/replay/openai"
	"reprise/trace/block"
	"reprise/trace/token"
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

// A Server is one simulated engine behind an OpenAI-compatible interface.
type Server struct {
	c         ServerConfig
	tok       *token.Encoding
	words     *token.Words
	template  token.Template
	hasher    *block.Hasher // cloned for each request
	cache     *prefixCache
	engine    timeline
	live      *liveEngine // in place of cache and engine, or nil
	count     counters
	latencies latencyHistograms

	current  atomic.Pointer[faultSettings]
	changing sync.Mutex // of now
	gate     atomic.Pointer[portGate]
}

// counters are what /metrics shows besides the engine's and the cache's own.
type counters struct {
	requests, ids, jobs        atomic.Int64
	prompt, generated          atomic.Int64
	stopped, cutShort, aborted atomic.Int64
}

// NewServer makes a server; it listens to nothing by itself.
func NewServer(c ServerConfig) (*Server, error) {
	if e := c.Engine; e != nil {
		if err := e.check(); err != nil {
			return nil, err
		}
		c.BlockSize, c.CacheTokens, c.MaxSeqs, c.MaxWaiting = e.BlockSize, 0, e.MaxSeqs, e.MaxWaiting
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	tok, err := token.OpenAny(c.Tokenizer)
	if err != nil {
		return nil, err
	}
	template, err := token.OpenTemplate("chatml")
	if err != nil {
		return nil, err
	}
	key, err := block.NewKey()
	if err != nil {
		return nil, err
	}
	hasher, err := block.NewHasher(key, tok.Name(), c.BlockSize)
	if err != nil {
		return nil, err
	}
	s := &Server{c: c, tok: tok, words: tok.Words(), template: template, hasher: hasher,
		cache: newPrefixCache(c.CacheTokens / c.BlockSize), engine: timeline{c: c}, latencies: newDurations()}
	f, err := newFaults(c.Imitate, c.Quirks, c.Faults, c.FaultSeed, c.FaultHeader)
	if err != nil {
		return nil, err
	}
	s.current.Store(&faultSettings{f, c.Imitate})
	if c.Engine != nil {
		s.live, err = newLive(*c.Engine)
	}
	return s, err
}

// Handler returns the HTTP interface: chat and text completions, the Responses and the
// Messages API, embeddings, models, tokenize, health, metrics under vLLM's names,
// reset_prefix_cache, and admin/config where the configuration allows it.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+openai.ChatPath, s.generate(openai.DecodeRequest))
	mux.HandleFunc("POST "+openai.CompletionsPath, s.generate(openai.DecodeRequest))
	mux.HandleFunc("POST "+openai.ResponsesPath, s.generate(openai.DecodeResponse))
	mux.HandleFunc("POST "+openai.MessagesPath, s.generate(openai.DecodeMessage))
	mux.HandleFunc("POST "+openai.EmbeddingsPath, s.embed)
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("POST /tokenize", s.tokenize)
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("POST /reset_prefix_cache", func(http.ResponseWriter, *http.Request) {
		if s.live != nil {
			s.live.reset()
		} else {
			s.cache.reset()
		}
	})
	if s.c.Admin {
		mux.HandleFunc("GET /admin/config", s.admin)
		mux.HandleFunc("POST /admin/config", s.admin)
	}
	return mux
}

// Gate wraps a listener, so that the quirk "refuse" can close its port. Serve
// the [Server.Handler] on what it returns.
func (s *Server) Gate(l net.Listener) net.Listener {
	g := &portGate{now: l}
	s.gate.Store(g)
	return g
}
