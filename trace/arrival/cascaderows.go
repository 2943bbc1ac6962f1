package arrival

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// Kinds of [CascadeRow], in their order.
const (
	// one row: Level is the number of levels, Left the tick of the source's clock and Right the span, in nanoseconds,
	// Count 1
	cascadeHead   int64 = iota
	cascadeCoarse       // Count arrivals came in part Bin, which is bin Bin of the 2^Level at that level
	// Count bins at Level, of busyness Bin and Contrast, were split into Left arrivals beside the busier neighbour and
	// Right ones
	cascadeSplit
	// Count gaps from Left to Right nanoseconds, both included, in finest bins of busyness Bin; Level is the number of
	// levels
	cascadeGap
	cascadeOffset     // Count instants came Left to Right nanoseconds behind the middle of the tick before theirs
	cascadeDispersion // the index of dispersion of counts in windows of Bin milliseconds is Count millionths
)

// A CascadeRow is one row of the tables of a [Cascade]. Busyness numbers the
// counts of arrivals in a bin by half octaves: 1, 2, 3, 4-5, 6-7, 8-11 and so on
// are 0, 2, 3, 4, 5, 6. Contrast is 0 where a bin's neighbours are equally busy,
// and 1, 2 or 3 where one is up to twice, up to six times or over six times as
// busy as the other. Fields that a kind does not name are 0.
type CascadeRow struct {
	Kind, Level, Contrast, Bin, Left, Right, Count int64
}

func (r CascadeRow) compare(s CascadeRow) int {
	return cmp.Or(cmp.Compare(r.Kind, s.Kind), cmp.Compare(r.Level, s.Level), cmp.Compare(r.Contrast, s.Contrast),
		cmp.Compare(r.Bin, s.Bin), cmp.Compare(r.Left, s.Left), cmp.Compare(r.Right, s.Right))
}

var errRow = errors.New("out of range or out of order")

// NewCascade makes a cascade from its rows, which it wants as Rows gives them:
// complete, in ascending order of their fields and without duplicates. It
// refuses rows that no fit could give, naming the first by its number from 0.
func NewCascade(rows []CascadeRow) (*Cascade, error) {
	if len(rows) < 2 || rows[0].Kind != cascadeHead {
		return nil, errors.New("cascade: want a head row and coarse rows first")
	}
	head := rows[0]
	if head.Level < 0 || head.Level > maxLevels || head.Right < narrowestBin || head.Right > maxSpan ||
		head.Contrast != 0 || head.Bin != 0 || head.Count != 1 {
		return nil, fmt.Errorf("cascade: row 0: %w", errRow)
	}
	c := &Cascade{span: head.Right, whole: head.Right, tick: head.Left, levels: int(head.Level),
		rows: slices.Clone(rows)}
	switch {
	case c.tick == 0 && (c.span>>c.levels == 0 || c.span>>c.levels > finestBin):
		return nil, fmt.Errorf("cascade: row 0: %w", errRow)
	case c.tick != 0:
		if c.tick < leastTick || c.span%c.tick != 0 || c.levels != bits.Len64(uint64(c.span/c.tick-1)) {
			return nil, fmt.Errorf("cascade: row 0: %w", errRow)
		}
		c.whole = c.tick << c.levels
	}
	coarse := 1
	for coarse < len(rows)-1 && rows[coarse+1].Kind == cascadeCoarse {
		coarse++
	}
	if err := c.addCoarse(rows[1 : 1+coarse]); err != nil {
		return nil, err
	}
	c.splits = make([]splits, c.levels-c.depth)
	for i := 1 + coarse; i < len(rows); i++ {
		if rows[i-1].compare(rows[i]) >= 0 || !c.add(rows[i]) {
			return nil, fmt.Errorf("cascade: row %d: %w", i, errRow)
		}
	}
	if (c.tick > 0) != (len(c.offsets.vals) > 0) {
		return nil, errors.New("cascade: a clock without offsets, or offsets without a clock")
	}
	c.pool()
	c.fillEmpty()
	return c, nil
}

// addCoarse takes the counts of the parts.
func (c *Cascade) addCoarse(rows []CascadeRow) error {
	if c.depth = int(rows[0].Level); c.depth < 0 || c.depth > c.levels {
		return fmt.Errorf("cascade: row 1: %w", errRow)
	}
	for k, r := range rows {
		if r.Kind != cascadeCoarse || r.Level != int64(c.depth) || r.Bin != int64(k) || r.Contrast != 0 ||
			r.Left != 0 || r.Right != 0 || r.Count < 0 || r.Count > maxCount || c.until(k) >= c.span && k > 0 {
			return fmt.Errorf("cascade: row %d: %w", 1+k, errRow)
		}
		c.parts = append(c.parts, r.Count)
		c.n += r.Count
	}
	if c.until(len(rows)) != c.span {
		return fmt.Errorf("cascade: %d parts do not make the span", len(rows))
	}
	if c.n < 2 || c.n > maxCount {
		return errors.New("cascade: fewer than 2 arrivals, or too many")
	}
	return nil
}

// add takes a split or a gap, and says whether it is one.
func (c *Cascade) add(r CascadeRow) bool {
	if r.Count < 1 || r.Count > maxCount || r.Left < 0 || r.Left > maxCount || r.Right > maxCount {
		return false
	}
	var classes *[]class
	switch r.Kind {
	case cascadeSplit:
		if r.Level < int64(c.depth) || r.Level >= int64(c.levels) || r.Contrast < 0 || r.Contrast >= contrasts ||
			r.Left+r.Right < 2 || r.Bin != int64(busyness(r.Left+r.Right)) {
			return false
		}
		classes = &c.splits[r.Level-int64(c.depth)][r.Contrast]
	case cascadeGap:
		if r.Level != int64(c.levels) || r.Contrast != 0 || r.Bin < 2 || r.Bin > 2*maxLevels+1 || r.Left > r.Right ||
			r.Right > 2*finestBin {
			return false
		}
		classes = &c.gaps
	case cascadeOffset:
		if r.Level != 0 || r.Contrast != 0 || r.Bin != 0 || r.Left > r.Right || r.Right >= c.tick {
			return false
		}
		return c.offsets.add(split{r.Left, r.Right}, r.Count)
	case cascadeDispersion:
		if r.Level != 0 || r.Contrast != 0 || r.Left != 0 || r.Right != 0 || r.Bin <= 0 ||
			c.span/1e6/r.Bin < leastWindows {
			return false
		}
		c.dispersions = append(c.dispersions, dispersion{r.Bin, r.Count})
		return true
	default:
		return false
	}
	if n := len(*classes); n == 0 || (*classes)[n-1].busy != int(r.Bin) {
		*classes = append(*classes, class{busy: int(r.Bin)})
	}
	return (*classes)[len(*classes)-1].add(split{r.Left, r.Right}, r.Count)
}

// only is the class of the least busy bins where there is one split.
func only(s split) class {
	return class{busyness(2), empirical{vals: []split{s}, upTo: []int64{1}}}
}

// fillEmpty gives what the source had no bin of two arrivals for, and another
// draw may need: splits of the nearest contrast of the level, of the level
// above, or an even split; and gaps up to the width of a finest bin.
func (c *Cascade) fillEmpty() {
	var above splits
	for k := range above {
		above[k] = []class{only(split{1, 1})}
	}
	for i, found := range c.splits {
		for k := range found {
			c.splits[i][k] = above[k]
			for far := contrasts - 1; far >= 0; far-- {
				if k+far < contrasts && found[k+far] != nil {
					c.splits[i][k] = found[k+far]
				}
				if k-far >= 0 && found[k-far] != nil {
					c.splits[i][k] = found[k-far]
				}
			}
		}
		above = c.splits[i]
	}
	if len(c.gaps) == 0 {
		c.gaps = []class{only(split{0, c.span >> c.levels})}
	}
}

// Rows returns the tables of the cascade for storage, in ascending order of
// their fields. [NewCascade] makes an equal cascade of them.
func (c *Cascade) Rows() []CascadeRow { return slices.Clone(c.rows) }

// A draw is among at least atLeast bins, where others are near enough.
const (
	atLeast = 3
	tooFar  = 6
)

// A placed class knows which bins it is of.
type placed struct {
	*class
	level, contrast int
}

// far says how unlike the bins of two classes are. Contrast says least of how a
// bin is split; the level is what tells the scales of time apart.
func (p placed) far(q placed) int {
	apart := func(a, b int) int { return max(a-b, b-a) }
	return 3*apart(p.level, q.level) + apart(p.contrast, q.contrast) + 2*apart(p.busy, q.busy)
}

func (e *empirical) total() int64 { return e.upTo[len(e.upTo)-1] }

// pool adds to each class of fewer bins than atLeast those of the nearest
// classes, until they are enough. A bin that is alone in its class would
// otherwise be split, each time, as it was in the source: with the coarse shape
// to lead there, the source's own course would come back. To ask for more blurs
// the bursts.
func (c *Cascade) pool() {
	var all []placed
	for level := range c.splits {
		for contrast, classes := range c.splits[level] {
			for i := range classes {
				all = append(all, placed{&classes[i], level, contrast})
			}
		}
	}
	pooled := make([]empirical, len(all))
	for i, p := range all {
		pooled[i] = p.empirical
		if p.total() >= atLeast {
			continue
		}
		near := slices.DeleteFunc(slices.Clone(all), func(q placed) bool {
			return q.class == p.class || p.far(q) > tooFar
		})
		slices.SortStableFunc(near, func(q, r placed) int { return cmp.Compare(p.far(q), p.far(r)) })
		e := &empirical{vals: slices.Clone(p.vals), upTo: slices.Clone(p.upTo)}
		for len(near) > 0 && e.total() < atLeast {
			for j, v := range near[0].vals {
				e.add(v, near[0].count(j))
			}
			near = near[1:]
		}
		pooled[i] = *e
	}
	for i, p := range all {
		p.empirical = pooled[i]
	}
}
