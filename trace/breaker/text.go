package breaker

import (
	"fmt"

	"reprise/trace"
	"reprise/trace/doc"
)

// A Summary is a [Set] with what follows from it.
type Summary struct {
	Set
	LostShare *float64 `json:"lost_share"` // of all prompt tokens
	// LostPerDay is the loss per day at the rate of the source; nil when its times
	// were made up or span less than a second.
	LostPerDay *float64 `json:"lost_tokens_per_day"`
}

const day = 24 * 60 * 60 // s

// Summarize reads the breakers in the metadata of a trace. It returns nil when there
// are none, or none that can be read.
func Summarize(meta *trace.Meta) *Summary {
	if meta.Breakers == "" {
		return nil
	}
	b, err := parse(meta.Breakers)
	if err != nil {
		return nil
	}
	s := &Summary{Set: *b, LostShare: b.Share()}
	if meta.Timing == "" && b.DurationS >= 1 {
		s.LostPerDay = new(float64(b.LostTokens) * day / b.DurationS)
	}
	return s
}

// Place says in words where prompts part.
func (b *Breaker) Place() string {
	return fmt.Sprintf("token %s, in message %d (%s)", b.Span(), b.Message, b.Role)
}

func (b *Breaker) Span() string {
	if b.To > b.From {
		return doc.Count(b.From) + "–" + doc.Count(b.To)
	}
	return doc.Count(b.From)
}

// Advice says what to do about a breaker. It guesses at the cause, since only
// the text tells it.
func (b *Breaker) Advice() string {
	switch {
	case b.Width >= minRun:
		return "whole parts differ: keep their order the same in every request, add new ones at the end, and drop " +
			"old ones rarely and many at once"
	case b.Role == trace.System.String():
		return "a few tokens differ, as a date, a name or an id does: move them behind all that stays the same, such " +
			"as into the last message"
	}
	return "a few tokens differ: put what stays the same in front of what changes"
}

// noteShare is the share of all prompt tokens from which on a loss is worth a
// line at import.
const noteShare = 0.01

// Notes are lines for whoever imports, with the source at hand; none when little
// is lost. b may be nil.
func (b *Set) Notes() []string {
	if b == nil || len(b.List) == 0 || float64(b.LostTokens) < noteShare*float64(b.PromptTokens) {
		return nil
	}
	first := b.List[0]
	return []string{
		fmt.Sprintf("near-identical prompts part early, which loses a prefix cache %s of %s prompt tokens (%s); most "+
			"at %s, in %s requests, such as requests %d and %d of the source",
			doc.Count(b.LostTokens), doc.Count(b.PromptTokens), doc.OrDash(b.Share(), doc.Percent), first.Place(),
			doc.Count(first.Requests),
			first.Example[0]+1, first.Example[1]+1),
		"move what changes there behind what does not; reprise profile lists the places",
	}
}
