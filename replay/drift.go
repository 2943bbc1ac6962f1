package replay

import (
	"math"
	"slices"
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
func (d *drifts) summary() *result.Drift {
	if d.n == 0 {
		return nil
	}
	slices.Sort(d.values)
	s := &result.Drift{
		Turns: d.n, MeanNS: math.Round(d.sum / float64(d.n)), MaxNS: int64(d.max),
		P50NS: d.quantile(0.5), Sample: int64(len(d.values)),
	}
	if len(d.values) >= 100 {
		p99 := d.quantile(0.99)
		s.P99NS = &p99
	}
	return s
}

// quantile is a quantile by linear interpolation between order statistics.
func (d *drifts) quantile(p float64) int64 {
	pos := p * float64(len(d.values)-1)
	i := int(pos)
	low := d.values[i]
	if i+1 == len(d.values) {
		return int64(low)
	}
	return int64(low) + int64(math.Round((pos-float64(i))*float64(d.values[i+1]-low)))
}
