package fleet

import (
	"reprise/trace"
	"reprise/trace/block"
)

// MaxReplicas is how many replicas a simulated fleet may have.
const MaxReplicas = 64

// The routers that are simulated, and one cache with the memory of all replicas.
const (
	oneCache = "one-cache"
	// RoundRobin sends each request to the next replica.
	RoundRobin = "round-robin"
	// session sends all requests of a session to one replica, by a hash of
	// it, and those without a session round-robin.
	session = "session"
	// Prefix sends a request to the replica that holds its longest prefix.
	Prefix = "prefix"
	// PrefixWeighted sends it to the replica with the highest score:
	//
	//	hit blocks / prompt blocks − weight × max(0, sent / mean sent − 1)
	//
	// where sent counts the prompt tokens that the replica was sent so far, the mean
	// is over replicas, and the weight is 1.
	PrefixWeighted = "prefix-weighted"
)

// loadWeight is the weight of load in the score of [PrefixWeighted]:
// a replica that was sent a tenth more than the mean loses to one that holds a
// tenth less of the prompt.
const loadWeight = 1.0

// A pool is a number of replicas with an LRU cache each and one router.
// Requests go through it in order, each whole before the next: look up, touch
// from the tail to the head, as in profile.Reuse.
//
// Memory: see [Caches].
type pool struct {
	router       string
	size, server int // tokens in a block of the trace and of the server
	*Caches
	turn  int   // of the round-robin
	depth []int // by replica: leading blocks of the current row that it holds

	requests, sent, prefill []int64 // by replica; tokens of prompts, and those not hit
	total                   int64   // sent to all

	all, recorded sums
}

// sums are what some requests found.
type sums struct{ hits, hitTokens, serverTokens int64 }

// newPool makes a pool whose replicas hold so many blocks each; 0 is without
// limit.
func newPool(router string, replicas int, blocks int64, size, server int) *pool {
	return &pool{router: router, size: size, server: server, Caches: NewCaches(replicas, blocks),
		requests: make([]int64, replicas), sent: make([]int64, replicas), prefill: make([]int64, replicas)}
}

// add sends a request, whose blocks are numbered in path, to a replica.
func (p *pool) add(r *trace.Request, path []uint32) {
	p.depth = p.Depths(path)
	to := p.route(r, path)
	prompt := int(r.InputTokens)
	known := block.Known(p.depth[to], prompt, p.size)
	row := sums{int64(p.depth[to]), int64(known), int64(block.Reusable(known, prompt, p.server))}
	p.all.add(row)
	if Recorded(r) {
		p.recorded.add(row)
	}
	p.requests[to]++
	p.sent[to] += int64(prompt)
	p.total += int64(prompt)
	p.prefill[to] += int64(prompt) - row.serverTokens
	p.Send(to, path)
}

func (s *sums) add(o sums) {
	s.hits += o.hits
	s.hitTokens += o.hitTokens
	s.serverTokens += o.serverTokens
}

// route chooses the replica of a request. depth has how much each of them holds of path.
func (p *pool) route(r *trace.Request, path []uint32) int {
	switch {
	case p.router == Prefix:
		return p.best(func(replica int) float64 { return float64(p.depth[replica]) })
	case p.router == PrefixWeighted:
		return p.best(func(replica int) float64 { return p.score(replica, len(path)) })
	case p.router == session && r.Session != nil:
		return int(spread(uint64(*r.Session)) % uint64(len(p.depth)))
	}
	to := p.turn
	p.turn = (p.turn + 1) % len(p.depth)
	return to
}

// score is that of PrefixWeighted. The product is rounded by itself, so
// that no machine fuses it with the difference and routes otherwise.
func (p *pool) score(replica, blocks int) float64 {
	held := float64(p.depth[replica]) / float64(blocks)
	above := p.sent[replica]*int64(len(p.depth)) - p.total // of the mean, which is total/n
	if above <= 0 {
		return held
	}
	return held - float64(loadWeight*(float64(above)/float64(p.total)))
}

// best returns the replica of the highest score; among equals that which was
// sent the fewest tokens, then the first.
func (p *pool) best(score func(replica int) float64) int {
	best, highest := 0, score(0)
	for i := 1; i < len(p.depth); i++ {
		if s := score(i); s > highest || s == highest && p.sent[i] < p.sent[best] {
			best, highest = i, s
		}
	}
	return best
}

// Recorded tells whether the cached tokens of a row can be compared: they are between
// none and all of its prompt.
func Recorded(r *trace.Request) bool {
	return r.CachedTokens != nil && *r.CachedTokens >= 0 && *r.CachedTokens <= r.InputTokens
}
