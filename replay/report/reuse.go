package report

import (
	"reprise/replay/result"
	"reprise/trace"
)

// reuse adds up what hit ratios need, apart for rows with and without the two
// counts that a server or a workload may not give.
type reuse struct {
	block int64
	sums  [2][2]reuseSums // by whether cached is known, by whether known is
	rows  int64           // successful
}

type reuseSums struct{ rows, prompt, cached, reach, blocks int64 }

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
func Reusable(r *result.Result, block int64) (tokens, inBlocks int64, ok bool) {
	if r.Input == nil || *r.Input == 0 || r.Known == nil {
		return 0, 0, false
	}
	tokens = min(int64(*r.Known), int64(*r.Input)-1)
	if block > 0 {
		inBlocks = tokens / block * block
	}
	return tokens, inBlocks, true
}

// add takes a successful result.
func (u *reuse) add(r *result.Result) {
	u.rows++
	if r.Input == nil || *r.Input == 0 {
		return
	}
	one := reuseSums{rows: 1, prompt: int64(*r.Input)}
	var hasCached, hasKnown int
	if r.Cached != nil {
		hasCached, one.cached = 1, int64(*r.Cached)
	}
	if tokens, inBlocks, ok := Reusable(r, u.block); ok {
		hasKnown, one.reach, one.blocks = 1, tokens, inBlocks
	}
	u.sums[hasCached][hasKnown].join(one)
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
	}
	if c.Measured == nil && c.Expected == nil {
		c.Rows, c.PromptTokens = 0, 0
	}
	c.RowsLeftOut = u.rows - c.Rows
	return c
}

// expectedFromWords end a sentence on what is expected.
var expectedFromWords = map[string]string{
	fromPrompts: "from earlier prompts alone", fromReplies: "from earlier prompts and replies", fromWarmUp: "from the warm-up pass",
}
