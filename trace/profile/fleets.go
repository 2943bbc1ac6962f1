package profile

import (
	"errors"
	"slices"

	"reprise/trace"
)

// RoutingSummary says how much reuse is left when the requests are spread over
// replicas that have a prefix cache each. Every request finishes before the next
// one is sent, prompts alone are cached, and requests without blocks are left
// out.
type RoutingSummary struct {
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
	SessionOrigin string         `json:"session_origin"`
	LoadWeight    float64        `json:"prefix_load_weight"`
	Fleets        []FleetSummary `json:"fleets"`
}

// A FleetSummary compares the routers over one number of replicas.
type FleetSummary struct {
	Replicas int `json:"replicas"`
	// OneCache is one cache with the memory of all replicas.
	OneCache RouterResult   `json:"one_cache"`
	Routers  []RouterResult `json:"routers"` // none with one replica
	// SessionShare is how much of the hit tokens of one cache affinity by session
	// alone keeps, and PrefixShare the better of the routers that know the
	// prefixes; null without sessions, or without hits.
	SessionShare *float64 `json:"session_share_of_one_cache"`
	PrefixShare  *float64 `json:"prefix_share_of_one_cache"`
}

// A RouterResult is what the replicas behind one router hit.
type RouterResult struct {
	Router          string   `json:"router"`
	HitBlocks       int64    `json:"hit_blocks"`
	HitTokens       int64    `json:"hit_tokens"`
	HitRatio        *float64 `json:"hit_ratio_by_block"`
	HitRatioByToken *float64 `json:"hit_ratio_by_token"`
	// ServerHitRatio is what the servers can take of it; see [ServerReuse].
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

// fleetGroup simulates one number of replicas behind every router.
type fleetGroup struct {
	replicas int
	one      *fleet
	routers  []*fleet
}

// routing simulates all of them.
type routing struct {
	blocks   int64 // of a replica; 0 is without limit
	groups   []fleetGroup
	sessions int64 // requests that have one
}

// newRouting returns nil when nothing is to be simulated: a single cache without
// limit is what [Reuse] measures.
func newRouting(blockSize int, o *ProfilerOptions) (*routing, error) {
	replicas := slices.Compact(slices.Sorted(slices.Values(o.Replicas)))
	if len(replicas) == 0 && o.ReplicaBlocks > 0 {
		replicas = []int{1}
	}
	if o.ReplicaBlocks < 0 {
		return nil, errors.New("the blocks of a replica are below 0")
	}
	if len(replicas) == 0 || blockSize < 1 {
		return nil, nil
	}
	g := &routing{blocks: min(o.ReplicaBlocks, maxBlocks)} // no trace has more
	for _, n := range replicas {
		if n < 1 || n > MaxReplicas {
			return nil, errors.New("a number of replicas is not from 1 to 64")
		}
		group := fleetGroup{replicas: n, one: newFleet(RouterOneCache, 1, int64(n)*g.blocks, blockSize, o.ServerBlock)}
		for _, router := range []string{RouterRoundRobin, RouterSession, RouterPrefix, RouterPrefixWeighted} {
			if n > 1 {
				group.routers = append(group.routers, newFleet(router, n, g.blocks, blockSize, o.ServerBlock))
			}
		}
		g.groups = append(g.groups, group)
	}
	return g, nil
}

// add sends a row through every fleet.
func (g *routing) add(r *trace.Request, path []uint32, recorded bool) {
	if r.Session != nil {
		g.sessions++
	}
	for _, group := range g.groups {
		group.one.add(r, path, recorded)
		for _, f := range group.routers {
			f.add(r, path, recorded)
		}
	}
}

// offered are the routers of a group that the trace has what they need for.
func (g *routing) offered(group fleetGroup) (list []*fleet) {
	for _, f := range group.routers {
		if f.router != RouterSession || g.sessions > 0 {
			list = append(list, f)
		}
	}
	return list
}

func (g *routing) summary(whole *traffic, size int, kvBytes int64, origin string) *RoutingSummary {
	s := &RoutingSummary{SessionRequests: g.sessions, SessionOrigin: origin, LoadWeight: PrefixLoadWeight}
	if c := ofBlocks(g.blocks, size); c.blocks > 0 {
		s.ReplicaBlocks = &c.blocks
		if c.tokens > 0 {
			s.ReplicaTokens, s.ReplicaGiB = &c.tokens, c.inGiB(kvBytes)
		}
	}
	for _, group := range g.groups {
		one := group.one.all.hitTokens
		s.ServerBlockTokens = group.one.server
		f := FleetSummary{Replicas: group.replicas, OneCache: group.one.summary(whole, one), Routers: []RouterResult{}}
		for _, fleet := range g.offered(group) {
			r := fleet.summary(whole, one)
			f.Routers = append(f.Routers, r)
			switch fleet.router {
			case RouterSession:
				f.SessionShare = r.ShareOfOneCache
			case RouterPrefix, RouterPrefixWeighted:
				if r.ShareOfOneCache != nil && (f.PrefixShare == nil || *r.ShareOfOneCache > *f.PrefixShare) {
					f.PrefixShare = r.ShareOfOneCache
				}
			}
		}
		s.Fleets = append(s.Fleets, f)
	}
	return s
}

// summary gives the ratios over the requests with blocks, of which whole is the
// traffic, and beside one cache that hit so many tokens.
func (f *fleet) summary(whole *traffic, one int64) RouterResult {
	return RouterResult{Router: f.router, HitBlocks: f.all.hits, HitTokens: f.all.hitTokens,
		HitRatio: share(f.all.hits, whole.references), HitRatioByToken: share(f.all.hitTokens, whole.promptTokens),
		ServerHitRatio: share(f.all.serverTokens, whole.promptTokens), ShareOfOneCache: share(f.all.hitTokens, one),
		RequestImbalance: imbalance(f.requests), SentImbalance: imbalance(f.sent), PrefillImbalance: imbalance(f.prefill),
		Sent: slices.Clone(f.sent), Prefill: slices.Clone(f.prefill)}
}

// imbalance is the greatest load over the mean.
func imbalance(loads []int64) *float64 {
	var total int64
	for _, n := range loads {
		total += n
	}
	return share(slices.Max(loads)*int64(len(loads)), total)
}
