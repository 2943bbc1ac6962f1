package engine

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"reprise/replay/openai"
	"reprise/trace/block"
	"reprise/trace/token"
)

// A ServerConfig says what the engine is like. Begin with [DefaultServerConfig].
type ServerConfig struct {
	Model       string // name it answers to; other names are accepted too, as llama.cpp and others do
	Tokenizer   string // of text prompts
	MaxModelLen int    // tokens of a prompt and its answer together
	Engine      Config // what runs the requests

	// How answers differ from the usual, and fail. Quirks are names of [Quirks]
	// for every request, such as "crlf,usage-missing". Imitate is one of
	// [Imitations], whose quirks are applied first. Faults are drawn for each
	// request, from its number and FaultSeed alone: "error=503:5%,stall=5s:1%".
	Imitate, Quirks, Faults string
	FaultSeed               uint64
	FaultHeader             bool // requests choose their own, by [FaultHeader]
	Admin                   bool // /admin/config is served
}

// DefaultServerConfig returns a server of middling size with the engine of
// [DefaultConfig]. Its step takes 10 ms, or 2.5 µs for each token of a prompt
// where that is longer; a request enters the engine after 5 ms.
func DefaultServerConfig() ServerConfig {
	e := DefaultConfig()
	e.Costs = Costs{Step: 10e9, PrefillToken: 2.5e6, Request: 5e9}
	return ServerConfig{Model: "sim", Tokenizer: "o200k_base", MaxModelLen: 1 << 20, Engine: e}
}

func (c *ServerConfig) check() error {
	if c.MaxModelLen < 2 {
		return errors.New("simulated engine: a prompt and its answer have at least 2 tokens together")
	}
	return c.Engine.check()
}

// A Server is one simulated engine behind an OpenAI-compatible interface.
type Server struct {
	c         ServerConfig
	tok       *token.Encoding
	words     *token.Words
	template  token.Template
	hasher    *block.Hasher // cloned for each request
	engine    *liveEngine
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
	hasher, err := block.NewHasher(key, tok.Name(), c.Engine.BlockSize)
	if err != nil {
		return nil, err
	}
	s := &Server{c: c, tok: tok, words: tok.Words(), template: template, hasher: hasher, latencies: newDurations()}
	f, err := newFaults(c.Imitate, c.Quirks, c.Faults, c.FaultSeed, c.FaultHeader)
	if err != nil {
		return nil, err
	}
	s.current.Store(&faultSettings{f, c.Imitate})
	if s.engine, err = newLive(c.Engine); err != nil {
		return nil, err
	}
	return s, nil
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
		s.engine.reset()
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
