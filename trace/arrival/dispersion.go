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
	at, n, squares := 0, int64(0), int64(0)
	for w := int64(1); w <= windows; w++ {
		count := int64(0)
		for ; at < len(times) && times[at] < w*width; at++ {
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

// apart says how far the dispersions of arrivals are from those of the source: the sum,
// over the widths, of the ratio of the greater to the lesser, in millionths.
func (c *Cascade) apart(times []int64) int64 {
	sum := int64(0)
	for _, d := range c.dispersions {
		index := max(1, dispersionOf(times, c.span, d.millis))
		ratio, _ := mulDiv(max(index, d.index), dispersionUnits, min(index, d.index))
		sum += min(ratio, 1000*dispersionUnits)
	}
	return sum
}

// nearest draws n arrivals in parts several times where they are as those of the source,
// and returns those with the nearest dispersions: in a trace of some dozens of windows
// those of single draws are half or twice as great.
func (c *Cascade) nearest(r *rand.Rand, n int, parts []Part, total int64) []int64 {
	draw := func() []int64 {
		out := make([]int64, n)
		g := generator{Cascade: c, r: r}
		g.cascade(out, parts, total)
		return out
	}
	best := draw()
	if len(c.dispersions) == 0 || int64(n) != c.n || total != c.n || widthOf(parts) != c.span {
		return best
	}
	off := c.apart(best)
	for range min(mostDraws, drawnArrivals/n) - 1 {
		if out := draw(); c.apart(out) < off {
			best, off = out, c.apart(out)
		}
	}
	return best
}

func widthOf(parts []Part) int64 {
	width := int64(0)
	for _, p := range parts {
		width += p.Width
	}
	return width
}
