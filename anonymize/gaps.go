package anonymize

import (
	"reprise/trace"
	"reprise/trace/block"
)

// A gap says why the text of a prompt or reply in the source cannot be what was
// sent. Its length then is the one that the source says, and it has no blocks:
// redacted prompts are equal where the prompts were not, and would share a false
// prefix.
type gap int8

const (
	noGap     gap = iota
	markerGap     // a whole message is what a masking tool leaves, see [trace.Message.Redacted]
	emptyGap      // there is no text, and the source counts some
	shortGap      // the text counts less than 1/[shortText] of what the source says
	mappedGap     // an operator's field gives another number of blocks than the text has
)

// shortText is how many times longer than its text a prompt or a reply is at the
// least when the text cannot be all of it. Chat templates and other tokenizers
// leave counts well within it.
const shortText = 10

// promptGap finds a gap that shows before the text is counted. One marker among
// the messages is enough: from there on the prefix is not the one that was sent.
func promptGap(en *trace.Entry) gap {
	if en.InputTokens == nil {
		return noGap
	}
	blank := en.Tools.Len() == 0 && *en.InputTokens > 0
	for i := range en.Messages {
		m := &en.Messages[i]
		if m.Redacted() {
			return markerGap
		}
		blank = blank && m.Calls.Len() == 0 && m.Content.Blank()
	}
	if blank {
		return emptyGap
	}
	return noGap
}

// countGap compares the length that the source says with that of the text.
func countGap(en *trace.Entry, counted int32, size int) gap {
	if en.InputTokens == nil {
		return noGap
	}
	said, text := int(*en.InputTokens), int(counted)
	switch {
	case text*shortText < said:
		return shortGap
	case en.InputGiven && (block.Count(said, size) != block.Count(text, size) || block.Full(said, size) != block.Full(text, size)):
		return mappedGap
	}
	return noGap
}

// replyGap finds a gap that shows before the reply is counted. Without a count in
// the source the length of a redacted reply is not known.
func replyGap(en *trace.Entry) gap {
	switch {
	case en.Reply == nil:
		return noGap
	case en.Reply.Redacted():
		return markerGap
	case en.Reply.Blank() && en.ReplyCalls.Len() == 0 && spokenTokens(en) > 0:
		return emptyGap
	}
	return noGap
}

// spokenTokens are the output tokens of the source that are no reasoning, which a
// reply does not show; 0 where the source does not count.
func spokenTokens(en *trace.Entry) int {
	if en.OutputTokens == nil {
		return 0
	}
	n := int(*en.OutputTokens)
	if en.Reasoning != nil {
		n -= int(*en.Reasoning)
	}
	return n
}

// Gaps count requests whose text cannot be what was sent, by why: they have the
// length that the source says, and no prefix blocks of it.
type Gaps struct {
	Marker int64 // a whole message is a redaction marker
	Empty  int64 // no text, where the source counts some
	Short  int64 // the text counts below a tenth of what the source says
	Mapped int64 // the mapped length makes another number of blocks than the text
}

// Total is how many there are.
func (g Gaps) Total() int64 { return g.Marker + g.Empty + g.Short + g.Mapped }

func (g *Gaps) add(why gap) {
	switch why {
	case markerGap:
		g.Marker++
	case emptyGap:
		g.Empty++
	case shortGap:
		g.Short++
	case mappedGap:
		g.Mapped++
	}
}
