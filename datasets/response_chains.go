package datasets

import (
	"slices"
	"time"
	"unsafe"

	"reprise/datasets/internal/fault"
	"reprise/trace"
)

// responseChains put the prompts of requests together that go on from an earlier answer
// by its id (previous_response_id). Their records hold what is new alone; what the server
// puts before it are the prompt of the request that had this answer, without its
// instructions, and the answer.
//
// The latest chains are held, up to 64 MiB of texts and of lists of messages, with 256 bytes
// for each answer beside: so at most 262,144 answers. A request that goes on from another answer
// has its lengths alone.
type responseChains struct {
	limit int64 // bytes; 0 for chainBytes
	of    map[string]*chainedResponse
	order []*chainedResponse // the oldest first
	bytes int64
}

// A chainedResponse is an answer with the prompt before it.
type chainedResponse struct {
	id       string
	position int64           // of its entry
	start    time.Time       // zero where the source has no times
	end      time.Time       // zero where it is not known
	messages []trace.Message // nil where they are not known
	bytes    int64           // of them and their texts, unless a later answer of the chain holds the texts too
}

const (
	chainBytes    = 64 << 20
	chainedAnswer = int64(256) // bytes, beside the messages

	// Each answer has a list of all messages before it, whose texts they share.
	chainedMessage = int64(unsafe.Sizeof(trace.Message{}))

	ownSystem = "own_system"
)

const (
	noteChained   = "requests that go on from an earlier answer, whose prompts were put together of the records before"
	noteUnchained = "requests that go on from an answer that is not in the log before them, or without its text: " +
		"only their lengths were read"
	noteNoChain = "requests that go on from an answer that is not in the log before them, without usage, were left out"
)

// goesOn completes an entry that goes on from an earlier answer. It reports whether there
// is anything to read of it.
func (c *responseChains) goesOn(b *builder, tell *fault.Notes) (some bool) {
	if b.previous == "" {
		return true
	}
	e, from := &b.Entry, c.of[b.previous]
	if from != nil && !e.Time.Before(from.start) {
		e.Parents = []int64{from.position}
		if gap := e.Time.Sub(from.end); !from.end.IsZero() && gap >= 0 {
			if n := len(e.Messages); n > 0 && e.Messages[n-1].Role == trace.Tool {
				e.Tool = &gap
			} else {
				e.Think = &gap
			}
		}
	}
	if from != nil && from.messages != nil && e.Messages != nil {
		head := 0
		if b.ownSystem {
			head = 1
		}
		e.Messages = slices.Concat(e.Messages[:head], from.messages, e.Messages[head:])
		tell.Count(noteChained)
		return true
	}
	e.Messages = nil
	if e.InputTokens == nil && e.Status != trace.StatusFailed {
		tell.Count(noteNoChain)
		return false
	}
	tell.Count(noteUnchained)
	return true
}

// remember keeps an entry for those that go on from it, and forgets the oldest beyond
// the limit.
func (c *responseChains) remember(b *builder, position int64) {
	e := &b.Entry
	if b.response == "" || e.Status == trace.StatusFailed {
		return
	}
	k := &chainedResponse{id: b.response, position: position, start: e.Time, bytes: chainedAnswer}
	if e.E2E != nil && !e.Time.IsZero() {
		k.end = e.Time.Add(*e.E2E)
	}
	if e.Messages != nil && e.Reply != nil {
		messages := e.Messages
		if b.ownSystem {
			messages = messages[1:]
		}
		k.messages = append(slices.Clip(messages), trace.Message{Role: trace.Assistant, Content: *e.Reply,
			Calls: e.ReplyCalls})
		k.bytes += int64(len(k.messages)) * chainedMessage
		for i := range k.messages {
			k.bytes += int64(k.messages[i].Content.Len() + k.messages[i].Calls.Len())
		}
	}
	if c.limit == 0 {
		c.limit, c.of = chainBytes, map[string]*chainedResponse{}
	}
	if k.bytes > c.limit {
		return
	}
	if from := c.of[b.previous]; from != nil && k.messages != nil { // its texts are those of this one too
		left := chainedAnswer + int64(len(from.messages))*chainedMessage
		c.bytes, from.bytes = c.bytes-from.bytes+left, left
	}
	c.of[k.id], c.order, c.bytes = k, append(c.order, k), c.bytes+k.bytes
	for c.bytes > c.limit {
		oldest := c.order[0]
		if c.order, c.bytes = c.order[1:], c.bytes-oldest.bytes; c.of[oldest.id] == oldest {
			delete(c.of, oldest.id)
		}
	}
}
