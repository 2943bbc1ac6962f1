package usage

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// A Kind is what a count counts, in tokens.
type Kind uint8

// The kinds of counts. What stands within another, as a rule, says so.
const (
	Input     Kind = iota // the prompt
	Cached                // of the prompt, read from a cache
	Written               // of the prompt, written to a cache
	Output                // the answer
	Reasoning             // of the output, as OpenAI has it
	Thoughts              // beside the output, as Gemini has it
	Tools                 // prompts of tools, beside the input, as Gemini has it
	Total                 // of all
	kinds
)

// A kindSet is a set of kinds.
type kindSet uint16

// Counts are the counts of a usage object as they are written, by kind. The zero value has
// none of them.
type Counts struct {
	n     [kinds]int64
	has   kindSet
	bad   kindSet // of which some value is no count
	names names   // which of some names there were
}

// Get returns a count, and whether it is written.
func (c *Counts) Get(k Kind) (n int64, ok bool) { return c.n[k], c.has&(1<<k) != 0 }

// Has reports whether a count is written.
func (c *Counts) Has(k Kind) bool { return c.has&(1<<k) != 0 }

// Set writes a count over the one of its kind. A negative one makes the counts invalid.
func (c *Counts) Set(k Kind, n int64) {
	if n < 0 {
		c.bad |= 1 << k
		return
	}
	c.n[k], c.has = n, c.has|1<<k
}

// With is c with a count.
func (c Counts) With(k Kind, n int64) Counts {
	c.Set(k, n)
	return c
}

// IsZero reports whether no count is written but zeros.
func (c *Counts) IsZero() bool { return c.n == [kinds]int64{} }

// Empty reports whether no count is written, not even a zero.
func (c *Counts) Empty() bool { return c.has == 0 }

// Invalid reports whether a number under a known key is no count: negative, or with a
// fraction. It is in none of the counts.
func (c *Counts) Invalid() bool { return c.bad != 0 }

// Valid is c without the kinds of which some value is no count, or above 2147483647; it stays
// invalid where there are any, and then has no total, which would tell them.
func (c Counts) Valid() Counts {
	for k := range kinds {
		if c.n[k] > math.MaxInt32 {
			c.bad |= 1 << k
		}
		if c.bad&(1<<k) != 0 {
			c.n[k], c.has = 0, c.has&^(1<<k)
		}
	}
	if c.bad != 0 {
		c.n[Total], c.has = 0, c.has&^(1<<Total)
	}
	return c
}

// Add writes the counts of later, which are of the same answer, over those of c. In streams
// of OpenAI's APIs a zero holds the place of a count that is to come, so that keepZeros is
// false; Anthropic's events mean the zeros that they have.
func (c *Counts) Add(later *Counts, keepZeros bool) {
	for k := range kinds {
		if n, ok := later.Get(k); ok && (n != 0 || keepZeros || !c.Has(k)) {
			c.Set(k, n)
			c.bad &^= 1 << k
		}
	}
	c.names, c.bad = c.names|later.names, c.bad|later.bad
}

// Fill takes the counts of other whose kinds c does not have.
func (c *Counts) Fill(other *Counts) {
	for k := range kinds {
		if n, ok := other.Get(k); ok && !c.Has(k) {
			c.Set(k, n)
		}
	}
	c.names |= other.names
}

// Since is what was counted after before, of counts that add up over a session. Where one of
// them fell, the session began anew, and it is all of c.
func (c *Counts) Since(before *Counts) Counts {
	later := *c
	for k := range kinds {
		if later.n[k] -= before.n[k]; later.n[k] < 0 {
			return *c
		}
	}
	return later
}

// ReasoningBeside is c of a source that counts the reasoning beside the output, always.
func (c Counts) ReasoningBeside() Counts {
	if n, ok := c.Get(Reasoning); ok {
		c.n[Reasoning], c.has = 0, c.has&^(1<<Reasoning)
		c.Set(Thoughts, n)
	}
	return c
}

// Same reports whether c and other are counts of the same tokens, whatever keys there are for
// counts of zero.
func (c *Counts) Same(other *Counts) bool {
	for _, k := range []Kind{Input, Cached, Output, Reasoning} {
		if c.n[k] != other.n[k] {
			return false
		}
	}
	return true
}

// keys are the paths of counts in the usage objects of providers, gateways and tracers:
// lower case, without "_" and "-".
var keys = map[string]Kind{
	// OpenAI Chat, vLLM, SGLang, LiteLLM, Braintrust, Helicone, OpenHands, DeepSeek, Moonshot
	"prompttokens": Input, "completiontokens": Output, "totaltokens": Total, "tokens": Total,
	"prompttokensdetails.cachedtokens": Cached, "prompttokensdetails.cachewritetokens": Written,
	"prompttokensdetails.cachecreationtokens":      Written,
	"prompttokensdetails.cachecreationinputtokens": Written, "prompttokensdetails.cachereadtokens": Cached,
	"prompttokensdetails.cachereadinputtokens": Cached,
	"completiontokensdetails.reasoningtokens":  Reasoning, "completionreasoningtokens": Reasoning,
	"completiontokensdetails.thinkingtokens": Reasoning,
	"cachedtokens":                           Cached, "promptcachedtokens": Cached, "promptcachereadtokens": Cached,
	"cachereadtokens": Cached, "promptcachehittokens": Cached,
	"cachedprompttokens": Cached, "numcachedtokens": Cached, "cachehittokens": Cached, "inputcachehittokens": Cached,
	"promptcachecreationtokens": Written, "promptcachewritetokens": Written, "cachewritetokens": Written,
	"cachecreationtokens": Written,
	"reasoningtokens":     Reasoning, "thinkingtokens": Reasoning,
	// OpenAI Responses, Codex, Vercel's AI SDK
	"inputtokens": Input, "outputtokens": Output, "reasoningoutputtokens": Reasoning,
	"outputtokensdetails.reasoningtokens": Reasoning, "outputtokensdetails.thinkingtokens": Reasoning,
	"inputtokensdetails.cachedtokens": Cached, "inputtokensdetails.cachewritetokens": Written,
	"inputtokensdetails.cachereadtokens": Cached,
	"cachedinputtokens":                  Cached, "cachewriteinputtokens": Written,
	"inputtokens.total": Input, "inputtokens.cacheread": Cached, "inputtokens.cachewrite": Written,
	"outputtokens.total": Output, "outputtokens.reasoning": Reasoning,
	// Anthropic, Bedrock, watsonx
	"cachereadinputtokens": Cached, "cachecreationinputtokens": Written,
	"inputtokencount": Input, "outputtokencount": Output, "generatedtokencount": Output, "cachereadinputtokencount": Cached,
	"cachewriteinputtokencount": Written,
	// Gemini, Vertex, Qwen Code
	"prompttokencount": Input, "candidatestokencount": Output, "responsetokencount": Output, "totaltokencount": Total,
	"cachedcontenttokencount": Cached,
	"thoughtstokencount":      Thoughts, "thoughts": Thoughts, "tooluseprompttokencount": Tools, "tool": Tools,
	"totalinputtokens": Input, "totaloutputtokens": Output, "totalcachedtokens": Cached, "totalthoughttokens": Thoughts,
	"totaltoolusetokens": Tools,
	// Gemini CLI, OpenCode, Cline, Cloudflare, Portkey, OpenRouter
	"input": Input, "output": Output, "cached": Cached, "reasoning": Reasoning, "total": Total,
	"cache.read": Cached, "cache.write": Written, "tokensin": Input, "tokensout": Output,
	"cachereads": Cached, "cachewrites": Written, "requnits": Input, "resunits": Output, "totalunits": Total,
	"nativetokensprompt": Input, "nativetokenscompletion": Output, "nativetokenscached": Cached,
	"nativetokensreasoning": Reasoning,
	// OpenTelemetry, OpenInference, LangSmith, Sentry, Pydantic AI
	"cacheread.inputtokens": Cached, "cachecreation.inputtokens": Written, "reasoning.outputtokens": Reasoning,
	"inputtokens.cached": Cached, "inputcachedtokens": Cached,
	"outputtokens.reasoningtokens": Reasoning, "details.reasoningtokens": Reasoning, "details.cachedtokens": Cached,
	"details.cachereadinputtokens": Cached, "details.cachereadtokens": Cached,
	"details.cachecreationinputtokens": Written, "details.cachewritetokens": Written,
	"prompt": Input, "completion": Output, "promptdetails.cacheread": Cached,
	"promptdetails.cachewrite": Written, "completiondetails.reasoning": Reasoning,
	"prompttokendetails.cacheread": Cached, "prompttokendetails.raw.cacheread": Cached,
	"prompttokendetails.cachecreation": Written, "completiontokendetails.reasoning": Reasoning,
	"completiontokendetails.raw.reasoning": Reasoning, "prompttokendetails.raw.cachecreation": Written,
	"inputtokendetails.cacheread": Cached, "inputtokendetails.cachecreation": Written,
	"outputtokendetails.reasoning": Reasoning,
	"requesttokens":                Input, "responsetokens": Output,
	// Ollama's own API, llama-server's timings; Kong before 3.9, Higress; Cohere beside its billed_units
	"promptevalcount": Input, "evalcount": Output, "prompttoken": Input, "completiontoken": Output,
	"inputtoken": Input, "outputtoken": Output, "tokens.inputtokens": Input, "tokens.outputtokens": Output,
}

// prefixes begin the keys of an object that holds more than a usage.
var prefixes = []string{"genai.usage.", "llm.tokencount.", "ai.usage.", "llm.usage."}

// maxPath is longer than any path of [keys].
const maxPath = 96

// names are the names of counts that tell whose they are.
type names uint8

const (
	inputTokens  names = 1 << iota // input_tokens
	promptTokens                   // prompt_tokens
	cacheTokens                    // cache_read_input_tokens, cache_creation_input_tokens
	cacheDetail                    // cached tokens as a detail of the prompt, within it
)

// namesOf are the names that a path is among.
func namesOf(path []byte) names {
	switch string(path) {
	case "input_tokens":
		return inputTokens
	case "prompt_tokens":
		return promptTokens
	case "cache_read_input_tokens", "cache_creation_input_tokens":
		return cacheTokens
	case "prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens", "prompt_cache_hit_tokens",
		"cachedContentTokenCount", "cached_input_tokens":
		return cacheDetail
	}
	return 0
}

// areAnthropics reports whether the counts have the names of Anthropic's Messages API.
func (n names) areAnthropics() bool { return n == inputTokens|cacheTokens }

// areWithin reports whether the names say that the cached tokens are part of the prompt.
func (n names) areWithin() bool { return n&(cacheDetail|cacheTokens) == cacheDetail }

// Take sets the count at a path of a usage object: a key, or keys with dots between them. It
// reports whether the path is one of a count, and does not allocate.
func (c *Counts) Take(path []byte, n int64) bool {
	var spelt [maxPath]byte
	if len(path) > maxPath {
		return false
	}
	k, known := keys[string(spelling(spelt[:0], path))]
	if known {
		c.Set(k, n)
		c.names |= namesOf(path)
	}
	return known
}

// spelling appends a path as [keys] has it.
func spelling(to, path []byte) []byte {
	for _, c := range path {
		switch {
		case c == '_' || c == '-':
		case c >= 'A' && c <= 'Z':
			to = append(to, c+'a'-'A')
		default:
			to = append(to, c)
		}
	}
	return to
}

// A key is what a path counts.
type key struct {
	kind     Kind
	known    bool
	prefixed bool
	names    names
}

// readKey takes a path apart.
func readKey(path string) (k key) {
	if len(path) > 2*maxPath {
		return k
	}
	spelt := string(spelling(make([]byte, 0, len(path)), []byte(path)))
	for _, prefix := range prefixes {
		if rest, ok := strings.CutPrefix(spelt, prefix); ok {
			spelt, k.prefixed = rest, true
		}
	}
	k.kind, k.known = keys[spelt]
	k.names = namesOf([]byte(path))
	return k
}

// depth bounds how deep the counts of a usage object may stand.
const depth = 5

// gather takes the counts of a decoded JSON object: the usage object of any provider, or an
// object with such keys among others, such as the attributes of a span. Numbers are of type
// [json.Number], or text. Of several keys for the same count the largest counts: they repeat
// one another, or are 0 in place of nothing.
func gather(v any) Counts {
	var g gatherer
	return g.gather(v)
}

// maxSeen bounds how many paths are remembered: keys may be made of data.
const maxSeen = 1 << 12

// A gatherer remembers what the paths of a file count.
type gatherer struct{ seen map[string]key }

func (g *gatherer) gather(v any) Counts {
	var counts [2]Counts // of bare keys, and of those with a prefix
	g.walk(&counts, "", v, 0)
	if !counts[1].Empty() {
		return counts[1]
	}
	return counts[0]
}

func (g *gatherer) walk(counts *[2]Counts, above string, v any, level int) {
	object, _ := v.(map[string]any)
	for name, value := range object {
		path := name
		if above != "" {
			path = above + name
		}
		switch value := value.(type) {
		case map[string]any:
			if level < depth {
				g.walk(counts, path+".", value, level+1)
			}
		case string:
			g.take(counts, path, value)
		case json.Number:
			if k, ok := g.take(counts, path, string(value)); !ok {
				counts[0].bad |= 1 << k
				counts[1].bad |= 1 << k
			}
		}
	}
}

// take takes the value at a path, where that is one of a count. ok is false for a value there
// that is none of its kind.
func (g *gatherer) take(counts *[2]Counts, path, value string) (_ Kind, ok bool) {
	k, ok := g.seen[path]
	if !ok {
		if k = readKey(path); len(g.seen) < maxSeen {
			if g.seen == nil {
				g.seen = map[string]key{}
			}
			g.seen[strings.Clone(path)] = k
		}
	}
	if !k.known {
		return 0, true
	}

	into := &counts[0]
	if k.prefixed {
		into = &counts[1]
	}
	n, ok := count(value)
	if !ok {
		return k.kind, false
	}
	before, _ := into.Get(k.kind)
	into.Set(k.kind, max(before, n))
	into.names |= k.names
	return k.kind, true
}

// count reads a whole number that is not negative. Some writers put it as 900.0 or 9e2.
func count(s string) (int64, bool) {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, n >= 0
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f != math.Trunc(f) || f > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// UnmarshalJSON gathers the counts of an object, see [Reader.Gather]. Anything else has none.
func (c *Counts) UnmarshalJSON(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return err
	}
	*c = gather(v)
	return nil
}

// GatherParts takes the counts of an object whose counts add up, as Langfuse stores them: it
// takes each detail, such as input_cached_tokens or output_reasoning_tokens, out of input and
// output. What it calls prompt_details and completion_details is within them. A total that is
// input and output alone shows that these hold the details already.
func GatherParts(v any) Counts {
	object, _ := v.(map[string]any)
	var c Counts
	sums := [kinds]int64{}
	add := func(k Kind, n int64) {
		sums[k] += n
		c.Set(k, sums[k])
	}

	for name, value := range object {
		text, isText := value.(string)
		if n, isNumber := value.(json.Number); isNumber {
			text, isText = string(n), true
		}
		n, ok := count(text)
		if !isText || !ok {
			continue
		}
		within := strings.Contains(name, "_details.")
		written := strings.Contains(name, "creat") || strings.Contains(name, "write")
		switch {
		case name == "total" || name == "totalTokens":
			add(Total, n)
		case strings.HasPrefix(name, "prompt") || strings.Contains(name, "input"):
			if !within {
				add(Input, n)
			}
			if strings.Contains(name, "cache") && !written {
				add(Cached, n)
			}
		case strings.HasPrefix(name, "completion") || strings.Contains(name, "output"):
			if !within {
				add(Output, n)
			}
			if strings.Contains(name, "reasoning") {
				add(Reasoning, n)
			}
		}
	}

	plain := gather(map[string]any{"input": object["input"], "output": object["output"]})
	input, hasInput := plain.Get(Input)
	output, hasOutput := plain.Get(Output)
	if total := sums[Total]; hasInput && hasOutput && total > 0 && total == input+output {
		c.Set(Input, input)
		c.Set(Output, output)
	}
	return c
}
