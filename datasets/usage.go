package datasets

import (
	"maps"
	"math"
	"strings"

	"reprise/trace"
)

// A tokenUsage is what one call cost in tokens, whoever counted. A count that the
// source does not have is nil. They are InputTokens, Cached, OutputTokens and Reasoning
// of an entry; what was written to a cache is in no column.
type tokenUsage struct {
	input     *int32 // the whole prompt: what was read from a cache, written to one, and neither
	cached    *int32 // of input, read from a cache
	written   *int32 // of input, written to a cache: work like the rest
	output    *int32 // with the reasoning
	reasoning *int32 // of output
}

// A usageConvention says what the input count of a usage object holds.
type usageConvention int

const (
	// usageInclusive: cache reads and writes are part of the input count. OpenAI's Chat
	// and Responses APIs, Codex, Gemini and Qwen, OpenRouter, vLLM, SGLang, Dynamo.
	usageInclusive usageConvention = iota
	// usageExclusive: they stand beside it. Anthropic's Messages API, Claude Code,
	// Bedrock, OpenCode, Cline.
	usageExclusive
	// usageRelayed: of a tool between client and provider, which may pass on either:
	// OpenTelemetry, LangSmith, LiteLLM, MLflow, Helicone, Kong. The records decide it,
	// once for each file and model, see [usageReader].
	usageRelayed
)

// A usageReader turns the usage objects of one file into counts. Each file has a
// reader of its own, and the rows of its head go through the same one as all rows.
//
// What a relayed count holds is told by the records of its model: by a total that is
// the sum of the counts with the cache parts or without them, and by cache parts that
// are more than the input. Without either, the count is taken as inclusive, as
// OpenTelemetry's conventions want it. A record that shows the contrary after others
// were read so stops the reading, with the option that says which it is. So nothing
// depends on which record comes first.
//
// Whether the output count holds the reasoning is told in the same way. Gemini's
// thoughts are always beside it.
type usageReader struct {
	convention usageConvention
	models     map[string]*usageModel
	kinds      map[string]usageKey // of the keys seen so far
	tell       *notes              // of the source: what is read for the head has others
}

// A usageModel is what the records of a model have shown so far.
type usageModel struct {
	cache, reasoning usageEvidence
	taken            int64 // records whose cache parts were taken as within before any showed it
}

// usageEvidence counts the records that show whether some part stands beside a count
// or within it.
type usageEvidence struct{ beside, within int64 }

func (e usageEvidence) isBeside() bool { return e.beside > e.within }

// newUsageReader makes the reader of a file.
func newUsageReader(c usageConvention, o Options, s *Source) *usageReader {
	if c == usageRelayed {
		switch o.CachedInInput {
		case "yes":
			c = usageInclusive
		case "no":
			c = usageExclusive
		}
	}
	return &usageReader{convention: c, models: map[string]*usageModel{}, kinds: map[string]usageKey{}, tell: &s.notes}
}

// show reads the usage object at a path of a row and puts its counts at tokens.input,
// tokens.output, tokens.cached and tokens.reasoning, from where a mapping takes them. A
// row without such an object is left as it is.
func (r *usageReader) show(v viewRow, path, model string, tell *notes) error {
	found, ok := v.value(path)
	if !ok {
		return nil
	}
	u, err := r.read(found, model, tell)
	if err != nil {
		err.line, err.col = v.place(path)
		return err
	}
	counts := map[string]any{}
	for name, n := range map[string]*int32{"input": u.input, "output": u.output, "cached": u.cached, "reasoning": u.reasoning} {
		if n != nil {
			counts[name] = integer(int64(*n))
		}
	}
	v.put("tokens", counts, path)
	return nil
}

// usageTargets are the targets of a mapping that a [usageReader] settles, in its words.
// Those that are no targets of --map tell what the others hold.
var usageTargets = [][2]string{
	{"input_tokens", "prompt_tokens"}, {"output_tokens", "completion_tokens"}, {"cached_tokens", "cached_tokens"}, {"reasoning_tokens", "reasoning_tokens"},
	{"written_tokens", "cache_write_tokens"}, {"total_tokens", "total_tokens"}, {"thoughts_tokens", "thoughts"},
}

// withUsage is a mapping whose counts are where a [usageReader] puts them or, where it finds
// none, where they were: what stands there is no count.
func (m Mapping) withUsage() Mapping {
	read := maps.Clone(m)
	for _, name := range usageTargets {
		delete(read, name[0])
	}
	for _, name := range []string{"input", "output", "cached", "reasoning"} {
		read[name+"_tokens"] = append([]string{"tokens." + name}, m[name+"_tokens"]...)
	}
	return read
}

// usageReads are the fields of a mapping that tell what others hold.
func usageReads(fields Mapping) (reads []SourceField) {
	for _, name := range []string{"written_tokens", "total_tokens", "thoughts_tokens"} {
		if paths := fields[name]; paths != nil {
			reads = append(reads, fieldAt(strings.Join(paths, "|"), "input_tokens output_tokens", "decides what the counts hold"))
		}
	}
	return reads
}

// showFields does the same as show for counts that stand where the targets of a mapping say.
func (r *usageReader) showFields(v viewRow, fields Mapping, tell *notes) error {
	usage, where := map[string]any{}, ""
	for _, name := range usageTargets {
		if n, path, ok := findFirst(v, fields[name[0]]); ok {
			if _, isCount := countOf(plain(n)); isCount {
				usage[name[1]] = n
				if where == "" {
					where = path
				}
			}
		}
	}
	model, _, _ := findFirst(v, fields["model"])
	v.put("usage_of_call", usage, where)
	if err := r.show(v, "usage_of_call", plain(model), tell); err != nil {
		return err
	}
	v.from["tokens"] = where
	return nil
}

const (
	noteCacheBeside  = "records whose cached tokens stand beside the input count, and were added to it (--cached-in-input yes says that they are part of it)"
	noteCacheTaken   = "records whose cached tokens were taken as part of the input count, which nothing before them shows (--cached-in-input no says that they stand beside it)"
	noteCacheOver    = "records that count more cached tokens than input tokens: all of the input was taken as cached"
	whyCacheDoubt    = "its cached tokens stand beside its input count, and those of its model's records before were taken as part of it: say --cached-in-input no, or yes if they are part of it after all"
	whyUsageOverflow = "its usage counts more than 2147483647 tokens"
)

// read reads a usage object: the one of any provider, such as the usage of a response,
// or an object with such keys among others, such as the attributes of a span. tell is
// that of the view which shows the row. The place of the fault is the caller's to fill in.
func (r *usageReader) read(v any, model string, tell *notes) (u tokenUsage, _ *fault) {
	c := r.gather(v)
	m := r.models[model]
	if m == nil {
		m = &usageModel{}
		r.models[strings.Clone(model)] = m
	}
	shown := m.learn(&c, r.convention)
	parts := c.n[usageCached] + c.n[usageWritten]
	beside := r.convention == usageExclusive || r.convention == usageRelayed && m.cache.isBeside()
	if r.convention == usageRelayed && parts > 0 && tell == r.tell {
		switch {
		case beside && m.taken > 0:
			return u, refuse(0, 0, whyCacheDoubt)
		case beside:
			tell.count(noteCacheBeside)
		case m.cache == (usageEvidence{}):
			m.taken++
			tell.count(noteCacheTaken)
		}
	}
	input, output := c.n[usageInput]+c.n[usageTools], c.n[usageOutput]+c.n[usageThoughts]
	if beside {
		input += parts
	}
	if shown.isBeside() || shown == (usageEvidence{}) && m.reasoning.isBeside() {
		output += c.n[usageReasoning]
	}
	cached, reasoning := c.n[usageCached], c.n[usageReasoning]+c.n[usageThoughts]
	if max(input, output, cached, c.n[usageWritten], reasoning) > math.MaxInt32 {
		return u, bad(0, 0, whyUsageOverflow)
	}
	if c.has[usageInput] || beside && c.has[usageCached] {
		u.input = trace.Ptr(int32(input))
		if cached > input {
			cached = input
			tell.count(noteCacheOver)
		}
	}
	if c.has[usageOutput] {
		u.output = trace.Ptr(int32(output))
	}
	if c.has[usageCached] {
		u.cached = trace.Ptr(int32(cached))
	}
	if c.has[usageWritten] {
		u.written = trace.Ptr(int32(c.n[usageWritten]))
	}
	if c.has[usageReasoning] || c.has[usageThoughts] {
		u.reasoning = trace.Ptr(int32(reasoning))
	}
	return u, nil
}

// learn takes what a record shows of its model, and returns what it shows of its
// reasoning. A total shows it where only one way to add up gives that total.
func (m *usageModel) learn(c *usageCounts, convention usageConvention) (reasoning usageEvidence) {
	input, output := c.n[usageInput]+c.n[usageTools], c.n[usageOutput]+c.n[usageThoughts]
	parts, thought := c.n[usageCached]+c.n[usageWritten], c.n[usageReasoning]
	var cache usageEvidence
	if rest := c.n[usageTotal] - input - output; c.has[usageTotal] && c.has[usageInput] && c.has[usageOutput] {
		for way := range 4 { // whether cache parts and reasoning are beside
			partsBeside, thoughtBeside := int64(way&1), int64(way>>1)
			switch {
			case convention == usageInclusive && partsBeside == 1, convention == usageExclusive && partsBeside == 0:
			case rest == partsBeside*parts+thoughtBeside*thought:
				cache.beside, cache.within = cache.beside|partsBeside, cache.within|(1-partsBeside)
				reasoning.beside, reasoning.within = reasoning.beside|thoughtBeside, reasoning.within|(1-thoughtBeside)
			}
		}
	}
	if c.has[usageInput] && parts > input {
		cache = usageEvidence{beside: 1}
	}
	if c.has[usageOutput] && thought > output {
		reasoning = usageEvidence{beside: 1}
	}
	for _, shown := range []struct {
		part int64
		now  *usageEvidence
		all  *usageEvidence
	}{{parts, &cache, &m.cache}, {thought, &reasoning, &m.reasoning}} {
		if shown.part == 0 || shown.now.beside == shown.now.within {
			*shown.now = usageEvidence{}
		}
		shown.all.beside += shown.now.beside
		shown.all.within += shown.now.within
	}
	return reasoning
}

// usageCounts are the counts of a usage object, by what they count.
type usageCounts struct {
	n   [usageKinds]int64
	has [usageKinds]bool
}

type usageKind int

const (
	usageInput     usageKind = iota
	usageCached              // read from a cache
	usageWritten             // written to one
	usageOutput              // with the reasoning, as a rule
	usageReasoning           // of the output, as a rule
	usageThoughts            // beside the output, always
	usageTools               // prompts of tools, beside the input
	usageTotal
	usageKinds
)

// usageKeys are the keys of providers, gateways and tracers: small, without "_" and "-".
var usageKeys = map[string]usageKind{
	// OpenAI Chat, vLLM, SGLang, LiteLLM, Braintrust, Helicone, OpenHands, DeepSeek
	"prompttokens": usageInput, "completiontokens": usageOutput, "totaltokens": usageTotal, "tokens": usageTotal,
	"prompttokensdetails.cachedtokens": usageCached, "prompttokensdetails.cachewritetokens": usageWritten, "prompttokensdetails.cachecreationtokens": usageWritten,
	"completiontokensdetails.reasoningtokens": usageReasoning, "completionreasoningtokens": usageReasoning,
	"cachedtokens": usageCached, "promptcachedtokens": usageCached, "promptcachereadtokens": usageCached, "cachereadtokens": usageCached, "promptcachehittokens": usageCached,
	"promptcachecreationtokens": usageWritten, "promptcachewritetokens": usageWritten, "cachewritetokens": usageWritten, "reasoningtokens": usageReasoning,
	// OpenAI Responses, Codex
	"inputtokens": usageInput, "outputtokens": usageOutput, "outputtokensdetails.reasoningtokens": usageReasoning, "reasoningoutputtokens": usageReasoning,
	"inputtokensdetails.cachedtokens": usageCached, "inputtokensdetails.cachewritetokens": usageWritten, "cachedinputtokens": usageCached, "cachewriteinputtokens": usageWritten,
	// Anthropic, Bedrock
	"cachereadinputtokens": usageCached, "cachecreationinputtokens": usageWritten,
	"inputtokencount": usageInput, "outputtokencount": usageOutput, "cachereadinputtokencount": usageCached, "cachewriteinputtokencount": usageWritten,
	// Gemini, Vertex, Qwen Code
	"prompttokencount": usageInput, "candidatestokencount": usageOutput, "totaltokencount": usageTotal, "cachedcontenttokencount": usageCached,
	"thoughtstokencount": usageThoughts, "thoughts": usageThoughts, "tooluseprompttokencount": usageTools, "tool": usageTools,
	// Gemini CLI, OpenCode, Cline, Cloudflare, Portkey
	"input": usageInput, "output": usageOutput, "cached": usageCached, "reasoning": usageReasoning, "total": usageTotal,
	"cache.read": usageCached, "cache.write": usageWritten, "tokensin": usageInput, "tokensout": usageOutput,
	"cachereads": usageCached, "cachewrites": usageWritten, "requnits": usageInput, "resunits": usageOutput, "totalunits": usageTotal,
	// OpenTelemetry, OpenInference, LangSmith, Sentry
	"cacheread.inputtokens": usageCached, "cachecreation.inputtokens": usageWritten, "reasoning.outputtokens": usageReasoning, "inputtokens.cached": usageCached, "inputcachedtokens": usageCached,
	"prompt": usageInput, "completion": usageOutput, "promptdetails.cacheread": usageCached, "promptdetails.cachewrite": usageWritten, "completiondetails.reasoning": usageReasoning,
	"prompttokendetails.cacheread": usageCached, "prompttokendetails.raw.cacheread": usageCached, "prompttokendetails.cachecreation": usageWritten, "completiontokendetails.reasoning": usageReasoning,
	"inputtokendetails.cacheread": usageCached, "inputtokendetails.cachecreation": usageWritten, "outputtokendetails.reasoning": usageReasoning,
}

// usagePrefixes begin the keys of an object that holds more than a usage.
var usagePrefixes = []string{"genai.usage.", "llm.tokencount.", "ai.usage.", "llm.usage."}

// usageName is how [usageKeys] spells a key.
var usageName = strings.NewReplacer("_", "", "-", "")

// A usageKey is what a key counts, where it is known.
type usageKey struct {
	kind     usageKind
	known    bool
	prefixed bool
}

// gather takes the counts of an object. Of several keys for the same count the largest
// counts: they repeat one another, or are 0 in place of nothing.
func (r *usageReader) gather(v any) usageCounts {
	var counts [2]usageCounts // of bare keys, and of those with a prefix
	r.walk(&counts, "", v, 0)
	if counts[1] != (usageCounts{}) {
		return counts[1]
	}
	return counts[0]
}

const (
	usageDepth   = 5       // of the counts of a usage object, at the most
	maxUsageKeys = 1 << 12 // that are remembered: keys may be made of data
)

func (r *usageReader) walk(counts *[2]usageCounts, above string, v any, depth int) {
	object, _ := v.(map[string]any)
	for name, value := range object {
		path := above + name
		switch value := value.(type) {
		case map[string]any:
			if depth < usageDepth {
				r.walk(counts, path+".", value, depth+1)
			}
		case string, number:
			key, seen := r.kinds[path]
			if !seen {
				spelt := strings.ToLower(usageName.Replace(path))
				for _, prefix := range usagePrefixes {
					if rest, ok := strings.CutPrefix(spelt, prefix); ok {
						spelt, key.prefixed = rest, true
					}
				}
				if key.kind, key.known = usageKeys[spelt]; len(r.kinds) < maxUsageKeys {
					r.kinds[strings.Clone(path)] = key
				}
			}
			into := &counts[0]
			if key.prefixed {
				into = &counts[1]
			}
			if key.known {
				if n, ok := countOf(plain(value)); ok {
					into.n[key.kind], into.has[key.kind] = max(into.n[key.kind], int64(n)), true
				}
			}
		}
	}
}
