package fleet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"reprise/trace"
	"reprise/trace/block"
)

// MaxReplicas is how many replicas a simulated fleet may have.
const MaxReplicas = 64

// The routers, and one cache with the memory of all replicas.
const (
	oneCache = "one-cache"
	// Random sends each request to a replica drawn evenly.
	Random = "random"
	// RoundRobin sends each request to the next replica.
	RoundRobin = "round-robin"
	// LeastLoaded sends it where the fewest requests are in flight.
	LeastLoaded = "least-loaded"
	// Session sends all requests of a session to one replica, by a hash of
	// it, and those without a session round-robin.
	Session = "session"
	// Prefix sends a request to the replica that holds its longest prefix.
	Prefix = "prefix"
	// PrefixWeighted sends it to the replica with the highest score:
	//
	//	hit blocks / prompt blocks − max(0, sent / mean sent − 1)
	//
	// where sent counts the prompt tokens that the replica was sent so far, and the mean
	// is over replicas: one that was sent a tenth more than the mean loses to one that
	// holds a tenth less of the prompt.
	PrefixWeighted = "prefix-weighted"
)

// Routers lists the routers.
func Routers() []string {
	return []string{Random, RoundRobin, LeastLoaded, Session, Prefix, PrefixWeighted}
}

// A Router chooses a replica for each request, by what it sent where. Of equal replicas it
// takes that which was sent the fewest tokens, then the first.
type Router struct {
	name  string
	rng   *rand.Rand
	turn  int     // of the round-robin
	sent  []int64 // prompt tokens, by replica
	total int64   // sent to all
}

// NewRouter makes one of [Routers] for 1 to [MaxReplicas] replicas. seed is that of [Random].
func NewRouter(name string, replicas int, seed uint64) (*Router, error) {
	switch {
	case replicas < 1 || replicas > MaxReplicas:
		return nil, fmt.Errorf("the number of replicas must be 1 to %d", MaxReplicas)
	case !slices.Contains(Routers(), name):
		return nil, errors.New("there is no such router")
	}
	return &Router{name: name, rng: rand.New(rand.NewPCG(seed, 0)), sent: make([]int64, replicas)}, nil
}

// A Prompt is what a [Router] knows of a request and of the replicas when it comes.
type Prompt struct {
	Session        *int64 // nil without one
	Tokens, Blocks int
	Held           []int                 // by replica: how many of its leading blocks it holds
	InFlight       func(replica int) int // requests; only LeastLoaded asks
}

// Route chooses the replica of a prompt, and counts it as sent there.
func (r *Router) Route(p *Prompt) int {
	to := 0
	switch {
	case r.name == Random:
		to = r.rng.IntN(len(r.sent))
	case r.name == LeastLoaded:
		to = r.best(func(replica int) float64 { return -float64(p.InFlight(replica)) })
	case r.name == Prefix:
		to = r.best(func(replica int) float64 { return float64(p.Held[replica]) })
	case r.name == PrefixWeighted:
		to = r.best(func(replica int) float64 { return r.score(p, replica) })
	case r.name == Session && p.Session != nil:
		to = int(spread(uint64(*p.Session)) % uint64(len(r.sent)))
	default:
		to = r.turn
		r.turn = (r.turn + 1) % len(r.sent)
	}
	r.sent[to] += int64(p.Tokens)
	r.total += int64(p.Tokens)
	return to
}

// score is that of [PrefixWeighted].
func (r *Router) score(p *Prompt, replica int) float64 {
	held := float64(p.Held[replica]) / float64(max(p.Blocks, 1))
	above := r.sent[replica]*int64(len(r.sent)) - r.total // of the mean, which is total/n
	if above <= 0 {
		return held
	}
	return held - float64(above)/float64(r.total)
}

// best returns the replica of the highest score.
func (r *Router) best(score func(replica int) float64) int {
	best, highest := 0, score(0)
	for i := 1; i < len(r.sent); i++ {
		if s := score(i); s > highest || s == highest && r.sent[i] < r.sent[best] {
			best, highest = i, s
		}
	}
	return best
}

// A pool is a number of replicas with an LRU cache each and one router.
// Requests go through it in order, each whole before the next: look up, touch
// from the tail to the head, as in profile.Reuse.
//
// Memory: see [Caches].
type pool struct {
	router       *Router
	size, server int // tokens in a block of the trace and of the server
	*Caches

	requests, prefill []int64 // by replica; tokens of prompts that were not hit

	all, recorded sums
}

// sums are what some requests found.
type sums struct{ hits, hitTokens, serverTokens int64 }

// newPool makes a pool whose replicas hold so many blocks each; 0 is without
// limit. One cache takes the prompts in turn.
func newPool(router string, replicas int, blocks int64, size, server int) *pool {
	return &pool{router: &Router{name: router, sent: make([]int64, replicas)}, size: size, server: server,
		Caches:   NewCaches(replicas, blocks),
		requests: make([]int64, replicas), prefill: make([]int64, replicas)}
}

// add sends a request, whose blocks are numbered in path, to a replica.
func (p *pool) add(r *trace.Request, path []uint32) {
	prompt := int(r.InputTokens)
	held := p.Depths(path)
	to := p.router.Route(&Prompt{Session: r.Session, Tokens: prompt, Blocks: len(path), Held: held})

	known := block.Known(held[to], prompt, p.size)
	row := sums{int64(held[to]), int64(known), int64(block.Reusable(known, prompt, p.server))}
	p.all.add(row)
	if Recorded(r) {
		p.recorded.add(row)
	}
	p.requests[to]++
	p.prefill[to] += int64(prompt) - row.serverTokens
	p.Send(to, path)
}

func (s *sums) add(o sums) {
	s.hits += o.hits
	s.hitTokens += o.hitTokens
	s.serverTokens += o.serverTokens
}

// Recorded tells whether the cached tokens of a row can be compared: they are between
// none and all of its prompt.
func Recorded(r *trace.Request) bool {
	return r.CachedTokens != nil && *r.CachedTokens >= 0 && *r.CachedTokens <= r.InputTokens
}
