package engine

import (
	"net"
	"net/http"

	"reprise/replay/openai"
)

// Handler returns the HTTP interface: chat and text completions, the Responses
// API, embeddings, models, tokenize, health, metrics under vLLM's names,
// reset_prefix_cache, and admin/config where the configuration allows it.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	mux.HandleFunc("POST /v1/completions", s.complete)
	mux.HandleFunc("POST "+openai.ResponsesPath, s.respond)
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
