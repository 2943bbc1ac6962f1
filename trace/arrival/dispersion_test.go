package arrival

import (
	"math"
	"testing"
)

// What a cascade keeps of its source's dispersions is what counting by windows gives, and
// the file has it.
func TestDispersionsAgainstCounting(t *testing.T) {
	times, span := poissonTimes(t, "poisson:20", 5_000)
	c, err := NewCascade(fitted(t, times, span).Rows())
	if err != nil {
		t.Fatal(err)
	}
	if len(c.dispersions) != 4 { // in 250 s there are not eight windows of a minute
		t.Errorf("%d widths, want 0.1, 1, 10 and 30 s: %v", len(c.dispersions), c.dispersions)
	}
	for _, d := range c.dispersions {
		width := d.millis * 1e6
		count := make([]float64, span/width)
		for _, at := range times {
			if w := at / width; int(w) < len(count) {
				count[w]++
			}
		}
		mean, square := 0.0, 0.0
		for _, n := range count {
			mean += n / float64(len(count))
		}
		for _, n := range count {
			square += (n - mean) * (n - mean) / float64(len(count)-1)
		}
		if want := square / mean * 1e6; math.Abs(float64(d.index)-want) > 1 {
			t.Errorf("windows of %d ms: %d millionths, by counting %g", d.millis, d.index, want)
		}
	}
}

// In the last 4,000 requests of the conversation trace there are 36 windows of half a minute.
// The counts of one draw vary there by half as much as they should, or twice; those of the
// draw that is chosen do not.
func TestDispersionsOfShortTrace(t *testing.T) {
	times, _ := mooncake(t)
	times = times[len(times)-4000:]
	start := times[0]
	since := make([]int64, len(times))
	for i := range times {
		since[i] = times[i] - start
	}
	span := since[len(since)-1] + 1e9
	c := fitted(t, since, span)
	plain := *c
	plain.dispersions = nil
	worst := func(c *Cascade) (off float64) {
		for seed := range uint64(10) {
			made := timesOf(c, Stream(seed, "d"), len(since), c.Span())
			for _, s := range []float64{30, 60} {
				off = max(off, math.Abs(math.Log2(idc(made, span, s)/idc(since, span, s))))
			}
		}
		return off
	}
	if chosen, single := worst(c), worst(&plain); chosen > .35 || single < 2*chosen {
		t.Errorf("the worst of ten is off by log2 %.2f, of single draws %.2f", chosen, single)
	}
}
