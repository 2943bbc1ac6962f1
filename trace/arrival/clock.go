package arrival

import (
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// A clock is a rate that changes with time.
type clock interface {
	// advance returns the time until the integral of the rate, from where the
	// last call ended, is work; it gives up at about maxDraw. The time is a
	// whole number of nanoseconds and all that a clock remembers, so that
	// errors do not add up.
	advance(work float64) time.Duration
}

// A changingProcess is a process of unit rate on a clock (time change: Çinlar,
// Introduction to Stochastic Processes, 1975, section 4.7).
type changingProcess struct {
	unit  distuv.Rander
	clock clock
	rest  time.Duration // of the last arrival, below a microsecond
}

// Next implements [Process].
func (p *changingProcess) Next() time.Duration {
	gap := min(p.rest+p.clock.advance(millionths(p.unit)), maxDraw)
	p.rest = gap % time.Microsecond
	return gap - p.rest
}

// millionths rounds a draw to them. What clocks make of it is made by + - * /
// and the square root, which all machines do alike as long as no two are fused
// to one: hence the conversions to float64 of what is already float64.
func millionths(d distuv.Rander) float64 { return math.Round(float64(d.Rand()*1e6)) / 1e6 }

// waveLines is the number of straight lines in a wave, which are within 0.01 %
// of its height.
const waveLines = 256

// wave is a cosine from low, over high, to low again.
func wave(low, high float64, period time.Duration) *pieces {
	rate := func(i int) float64 {
		up := math.Round((1-math.Cos(2*math.Pi*float64(i)/waveLines))/2*1e9) / 1e9
		return low + float64((high-low)*up)
	}
	list := make([]piece, waveLines)
	for i := range list {
		length := edge(int64(period), uint64(i+1), 8) - edge(int64(period), uint64(i), 8)
		list[i] = piece{time.Duration(length), rate(i), rate(i + 1)}
	}
	return periodic(list)
}

const forEver = time.Duration(math.MaxInt64)

// A piece of time in which the rate, per nanosecond, goes from one to the other
// in a straight line.
type piece struct {
	length   time.Duration
	from, to float64
}

func (p piece) rate(at time.Duration) float64 {
	return p.from + float64((p.to-p.from)*(float64(at)/float64(p.length)))
}

// left is the integral of the rate from at to the end of the piece.
func (p piece) left(at time.Duration) float64 {
	return float64((p.rate(at) + p.to) / 2 * float64(p.length-at))
}

// wait is the time from at until the integral is work, which is less than left.
func (p piece) wait(at time.Duration, work float64) time.Duration {
	rate, slope := p.rate(at), (p.to-p.from)/float64(p.length)
	end := math.Sqrt(max(0, float64(rate*rate)+float64(2*slope*work)))
	return min(roundWait(2*work/(rate+end)), p.length-at)
}

// roundWait is a wait in whole nanoseconds, up to maxDraw.
func roundWait(ns float64) time.Duration {
	if !(ns > 0) { // also 0/0: no work where there is no rate
		return 0
	}
	return time.Duration(math.Round(min(ns, float64(maxDraw))))
}

// pieces is a clock of one piece after another. The last piece lasts for ever,
// or, with a period, the first follows it again.
type pieces struct {
	list   []piece
	period time.Duration // of all together, or 0
	each   float64       // integral over the period
	now    int
	at     time.Duration // in piece now
}

func periodic(list []piece) *pieces {
	c := &pieces{list: list}
	for _, p := range list {
		c.period += p.length
		c.each += p.left(0)
	}
	return c
}

func (c *pieces) advance(work float64) time.Duration {
	if !(work > 0) {
		return 0
	}
	var waited time.Duration
	if c.period > 0 && work >= c.each { // whole periods at once, however many
		periods := min(math.Floor(work/c.each), float64(maxDraw/c.period)+1)
		work = max(0, work-float64(periods*c.each))
		waited = time.Duration(periods) * c.period
	}
	for waited < maxDraw {
		p := c.list[c.now]
		if p.length == forEver {
			return waited + roundWait(work/p.to)
		}
		if left := p.left(c.at); work >= left {
			work -= left
			waited += p.length - c.at
			c.now, c.at = (c.now+1)%len(c.list), 0
			continue
		}
		d := p.wait(c.at, work)
		c.at += d
		return waited + d
	}
	return maxDraw
}

// phases is a clock that alternates between two rates, for exponential times.
type phases struct {
	rates [2]float64
	means [2]time.Duration
	now   int
	left  time.Duration // of the phase
	r     *rand.Rand
}

func (c *phases) advance(work float64) time.Duration {
	if !(work > 0) {
		return 0
	}
	var waited time.Duration
	for waited < maxDraw {
		if left := float64(c.rates[c.now] * float64(c.left)); work >= left {
			work -= left
			waited += c.left
			c.now = 1 - c.now
			c.left = roundWait(millionths(distuv.Exponential{Rate: 1, Src: c.r}) * float64(c.means[c.now]))
			continue
		}
		d := min(roundWait(work/c.rates[c.now]), c.left)
		c.left -= d
		return waited + d
	}
	return maxDraw
}
