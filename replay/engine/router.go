package engine

import (
	"math/rand/v2"

	"reprise/trace/sample"
)

// The routers of a [Fleet].
const (
	// RouterRandom sends each request to a replica drawn evenly.
	RouterRandom = "random"
	// RouterRoundRobin sends each request to the next replica.
	RouterRoundRobin = "round-robin"
	// RouterLeastLoaded sends it where the fewest requests run and wait.
	RouterLeastLoaded = "least-loaded"
	// RouterSession sends all requests of a session to one replica, by a hash of
	// it, and those without a session round-robin.
	RouterSession = "session"
	// RouterPrefix sends it where the score is highest:
	//
	//	hit blocks / prompt blocks − LoadWeight × max(0, sent / mean sent − 1)
	//
	// with sent the prompt tokens that the replica was sent so far, and the mean
	// over replicas. A weight of 0 follows the prefix alone.
	RouterPrefix = "prefix"
)

// Routers lists the routers.
func Routers() []string {
	return []string{RouterRandom, RouterRoundRobin, RouterLeastLoaded, RouterSession, RouterPrefix}
}

// A router chooses a replica for each arrival. It knows what it sent where and
// how many requests are in flight. Of the replicas' caches it has a picture of
// its own, as llm-d's approximate prefix scorer and SGLang's router do: an LRU of
// the blocks it sent to each, as large as the replica's KV memory, in blocks of
// the trace. So requests that still wait count as held.
type router struct {
	c       FleetConfig
	engines []*engineCore
	rng     *rand.Rand
	turn    int
	sent    []int64 // prompt tokens, by replica
	total   int64
	caches  []*blockPool // by replica, for RouterPrefix; made for the first block size seen
	depth   []int
	path    []int32
}

func (r *router) route(a *Arrival) int {
	to := 0
	switch {
	case r.c.Router == RouterRandom:
		to = r.rng.IntN(len(r.engines))
	case r.c.Router == RouterLeastLoaded:
		to = r.best(func(i int) float64 { return -float64(r.engines[i].InFlight(a.At)) })
	case r.c.Router == RouterPrefix:
		to = r.routeByPrefix(a)
	case r.c.Router == RouterSession && a.Session != nil:
		// Sessions count up; mixed, they spread evenly.
		to = int(sample.Mix64((uint64(*a.Session)+1)*sample.Golden) % uint64(len(r.engines)))
	default:
		to = r.turn
		r.turn = (r.turn + 1) % len(r.engines)
	}
	r.sent[to] += int64(a.Job.Prompt)
	r.total += int64(a.Job.Prompt)
	return to
}

// routeByPrefix finds how many leading blocks each replica was sent and still has, takes
// the replica of the highest score, and touches the blocks in its cache from the tail to
// the head.
func (r *router) routeByPrefix(a *Arrival) int {
	if r.caches == nil && a.Job.BlockSize > 0 {
		limit := maxBlocks
		if r.c.Engine.KVTokens > 0 {
			limit = max(r.c.Engine.KVTokens/a.Job.BlockSize, 1)
		}
		for range r.engines {
			r.caches = append(r.caches, newPool(limit, 1))
		}
	}
	for i, c := range r.caches {
		n := 0
		for n < len(a.Job.Blocks) && c.find(a.Job.Blocks[n]) != keyless {
			n++
		}
		r.depth[i] = n
	}
	to := r.best(func(i int) float64 { return r.score(i, len(a.Job.Blocks)) })
	if r.caches == nil { // no request had blocks so far
		return to
	}
	c := r.caches[to]
	r.path = r.path[:0]
	for _, id := range a.Job.Blocks {
		n := c.find(id)
		switch {
		case n != keyless:
			c.share(n)
		case c.available() > 0:
			c.allocate()
			n = c.publish(id)
		default:
			continue
		}
		r.path = append(r.path, n)
	}
	c.release(r.path)
	return to
}

// score is that of RouterPrefix. The product is rounded by itself, so that no
// machine fuses it with the difference and routes otherwise.
func (r *router) score(replica, blocks int) float64 {
	held := float64(r.depth[replica]) / float64(max(blocks, 1))
	above := r.sent[replica]*int64(len(r.engines)) - r.total // of the mean, which is total/n
	if above <= 0 {
		return held
	}
	return held - float64(r.c.LoadWeight*(float64(above)/float64(r.total)))
}

// best returns the replica of the highest score; among equals that which was
// sent the fewest tokens, then the first.
func (r *router) best(score func(replica int) float64) int {
	best, highest := 0, score(0)
	for i := 1; i < len(r.engines); i++ {
		if s := score(i); s > highest || s == highest && r.sent[i] < r.sent[best] {
			best, highest = i, s
		}
	}
	return best
}
