package replay

import (
	"time"

	"reprise/replay/result"
)

// driftValues bounds the values that a drift is kept of, 8 MB. It is even.
const driftValues = 1 << 20

// drifts collects the drift of each turn: mean and maximum of all, percentiles
// of all up to a bound and of every second, fourth, … beyond it.
type drifts struct {
	n      int64
	sum    float64
	max    time.Duration
	every  int64
	values []time.Duration
	limit  int
}

func (d *drifts) add(v time.Duration) {
	if d.n == 0 {
		d.every, d.max = 1, v
	}
	if d.n%d.every == 0 {
		if len(d.values) == d.limit {
			for i := range d.limit / 2 {
				d.values[i] = d.values[2*i]
			}
			d.values = d.values[:d.limit/2]
			d.every *= 2
		}
		if d.n%d.every == 0 {
			d.values = append(d.values, v)
		}
	}
	d.n++
	d.sum += float64(v)
	d.max = max(d.max, v)
}

// summary is nil when no turn was sent.
func (d *drifts) summary() *result.Drift { return result.DriftOf(d.n, d.sum, d.max, d.values) }
