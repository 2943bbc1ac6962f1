package replay

import (
	"math"
	"slices"
	"time"
)

// A Drift says how far a causal run moved the turns behind a first one: due less
// recorded time, the latter divided by the speed. Above zero the server, or the
// client, took longer than in the source. Durations are nanoseconds.
type Drift struct {
	Turns  int64   `json:"turns"` // that were sent
	MeanNS float64 `json:"mean_ns"`
	P50NS  int64   `json:"p50_ns"`
	P99NS  *int64  `json:"p99_ns"` // null below 100 turns
	MaxNS  int64   `json:"max_ns"`
	Sample int64   `json:"sample"` // turns that the percentiles are of
}

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
func (d *drifts) summary() *Drift {
	if d.n == 0 {
		return nil
	}
	slices.Sort(d.values)
	s := &Drift{
		Turns: d.n, MeanNS: math.Round(d.sum / float64(d.n)), MaxNS: int64(d.max),
		P50NS: d.at(0.5), Sample: int64(len(d.values)),
	}
	if len(d.values) >= 100 {
		p99 := d.at(0.99)
		s.P99NS = &p99
	}
	return s
}

// at is a quantile by linear interpolation between order statistics.
func (d *drifts) at(p float64) int64 {
	pos := p * float64(len(d.values)-1)
	i := int(pos)
	low := d.values[i]
	if i+1 == len(d.values) {
		return int64(low)
	}
	return int64(low) + int64(math.Round((pos-float64(i))*float64(d.values[i+1]-low)))
}
