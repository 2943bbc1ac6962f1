package usage

import (
	"errors"
	"math"
)

// A Dialect says where the cache parts of a usage object stand.
type Dialect uint8

const (
	// Inclusive: cache reads and writes are part of the input count. OpenAI's APIs, Codex,
	// Gemini and Qwen, OpenRouter, vLLM, SGLang, Dynamo.
	Inclusive Dialect = iota

	// Exclusive: they stand beside it. Anthropic's Messages API, Claude Code, Bedrock,
	// OpenCode, Cline.
	Exclusive

	// Relayed: of a tool between client and provider, which may pass on either:
	// OpenTelemetry, LangSmith, LiteLLM, MLflow, Helicone, Kong. The counts decide it.
	Relayed

	// Body: of the answer itself, of whatever provider. The names of Anthropic's API say that
	// the parts stand beside the input; of others the counts decide, as in Relayed.
	Body
)

// Tokens are the token counts of one call. What the source does not tell is nil.
type Tokens struct {
	Input     *int32 // the whole prompt: what was read from a cache, written to one, and neither
	Cached    *int32 // of Input, read from a cache
	Written   *int32 // of Input, written to a cache: work like the rest
	Output    *int32 // with the reasoning
	Reasoning *int32 // of Output
}

// errRange is returned of a count above 2147483647.
var errRange = errors.New("its usage counts more than 2147483647 tokens")

// The parts that may stand beside a count or within it.
const (
	cachePart     = iota // Cached and Written, of Input
	toolsPart            // Tools, of Input
	reasoningPart        // of Output
	thoughtsPart         // of Output
	parts
)

// besideByKind says where a part stands if nothing shows it. That of the cache is the
// dialect's.
var besideByKind = [parts]bool{toolsPart: true, thoughtsPart: true}

// evidence counts the ways to add up that have a part beside its count, or within it.
type evidence struct{ beside, within int64 }

func (e evidence) isBeside() bool { return e.beside > e.within }

func (e evidence) shows() bool { return e.beside != e.within }

// amounts are the counts of the parts.
func (c *Counts) amounts() [parts]int64 {
	return [parts]int64{cachePart: c.n[Cached] + c.n[Written], toolsPart: c.n[Tools], reasoningPart: c.n[Reasoning],
		thoughtsPart: c.n[Thoughts]}
}

// resolve makes Body the dialect that the names of the counts say.
func (d Dialect) resolve(c *Counts) Dialect {
	switch {
	case d != Body:
		return d
	case c.names.areAnthropics():
		return Exclusive
	}
	return Relayed
}

// shown is what one record shows of where its parts stand: by its total, where only one way
// to add up gives that, and by a part that is more than its whole. explained is false for a
// total that no way gives.
func (c *Counts) shown(d Dialect) (by [parts]evidence, explained bool) {
	amounts := c.amounts()
	_, hasInput := c.Get(Input)
	_, hasOutput := c.Get(Output)
	explained = true

	if total := c.n[Total]; total > 0 && hasInput && hasOutput {
		explained = total == c.n[Input]+c.n[Output] // whatever parts it may leave out
		for way := range 1 << parts {
			rest := total - c.n[Input] - c.n[Output]
			for part := range parts {
				if way>>part&1 == 1 {
					rest -= amounts[part]
				}
			}
			cacheBeside := way>>cachePart&1 == 1
			if rest != 0 || d == Inclusive && cacheBeside || d == Exclusive && !cacheBeside {
				continue
			}
			explained = true
			for part := range parts {
				if way>>part&1 == 1 {
					by[part].beside = 1
				} else {
					by[part].within = 1
				}
			}
		}
	}

	for part, whole := range [parts]Kind{cachePart: Input, toolsPart: Input, reasoningPart: Output,
		thoughtsPart: Output} {
		if _, has := c.Get(whole); has && amounts[part] > c.n[whole] && (part != cachePart || d == Relayed) {
			by[part] = evidence{beside: 1}
		}
		if amounts[part] == 0 || !by[part].shows() {
			by[part] = evidence{}
		}
	}
	return by, explained
}

// contradicts reports whether a part is more than its whole, of which it is a part all the same:
// by the total, which is that of the wholes alone, or where there is none by the names.
func (c *Counts) contradicts(part int, whole Kind, named bool) bool {
	amount := c.amounts()[part]
	if !c.Has(whole) || amount <= c.n[whole] {
		return false
	}
	switch total := c.n[Total]; {
	case !c.Has(Input) || !c.Has(Output) || total == 0:
		return named
	case part == cachePart && !named:
		return false // some totals leave what was cached out
	default:
		return total == c.n[Input]+c.n[Output]
	}
}

// totalBelow reports whether the total is less than its parts, even if it leaves out what was
// cached and what was reasoned.
func (c *Counts) totalBelow() bool {
	if !c.Has(Input) || !c.Has(Output) || c.n[Total] <= 0 {
		return false
	}
	input, output := c.n[Input], c.n[Output]
	if cached := c.amounts()[cachePart]; cached <= input {
		input -= cached
	}
	if reasoning := c.n[Reasoning]; reasoning <= output {
		output -= reasoning
	}
	return c.n[Total] < input+output
}

// Settle makes tokens of the counts of one call, by what they show themselves. It fails for a
// count above 2147483647.
func (c *Counts) Settle(d Dialect) (t Tokens, found Findings, _ error) {
	d = d.resolve(c)
	by, explained := c.shown(d)
	amounts, beside := c.amounts(), besideByKind
	for part := range parts {
		if by[part].shows() {
			beside[part] = by[part].isBeside()
		}
	}
	switch d {
	case Exclusive:
		beside[cachePart] = true
	case Inclusive:
		beside[cachePart] = false
	}

	input, output := c.n[Input], c.n[Output]
	for part, count := range [parts]*int64{cachePart: &input, toolsPart: &input, reasoningPart: &output,
		thoughtsPart: &output} {
		if beside[part] {
			*count += amounts[part]
		}
	}
	_, hasInput := c.Get(Input)
	_, hasOutput := c.Get(Output)
	_, hasCached := c.Get(Cached)
	hasInput = hasInput || hasCached && beside[cachePart]

	// A total tells the one count that is not written.
	if total := c.n[Total]; total > 0 && hasInput && !hasOutput && total > input {
		output, hasOutput = total-input, true
	} else if total > 0 && hasOutput && !hasInput && total > output {
		input, hasInput = total-output, true
	}

	cached, reasoning := c.n[Cached], c.n[Reasoning]+c.n[Thoughts]
	if max(input, output, cached, c.n[Written], reasoning) > math.MaxInt32 {
		return Tokens{}, 0, errRange
	}
	var numbers [5]int32 // of which the tokens are one allocation
	pointer := func(at Kind, n int64) *int32 {
		numbers[at] = int32(n)
		return &numbers[at]
	}
	add := func(one Finding, holds bool) {
		if holds {
			found |= 1 << one
		}
	}
	below := c.totalBelow()
	add(TotalBelow, below)
	add(TotalOff, !explained && !below)
	add(NoCount, c.Invalid())
	add(ReasoningAdded, beside[reasoningPart] && amounts[reasoningPart] > 0)
	add(CacheBeyond, d == Relayed && beside[cachePart] && c.contradicts(cachePart, Input, c.names.areWithin()))
	add(ReasoningBeyond, beside[reasoningPart] && c.contradicts(reasoningPart, Output, false))
	if hasInput {
		add(CacheOver, cached > input)
		cached = min(cached, input)
		t.Input = pointer(Input, input)
	}
	if hasOutput {
		add(ReasoningOver, reasoning > output)
		reasoning = min(reasoning, output)
		t.Output = pointer(Output, output)
	}
	if hasCached {
		t.Cached = pointer(Cached, cached)
	}
	if n, ok := c.Get(Written); ok {
		t.Written = pointer(Written, n)
	}
	if c.has&(1<<Reasoning|1<<Thoughts) != 0 {
		t.Reasoning = pointer(Reasoning, reasoning)
	}
	if d == Relayed && amounts[cachePart] > 0 {
		add(CacheAdded, beside[cachePart])
		add(CacheTaken, !beside[cachePart] && !by[cachePart].shows() && !c.names.areWithin())
	}
	return t, found, nil
}
