package openai

// counts are the last counts that were not zero.
type counts struct {
	prompt, completion, total, cached int
	hasCached                         bool
}

// count takes in the usage of a chunk: of all choices if it names none, else of the one
// that it names (llama-server counts each choice by itself).
func (c *Collector) count(v *chunkView) {
	to := &c.total
	if len(v.choices) == 1 {
		if state := c.state(v.choices[0].index); state != nil {
			to = &state.counts
		}
	}
	if v.usage == (Usage{}) {
		return // all zero: a placeholder (ollama), whose cached_tokens means nothing either
	}
	to.add(counts{v.usage.PromptTokens, v.usage.CompletionTokens, v.usage.TotalTokens, v.cached, v.hasCached})
}

func (to *counts) add(u counts) {
	for _, pair := range [...]struct {
		to   *int
		from int
	}{{&to.prompt, u.prompt}, {&to.completion, u.completion}, {&to.total, u.total}, {&to.cached, u.cached}} {
		if pair.from != 0 {
			*pair.to = pair.from
		}
	}
	to.hasCached = to.hasCached || u.hasCached
}

// usage merges the counts: totals above the sum over the choices.
func (c *Collector) usage() *Usage {
	var sum counts
	for _, choice := range c.choices {
		each := choice.counts
		sum.completion += each.completion
		each.completion = 0
		sum.add(each) // the prompt was the same for all
	}
	if c.out.Choices > 1 && sum.prompt > 0 {
		sum.total = sum.prompt + sum.completion
	}
	sum.add(c.total)
	if sum == (counts{}) {
		return nil
	}
	u := &Usage{PromptTokens: sum.prompt, CompletionTokens: sum.completion, TotalTokens: sum.total}
	if sum.hasCached {
		u.PromptTokensDetails = &PromptTokensDetails{CachedTokens: sum.cached}
	}
	return u
}
