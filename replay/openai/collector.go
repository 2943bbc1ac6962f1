package openai

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"slices"
	"time"

	"reprise/trace/ending"
	"reprise/trace/usage"
)

const (
	// batchBytes is how much raw data a Collector holds before it decodes: its memory
	// is bounded by this and one event more. Most answers are shorter, and are decoded
	// when they are over; in a longer one the reading pauses for each batch by what
	// decoding 64 KiB takes, some 0.1 ms.
	batchBytes = 64 << 10

	maxName    = 128 // bytes kept of an id or a model's name
	maxChoices = 128 // the n that OpenAI allows; choices beyond are read, not distinguished
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

	out      Outcome
	view     chunkView
	total    usage.Counts  // usage of chunks without choices
	messages usage.Counts  // and of the Messages API
	choices  []choiceState // by index
	running  int           // completion tokens as of the last token event, for EventTokens
	counted  bool          // every token event so far had running usage
	fell     bool          // the output count of all choices fell
	prompts  [2]int64      // the least and the most prompt tokens that were counted
	asked    int           // the most tokens that were asked for; 0 is not known
	most     int           // token events; 0 is no bound
	failed   bool          // the finish reason is one of a choice that failed
	called   bool          // a tool was called by an event of the Responses API
	ended    int           // last events of the Responses API, which has no [DONE]
	whole    bool          // the answer came as a body, see AddBody
	embedded bool          // the answer is an embedding
	stray    *StreamError  // the last event that is none of any API, after which no finish reason came
	useful   int           // events that are no keep-alive in disguise, and the first one
}

// A mark is one event in the raw buffer, which ends at end.
type mark struct {
	at    time.Duration
	end   int
	delay int32 // as Event.ReadDelay
	kind  markKind
}

type markKind uint8

const (
	markData markKind = iota
	markComment
	markError
)

type choiceState struct {
	seen, finished bool
	counts         usage.Counts
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
	if cap(c.raw) > 2*batchBytes {
		c.raw = nil
	}
	text := c.out.Text
	if cap(text.Content)+cap(text.Reasoning)+cap(text.Tools) > 2*textMost {
		text = Text{} // of one event that was mostly beyond what is kept
	}
	*c = Collector{
		maxText: c.maxText,
		raw:     c.raw[:0], marks: c.marks[:0], choices: c.choices[:0],
		view:    chunkView{choices: c.view.choices[:0]},
		counted: true,
		out: Outcome{
			FirstEvent: NoInstant, FirstToken: NoInstant, LastToken: NoInstant,
			FirstContent: NoInstant, Finished: NoInstant, Done: NoInstant,
			Gaps: c.out.Gaps[:0], EventTokens: c.out.EventTokens[:0], ReadDelays: c.out.ReadDelays[:0],
			Text: Text{Content: text.Content[:0], Reasoning: text.Reasoning[:0], Tools: text.Tools[:0],
				IDs: text.IDs[:0], Ends: text.Ends[:0]},
		},
	}
}

// AddBody takes an answer that is no stream: a whole body of JSON, in place of all
// events. Finish then fails the answer as [KindNotStreamed], and keeps the counts and
// the text: none of its tokens has an instant of its own. Embeddings are never streamed,
// and succeed.
func (c *Collector) AddBody(body []byte, at time.Duration) {
	if c.whole = true; len(body) > 0 {
		c.Add(Event{At: at, Data: body})
	}
}

// Add takes one event and reports whether [DONE] has come, or the last event of the
// Responses API, after which a caller may stop reading. It copies what it keeps.
func (c *Collector) Add(ev Event) (done bool) {
	m := mark{at: ev.At, delay: ev.ReadDelay}
	switch {
	case ev.Comment, IsPing(ev):
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
	if len(c.raw) >= batchBytes || len(c.marks) >= batchBytes/32 {
		c.decode()
	}
	return c.done
}

// Expect says how many tokens were asked for at most, after Reset; 0 is not known.
func (c *Collector) Expect(tokens int) { c.asked = tokens }

// Within bounds the answer, after Reset.
func (c *Collector) Within(b Bound) {
	c.most = b.Events
	if c.maxText > 0 {
		c.maxText = b.Text
	}
}

// Beyond reports whether more token events came than the bound allows. What came after them
// was not kept.
func (c *Collector) Beyond() bool { return c.most > 0 && c.out.TokenEvents > c.most }

// Finish decodes what is left and settles how the request ended: at is the instant at
// which the stream ended, err what it ended with (nil and io.EOF are an orderly end).
func (c *Collector) Finish(at time.Duration, err error) Outcome {
	c.decode()
	o := &c.out
	if o.Done == NoInstant {
		o.Done = at
	}
	o.DoneMarkers = max(o.DoneMarkers, c.ended)
	if errors.Is(err, ErrOverlong) && o.DoneMarkers == 0 && o.Err == nil {
		o.Err = &StreamError{Kind: KindOverlong}
	}
	o.Usage, o.Embedded = c.usage(), c.embedded
	generated := o.TokenEvents > 0 || c.embedded
	if c.whole {
		generated = true // what is wrong with a body, settleBody says
		c.settleBody(err)
	}
	if o.Err == nil {
		c.settleEnding(generated, err)
	}
	if !c.counted || o.Choices != 1 {
		o.EventTokens = o.EventTokens[:0]
	}
	if len(o.ReadDelays) != o.TokenEvents {
		o.ReadDelays = o.ReadDelays[:0]
	}
	return *o
}

// settleEnding fails an answer that did not end as one should. What the transport did after
// the end of an answer is forgiven.
func (c *Collector) settleEnding(generated bool, err error) {
	o := &c.out
	a := ending.Answer{Ended: c.complete(), Finish: o.FinishReason, Generated: generated, Asked: c.asked}
	if o.Usage != nil {
		a.Tokens = o.Usage.CompletionTokens
	}
	switch kind := a.Failure(); {
	case kind == KindIncomplete && err != nil && err != io.EOF:
		o.Err = &StreamError{Kind: ClassifyError(err)}
	case c.stray != nil && o.DoneMarkers > 0:
		o.Err = c.stray
	case kind != "":
		o.Err = &StreamError{Kind: kind}
	}
}

// settleBody takes back what a whole body said as if it were an event, and fails the
// answer unless it is one that is never streamed.
func (c *Collector) settleBody(err error) {
	o := &c.out
	o.DoneMarkers = 1 // a body needs no end mark
	kind := KindNotStreamed
	if o.Choices == 0 && o.Events > o.Malformed {
		kind = KindStream // such as {"detail":…}: nothing of an answer is in it
	}
	o.FirstEvent, o.FirstToken, o.LastToken, o.FirstContent = NoInstant, NoInstant, NoInstant, NoInstant
	o.Events, o.Malformed, o.TokenEvents, o.Gaps, o.EventTokens = 0, 0, 0, o.Gaps[:0], o.EventTokens[:0]
	if o.Err == nil && !c.embedded && (err == nil || err == io.EOF) {
		o.Err = &StreamError{Kind: kind}
	}
}

// Settle decodes what has come, so that no raw events are kept: for a caller with many
// Collectors at once, to whom memory matters more than the time between two reads.
func (c *Collector) Settle() { c.decode() }

// complete reports whether the stream said that the generation was over.
func (c *Collector) complete() bool {
	if c.out.DoneMarkers > 0 && c.out.Events > c.out.Malformed {
		return true
	}
	open := slices.ContainsFunc(c.choices, func(choice choiceState) bool { return choice.seen && !choice.finished })
	return c.out.Finished != NoInstant && !open
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
			c.addChunk(data, m.at, m.delay)
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
		c.out.Err = streamError(body)
	}
}

// streamError is the error that stands in a stream.
func streamError(body []byte) *StreamError {
	e := &StreamError{Kind: KindStream, Said: Said(body)}
	if saysTooLong(body) {
		e.Kind = KindTooLong
	}
	e.describe(body)
	return e
}

// addChunk reads a data event and adds what it says to the outcome.
func (c *Collector) addChunk(data []byte, at time.Duration, delay int32) {
	v := &c.view
	sound := v.read(data)
	if sound && string(v.event.kind) == pingEvent {
		c.out.Comments++
		return
	}
	c.event(at)
	if (!sound || v.stray) && c.out.Finished == NoInstant {
		c.stray = streamError(data)
	}
	if !sound {
		c.out.Malformed++
		return
	}
	if v.err != nil {
		c.fail(v.err)
	}
	if c.out.Events == 1 || v.useful() {
		c.useful++
	}
	if c.out.ID == "" {
		c.out.ID = name(v.id)
	}
	if c.out.Model == "" {
		c.out.Model = name(v.model)
	}
	for i := range v.choices {
		if choice := &v.choices[i]; choice.whole && c.out.TokenEvents > 0 { // MiniMax's last chunk
			*choice = choiceView{index: choice.index, finish: choice.finish}
			v.hasContent = false
		}
		c.addChoice(&v.choices[i], at)
	}
	c.noteEnd(v, at)
	c.out.Queue, c.out.Prefill = cmp.Or(v.times.queue, c.out.Queue), cmp.Or(v.times.prefill, c.out.Prefill)
	switch {
	case v.ofMessage:
		c.watchOutput(&c.messages, &v.counts)
		c.messages.Add(&v.counts, true)
	case v.hasUsage:
		c.addUsage(v)
	}
	if v.hasContent {
		c.addTokenEvent(v, at, delay)
	}
}

// addChoice notes what a chunk says about one choice, except the instants of its tokens.
func (c *Collector) addChoice(v *choiceView, at time.Duration) {
	c.out.Reasoning = c.out.Reasoning || len(v.reasoning.raw) > 0
	c.out.Bytes += v.text.size() + v.reasoning.size() + v.arguments.size() + int64(len(v.tools))
	c.out.Opaque = c.out.Opaque || v.opaque
	if state := c.state(v.index); state != nil {
		if !state.seen {
			state.seen = true
			c.out.Choices++
		}
		state.finished = state.finished || v.finish != nil
	}
	if v.finish != nil {
		if c.stray = nil; c.out.Finished == NoInstant {
			c.out.Finished = at
		}
		reason, known := finishReasons[string(v.finish)]
		if !known {
			reason = cmp.Or(identifier(v.finish), ending.Other)
		}
		// Of several choices the first counts, or one that failed.
		if c.out.FinishReason == "" || !c.failed && (v.index == 0 || ending.OfFinish(reason) == ending.Failed) {
			c.out.FinishReason = reason
			c.failed = !known && ending.OfFinish(reason) == ending.Failed
		}
	}
	if c.maxText > 0 && v.index == 0 {
		t := &c.out.Text
		if before := len(t.Content); len(v.text.raw) > 0 {
			if t.Content = c.keep(t.Content, v.text); len(t.Content) > before {
				t.Ends = append(t.Ends, int32(len(t.Content)))
			}
		}
		t.Reasoning = c.keep(t.Reasoning, v.reasoning)
		t.Tools = c.keep(t.Tools, v.arguments)
		if v.tools != nil {
			c.keepTools(v.tools)
		}
		if v.ids != nil {
			c.keepIDs(v.ids)
		}
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

// addTokenEvent notes the instant of a token event.
func (c *Collector) addTokenEvent(v *chunkView, at time.Duration, delay int32) {
	o := &c.out
	if c.Beyond() {
		return
	}
	if o.TokenEvents == 0 {
		o.FirstToken = at
	} else {
		o.Gaps = append(o.Gaps, at-o.LastToken)
	}
	o.LastToken = at
	o.TokenEvents++
	if delay != 0 {
		o.ReadDelays = append(o.ReadDelays, delay)
	}
	if o.FirstContent == NoInstant {
		for i := range v.choices {
			if v.choices[i].content {
				o.FirstContent = at
			}
		}
	}
	if n := v.runningOutput(); n >= c.running && n > 0 && c.counted {
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

// name returns an id or a model's name, cut to maxName bytes.
func name(s jsonString) string {
	if len(s.raw) == 0 {
		return ""
	}
	text := appendUnquoted(nil, jsonString{s.raw[:min(len(s.raw), maxName)], s.escaped})
	return string(bytes.ToValidUTF8(text[:min(len(text), maxName)], nil))
}

// Begun decodes what has come and reports whether a token was among it. It is for a
// caller that limits the time to the first token; others need not ask.
func (c *Collector) Begun() bool {
	if c.out.TokenEvents == 0 {
		c.decode()
	}
	return c.out.TokenEvents > 0
}

// Useful decodes what has come and returns how many events said something: a chunk that brings
// nothing, which some servers send to keep a connection alive, does not. The first chunk counts
// in any case. It is for a caller that limits the time between them; others need not ask.
func (c *Collector) Useful() int {
	c.decode()
	return c.useful
}

// noteEnd notes what only events and embeddings say: the end of the stream without a
// mark, and that tools were called.
func (c *Collector) noteEnd(v *chunkView, at time.Duration) {
	e := &v.event
	c.called = c.called || e.calls
	c.embedded = c.embedded || e.embedded
	if e.ends {
		c.ended++
		if c.out.Done == NoInstant {
			c.out.Done = at
		}
		if c.called && c.out.FinishReason == "stop" {
			c.out.FinishReason = "tool_calls"
		}
	}
	if e.embedded && c.out.Finished == NoInstant {
		c.out.Finished = at
	}
}

// keepIDs keeps the token ids of a choice. Those after the limit, or after something
// that is no id, are left out, and missed by their number.
func (c *Collector) keepIDs(ids []byte) {
	t := &c.out.Text
	cur := cursor{b: ids}
	if !cur.open('[') {
		return
	}
	for first := true; cur.more(']', first); first = false {
		n, ok := cur.count()
		if !ok || n > math.MaxUint32 || t.size()+4 > c.maxText {
			return
		}
		t.IDs = append(t.IDs, uint32(n))
	}
}

// keep appends a piece of text, or its beginning where the limit cuts it.
func (c *Collector) keep(to []byte, s jsonString) []byte {
	if len(s.raw) == 0 {
		return to
	}
	t := &c.out.Text
	end := len(to) + c.maxText - t.size()
	if to = appendUnquoted(to, s); len(to) > end {
		to, t.Truncated = to[:end], true
	}
	return to
}

// keepTools keeps the pieces of a tool_calls delta.
func (c *Collector) keepTools(calls []byte) {
	cur := cursor{b: calls}
	if !cur.open('[') {
		return
	}
	for first := true; cur.more(']', first); first = false {
		c.keepFunction(&cursor{b: cur.member("function")})
	}
}

func (c *Collector) keepFunction(cur *cursor) {
	if !cur.open('{') {
		return
	}
	for first := true; cur.more('}', first); first = false {
		switch string(cur.key()) {
		case "name", "arguments":
			s, _ := cur.optionalString()
			c.out.Text.Tools = c.keep(c.out.Text.Tools, s)
		default:
			cur.skip()
		}
	}
}

// runningOutput is how many tokens the usage of a chunk counts so far.
func (v *chunkView) runningOutput() int {
	n, _ := v.counts.Get(usage.Output)
	return int(n)
}

// addUsage takes in the usage of a chunk: of all choices if it names none, else of the one
// that it names (llama-server counts each choice by itself).
func (c *Collector) addUsage(v *chunkView) {
	to := &c.total
	if len(v.choices) == 1 {
		if state := c.state(v.choices[0].index); state != nil {
			to = &state.counts
		}
	}
	if v.counts.IsZero() && !v.counts.Invalid() {
		return // all zero: a placeholder (ollama), whose cached_tokens means nothing either
	}
	c.watchOutput(to, &v.counts)
	c.watchInput(&v.counts)
	to.Add(&v.counts, false)
}

// Counts that came before the last may be estimates, which are a little off.
const (
	estimateTokens = 16
	estimateShare  = 8 // one in so many
)

// falls reports whether a count is less than one that came before it, and not by an estimate.
func falls(was, is int64) bool { return is+is/estimateShare+estimateTokens < was }

// watchOutput notes an output count that falls, which none does.
func (c *Collector) watchOutput(before, next *usage.Counts) {
	was, _ := before.Get(usage.Output)
	is, _ := next.Get(usage.Output)
	c.fell = c.fell || is > 0 && falls(was, is)
}

// watchInput notes the least and the most prompt tokens that are counted.
func (c *Collector) watchInput(next *usage.Counts) {
	n, _ := next.Get(usage.Input)
	if n > 0 && (c.prompts[0] == 0 || n < c.prompts[0]) {
		c.prompts[0] = n
	}
	c.prompts[1] = max(c.prompts[1], n)
}

// changed says which counts changed as none does.
func (c *Collector) changed() (found usage.Findings) {
	if c.fell {
		found = found.With(usage.OutputFell)
	}
	if falls(c.prompts[1], c.prompts[0]) {
		found = found.With(usage.InputChanged)
	}
	return found
}

// usage merges the counts, those of all choices above those of single ones, and settles what
// they say; nil where nothing was counted.
func (c *Collector) usage() *Usage {
	dialect, sum := usage.Body, usage.Counts{}
	if c.messages.Has(usage.Input) || c.messages.Has(usage.Output) {
		dialect, sum = usage.Exclusive, c.messages
	} else {
		sum = c.choiceCounts()
		c.watchOutput(&sum, &c.total)
		if n, _ := c.total.Get(usage.Output); n == 0 && sum.Has(usage.Output) {
			c.total.Set(usage.Total, 0) // a count of the prompt, before the answer
		}
		sum.Add(&c.total, false)
	}
	c.out.Counts = sum
	valid := sum.Valid()
	if dialect == usage.Body && valid.IsZero() && !valid.Invalid() {
		return nil
	}

	t, found, err := valid.Settle(dialect)
	if c.out.Found = found | c.changed(); err != nil {
		c.out.Found = c.out.Found.With(usage.NoCount)
		return nil
	}
	u := &Usage{PromptTokens: orZero(t.Input), CompletionTokens: orZero(t.Output)}
	if total, told := sum.Get(usage.Total); told && total > 0 || dialect == usage.Body && c.out.Choices < 2 {
		u.TotalTokens = int(total)
	} else {
		u.TotalTokens = u.PromptTokens + u.CompletionTokens
	}
	if t.Cached != nil {
		u.PromptTokensDetails = &PromptTokensDetails{CachedTokens: orZero(t.Cached)}
	}
	if reasoning := orZero(t.Reasoning); reasoning > 0 {
		u.CompletionTokensDetails = &CompletionTokensDetails{ReasoningTokens: reasoning}
	}
	return u
}

// choiceCounts are the counts of all choices: their outputs add up, and the prompt was the same
// for all.
func (c *Collector) choiceCounts() (sum usage.Counts) {
	var output, reasoning int64
	for i := range c.choices {
		each := c.choices[i].counts
		n, _ := each.Get(usage.Output)
		thought, _ := each.Get(usage.Reasoning)
		output, reasoning = output+n, reasoning+thought
		sum.Add(&each, false)
	}
	if len(c.choices) > 1 && !sum.IsZero() { // a total of each choice is none of all
		sum.Set(usage.Output, output)
		sum.Set(usage.Reasoning, reasoning)
		sum.Set(usage.Total, 0)
	}
	return sum
}

func orZero(n *int32) int {
	if n == nil {
		return 0
	}
	return int(*n)
}
