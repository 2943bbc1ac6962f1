package record

import (
	"encoding/json"
	"sync"
	"time"

	"reprise/trace"
)

// chains are the conversations that servers keep for clients of the Responses API: a
// request goes on from an earlier answer (previous_response_id) or from a conversation,
// and its body has what is new alone. What the server puts before that is kept here, in
// memory, for as long as a client can be expected to go on.
type chains struct {
	limit int64 // bytes of text

	mu    sync.Mutex
	of    map[string]*chained // by the id of an answer, or of a conversation
	order []*chained          // the oldest first
	bytes int64
	timer *time.Timer // to forget the oldest; nil while there are none
}

// A chained conversation ends with an answer.
type chained struct {
	id       string
	sample   string // the key by which its session is in the sample or not
	messages []message
	bytes    int64 // of messages, also where others share them
	at       time.Time
}

const (
	chainLife    = time.Hour
	chainedBytes = 256 // beside the texts
)

// find returns the conversation that a request goes on from; nil where there is none, or
// it is not known.
func (c *chains) find(id string) *chained {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[id]
}

// keep remembers a conversation, and forgets the oldest beyond the limit.
func (c *chains) keep(k *chained) {
	k.bytes, k.at = chainedBytes, time.Now()
	for i := range k.messages {
		k.bytes += int64(len(k.messages[i].text) + len(k.messages[i].calls))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.bytes > c.limit {
		return
	}
	if c.of == nil {
		c.of = make(map[string]*chained)
	}
	c.of[k.id], c.bytes, c.order = k, c.bytes+k.bytes, append(c.order, k)
	c.forget()
}

// forget drops what is beyond the limit or too old, and comes again for the rest. It is
// called under the lock.
func (c *chains) forget() {
	for len(c.order) > 0 && (c.bytes > c.limit || time.Since(c.order[0].at) >= chainLife) {
		oldest := c.order[0]
		if c.order, c.bytes = c.order[1:], c.bytes-oldest.bytes; c.of[oldest.id] == oldest {
			delete(c.of, oldest.id)
		}
	}
	if c.timer == nil && len(c.order) > 0 {
		c.timer = time.AfterFunc(chainLife-time.Since(c.order[0].at), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.timer = nil
			c.forget()
		})
	}
}

// goesOn puts what the server keeps of the conversation before the messages of a request.
// known is false where it goes on from an answer that is not known: then they are not all
// that the server sees.
func (x *exchange) goesOn(f fields, messages []message, e *trace.Entry) (from *chained, all []message, known bool) {
	previous := f.string("previous_response_id")
	e.Previous = text(previous)
	if previous == "" {
		if previous = f.conversation(); previous == "" {
			return nil, messages, true
		}
	}
	if from = x.w.chains.find(previous); from == nil {
		return nil, messages, e.Previous.Len() == 0 // a conversation may begin
	}
	head := 0
	if f.string("instructions") != "" { // which are those of this request alone
		head = 1
	}
	all = append(make([]message, 0, len(from.messages)+len(messages)), messages[:head]...)
	return from, append(append(all, from.messages...), messages[head:]...), true
}

// remember keeps a conversation, which an answer ends, for requests that go on from it.
func (x *exchange) remember(f fields, messages []message, r reply, sample string) {
	if r.id == "" || r.failed || r.unknown {
		return
	}
	if f.string("instructions") != "" {
		messages = messages[1:]
	}
	k := chained{id: r.id, sample: sample, messages: append(messages[:len(messages):len(messages)],
		message{role: trace.Assistant, text: r.text, calls: r.calls})}
	x.w.chains.keep(&k)
	if id := f.conversation(); id != "" {
		again := k
		again.id = id
		x.w.chains.keep(&again)
	}
}

// conversation is the id of the conversation that a request belongs to, which the server
// keeps.
func (f fields) conversation() string {
	var object struct {
		ID string `json:"id"`
	}
	if id := f.string("conversation"); id != "" {
		return id
	}
	json.Unmarshal(f["conversation"], &object)
	return object.ID
}
