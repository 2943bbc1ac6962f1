package profile

import (
	"math"
	"math/bits"

	"reprise/trace"
	"reprise/trace/block"
)

// MaxReplicas is how many replicas a simulated fleet may have.
const MaxReplicas = 64

// The routers that are simulated, and one cache of all their memory beside them.
const (
	RouterOneCache = "one-cache"
	// RouterRoundRobin sends each request to the next replica.
	RouterRoundRobin = "round-robin"
	// RouterSession sends all requests of a session to one replica, by a hash of
	// it, and those without a session round-robin.
	RouterSession = "session"
	// RouterPrefix sends a request where the longest prefix of it is held.
	RouterPrefix = "prefix"
	// RouterPrefixWeighted sends it where the score is highest:
	//
	//	hit blocks / prompt blocks − weight × max(0, sent / mean sent − 1)
	//
	// with sent the prompt tokens that the replica was sent so far, and the mean
	// over replicas. [PrefixLoadWeight] is the weight.
	RouterPrefixWeighted = "prefix-weighted"
)

// PrefixLoadWeight is the weight of load in the score of [RouterPrefixWeighted]:
// a replica that was sent a tenth more than the mean loses to one that holds a
// tenth less of the prompt.
const PrefixLoadWeight = 1.0

// A fleet is a number of replicas with an LRU cache each, behind one router.
// Requests go through it in order, each whole before the next: look up, touch
// from the tail to the head, as in [Reuse].
//
// Which replicas hold a block is a bit each, so that finding how much all of
// them hold of a prompt takes one step for each of its blocks. Memory: 8 bytes
// for each block of the trace, and up to 36 for each that a replica holds; where
// the caches have no limit, only the former.
type fleet struct {
	router       string
	size, server int             // tokens in a block of the trace and of the server
	held         []uint64        // by block number: which replicas hold it
	caches       []*replicaCache // nil without limit
	turn         int             // of the round-robin
	depth        []int           // by replica: leading blocks of the row at hand that it holds

	requests, sent, prefill []int64 // by replica; tokens of prompts, and those not hit
	total                   int64   // sent to all

	all, recorded fleetSums
}

// fleetSums are what some requests found.
type fleetSums struct{ hits, hitTokens, serverTokens int64 }

// newFleet makes a fleet whose replicas hold so many blocks each; 0 is without
// limit.
func newFleet(router string, replicas int, blocks int64, size, server int) *fleet {
	f := &fleet{router: router, size: size, server: server, depth: make([]int, replicas),
		requests: make([]int64, replicas), sent: make([]int64, replicas), prefill: make([]int64, replicas)}
	for range replicas {
		if blocks > 0 {
			f.caches = append(f.caches, newReplicaCache(int(min(blocks, math.MaxUint32-1))))
		}
	}
	return f
}

// add sends a request, the blocks of which are numbered in path, to a replica.
func (f *fleet) add(r *trace.Request, path []uint32, recorded bool) {
	for _, n := range path {
		if int(n) >= len(f.held) {
			f.held = append(f.held, make([]uint64, int(n)+1-len(f.held))...)
		}
	}
	to := f.route(r, path)
	prompt := int(r.InputTokens)
	known := block.Known(f.depth[to], prompt, f.size)
	row := fleetSums{int64(f.depth[to]), int64(known), int64(block.Reusable(known, prompt, f.server))}
	f.all.add(row)
	if recorded {
		f.recorded.add(row)
	}
	f.requests[to]++
	f.sent[to] += int64(prompt)
	f.total += int64(prompt)
	f.prefill[to] += int64(prompt) - row.serverTokens
	for i := len(path) - 1; i >= 0; i-- {
		f.touch(to, path[i])
	}
}

func (s *fleetSums) add(o fleetSums) {
	s.hits += o.hits
	s.hitTokens += o.hitTokens
	s.serverTokens += o.serverTokens
}

func (f *fleet) touch(to int, n uint32) {
	f.held[n] |= 1 << to
	if f.caches == nil {
		return
	}
	if evicted, full := f.caches[to].touch(n); full {
		f.held[evicted] &^= 1 << to
	}
}

// look finds how many leading blocks of path each replica holds.
func (f *fleet) look(path []uint32) {
	rest := uint64(math.MaxUint64) >> (64 - len(f.depth))
	for i, n := range path {
		for lost := rest &^ f.held[n]; lost != 0; lost &= lost - 1 {
			f.depth[bits.TrailingZeros64(lost)] = i
		}
		if rest &= f.held[n]; rest == 0 {
			return
		}
	}
	for ; rest != 0; rest &= rest - 1 {
		f.depth[bits.TrailingZeros64(rest)] = len(path)
	}
}

// route chooses the replica of a request and leaves in depth what it holds.
func (f *fleet) route(r *trace.Request, path []uint32) int {
	f.look(path)
	switch {
	case f.router == RouterPrefix:
		return f.best(func(replica int) float64 { return float64(f.depth[replica]) })
	case f.router == RouterPrefixWeighted:
		return f.best(func(replica int) float64 { return f.score(replica, len(path)) })
	case f.router == RouterSession && r.Session != nil:
		return int(spread(uint64(*r.Session)) % uint64(len(f.depth)))
	}
	to := f.turn
	f.turn = (f.turn + 1) % len(f.depth)
	return to
}

// score is that of RouterPrefixWeighted. The product is rounded by itself, so
// that no machine fuses it with the difference and routes otherwise.
func (f *fleet) score(replica, blocks int) float64 {
	held := float64(f.depth[replica]) / float64(blocks)
	above := f.sent[replica]*int64(len(f.depth)) - f.total // of the mean, which is total/n
	if above <= 0 {
		return held
	}
	return held - float64(PrefixLoadWeight*(float64(above)/float64(f.total)))
}

// best returns the replica of the highest score; among equals that which was
// sent the fewest tokens, then the first.
func (f *fleet) best(score func(replica int) float64) int {
	best, highest := 0, score(0)
	for i := 1; i < len(f.depth); i++ {
		if s := score(i); s > highest || s == highest && f.sent[i] < f.sent[best] {
			best, highest = i, s
		}
	}
	return best
}
