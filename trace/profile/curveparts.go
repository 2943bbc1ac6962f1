package profile

import "math"

// curveParts are the disjoint parts of a sample of blocks, by their hashes. Each has an LRU
// stack of its own and gives a curve of its own; by the spread of these the curve of the
// whole sample is known to be off by so much (the method of random groups, Wolter:
// Introduction to Variance Estimation, 2007, chapter 2). What was counted before there was
// a sample is exact and has no part in it.
type curveParts struct {
	parts           [sampleParts]curvePart
	hits, hitTokens int64 // before there was a sample
}

// A curvePart is one of them. Its hits count as many as they stand for, by depth.
type curvePart struct {
	stack              *lru
	found, foundTokens []int64
	deepest            int // of the row at hand
}

// newCurveParts cuts a sample, so far with these sums.
func newCurveParts(whole *lru, so *sums) *curveParts {
	c := &curveParts{hits: so.hits, hitTokens: so.hitTokens}
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

// thin halves the rate of each part.
func (c *curveParts) thin() {
	for i := range c.parts {
		p := &c.parts[i]
		p.stack.thin()
		p.found, p.foundTokens = halve(p.found), halve(p.foundTokens)
	}
}

func (c *curveParts) clone() *curveParts {
	if c == nil {
		return nil
	}
	out := *c
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
// capacities in blocks: by block or by token, whichever is wider.
func (c *curveParts) errors(capacities []int64, shift uint, all *sums) []float64 {
	var blocks, tokens [sampleParts][]int64
	for i := range c.parts {
		p := &c.parts[i]
		const partShift = 3 // 2^3 parts
		blocks[i] = hitsUpTo(capacities, p.found, shift+partShift, all.hits-c.hits)
		tokens[i] = hitsUpTo(capacities, p.foundTokens, shift+partShift, all.hitTokens-c.hitTokens)
	}
	half := func(of *[sampleParts][]int64, at int, total int64) float64 {
		if total == 0 {
			return 0
		}
		mean, squares := 0.0, 0.0
		for i := range of {
			mean += float64(of[i][at]) / sampleParts
		}
		for i := range of {
			d := float64(of[i][at]) - mean
			squares += d * d
		}
		return studentT * math.Sqrt(squares/(sampleParts-1)/sampleParts) / float64(total)
	}
	out := make([]float64, len(capacities))
	for at := range capacities {
		out[at] = max(half(&blocks, at, all.references), half(&tokens, at, all.tokens))
	}
	return out
}
