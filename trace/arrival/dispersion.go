package arrival

import "math/rand/v2"

// dispersionWidths are the widths, in milliseconds, of the windows in which a
// cascade keeps the index of dispersion of its source.
var dispersionWidths = [...]int64{100, 1000, 10_000, 30_000, 60_000, 120_000, 300_000}

const (
	leastWindows    = 8       // of a width, for its index to be kept,
	leastDispersed  = 50      // and arrivals in them
	mostDraws       = 16      // of a sequence of arrivals,
	drawnArrivals   = 400_000 // and arrivals in all of them together, at most
	dispersionUnits = 1_000_000
)

// A dispersion is the index of dispersion for counts in windows of one width, which is
// the sample variance of the number of arrivals over its mean, in millionths.
type dispersion struct{ millis, index int64 }

// dispersionOf is that of arrivals in the whole windows of a span, 0 where these are too
// few or all alike, hold too few arrivals, or too many for 64 bits.
func dispersionOf(times []int64, span, millis int64) int64 {
	width := millis * 1e6
	windows := span / width
	if windows < leastWindows || windows >= 1<<24 || len(times) > drawnArrivals {
		return 0
	}
	n, squares := int64(0), int64(0)
	for at := 0; at < len(times) && times[at] < windows*width; {
		end, count := (times[at]/width+1)*width, int64(0)
		for ; at < len(times) && times[at] < end; at++ {
			count++
		}
		n += count
		squares += count * count
	}
	if n < leastDispersed {
		return 0
	}
	index, _ := mulDiv(dispersionUnits, windows*squares-n*n, (windows-1)*n)
	return index
}

// dispersions are those of arrivals at all widths that have one.
func dispersions(times []int64, span int64) []dispersion {
	var out []dispersion
	for _, millis := range dispersionWidths {
		if index := dispersionOf(times, span, millis); index > 0 {
			out = append(out, dispersion{millis, index})
		}
	}
	return out
}

// Apart says how far the dispersions of arrivals, ascending and within the span, are from those of the source: the sum,
// over the widths, of the ratio of the greater to the lesser less 1, in millionths.
func (c *Cascade) Apart(times []int64) int64 {
	sum := int64(0)
	for _, d := range c.dispersions {
		index := max(1, dispersionOf(times, c.span, d.millis))
		ratio, _ := mulDiv(max(index, d.index), dispersionUnits, min(index, d.index))
		sum += min(ratio, 1000*dispersionUnits) - dispersionUnits
	}
	return sum
}

// nearest draws n arrivals in parts several times where they are as those of the source,
// and returns those with the nearest dispersions.
func (c *Cascade) nearest(r *rand.Rand, n int, parts []Part, total int64) []int64 {
	draw := func() []int64 {
		out := make([]int64, n)
		g := generator{Cascade: c, r: r}
		g.cascade(out, parts, total)
		return out
	}
	if int64(n) != c.n || total != c.n || widthOf(parts) != c.span {
		return draw()
	}
	best, _ := Nearest(c, draw, func(times []int64) []int64 { return times })
	return best
}

// Nearest draws something with arrivals up to 16 times, fewer where there are many, and returns the draw whose
// arrivals, ascending and within the span of a cascade, have the dispersions nearest to those of its source, and these
// arrivals: in a trace of some dozens of windows those of single draws are half or twice as great.
func Nearest[T any](c *Cascade, draw func() T, arrivals func(T) []int64) (best T, times []int64) {
	best = draw()
	times = arrivals(best)
	if len(c.dispersions) == 0 {
		return best, times
	}
	off := c.Apart(times)
	for range min(mostDraws, drawnArrivals/max(1, len(times))) - 1 {
		next := draw()
		if at := arrivals(next); c.Apart(at) < off {
			best, times, off = next, at, c.Apart(at)
		}
	}
	return best, times
}

func widthOf(parts []Part) int64 {
	width := int64(0)
	for _, p := range parts {
		width += p.Width
	}
	return width
}
