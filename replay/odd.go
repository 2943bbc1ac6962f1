package replay

import (
	"net/http"
	"sync"

	"reprise/replay/openai"
)

// Odd counts answers that were odd in a way that no Result shows. What was odd
// about them was tolerated, and is no error.
type Odd struct {
	RetryAfter int64 `json:"retry_after,omitempty"`      // an error asked to be repeated later; nothing ever is
	NoDone     int64 `json:"no_done,omitempty"`          // finished, but without [DONE]
	DoneAgain  int64 `json:"done_again,omitempty"`       // more than one [DONE]
	NoFinish   int64 `json:"no_finish_reason,omitempty"` // [DONE], but no choice said that it had finished
	KeepAlives int64 `json:"keep_alives,omitempty"`      // comments, or data events without data
	Malformed  int64 `json:"malformed_events,omitempty"` // data that is not a JSON object; it was skipped
	Choices    int64 `json:"several_choices,omitempty"`  // gaps are between events of any of them
	NoUsage    int64 `json:"no_usage,omitempty"`         // the server counted nothing
	Uncounted  int64 `json:"uncounted_events,omitempty"` // usage counts more or fewer tokens than there were events, and no running usage tells whose
}

// oddities count while answers come.
type oddities struct {
	mu  sync.Mutex
	odd Odd
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
func (h *HTTP) Odd() Odd {
	h.odd.mu.Lock()
	defer h.odd.mu.Unlock()
	return h.odd.odd
}
