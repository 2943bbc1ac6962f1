package openai

import (
	"math"
	"strconv"
	"time"
)

// serverTimes are what a server says of one request: how long it waited to be scheduled, and how long it took from
// there to its first token. Nil is what it does not say.
type serverTimes struct{ queue, prefill *time.Duration }

// read takes the times of an object that stands beside the usage: vLLM's metrics (--enable-per-request-metrics),
// llama-server's timings, Cerebras' time_info, and the timing in Dynamo's nvext, for requests that ask for it.
func (t *serverTimes) read(c *cursor) {
	if !c.open('{') {
		return
	}
	for first := true; c.more('}', first); first = false {
		switch key := c.key(); {
		case string(key) == "timing":
			t.read(c)
		case !t.take(c, key):
			c.skip()
		}
	}
}

// take takes the value of a member if it is a time, by the names that servers have for them. Groq has them among the
// counts of its usage.
func (t *serverTimes) take(c *cursor, key []byte) bool {
	to, unit := &t.queue, time.Millisecond
	switch string(key) {
	case "queue_time_ms", "prefill_wait_time_ms":
	case "time_to_first_token_ms", "prompt_ms", "prefill_time_ms":
		to = &t.prefill
	case "queue_time":
		unit = time.Second
	case "prompt_time":
		to, unit = &t.prefill, time.Second
	default:
		return false
	}
	n, err := strconv.ParseFloat(string(c.value()), 64)
	if ns := n * float64(unit); err == nil && ns >= 0 && ns < math.MaxInt64/2 {
		at := time.Duration(ns)
		*to = &at
	}
	return true
}
