package fleet

import (
	"math"
	"math/bits"

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
// Which replicas hold a block is a bit each, so that finding how much all of
// them hold of a prompt takes one step for each of its blocks. Memory: 8 bytes
// for each block of the trace, and up to 36 for each that a replica holds; where
// the caches have no limit, only the former.
type pool struct {
	router       string
	size, server int      // tokens in a block of the trace and of the server
	held         []uint64 // by block number: which replicas hold it
	caches       []*cache // nil without limit
	turn         int      // of the round-robin
	depth        []int    // by replica: leading blocks of the current row that it holds

	requests, sent, prefill []int64 // by replica; tokens of prompts, and those not hit
	total                   int64   // sent to all

	all, recorded sums
}

// sums are what some requests found.
type sums struct{ hits, hitTokens, serverTokens int64 }

// newPool makes a pool whose replicas hold so many blocks each; 0 is without
// limit.
func newPool(router string, replicas int, blocks int64, size, server int) *pool {
	p := &pool{router: router, size: size, server: server, depth: make([]int, replicas),
		requests: make([]int64, replicas), sent: make([]int64, replicas), prefill: make([]int64, replicas)}
	for range replicas {
		if blocks > 0 {
			p.caches = append(p.caches, newCache(int(min(blocks, math.MaxUint32-1))))
		}
	}
	return p
}

// add sends a request, whose blocks are numbered in path, to a replica.
func (p *pool) add(r *trace.Request, path []uint32) {
	for _, n := range path {
		if int(n) >= len(p.held) {
			p.held = append(p.held, make([]uint64, int(n)+1-len(p.held))...)
		}
	}
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
	for i := len(path) - 1; i >= 0; i-- {
		p.touch(to, path[i])
	}
}

func (s *sums) add(o sums) {
	s.hits += o.hits
	s.hitTokens += o.hitTokens
	s.serverTokens += o.serverTokens
}

func (p *pool) touch(to int, n uint32) {
	p.held[n] |= 1 << to
	if p.caches == nil {
		return
	}
	if evicted, full := p.caches[to].touch(n); full {
		p.held[evicted] &^= 1 << to
	}
}

// route chooses the replica of a request, and counts in depth how many leading
// blocks of path each replica holds.
func (p *pool) route(r *trace.Request, path []uint32) int {
	rest := uint64(math.MaxUint64) >> (64 - len(p.depth)) // replicas that hold all blocks so far
	for i, n := range path {
		for lost := rest &^ p.held[n]; lost != 0; lost &= lost - 1 {
			p.depth[bits.TrailingZeros64(lost)] = i
		}
		if rest &= p.held[n]; rest == 0 {
			break
		}
	}
	for ; rest != 0; rest &= rest - 1 {
		p.depth[bits.TrailingZeros64(rest)] = len(path)
	}
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
