package replay

import (
	"net/http"
	"sync"

	"reprise/replay/openai"
	"reprise/replay/result"
)

// oddities count while answers come.
type oddities struct {
	mu  sync.Mutex
	odd result.Odd
}

// answer looks at the headers of an answer.
func (o *oddities) answer(resp *reply) {
	if resp.status != http.StatusOK && resp.header.Get("Retry-After") != "" {
		o.mu.Lock()
		o.odd.RetryAfter++
		o.mu.Unlock()
	}
}

// outcome looks at a stream that is over. One that failed is told by its class,
// and here only for what it held.
func (o *oddities) outcome(out *openai.Outcome) {
	sound, u := out.Err == nil, out.Usage
	counted := len(out.EventTokens) > 0 || out.Choices != 1
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range []struct {
		n     *int64
		holds bool
	}{
		{&o.odd.NoDone, out.MissingDone()},
		{&o.odd.DoneAgain, out.DoneMarkers > 1},
		{&o.odd.NoFinish, sound && out.FinishReason == ""},
		{&o.odd.KeepAlives, out.Comments > 0},
		{&o.odd.Malformed, out.Malformed > 0},
		{&o.odd.Choices, out.Choices > 1},
		{&o.odd.NoUsage, sound && u == nil},
		{&o.odd.Uncounted, sound && !counted && u != nil && u.CompletionTokens > 0 && u.CompletionTokens != out.TokenEvents},
	} {
		if c.holds {
			*c.n++
		}
	}
}

// Odd counts the odd answers so far.
func (h *HTTP) Odd() result.Odd {
	h.odd.mu.Lock()
	defer h.odd.mu.Unlock()
	return h.odd.odd
}
