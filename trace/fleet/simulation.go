package fleet

import (
	"errors"
	"math"
	"slices"

	"reprise/trace"
)

// Summary tells how much reuse is left when the requests are spread over
// replicas that have a prefix cache each. Every request finishes before the next
// one is sent, prompts alone are cached, and requests without blocks are left
// out.
type Summary struct {
	// The memory of each replica; null is without limit, or unknown.
	ReplicaBlocks *int64   `json:"replica_blocks"`
	ReplicaTokens *int64   `json:"replica_tokens"`
	ReplicaGiB    *float64 `json:"replica_gib"`
	// ServerBlockTokens is the block size that prefill is computed with.
	ServerBlockTokens int `json:"server_block_tokens"`
	// SessionRequests are the requests that have a session. Without any there is
	// no session router.
	SessionRequests int64 `json:"session_requests"`
	// SessionOrigin is source or inferred. Inferred sessions were made from shared
	// prefixes: their router is what affinity by session could reach if clients
	// named the sessions that their prompts show.
	SessionOrigin string  `json:"session_origin"`
	Fleets        []Fleet `json:"fleets"`
}

// A Fleet compares the routers over one number of replicas.
type Fleet struct {
	Replicas int `json:"replicas"`
	// OneCache is one cache with the memory of all replicas.
	OneCache Result   `json:"one_cache"`
	Routers  []Result `json:"routers"` // none with one replica
	// SessionShare is how much of the hit tokens of one cache affinity by session
	// alone keeps, and PrefixShare the better of the routers that know the
	// prefixes; null without sessions, or without hits.
	SessionShare *float64 `json:"session_share_of_one_cache"`
	PrefixShare  *float64 `json:"prefix_share_of_one_cache"`
}

// A Result is what the replicas of one router hit.
type Result struct {
	Router          string   `json:"router"`
	HitBlocks       int64    `json:"hit_blocks"`
	HitTokens       int64    `json:"hit_tokens"`
	HitRatio        *float64 `json:"hit_ratio_by_block"`
	HitRatioByToken *float64 `json:"hit_ratio_by_token"`
	// ServerHitRatio is what the servers can take of it; see profile.ServerReuse.
	ServerHitRatio  *float64 `json:"server_hit_ratio_by_token"`
	ShareOfOneCache *float64 `json:"share_of_one_cache"` // of its hit tokens
	// The load of the replica that has the most over the mean of all replicas: of
	// requests, of prompt tokens sent, and of those left to compute.
	RequestImbalance *float64 `json:"requests_max_over_mean"`
	SentImbalance    *float64 `json:"prompt_tokens_max_over_mean"`
	PrefillImbalance *float64 `json:"prefill_tokens_max_over_mean"`
	// Sent and Prefill are these tokens by replica.
	Sent    []int64 `json:"prompt_tokens_by_replica"`
	Prefill []int64 `json:"prefill_tokens_by_replica"`
}

// A comparison simulates one number of replicas with every router.
type comparison struct {
	replicas int
	one      *pool
	routers  []*pool
}

// A Simulation sends the requests of a trace through replicas with every router, for
// several numbers of replicas at once. Memory: see [New].
type Simulation struct {
	size     int   // tokens in a block of the trace
	blocks   int64 // of a replica; 0 is without limit
	groups   []comparison
	sessions int64 // requests that have one
}

// Options are the settings of a [Simulation].
type Options struct {
	BlockSize   int // tokens in a block of the trace
	ServerBlock int // tokens in a block of the server, at least 1
	// Replicas are the numbers of replicas to simulate, each from 1 to [MaxReplicas].
	Replicas []int
	// ReplicaBlocks is how many blocks of the trace the prefix cache of a replica
	// holds; 0 is without limit. Without Replicas it is the cache of one server.
	ReplicaBlocks int64
}

// maxBlocks is more blocks than a trace has: their numbers have 32 bits.
const maxBlocks = 1 << 32

// New begins a simulation. It is nil when there is nothing to simulate: no blocks, or
// only one cache without limit, which profile.Reuse measures. Options that are out of
// their range are an error.
//
// Memory: five pools of replicas for each number of them, of 8 bytes for each block of
// the trace, and up to 36 for each block that a replica holds.
func New(o Options) (*Simulation, error) {
	replicas := slices.Compact(slices.Sorted(slices.Values(o.Replicas)))
	if len(replicas) == 0 && o.ReplicaBlocks > 0 {
		replicas = []int{1}
	}
	if o.ReplicaBlocks < 0 {
		return nil, errors.New("the number of blocks of a replica is negative")
	}
	if len(replicas) == 0 || o.BlockSize < 1 {
		return nil, nil
	}
	g := &Simulation{size: o.BlockSize, blocks: min(o.ReplicaBlocks, maxBlocks)}
	for _, n := range replicas {
		if n < 1 || n > MaxReplicas {
			return nil, errors.New("the number of replicas must be 1 to 64")
		}
		group := comparison{replicas: n, one: newPool(oneCache, 1, int64(n)*g.blocks, o.BlockSize, o.ServerBlock)}
		for _, router := range []string{RoundRobin, Session, Prefix, PrefixWeighted} {
			if n > 1 {
				group.routers = append(group.routers, newPool(router, n, g.blocks, o.BlockSize, o.ServerBlock))
			}
		}
		g.groups = append(g.groups, group)
	}
	return g, nil
}

// Add sends a request through every pool of replicas. path has the number of each of
// its blocks; numbers count the distinct blocks of the trace from 0.
func (g *Simulation) Add(r *trace.Request, path []uint32) {
	if r.Session != nil {
		g.sessions++
	}
	for _, group := range g.groups {
		group.one.add(r, path)
		for _, f := range group.routers {
			f.add(r, path)
		}
	}
}

// offered leaves out the routers that need sessions, where the trace has none.
func (g *Simulation) offered(group comparison) (list []*pool) {
	for _, f := range group.routers {
		if f.router.name != Session || g.sessions > 0 {
			list = append(list, f)
		}
	}
	return list
}

// Summary says what the pools have hit of whole, the traffic of all requests so far that
// were added. kvBytes is the memory of a token, 0 if it is unknown, and origin says
// where sessions are from: see [Summary].SessionOrigin.
func (g *Simulation) Summary(whole Traffic, kvBytes int64, origin string) *Summary {
	s := &Summary{SessionRequests: g.sessions, SessionOrigin: origin}
	if g.blocks > 0 {
		s.ReplicaBlocks = trace.Ptr(g.blocks)
		if g.blocks <= math.MaxInt64/int64(g.size) {
			tokens := g.blocks * int64(g.size)
			s.ReplicaTokens = &tokens
			if kvBytes > 0 {
				s.ReplicaGiB = trace.Ptr(float64(tokens) * float64(kvBytes) / (1 << 30))
			}
		}
	}
	for _, group := range g.groups {
		one := group.one.all.hitTokens
		s.ServerBlockTokens = group.one.server
		f := Fleet{Replicas: group.replicas, OneCache: group.one.summary(&whole, one), Routers: []Result{}}
		for _, p := range g.offered(group) {
			r := p.summary(&whole, one)
			f.Routers = append(f.Routers, r)
			switch p.router.name {
			case Session:
				f.SessionShare = r.ShareOfOneCache
			case Prefix, PrefixWeighted:
				if r.ShareOfOneCache != nil && (f.PrefixShare == nil || *r.ShareOfOneCache > *f.PrefixShare) {
					f.PrefixShare = r.ShareOfOneCache
				}
			}
		}
		s.Fleets = append(s.Fleets, f)
	}
	return s
}

// summary gives the ratios over whole, the traffic of all requests, and over the hit
// tokens of one cache.
func (p *pool) summary(whole *Traffic, one int64) Result {
	return Result{Router: p.router.name, HitBlocks: p.all.hits, HitTokens: p.all.hitTokens,
		HitRatio: Ratio(p.all.hits, whole.Blocks), HitRatioByToken: Ratio(p.all.hitTokens, whole.PromptTokens),
		ServerHitRatio: Ratio(p.all.serverTokens, whole.PromptTokens), ShareOfOneCache: Ratio(p.all.hitTokens, one),
		RequestImbalance: Imbalance(p.requests), SentImbalance: Imbalance(p.router.sent),
		PrefillImbalance: Imbalance(p.prefill),
		Sent:             slices.Clone(p.router.sent), Prefill: slices.Clone(p.prefill)}
}

// Ratio returns part/whole, or nil without a whole.
func Ratio(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	return trace.Ptr(float64(part) / float64(whole))
}

// Imbalance is the greatest load over the mean.
func Imbalance(loads []int64) *float64 {
	var total int64
	for _, n := range loads {
		total += n
	}
	return Ratio(slices.Max(loads)*int64(len(loads)), total)
}

// Traffic is what some requests with blocks brought, and what a cache without limit knew
// of it.
type Traffic struct {
	Requests, Blocks, PromptTokens int64
	HitTokens                      int64
	ServerTokens                   int64 // of the hit tokens, those that a server can take
	CachedTokens                   int64 // as recorded
}
