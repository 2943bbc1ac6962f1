package breaker

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"unicode"

	"reprise/trace"
)

// schema names the layout of [Set] as JSON. Fields may be added to it; none changes its
// meaning.
const schema = "breakers/1"

// A Set says where near-identical prompts part. A prefix cache loses everything after
// the first token that differs, so that a date at the top of a system prompt costs the
// rest of it. A Set holds positions, counts and lengths in tokens: no text, no token
// and no hash of either.
//
// A [Finder] finds breakers while a log is imported, since block ids are chained and
// say nothing after a difference. It looks at requests that have text and did not
// fail.
type Set struct {
	Schema       string  `json:"schema"`
	Requests     int64   `json:"requests"`
	PromptTokens int64   `json:"prompt_tokens"` // of these requests
	Searched     int64   `json:"searched_tokens"`
	DurationS    float64 `json:"duration_s"` // from the first arrival to the last
	// LostTokens is the sum over all breakers that at least [MinRequests] requests
	// show, listed or not; Found is their number.
	LostTokens int64     `json:"lost_tokens"`
	Found      int       `json:"found"`
	List       []Breaker `json:"breakers"`
}

// A Breaker is one place where requests part from near-identical ones. Two places are
// the same when they are in the same message of prompts of one model and adapter that
// begin alike, at about the same distance from the start.
type Breaker struct {
	Model   string `json:"model,omitempty"`   // as the rows name it
	Adapter string `json:"adapter,omitempty"` // as the rows name it
	// Message is the index of the message in the prompt, from 0; Role is the role of
	// that message.
	Message int    `json:"message"`
	Role    string `json:"role"`
	// From and To are the least and the greatest number of tokens before the first
	// that differs.
	From int64 `json:"from_token"`
	To   int64 `json:"to_token"`
	// Width is the median number of tokens that differ until the prompts agree
	// again: of the longer side, exact below 32, else rounded down to 1, 1.25,
	// 1.5 or 1.75 times a power of two.
	Width    int64 `json:"width_tokens"`
	Requests int64 `json:"requests"` // that part there
	// Lost counts the tokens of these requests after the difference, up to the next
	// one, that the earlier prompt has too: what an unlimited cache would have served
	// if the prompts had not differed here.
	Lost int64 `json:"lost_tokens"`

	// Example is two requests that part here, by their position in the source from 0,
	// the later one first. It is for readers who have the source, and is not stored.
	Example [2]int64 `json:"-"`
}

const (
	// MinRequests is how many requests must show a breaker before it is reported:
	// fewer may be the text of one person.
	MinRequests = 5
	// maxListed is how many breakers are listed, those that lose most first.
	maxListed = 10

	maxBreakersJSON = 64 << 10
	maxLabel        = 200 // characters
)

// JSON returns b as it goes into the metadata of a trace.
func (b *Set) JSON() (string, error) {
	text, err := json.Marshal(b)
	return string(text), err
}

// Share is the part of all prompt tokens that is lost; nil without any.
func (b *Set) Share() *float64 {
	if b.PromptTokens == 0 {
		return nil
	}
	return trace.Ptr(float64(b.LostTokens) / float64(b.PromptTokens))
}

// Rename gives models and adapters the names that the rows have.
func (b *Set) Rename(model, adapter func(string) string) {
	for i := range b.List {
		one := &b.List[i]
		one.Model, one.Adapter = label(model(one.Model)), label(adapter(one.Adapter))
	}
}

var errBreakers = errors.New("the prefix breakers in the metadata are not of schema " + schema)

// parse reads what JSON wrote. Anything else is an error, which quotes nothing.
func parse(s string) (*Set, error) {
	var b Set
	if len(s) > maxBreakersJSON || json.Unmarshal([]byte(s), &b) != nil || !b.valid() {
		return nil, errBreakers
	}
	return &b, nil
}

// Join adds what was found in one part of a log, as JSON, to what was found in the parts
// before it, where b is nil in none. The counts of requests and tokens are those of the whole
// log, but for the duration, which is that of the longest part. What is lost is an estimate: a Finder of one part
// does not see that a prompt parts from one in another part, and forgets others than that of the whole. A part that
// does not parse adds nothing.
func Join(b *Set, part []byte) *Set {
	add, err := parse(string(part))
	switch {
	case err != nil:
		return b
	case b == nil:
		return add
	}
	b.Requests, b.PromptTokens, b.Searched = b.Requests+add.Requests, b.PromptTokens+add.PromptTokens,
		b.Searched+add.Searched
	b.DurationS, b.LostTokens = max(b.DurationS, add.DurationS), b.LostTokens+add.LostTokens
	listed := len(b.List)
	for _, one := range add.List {
		same := slices.IndexFunc(b.List[:listed], func(o Breaker) bool {
			return o.Model == one.Model && o.Adapter == one.Adapter && o.Message == one.Message && o.Role == one.Role &&
				o.From <= one.To && one.From <= o.To
		})
		if same < 0 {
			b.List = append(b.List, one)
			continue
		}
		o := &b.List[same]
		if one.Requests > o.Requests {
			o.Width = one.Width
		}
		o.From, o.To = min(o.From, one.From), max(o.To, one.To)
		o.Requests, o.Lost = o.Requests+one.Requests, o.Lost+one.Lost
	}
	slices.SortStableFunc(b.List, func(x, y Breaker) int {
		return cmp.Or(cmp.Compare(y.Lost, x.Lost), cmp.Compare(y.Requests, x.Requests))
	})
	b.Found = max(b.Found, add.Found, len(b.List))
	b.List = b.List[:min(len(b.List), maxListed)]
	return b
}

func (b *Set) valid() bool {
	ok := b.Schema == schema && len(b.List) <= maxListed && b.Found >= len(b.List) &&
		b.Requests >= 0 && b.Searched >= 0 && b.PromptTokens >= b.Searched && b.DurationS >= 0 &&
		b.DurationS <= math.MaxInt64
	rest := b.LostTokens
	for i := range b.List {
		one := &b.List[i]
		ok = ok && one.valid() && one.Requests <= b.Requests && one.Lost <= rest
		rest -= one.Lost
	}
	return ok && rest >= 0 && b.LostTokens <= b.PromptTokens
}

func (b *Breaker) valid() bool {
	role := false
	for r := trace.System; r <= trace.Tool; r++ {
		role = role || b.Role == r.String()
	}
	return role && label(b.Model) == b.Model && label(b.Adapter) == b.Adapter && b.Message >= 0 &&
		b.Message <= SearchTokens &&
		b.From >= 0 && b.To >= b.From && b.To <= SearchTokens && b.Width >= 0 && b.Width <= SearchTokens &&
		b.Requests >= MinRequests && b.Lost >= 0
}

// label makes a name fit for a terminal.
func label(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, s)
	if r := []rune(s); len(r) > maxLabel {
		return string(r[:maxLabel])
	}
	return s
}
