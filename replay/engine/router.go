package engine

import (
	"reprise/trace"
	"reprise/trace/fleet"
)

// A router sends each arrival to a replica by one of [fleet.Routers]. It knows what it sent
// where and how many requests are in flight. Of the replicas' caches it has a picture of
// its own, as llm-d's approximate prefix scorer and SGLang's router do: an LRU of
// the blocks it sent to each, as large as the replica's KV memory, in blocks of
// the trace. So requests that still wait count as held.
type router struct {
	*fleet.Router
	engines  []*engineCore
	byPrefix bool
	kvTokens int           // of a replica; 0 is without limit
	caches   *fleet.Caches // for routers by prefix; made for the first block size seen
	numbers  trace.Renumber
	path     []uint32
	held     []int
}

func newRouter(c FleetConfig, engines []*engineCore) (*router, error) {
	chooser, err := fleet.NewRouter(c.Router, c.Replicas, c.Seed)
	if err != nil {
		return nil, err
	}
	return &router{Router: chooser, engines: engines, byPrefix: c.Router == fleet.Prefix ||
		c.Router == fleet.PrefixWeighted,
		kvTokens: c.Engine.KVTokens, held: make([]int, c.Replicas)}, nil
}

// route chooses the replica of an arrival, and has its blocks cached there.
func (r *router) route(a *Arrival) int {
	prompt := &fleet.Prompt{Session: a.Session, Tokens: a.Job.Prompt, Blocks: len(a.Job.Blocks), Held: r.held,
		InFlight: func(replica int) int { return r.engines[replica].InFlight(a.At) }}
	if r.caches == nil && r.byPrefix && a.Job.BlockSize > 0 {
		blocks := 0
		if r.kvTokens > 0 {
			blocks = max(r.kvTokens/a.Job.BlockSize, 1)
		}
		r.caches = fleet.NewCaches(len(r.engines), int64(blocks))
	}
	if r.caches == nil { // no request had blocks so far
		return r.Route(prompt)
	}

	r.path = r.path[:0]
	for _, id := range a.Job.Blocks {
		r.path = append(r.path, uint32(r.numbers.ID(id)))
	}
	prompt.Held = r.caches.Depths(r.path)
	to := r.Route(prompt)
	r.caches.Send(to, r.path)
	return to
}
