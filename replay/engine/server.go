package engine

import (
	"sync"
	"sync/atomic"

	"reprise/trace/block"
	"reprise/trace/token"
)

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
	requests, ids, jobs                 atomic.Int64
	prompt, generated                   atomic.Int64
	stopped, cutShort, aborted, refused atomic.Int64
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
