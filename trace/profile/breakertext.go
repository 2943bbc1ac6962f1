package profile

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/trace"
)

// A BreakerSummary is [Breakers] with what follows from them.
type BreakerSummary struct {
	Breakers
	LostShare *float64 `json:"lost_share"` // of all prompt tokens
	// LostPerDay is at the rate at which the source lost them; nil when its
	// times were made up or span less than a second.
	LostPerDay *float64 `json:"lost_tokens_per_day"`
}

const day = 24 * 60 * 60 // s

// breakerSummary reads the breakers of a trace; nil when it has none, or none
// that can be read.
func breakerSummary(meta *trace.Meta) *BreakerSummary {
	if meta.Breakers == "" {
		return nil
	}
	b, err := ParseBreakers(meta.Breakers)
	if err != nil {
		return nil
	}
	s := &BreakerSummary{Breakers: *b, LostShare: b.Share()}
	if meta.Timing == "" && b.DurationS >= 1 {
		perDay := float64(b.LostTokens) * day / b.DurationS
		s.LostPerDay = &perDay
	}
	return s
}

// place says in words where prompts part.
func (b *Breaker) place() string {
	return fmt.Sprintf("token %s, in message %d (%s)", b.span(), b.Message, b.Role)
}

func (b *Breaker) span() string {
	if b.To > b.From {
		return count(b.From) + "–" + count(b.To)
	}
	return count(b.From)
}

// advice says what to do about a breaker. It guesses at the cause, since only
// the text tells it.
func (b *Breaker) advice() string {
	switch {
	case b.Width >= minRun:
		return "whole parts differ: keep their order the same in every request, add new ones at the end, and drop old ones rarely and many at once"
	case b.Role == trace.System.String():
		return "a few tokens differ, as a date, a name or an id does: move them behind all that stays the same, such as into the last message"
	}
	return "a few tokens differ: put what stays the same in front of what changes"
}

// noteShare is the share of all prompt tokens from which on a loss is worth a
// line at import.
const noteShare = 0.01

// Notes are lines for whoever imports, with the source at hand; none when little
// is lost. b may be nil.
func (b *Breakers) Notes() []string {
	if b == nil || len(b.List) == 0 || float64(b.LostTokens) < noteShare*float64(b.PromptTokens) {
		return nil
	}
	first := b.List[0]
	return []string{
		fmt.Sprintf("near-identical prompts part early, which loses a prefix cache %s of %s prompt tokens (%s); most at %s, in %s requests, such as requests %d and %d of the source",
			count(b.LostTokens), count(b.PromptTokens), optional(b.Share(), percent), first.place(), count(first.Requests),
			first.Example[0]+1, first.Example[1]+1),
		"move what changes there behind what does not; reprise profile lists the places",
	}
}

func writeBreakers(b *strings.Builder, s *BreakerSummary) {
	if s == nil || len(s.List) == 0 {
		return
	}
	var rows []table.Row
	for i := range s.List {
		one := &s.List[i]
		rows = append(rows, table.Row{one.span(), fmt.Sprintf("%d, %s", one.Message, one.Role),
			text.Trim(strings.TrimSpace(one.Model+" "+one.Adapter), 20), count(one.Requests),
			count(one.Width), count(one.Lost), optional(share(one.Lost, s.PromptTokens), percent)})
	}
	draw(b, "Prefix breakers: where near-identical prompts part",
		table.Row{"at token", "message", "model", "requests", "differing", "tokens lost", "of prompts"}, rows)
	say := func(format string, args ...any) {
		for line := range strings.Lines(text.WrapSoft(fmt.Sprintf(format, args...), textWidth)) {
			b.WriteString(strings.TrimRight(line, " \n") + "\n")
		}
	}
	perDay := ""
	if s.LostPerDay != nil {
		perDay = fmt.Sprintf(", %s a day at that rate", decimals(*s.LostPerDay, 0))
	}
	say("A prefix cache loses %s of %s prompt tokens (%s)%s: they stand in an earlier prompt too, but behind a difference.",
		count(s.LostTokens), count(s.PromptTokens), optional(s.LostShare, percent), perDay)
	say("At %s, %s.", s.List[0].place(), s.List[0].advice())
	if s.Found > len(s.List) {
		say("These are the %d of %s places that lose most.", len(s.List), count(int64(s.Found)))
	}
	if len(s.List) > 1 {
		say("Of two places in one prompt, the later one pays only when the earlier one is mended too.")
	}
	say("Found at import in the first %s tokens of %s prompts; places that fewer than %d requests show are left out.",
		count(BreakerTokens), count(s.Requests), MinBreakerRequests)
}
