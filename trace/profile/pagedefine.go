package profile

import (
	"fmt"

	"reprise/trace"
	"reprise/trace/breaker"
	"reprise/trace/doc"
)

// A definition says what a number on the page means, since other tools give other
// numbers the same name.
type definition struct{ name, unit, text, formula string }

// pageDefinitions are the definitions of each section, by its title.
var pageDefinitions = map[string][]definition{
	"Lengths": {
		{"p50, p90, p95, p99, p99.9", "as the values", "Order statistics with linear interpolation, of all values.",
			"x[k] + f·(x[k+1] − x[k]), k + f = p·(n − 1)"},
		{"Spearman's rank correlation", "−1 to 1", "Of prompt and output length; equal values share their mean rank.",
			"Pearson's correlation of the ranks"},
	},
	"Arrivals": {
		{"rate", "1/s", "Requests that did not fail, over the time from the first arrival to the last.",
			"requests ÷ duration"},
		{"IDC", "ratio", "Index of dispersion for counts, over whole windows from the first arrival. 1 for a Poisson " +
			"process, more for bursts, 0 for a metronome.", "Var(requests in a window) ÷ E(requests in a window)"},
	},
	"Prefix reuse": {
		{"known, hit", "blocks", "A block is known once an earlier prompt carried it. The hit of a request is the " +
			"number of its leading blocks that are known. Ids are chained, so equal ids are equal prefixes of one " +
			"model, adapter and salt.", ""},
		{"by block", "ratio", "Hit blocks, partial last ones included.", "Σ hit blocks ÷ Σ blocks"},
		{"by token", "ratio", "A full block weighs its size, a partial one its tokens.",
			"Σ tokens in hit blocks ÷ Σ prompt tokens"},
		{"mean over requests", "ratio", "Every request weighs the same, however long.", "mean(hit blocks ÷ blocks)"},
		{"full blocks only", "ratio", "As by block, without the partial last blocks.",
			"Σ full hit blocks ÷ Σ full blocks"},
		{"whole trace", "", "All requests, in a cache that is empty at the start: a cold one.", ""},
		{"steady state", "", "Only the requests from the warm-up on, half of the duration unless an option says " +
			"otherwise. Earlier requests are known to them, and not counted. A ramp or the hours of a day are " +
			"not taken out.", ""},
		{"touched once", "ratio", "Distinct blocks that one prompt only carries.",
			"blocks in one prompt ÷ distinct blocks"},
		{"generated KV too", "", "A cache that also keeps the blocks of outputs, for next turns that begin with them.",
			""},
	},
	"Where reuse is lost": {
		{"left", "points", "Hundredths of the prompt tokens of these requests that are found after this step.",
			"100 · Σ hit tokens ÷ Σ prompt tokens"},
		{"lost to it", "points",
			"What the step costs, counted from the step above it; a router's cost from the cache of all memory. " +
				"Routers are alternatives. Below 0 it is a gain.", "left before − left"},
		{"server hit ratio", "ratio",
			"What a server can take: full blocks of its own size, at most all but the last token of a prompt.",
			"Σ ⌊min(known, prompt − 1) ÷ block⌋·block ÷ Σ prompt"},
		{"rounding loss", "ratio", "What rounding down to its blocks costs the server.",
			"Σ (min(known, prompt − 1) mod block) ÷ Σ prompt"},
		{"recorded cached tokens", "tokens",
			"As the source's server reported for each request, where between none and all of its prompt.", ""},
	},
	"Prefix breakers": {
		{"breaker", "", fmt.Sprintf("A place at which at least %d requests part from near-identical earlier ones, "+
			"found at import in the first %s tokens of prompts whose text was there. It holds positions and "+
			"counts, no text.", breaker.MinRequests, doc.Count(breaker.SearchTokens)), ""},
		{"at token", "tokens", "The least and the greatest number of tokens in front of the first that differs.", ""},
		{"tokens that differ", "tokens", "The median over requests, until the prompts agree again.", ""},
		{"tokens lost", "tokens", "What stands behind the difference, up to the next one, and in the earlier prompt " +
			"too: what a cache without limit would have served, had the prompts not differed there.", ""},
	},
	"Cache size": {
		{"LRU cache", "", "Looks a whole prompt up, then touches its blocks from the last to the first, so that a " +
			"leaf is evicted before what it hangs on, as vLLM does. One pass gives the hit ratio of every capacity " +
			"(Mattson et al., 1970).", ""},
		{"capacity", "blocks, tokens, GiB",
			"A partial block takes the room of a whole one. GiB needs the KV cache memory of a token.",
			"tokens = blocks · block size; GiB = tokens · bytes per token ÷ 2^30"},
	},
	groupsTitle: {
		{"share of hit tokens", "ratio",
			"In one cache that all requests go through: what another group left there counts as known.",
			"hit tokens of the group ÷ of all"},
	},
	"Reuse time and distance": {
		{"reuse time", "s", "Of each hit block, the time since a request last touched it.", ""},
		{"error", "ratio", "Of a sampled curve: half of a 95 % interval, from how much the curves of eight disjoint " +
			"parts of the sample differ (chance), and their mean from the curve (blur).",
			"2.365 · sd of the parts ÷ √8 + |mean of the parts − curve| ÷ 2"},
		{"reuse distance", "blocks", "Of each hit block, the capacity of the smallest LRU cache that still holds it.",
			"distinct blocks touched since, and itself"},
	},
	"Top prefixes": {
		{"top prefix", "", "A chain of blocks that at least two prompts begin with, as long as it can be: every " +
			"longer one begins fewer prompts. It is named by the number of its last block.", ""},
		{"saved tokens", "tokens",
			"What a cache that keeps the prefix saves. Prefixes with a common beginning save the same tokens, so " +
				"these do not add up.", "(requests − 1) · tokens"},
		{"its own", "tokens", "The part of them that no shorter prefix saves. Over all prefixes these add up to all " +
			"hit tokens.", "(requests − 1) · tokens beyond the shorter prefix"},
	},
	"Working set": {
		{"working set", "blocks",
			"Distinct blocks of the prompts in a window of time, over whole windows that follow each other from the " +
				"first arrival (Denning, 1968).", ""},
	},
	"Routing over replicas": {
		{"one cache", "", "One LRU cache with the memory of all replicas.", ""},
		{"of one cache", "ratio", "How much of its hit tokens a router keeps.", "hit tokens ÷ hit tokens of one cache"},
		{"most / mean", "ratio", "The load of the replica that has the most: of requests, of prompt tokens, and of " +
			"prompt tokens left to compute (prefill). 1 is even.", "max over replicas ÷ mean over replicas"},
		{"round-robin, session, prefix, prefix-weighted", "router",
			"To the next replica; by a hash of the session; to the one that holds the longest prefix; to the one of " +
				"the highest score.", "score = hit blocks ÷ blocks − max(0, tokens sent ÷ mean − 1)"},
	},
	"Sessions": {
		{"share with a session", "ratio",
			"Requests that have one, of the source or inferred: a next turn holds the prompt before it and its answer.",
			"requests with a session ÷ requests"},
		{"turn gap", "s", "From the arrival of a turn to the arrival of the next. Of inferred sessions, from the " +
			"request that last touched the deepest hit block.", ""},
		{"think time, tool time", "s",
			"From the end of the turn before to this one, as the source tells: of a person, and of tools.", ""},
	},
	"Recorded latency": {
		{"TTFT, E2E", "s", "Time to the first token and to the end, as the source recorded them.", ""},
	},
}

// definitions are those of the sections on the page, and of categories by their rule.
func definitions(sections []doc.Section, rule string) (out []doc.Term) {
	for _, s := range sections {
		if s.Title == groupsTitle && rule != "" {
			for _, d := range trace.CategoryDefinitions(rule) {
				out = append(out, doc.Term{Name: d.Name, Unit: "category", Text: d.Text})
			}
		}
		for _, d := range pageDefinitions[s.Title] {
			out = append(out, doc.Term{Name: d.name, Unit: d.unit, Text: d.text, Formula: d.formula})
		}
	}
	return out
}
