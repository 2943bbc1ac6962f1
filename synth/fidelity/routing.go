package fidelity

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"

	"reprise/trace"
	"reprise/trace/crash"
	"reprise/trace/fleet"
)

// The fleets that traffic is routed over: numbers of replicas, and the capacity of each,
// as shares of the distinct blocks of the reference.
var (
	routeReplicas = [...]int{2, 4, 8, 16}
	routeShares   = [...]float64{0.01, 0.05, 0.20}
)

// The routers. Round-robin is that of [fleet.RoundRobin]. Sticky sends all requests of a
// session to one replica, by a hash of its rank by requests, so that it does
// not depend on the names of sessions; package fleet hashes the names. Few
// sessions meet on a replica by chance: of few requests it is the mean of several hashes. Prefix takes the
// replica with the most leading blocks of the prompt, less the load of its last minute
// above that of the least loaded, in blocks; package fleet weighs the load of the whole
// trace so far instead, which suits a summary, and notices no burst.
const (
	routeRoundRobin = "round_robin"
	routeSticky     = "sticky"
	routePrefix     = "prefix"
)

var routeNames = [...]string{routeRoundRobin, routeSticky, routePrefix}

// The gain of affinity is that at 8 replicas that hold the middle capacity. Hit ratios below the least one are of a few
// hits, and count as that.
const (
	gainReplicas = 2
	gainCapacity = 1
	gainLeast    = 0.01
)

// stickyRows: of a trace with fewer rows as many hashes are tried as make so many rows together, within the
// limit of hashes.
const stickyRows = 1 << 15

// loadWindow is how long the prefix router remembers what it sent, in s.
const loadWindow = 60

// routeRatios are hit ratios by block: of a router, a number of replicas and a capacity.
type routeRatios [len(routeNames)][len(routeReplicas)][len(routeShares)]float64

// stickyGain is sticky's hit ratio over round-robin's.
func (of *routeRatios) stickyGain() *float64 {
	roundRobin, sticky := of[0][gainReplicas][gainCapacity], of[1][gainReplicas][gainCapacity]
	return trace.Ptr(max(sticky, gainLeast) / max(roundRobin, gainLeast))
}

// routeCapacities are the capacities of a replica in blocks, for a reference with so many
// distinct ones.
func routeCapacities(distinct int64) (list [len(routeShares)]int64) {
	for i, share := range routeShares {
		list[i] = max(1, int64(math.RoundToEven(share*float64(distinct))))
	}
	return list
}

// routedRows is how many of the rows are routed: those that do not count, and of the others as many as have
// so many blocks. distinct are their blocks.
func (k *keptRows) routedRows() (rows int, distinct int64) {
	references := 0
	var seen []uint64 // a bit for each block
	for ; rows < len(k.at) && references < k.limit.routed; rows++ {
		path := k.path(rows)
		if rows >= k.from {
			references += len(path)
		}
		for _, n := range path {
			if more := int(n/64) + 1 - len(seen); more > 0 {
				seen = append(seen, make([]uint64, more)...)
			}
			if seen[n/64]>>(n%64)&1 == 0 {
				seen[n/64] |= 1 << (n % 64)
				distinct++
			}
		}
	}
	return rows, distinct
}

// routeRatiosOf routes the rows in every way, as many at once as there are processors. Each
// takes 8 bytes for each distinct block and up to 36 for each that a replica holds.
func (k *keptRows) routeRatiosOf(capacities [len(routeShares)]int64, source bool) *routeRatios {
	ratios := new(routeRatios)
	sessions := k.sessionsBy(source)
	rows, _ := k.routedRows()
	if sessions = sessions[:rows]; !k.limit.asTheyAppear {
		sessions = bySize(sessions)
	}
	var wait sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for r, router := range routeNames {
		for n, replicas := range routeReplicas {
			for c, capacity := range capacities {
				slots <- struct{}{}
				wait.Go(func() {
					defer func() { <-slots }()
					defer crash.Caught()
					hashes := 1
					if router == routeSticky {
						hashes = max(1, min(k.limit.hashes, stickyRows/rows))
					}
					for hash := range hashes {
						ratios[r][n][c] += k.routed(router, replicas, capacity, sessions,
							uint64(hash)) / float64(hashes)
					}
				})
			}
		}
	}
	wait.Wait()
	return ratios
}

// bySize numbers sessions anew, those with the most requests first and of equals those that appear first. A hash then
// sends the largest sessions of both sides to the same replicas: a few large ones meet there or do not, which would
// be the difference of two traces that are alike.
func bySize(sessions []int32) []int32 {
	var requests []int32
	for _, session := range sessions {
		requests = append(requests, make([]int32, max(0, int(session)+1-len(requests)))...)
		requests[session]++
	}

	order := make([]int32, len(requests))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(requests[b], requests[a]) })
	rank := make([]int32, len(requests))
	for i, session := range order {
		rank[session] = int32(i)
	}

	out := make([]int32, len(sessions))
	for i, session := range sessions {
		out[i] = rank[session]
	}
	return out
}

// routed is the hit ratio by block of the rows that count, of as many as there are sessions.
func (k *keptRows) routed(router string, replicas int, capacity int64, sessions []int32, hash uint64) float64 {
	caches := fleet.NewCaches(replicas, capacity)
	recent := recentLoad{of: make([]int, replicas)}
	var hits, references int
	for row := range sessions {
		path := k.path(row)
		depths := caches.Depths(path)
		to := 0
		switch router {
		case routeRoundRobin:
			to = row % replicas
		case routeSticky:
			if to = int(uint64(sessions[row]) * 2654435761 >> 7 % uint64(replicas)); hash > 0 { // Knuth's multiplier
				to = int(scatter(uint64(sessions[row])<<8|hash) % uint64(replicas))
			}
		case routePrefix:
			recent.forget(k.at[row] - loadWindow)
			to = recent.choose(depths)
			recent.queue = append(recent.queue, sentLoad{k.at[row], to, len(path) - depths[to]})
			recent.of[to] += len(path) - depths[to]
		}
		if row >= k.from {
			hits += depths[to]
			references += len(path)
		}
		caches.Send(to, path)
	}
	return float64(hits) / float64(references)
}

// sentLoad is what a request left to compute, in blocks.
type sentLoad struct {
	at          float64
	to, missing int
}

// recentLoad is what was sent to replicas lately.
type recentLoad struct {
	queue []sentLoad
	of    []int // by replica
}

func (l *recentLoad) forget(before float64) {
	n := 0
	for n < len(l.queue) && l.queue[n].at < before {
		l.of[l.queue[n].to] -= l.queue[n].missing
		n++
	}
	l.queue = l.queue[n:]
}

// choose takes the replica with the most blocks less its load; of equals that with the
// least load, then the first.
func (l *recentLoad) choose(depths []int) int {
	best := 0
	for i := 1; i < len(depths); i++ {
		if a, b := depths[i]-l.of[i], depths[best]-l.of[best]; a > b || a == b && l.of[i] < l.of[best] {
			best = i
		}
	}
	return best
}

// routing compares the hit ratios behind routers.
func (c *comparison) routing() {
	const what = "prefix blocks"
	ref, cand := c.ref.kept, c.cand.kept
	has := func(k *keptRows) bool { return int(k.begin[k.from]) < len(k.blocks) }
	if !has(ref) || !has(cand) {
		var sides [2]*float64 // a side that has blocks shows the hit ratio of one cache
		if has(ref) {
			sides[0] = c.ref.ratios.ByBlock
		}
		if has(cand) {
			sides[1] = c.cand.ratios.ByBlock
		}
		for _, router := range routeNames {
			c.add("route_"+router, sides[0], sides[1], nil, what)
		}
		c.add("route_sticky_gain", sides[0], sides[1], nil, what)
		return
	}
	_, distinct := ref.routedRows()
	capacities := routeCapacities(distinct)
	source := c.f.Sessions == sourceSessions
	a, b := ref.routeRatiosOf(capacities, source), cand.routeRatiosOf(capacities, source)
	for r, router := range routeNames {
		var sumA, sumB, worst float64
		for n, replicas := range routeReplicas {
			for i, capacity := range capacities {
				x, y := a[r][n][i], b[r][n][i]
				c.f.Routes = append(c.f.Routes, RoutePair{router, replicas, capacity, x, y})
				sumA, sumB, worst = sumA+x, sumB+y, max(worst, math.Abs(x-y))
			}
		}
		fleets := float64(len(routeReplicas) * len(routeShares))
		c.add("route_"+router, trace.Ptr(sumA/fleets), trace.Ptr(sumB/fleets), &worst, what)
	}
	refGain, candGain := a.stickyGain(), b.stickyGain()
	c.add("route_sticky_gain", refGain, candGain, relative(refGain, candGain), what)
}
