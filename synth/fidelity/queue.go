package fidelity

import (
	"fmt"
	"math"
	"slices"

	"reprise/trace"
	"reprise/trace/fleet"
	"reprise/trace/sample"
)

// The queue is one server, first come first served. A request takes its input tokens that
// are not in the cache, at least one, and so many for each output token; the unit is
// scaled so that the server is busy for a share of the time.
const (
	queueCacheTokens = 10_000 * 512
	queueOutputCost  = 20
)

// queueLoads are the shares of the time in percent.
var queueLoads = [...]int{70, 85, 95}

// queueHits are the leading blocks of each row that one LRU cache of
// [queueCacheTokens] holds.
func (k *keptRows) queueHits(size int) []int {
	hits := make([]int, len(k.at))
	if size < 1 {
		return hits
	}
	cache := fleet.NewCaches(1, max(1, int64(queueCacheTokens/size)))
	for row := range hits {
		path := k.path(row)
		hits[row] = cache.Depths(path)[0]
		cache.Send(0, path)
	}
	return hits
}

// queued gives the quantiles of the time from arrival to the end of the prompt, in s, of
// the rows that count. It is nil when they all arrive at once.
func (k *keptRows) queued(load float64, hits []int, size int) *QueueTimes {
	var work float64
	for row := k.from; row < len(k.at); row++ {
		prompt, output := k.work(row, hits[row], size)
		work += prompt + output
	}
	duration := k.at[len(k.at)-1] - k.at[k.from]
	if duration <= 0 {
		return nil
	}
	unit := load * duration / work
	times, free := make([]int64, 0, k.counted()), 0.0
	for row := k.from; row < len(k.at); row++ {
		prompt, output := k.work(row, hits[row], size)
		start := max(free, k.at[row])
		times = append(times, int64(math.Round((start-k.at[row]+unit*prompt)*1e9)))
		free = start + unit*(prompt+output)
	}
	slices.Sort(times)
	order := sample.Sorted(times)
	return &QueueTimes{inSeconds(order.At(50, 100)), inSeconds(order.At(90, 100)), inSeconds(order.At(99, 100))}
}

// work is what a row takes for its prompt and for its output.
func (k *keptRows) work(row, hit, size int) (prompt, output float64) {
	return float64(max(int(k.in[row])-hit*size, 1)), queueOutputCost * float64(max(k.out[row], 0))
}

// queues compares how long requests wait at loads.
func (c *comparison) queues() {
	refHits, candHits := c.ref.kept.queueHits(c.f.BlockSizeTokens), c.cand.kept.queueHits(c.f.BlockSizeTokens)
	for _, load := range queueLoads {
		p := QueuePair{Load: float64(load) / 100}
		p.Ref = c.ref.kept.queued(p.Load, refHits, c.f.BlockSizeTokens)
		p.Cand = c.cand.kept.queued(p.Load, candHits, c.f.BlockSizeTokens)
		c.f.Queues = append(c.f.Queues, p)
		p90 := func(q *QueueTimes) *float64 {
			if q == nil {
				return nil
			}
			return &q.P90
		}
		var d *float64
		if a, b := p.Ref, p.Cand; a != nil && b != nil {
			d = trace.Ptr((log2Ratio(a.P50, b.P50) + log2Ratio(a.P90, b.P90) + log2Ratio(a.P99, b.P99)) / 3)
		}
		c.add(fmt.Sprintf("queue_%d_log2", load), p90(p.Ref), p90(p.Cand), d, "time between its arrivals")
	}
}

// log2Ratio is how far two values are apart in powers of two; values below a billionth
// count as that.
func log2Ratio(a, b float64) float64 {
	return math.Abs(math.Log2(max(b, 1e-9) / max(a, 1e-9)))
}
