package openai

import (
	"bytes"
	"io"
	"time"
)

const (
	// BatchBytes is how much raw data a Collector holds before it decodes: its memory
	// is bounded by this and one event more. Most answers are shorter, and are decoded
	// when they are over; in a longer one the reading pauses for each batch by what
	// decoding 64 KiB takes, some 0.1 ms.
	BatchBytes = 64 << 10

	maxName    = 128 // bytes kept of an id or a model's name
	maxChoices = 128 // the n that OpenAI allows; choices beyond are read, not told apart
)

// A Collector folds the events of one answer into an Outcome. It keeps them raw, with
// their instants, and decodes them in batches, so that no decoding stands between the
// arrival of one chunk and the next Read. It is for one goroutine, and is used again
// through Reset.
type Collector struct {
	maxText int

	raw   []byte
	marks []mark
	done  bool // [DONE] was added

	out     Outcome
	view    chunkView
	total   counts        // usage of chunks without choices
	choices []choiceState // by index
	running int           // completion tokens as of the last token event, for EventTokens
	counted bool          // every token event so far had running usage
	called  bool          // a tool was called by an event of the Responses API
}

// A mark is one event in the raw buffer, which ends at end.
type mark struct {
	at   time.Duration
	end  int
	kind markKind
}

type markKind uint8

const (
	markData markKind = iota
	markComment
	markError
)

type choiceState struct {
	seen, finished bool
	counts         counts
}

// NewCollector returns a Collector that keeps at most maxText bytes of the generated
// text; 0 keeps none, which is right where the server sends usage.
func NewCollector(maxText int) *Collector {
	c := &Collector{maxText: maxText}
	c.Reset()
	return c
}

// Reset makes the Collector ready for another answer. The slices of the last Outcome
// are used again.
func (c *Collector) Reset() {
	if cap(c.raw) > 2*BatchBytes {
		c.raw = nil
	}
	text := c.out.Text
	*c = Collector{
		maxText: c.maxText,
		raw:     c.raw[:0], marks: c.marks[:0], choices: c.choices[:0],
		view:    chunkView{choices: c.view.choices[:0]},
		counted: true,
		out: Outcome{
			FirstEvent: NoInstant, FirstToken: NoInstant, LastToken: NoInstant,
			FirstContent: NoInstant, Finished: NoInstant, Done: NoInstant,
			Gaps: c.out.Gaps[:0], EventTokens: c.out.EventTokens[:0],
			Text: Text{Content: text.Content[:0], Reasoning: text.Reasoning[:0], Tools: text.Tools[:0], IDs: text.IDs[:0]},
		},
	}
}

// Add takes one event and reports whether [DONE] has come, or the last event of the
// Responses API, after which a caller may stop reading. It copies what it keeps. The body of an answer that is not a stream may
// be added as the data of one event.
func (c *Collector) Add(ev Event) (done bool) {
	m := mark{at: ev.At}
	switch {
	case ev.Comment:
		m.kind = markComment
	case string(ev.Name) == "error":
		m.kind = markError
		c.raw = append(c.raw, ev.Data...)
	default:
		c.raw = append(c.raw, ev.Data...)
		c.done = c.done || string(bytes.TrimSpace(ev.Data)) == doneMark || ends(ev.Name)
	}
	m.end = len(c.raw)
	c.marks = append(c.marks, m)
	// Comments hold no bytes but cost a mark, so that they too must be bounded.
	if len(c.raw) >= BatchBytes || len(c.marks) >= BatchBytes/32 {
		c.decode()
	}
	return c.done
}

// Finish decodes what is left and settles how the request ended: at is the instant at
// which the stream ended, err what it ended with (nil and io.EOF are an orderly end).
func (c *Collector) Finish(at time.Duration, err error) Outcome {
	c.decode()
	o := &c.out
	if o.Done == NoInstant {
		o.Done = at
	}
	if o.Err == nil && !c.complete() {
		kind := KindIncomplete
		if err != nil && err != io.EOF {
			kind = ClassifyError(err)
		}
		o.Err = &StreamError{Kind: kind}
	}
	o.Usage = c.usage()
	if !c.counted || o.Choices != 1 {
		o.EventTokens = o.EventTokens[:0]
	}
	return *o
}

// complete reports whether the stream said that the generation was over.
func (c *Collector) complete() bool {
	if c.out.DoneMarkers > 0 && c.out.Events > c.out.Malformed {
		return true
	}
	for _, choice := range c.choices {
		if choice.seen && !choice.finished {
			return false
		}
	}
	return c.out.Finished != NoInstant
}

func (c *Collector) decode() {
	start := 0
	for _, m := range c.marks {
		data := bytes.TrimSpace(c.raw[start:m.end])
		start = m.end
		switch {
		case m.kind == markComment:
			c.out.Comments++
		case m.kind == markError:
			c.event(m.at)
			c.fail(data)
		case len(data) == 0 || data[0] == ':':
			c.out.Comments++
		case string(data) == doneMark:
			if c.out.DoneMarkers++; c.out.Done == NoInstant {
				c.out.Done = m.at
			}
		default:
			c.event(m.at)
			c.chunk(data, m.at)
		}
	}
	c.raw, c.marks = c.raw[:0], c.marks[:0]
}

func (c *Collector) event(at time.Duration) {
	c.out.Events++
	if c.out.FirstEvent == NoInstant {
		c.out.FirstEvent = at
	}
}

// fail notes an error inside the stream; the first one counts.
func (c *Collector) fail(body []byte) {
	if c.out.Err == nil {
		c.out.Err = &StreamError{Kind: KindStream}
		c.out.Err.describe(body)
	}
}

func (c *Collector) chunk(data []byte, at time.Duration) {
	v := &c.view
	if !v.read(data) {
		c.out.Malformed++
		return
	}
	if v.err != nil {
		c.fail(v.err)
	}
	if c.out.ID == "" {
		c.out.ID = name(v.id)
	}
	if c.out.Model == "" {
		c.out.Model = name(v.model)
	}
	for i := range v.choices {
		c.choice(&v.choices[i], at)
	}
	c.settle(v, at)
	if v.hasUsage {
		c.count(v)
	}
	if v.hasContent {
		c.token(v, at)
	}
}

// choice notes what a chunk says of one choice, but for its tokens' instants.
func (c *Collector) choice(v *choiceView, at time.Duration) {
	c.out.Reasoning = c.out.Reasoning || len(v.reasoning.raw) > 0
	if state := c.state(v.index); state != nil {
		if !state.seen {
			state.seen = true
			c.out.Choices++
		}
		state.finished = state.finished || v.finish != nil
	}
	if v.finish != nil {
		if c.out.Finished == NoInstant {
			c.out.Finished = at
		}
		if c.out.FinishReason == "" || v.index == 0 {
			c.out.FinishReason = finishReason(v.finish)
		}
	}
	if c.maxText > 0 && v.index == 0 {
		c.keepText(v)
	}
}

// state returns the state of a choice; nil for an index that no server should use.
func (c *Collector) state(index int) *choiceState {
	if index >= maxChoices {
		return nil
	}
	for len(c.choices) <= index {
		c.choices = append(c.choices, choiceState{})
	}
	return &c.choices[index]
}

// token notes the instant of a token event.
func (c *Collector) token(v *chunkView, at time.Duration) {
	o := &c.out
	if o.TokenEvents == 0 {
		o.FirstToken = at
	} else {
		o.Gaps = append(o.Gaps, at-o.LastToken)
	}
	o.LastToken = at
	o.TokenEvents++
	if o.FirstContent == NoInstant {
		for i := range v.choices {
			if v.choices[i].content {
				o.FirstContent = at
			}
		}
	}
	if n := v.usage.CompletionTokens; n >= c.running && n > 0 && c.counted {
		o.EventTokens = append(o.EventTokens, int32(min(n-c.running, 1<<30)))
		c.running = n
	} else {
		c.counted = false
	}
}

// finishReasons are the usual ones, so that they cost no allocation.
var finishReasons = map[string]string{
	`"stop"`: "stop", `"length"`: "length", `"tool_calls"`: "tool_calls", `"content_filter"`: "content_filter",
}

func finishReason(raw []byte) string {
	if known, ok := finishReasons[string(raw)]; ok {
		return known
	}
	if reason := identifier(raw); reason != "" {
		return reason
	}
	return "other"
}

// name returns an id or a model's name, cut to maxName bytes.
func name(s jsonString) string {
	if len(s.raw) == 0 {
		return ""
	}
	text := appendUnquoted(nil, jsonString{s.raw[:min(len(s.raw), maxName)], s.escaped})
	return string(bytes.ToValidUTF8(text[:min(len(text), maxName)], nil))
}
