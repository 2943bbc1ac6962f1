package usage

import "time"

// A Claim is what a server counts of one answer, beside what is known of that answer without
// the server. What is not known is 0.
//
// Tokenizers differ, so that each bound leaves room for all of them: a token of text has a byte
// at least, as those of a byte-level model have, and a text has at most [mostApart] times the
// tokens that ours counts in it. Servers differ, too: they hide reasoning, generate tokens that
// have no text, put several tokens into one event, and add prompts of their own. A count that
// one of these explains is not refuted. Events are no measure of tokens.
type Claim struct {
	Input, Cached, Output, Reasoning int64

	RequestBytes int64 // of the request's body: each token of the prompt has one of them at least
	PromptTokens int64 // of the prompt as it was made, where the bytes are not known
	Images       bool  // the prompt has some, whose tokens have no bytes

	Asked    int64         // the most tokens that were asked for, of each choice
	Choices  int64         // parallel answers; 0 is one
	Events   int64         // that carried tokens
	Took     time.Duration // from the request to the end of the answer
	Embedded bool          // nothing is generated

	Text *Text // what was seen of the answer; nil is not known
}

// A Text is what was seen of an answer: content, reasoning, and calls of tools.
type Text struct {
	Bytes  int64
	Opaque bool         // there was something without a text, such as sound
	Count  func() int64 // the tokens of the text by a tokenizer of ours; nil without one
}

// The room that a claim has.
const (
	addedPrompt    = 32_768 // tokens that a server may put before a prompt: a system prompt, tools
	bytesOfToken   = 16     // of a prompt's tokens in the mean, where its bytes are not known
	unseenTokens   = 16     // without text, in any answer: the end of the text, marks of a call
	tokensOfEvent  = 64     // in one event, where the text is not known
	mostApart      = 8      // times as many tokens as one tokenizer does, another finds in the same text
	usuallyApart   = 3      // likewise, of nearly all tokenizers and texts
	longTokenBytes = 16     // of text for each token counted: only above that is the text counted
	longTokens     = 256    // bytes more
	burstTokens    = 10_000 // that may come at once, from a cache of answers
)

// FastestToken is the least time between two tokens of one answer that a model can need:
// 50,000 a second are many times what any does.
const FastestToken = 20 * time.Microsecond

// Judge holds a claim against what is known of its answer.
func (c *Claim) Judge() (found Findings) {
	add := func(one Finding, holds bool) {
		if holds {
			found = found.With(one)
		}
	}
	add(CacheOver, c.Input > 0 && c.Cached > c.Input)
	add(InputAbovePrompt, c.mostInput() > 0 && c.Input > c.mostInput())
	if c.Embedded {
		add(OutputOfNone, c.Output > 0)
		return found
	}

	unseen := c.unseen() - c.Reasoning
	add(OutputAboveTime, c.Took > 0 && c.unseen() > burstTokens+max(c.Choices, 1)*int64(c.Took/FastestToken))
	add(OutputAboveAsked, !found.Has(OutputAboveTime) && c.aboveAsked() && (unseen > 0 || c.aboveText()))
	add(OutputBelowText, c.belowText())
	add(OutputUnseen, c.Text != nil && unseen > 0 && !found.Refutes(Output))
	return found
}

// mostInput is how many tokens a prompt can have, 0 where nothing bounds them.
func (c *Claim) mostInput() int64 {
	switch {
	case c.Images:
		return 0
	case c.RequestBytes > 0:
		return c.RequestBytes + addedPrompt
	case c.PromptTokens > 0:
		return c.PromptTokens*bytesOfToken + addedPrompt
	}
	return 0
}

// unseen is how many of the output tokens the text cannot hold. Where the text is not known,
// events stand for it, each with as many tokens as any server puts into one.
func (c *Claim) unseen() int64 {
	room := unseenTokens * max(c.Choices, 1)
	switch {
	case c.Text == nil:
		return c.Output - max(c.Events, 1)*tokensOfEvent - room
	case c.Text.Opaque:
		return 0
	}
	return c.Output - c.Text.Bytes - room
}

// aboveAsked reports whether more tokens are claimed than were asked for. A few more are not
// meant: servers count the end of the text, and what a speculative step made too much.
func (c *Claim) aboveAsked() bool {
	most := c.Asked * max(c.Choices, 1)
	return c.Asked > 0 && c.Output-c.Reasoning > most+most/8+unseenTokens
}

// aboveText reports whether the text has so few tokens by our tokenizer that another one would
// hardly find as many as are claimed.
func (c *Claim) aboveText() bool {
	t := c.Text
	if t == nil || t.Count == nil || t.Opaque || c.Choices > 1 {
		return false
	}
	return c.Output-c.Reasoning > t.Count()*usuallyApart+unseenTokens
}

// belowText reports whether the text has far more tokens than are claimed.
func (c *Claim) belowText() bool {
	t := c.Text
	if c.Output == 0 || t == nil || t.Count == nil || t.Bytes <= c.Output*longTokenBytes+longTokens {
		return false
	}
	return t.Count() > c.Output*mostApart+unseenTokens
}
