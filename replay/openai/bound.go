package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
)

// A Bound is the most that an answer may be, by what was asked for. A server that goes on
// beyond it has no end to come to, or none that is worth the memory: the answer fails as
// [KindOverlong]. The bounds are far beyond what servers send that do as they are asked.
// How long an answer may take is not theirs: that is the time limit of a request.
type Bound struct {
	Events int   // that bring something generated
	Event  int   // bytes of one event, one line or one body of JSON
	Bytes  int64 // of the whole answer
	Text   int   // bytes of generated text that are kept, where any is; more is not an error
}

const (
	// unknownTokens stands for how many tokens were asked for where nobody said so.
	unknownTokens = 64 << 10

	// Some proxies cut what is generated into letters, and a token can be 16 of them.
	eventsFloor, eventsPerToken = 16 << 10, 16
	// The chunk of a token takes some 300 bytes, or a few KiB with its twenty alternatives.
	bytesFloor, bytesPerToken = 8 << 20, 16 << 10
	// One event may hold all of the answer.
	eventFloor, eventPerToken, eventMost = 1 << 20, 4 << 10, 16 << 20
	textFloor, textPerToken, textMost    = 64 << 10, 64, 1 << 20
	// The Responses API sends the instructions back in three events, and vLLM on request the
	// probabilities of the prompt, in some 30 bytes for each of its own.
	echoed, echoedInEvent = 128, 64
)

// BoundOf is the bound of an answer of at most so many tokens, 0 where that is not known, to a
// request of so many bytes.
func BoundOf(tokens int, request int) Bound {
	n, sent := int64(min(max(tokens, 0), 1<<30)), int64(max(request, 0))
	n = cmp.Or(n, unknownTokens)
	return Bound{
		Events: int(eventsFloor + n*eventsPerToken),
		Event:  int(min(eventFloor+n*eventPerToken+sent*echoedInEvent, eventMost)),
		Bytes:  bytesFloor + n*bytesPerToken + sent*echoed,
		Text:   int(min(textFloor+n*textPerToken, textMost)),
	}
}

// Bounds are the fields of APIs and engines that say how many tokens an answer may have at most.
var Bounds = []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "n_predict"}

// MaxTokens is how many tokens the fields let an answer have at most; 0 is not known.
func (e Extra) MaxTokens() (tokens int) {
	for _, name := range Bounds {
		tokens = max(tokens, e.natural(name))
	}
	return tokens
}

// Unbounded returns e without the fields that bound an answer, so that the request's own MaxTokens does.
func (e Extra) Unbounded() Extra {
	fields := maps.Clone(e.fields)
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool { return slices.Contains(Bounds, name) })
	left, _ := newExtra(fields) // of values that were valid
	return left
}

// Asked is how many tokens a request asks for at most, of all its answers together; 0 is not
// known.
func (r *Request) Asked() int {
	tokens := r.Extra.MaxTokens()
	if r.MaxTokens != nil {
		tokens = max(tokens, *r.MaxTokens)
	}
	return min(tokens, 1<<30) * min(max(r.Extra.natural("n"), 1), maxChoices)
}

// natural is a field that is a whole number, not negative; else 0.
func (e Extra) natural(name string) int {
	raw, ok := e.Get(name)
	if !ok {
		return 0
	}
	var number json.Number
	if json.Unmarshal(raw, &number) != nil {
		return 0
	}
	n, err := strconv.Atoi(number.String())
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// ErrOverlong says that an answer is beyond its [Bound].
var ErrOverlong = errors.New("the answer goes on beyond anything that was asked for")

// A Room bounds the bytes that the large events of all answers at once may take. The nil Room
// has no bound. It may be used by any number of goroutines.
type Room struct{ left atomic.Int64 }

// RoomBytes is how many bytes a Room has, and roomOfEvent how many bytes an event takes for each of its
// own: as it comes, as it is gathered, and as it is decoded.
const (
	RoomBytes   = 384 << 20
	roomOfEvent = 3
)

// NewRoom returns a Room for the answers of one endpoint.
func NewRoom() *Room {
	r := &Room{}
	r.left.Store(RoomBytes)
	return r
}

// take takes the room of so many bytes of an event, and reports whether there was any.
func (r *Room) take(n int) bool {
	if r == nil || r.left.Add(-int64(n)*roomOfEvent) >= 0 {
		return true
	}
	r.give(n)
	return false
}

func (r *Room) give(n int) {
	if r != nil {
		r.left.Add(int64(n) * roomOfEvent)
	}
}
