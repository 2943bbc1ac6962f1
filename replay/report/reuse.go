package report

import (
	"math"
	"math/bits"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/usage"
)

// reuse adds up what hit ratios need, apart for rows with and without the two
// counts that a server or a workload may not give.
type reuse struct {
	block int64
	sums  [2][2]reuseSums // by whether cached is known, by whether known is
	rows  int64           // successful
	found foundReuse

	sumsOnly bool // found is not needed

	// Of a workload of real text, its blocks: parts of a block that prompts share are not in known. 0 of others.
	realBlock int64
}

type reuseSums struct{ rows, prompt, cached, reach, blocks int64 }

// foundReuse is how the cached counts stand to what was expected of each request, over the
// rows that have both.
type foundReuse struct {
	multiple int64                   // greatest number that every cached count is a multiple of; 0 without hits
	least    int64                   // cached tokens of a hit, least and most
	most     int64                   //
	bySize   [maxBlockBits + 1]int64 // tokens expected with blocks of 1, 2, 4, … tokens
	hits     int64                   // rows that a hit was expected of
	oneLess  int64                   // those of them that found one block less
	beyond   int64                   // cached tokens of real text that nothing in the run explains
	first    *int64                  // when the first request with real text was sent
	warm     bool                    // that one found half of its prompt, which nothing before it had sent
}

// maxBlockBits bounds the block sizes that are tried in place of the one that is expected.
const maxBlockBits = 11

func (a *reuseSums) join(b reuseSums) {
	a.rows += b.rows
	a.prompt += b.prompt
	a.cached += b.cached
	a.reach += b.reach
	a.blocks += b.blocks
}

// Reusable is how many prompt tokens of a request a cache without limit would find,
// given the prompts before it, and how many of them in whole blocks of so many tokens. A
// server can reuse at most prompt − 1 tokens: it needs one to compute the next from. It
// is not ok where the workload does not tell, or the server did not count the prompt.
func Reusable(run *result.Run, r *result.Result, block int64) (tokens, inBlocks int64, ok bool) {
	return reusable(r.Input, inServerTokens(run, r).Known, block)
}

// inServerTokens is r with the tokens that earlier prompts had as its server counts them. Real text goes out as it is,
// whatever tokenizer the workload was counted by, and shares the same part of itself by any.
func inServerTokens(run *result.Run, r *result.Result) *result.Result {
	if run.Prompts != result.PromptsVerbatim || r.Known == nil || r.Input == nil || r.WantInput <= 0 {
		return r
	}
	counted, known := *r, int64(*r.Known)*int64(*r.Input)/int64(r.WantInput)
	counted.Known = trace.Ptr(int32(min(known, int64(*r.Input))))
	return &counted
}

// reusable is Reusable of a request's counts.
func reusable(input, known *int32, block int64) (tokens, inBlocks int64, ok bool) {
	if input == nil || *input == 0 || known == nil {
		return 0, 0, false
	}
	tokens = min(int64(*known), int64(*input)-1)
	if block > 0 {
		inBlocks = tokens / block * block
	}
	return tokens, inBlocks, true
}

// add takes a successful result.
func (u *reuse) add(r *result.Result) {
	if found := r.Contradictions(); found.Refutes(usage.Cached) || found.Has(usage.NoCount) && r.Cached == nil {
		u.rows++ // what it had cached is not known, whatever a missing count means
		return
	}
	u.addCounts(r.Input, r.Cached, r.Known)
	if u.realBlock > 0 {
		u.found.addReal(r, u.realBlock)
	}
}

// addReal takes a request that sent real text, in blocks of so many tokens. What earlier prompts explain is what is
// known, a part of one more block, and what the server's chat template adds. A turn that goes on in its session and a
// request that was sent again may also find what the server generated or had of the first try: nothing is said of them.
func (f *foundReuse) addReal(r *result.Result, block int64) {
	if r.Input == nil || r.Cached == nil || r.Known == nil || r.Attempts > 1 || r.Category == trace.Continuation {
		return
	}
	if r.SentNS != nil && (f.first == nil || *r.SentNS < *f.first) { // a chat's may be what its template begins with
		f.first, f.warm = r.SentNS, *r.Known == 0 && r.API == result.APICompletions && 2**r.Cached >= *r.Input
	}
	template := max(*r.Input-r.WantInput, 0)
	f.beyond += max(int64(*r.Cached)-int64(*r.Known)-(block-1)-int64(template), 0)
}

// addCounts takes the counts of a successful result.
func (u *reuse) addCounts(input, cached, known *int32) {
	u.rows++
	if input == nil || *input == 0 {
		return
	}
	one := reuseSums{rows: 1, prompt: int64(*input)}
	var hasCached, hasKnown int
	if cached != nil {
		hasCached, one.cached = 1, int64(*cached)
	}
	if tokens, inBlocks, ok := reusable(input, known, u.block); ok {
		hasKnown, one.reach, one.blocks = 1, tokens, inBlocks
		if cached != nil && !u.sumsOnly {
			u.found.add(tokens, inBlocks, one.cached, u.block)
		}
	}
	u.sums[hasCached][hasKnown].join(one)
}

// add takes a row of which so many tokens were expected, and in whole blocks, and found.
func (f *foundReuse) add(tokens, inBlocks, cached, block int64) {
	for i := range f.bySize {
		f.bySize[i] += tokens >> i << i
	}
	if inBlocks > 0 {
		f.hits++
		if cached == inBlocks-block {
			f.oneLess++
		}
	}
	if cached > 0 {
		a, b := f.multiple, cached
		for b != 0 {
			a, b = b, a%b
		}
		f.multiple, f.most = a, max(f.most, cached)
		if f.least == 0 || cached < f.least {
			f.least = cached
		}
	}
}

// summary computes the ratios over one set of rows: those with both counts,
// else those with either. With zeros, rows without a cached count had none.
func (u *reuse) summary(zeros bool) Cache {
	sums := u.sums
	if zeros {
		for known := range sums[0] {
			sums[1][known].join(sums[0][known])
			sums[0][known] = reuseSums{}
		}
	}
	both := sums[1][1]
	measured, expected := both, both
	if both.rows == 0 {
		measured, expected = sums[1][0], sums[0][1]
	}
	c := Cache{Rows: max(measured.rows, expected.rows)}
	c.PromptTokens = max(measured.prompt, expected.prompt)
	if measured.rows > 0 && expected.rows > 0 && both.rows == 0 {
		// Disjoint rows cannot be compared: what was measured is said alone.
		c.Rows, c.PromptTokens, expected = measured.rows, measured.prompt, reuseSums{}
	}
	c.Measured = Ratio(measured.cached, measured.prompt)
	if u.block > 0 {
		c.Block = trace.Ptr(u.block)
		c.Expected = Ratio(expected.blocks, expected.prompt)
		c.RoundingLoss = Ratio(expected.reach-expected.blocks, expected.prompt)
	}
	if c.Measured != nil && c.Expected != nil {
		c.Difference = Rounded(*c.Measured-*c.Expected, 1e9)
		f := &u.found
		c.oneLess = f.hits >= leastHits && f.oneLess*10 >= f.hits*9
		if n := f.multiple; n > 0 && n != u.block && f.least < f.most && n&(n-1) == 0 && n < 1<<len(f.bySize) {
			with := float64(f.bySize[bits.TrailingZeros64(uint64(n))]) / float64(c.PromptTokens)
			if math.Abs(*c.Difference) > sameHits && math.Abs(*c.Measured-with) <= sameHits {
				c.otherBlock = n
			}
		}
	}
	if c.Measured == nil && c.Expected == nil {
		c.Rows, c.PromptTokens = 0, 0
	}
	c.RowsLeftOut = u.rows - c.Rows
	if u.realBlock > 0 {
		c.beyond = Ratio(u.found.beyond, c.PromptTokens)
		if u.found.warm && c.Difference != nil {
			c.beyond = trace.Ptr(max(*c.Difference, *c.beyond))
		}
	}
	return c
}

// uncached are the prompt tokens that were not found in the server's cache. It is not ok
// unless the server counted both of every successful request.
func (u *reuse) uncached(zeros bool) (tokens int64, ok bool) {
	rows := int64(0)
	for cached, sums := range u.sums {
		if cached == 0 && !zeros {
			continue
		}
		for _, s := range sums {
			rows += s.rows
			tokens += s.prompt - s.cached
		}
	}
	return tokens, rows > 0 && rows == u.rows
}

// expectedFromWords end a sentence on what is expected.
var expectedFromWords = map[string]string{
	fromPrompts: "from earlier prompts alone", fromReplies: "from earlier prompts and replies",
	fromWarmUp: "from the warm-up pass",
}
