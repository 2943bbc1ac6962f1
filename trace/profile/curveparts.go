package profile

import (
	"math"
	"slices"
)

// curveParts are the disjoint parts of a sample of blocks, by their hashes. Each has an LRU
// stack of its own and gives a curve of its own; by the spread of these the curve of the
// whole sample is known to be off by so much (the method of random groups, Wolter:
// Introduction to Variance Estimation, 2007, chapter 2). What was counted before there was
// a sample is exact and has no part in it.
type curveParts struct {
	parts [sampleParts]curvePart

	// Of the whole, before there was a sample.
	hits, hitTokens    int64
	found, foundTokens []int64
}

// A curvePart is one of them. Its hits count as many as they stand for, by depth.
type curvePart struct {
	stack              *lru
	found, foundTokens []int64
	deepest            int // of the row at hand
}

// newCurveParts cuts the sample of a pass that has just begun to have one.
func newCurveParts(u *reusePass) *curveParts {
	whole := u.stack
	c := &curveParts{hits: u.hits, hitTokens: u.hitTokens, found: slices.Clone(u.found),
		foundTokens: slices.Clone(u.foundTokens)}
	for i := range c.parts {
		c.parts[i].stack = newLRU(sampleBlocks)
		c.parts[i].stack.shift, c.parts[i].stack.far = whole.shift, map[uint32]uint32{}
	}
	for _, id := range whole.held() {
		c.of(id).stack.touch(id)
	}
	return c
}

// of is the part that a block of the sample belongs to.
func (c *curveParts) of(id uint32) *curvePart { return &c.parts[hashed(uint64(id))%sampleParts] }

// begin begins a row.
func (c *curveParts) begin() {
	for i := range c.parts {
		c.parts[i].deepest = 0
	}
}

// look counts a hit block of the sample that stands for so many blocks and tokens of it,
// and in its part for as many times more as there are parts.
func (c *curveParts) look(id uint32, blocks, tokens int64) {
	p := c.of(id)
	p.deepest = max(p.deepest, p.stack.depth(id))
	if n := p.deepest + 1 - len(p.found); n > 0 {
		p.found = append(p.found, make([]int64, n)...)
		p.foundTokens = append(p.foundTokens, make([]int64, n)...)
	}
	p.found[p.deepest] += blocks * sampleParts
	p.foundTokens[p.deepest] += tokens * sampleParts
}

// halve counts hits by depths in a sample of half of the rate.
func (c *curveParts) halve() {
	c.found, c.foundTokens = halve(c.found), halve(c.foundTokens)
	for i := range c.parts {
		p := &c.parts[i]
		p.found, p.foundTokens = halve(p.found), halve(p.foundTokens)
	}
}

func (c *curveParts) clone() *curveParts {
	if c == nil {
		return nil
	}
	out := *c
	out.found, out.foundTokens = slices.Clone(c.found), slices.Clone(c.foundTokens)
	for i := range out.parts {
		p := &out.parts[i]
		p.stack = p.stack.clone()
		p.found = append([]int64(nil), p.found...)
		p.foundTokens = append([]int64(nil), p.foundTokens...)
	}
	return &out
}

// studentT is the 97.5 % quantile of Student's t with one degree of freedom less than there are parts.
const studentT = 2.365

// errors are half of the 95 % intervals of the hit ratios of a sample of one in 2^shift, at
// capacities in blocks: by block or by token, whichever is wider. To what chance does, by
// the spread of the parts, they add what a sample does to every curve: it blurs it, since
// some blocks of equal depth have more of the sample above them than others. Parts are a
// sample that is eight times as coarse. So their mean is off by more, and half of the
// difference between it and the curve is a cautious bound of what the curve is off by.
func (c *curveParts) errors(capacities []int64, shift uint, u *reusePass) []float64 {
	out := make([]float64, len(capacities))
	add := func(found, before []int64, hits, hitsBefore, total int64, of func(*curvePart) []int64) {
		if total == 0 {
			return
		}
		whole, first := hitsUpTo(capacities, found, shift, hits), hitsUpTo(capacities, before, shift, hitsBefore)
		var parts [sampleParts][]int64
		for i := range c.parts {
			const partShift = 3 // 2^3 parts
			parts[i] = hitsUpTo(capacities, of(&c.parts[i]), shift+partShift, hits-hitsBefore)
		}
		for at := range capacities {
			mean, squares := 0.0, 0.0
			for i := range parts {
				mean += float64(parts[i][at]) / sampleParts
			}
			for i := range parts {
				d := float64(parts[i][at]) - mean
				squares += d * d
			}
			chance := studentT * math.Sqrt(squares/(sampleParts-1)/sampleParts)
			blur := math.Abs(mean-float64(whole[at]-first[at])) / 2
			out[at] = max(out[at], (chance+blur)/float64(total))
		}
	}
	add(u.found, c.found, u.hits, c.hits, u.references, func(p *curvePart) []int64 { return p.found })
	add(u.foundTokens, c.foundTokens, u.hitTokens, c.hitTokens, u.tokens,
		func(p *curvePart) []int64 { return p.foundTokens })
	return out
}
