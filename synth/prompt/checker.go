package prompt

import (
	"slices"
	"sync"

	"reprise/trace"
	"reprise/trace/crash"
	"reprise/trace/token"
)

// Verified is the outcome of encoding prompts again.
type Verified struct {
	Prompts int64 // encoded again
	Tokens  int64 // of these
	// prompts that encode to other tokens than those they were made of, or to another number than asked
	Mismatches int64
	Skipped    int64 // prompts that were not encoded again, since the check could not keep up
}

// add counts one prompt.
func (v *Verified) add(tokens int, ok bool) {
	v.Prompts++
	v.Tokens += int64(tokens)
	if !ok {
		v.Mismatches++
	}
}

// checkQueue bounds the prompts that wait for a [Checker]: by number, and by
// bytes, since a prompt of a million tokens has some six megabytes.
const (
	checkQueue = 256
	checkBytes = 64 << 20
)

// A Checker is a [Prompter] that has its prompts encoded again while others are
// made and sent. It costs a copy of each prompt on the way, and another core's
// time beside it: where that cannot keep up, prompts are left out and counted.
//
// It is safe for concurrent use until Close.
type Checker struct {
	*Prompter
	encoding *token.Encoding
	queue    chan check
	done     chan struct{}

	mu      sync.Mutex
	waiting int // checks admitted and not done
	bytes   int // of them
	skipped int64
	result  Verified
}

// A check is a prompt to encode again: as text, or as token ids.
type check struct {
	text string
	ids  []uint32
	want int
}

// NewChecker begins to check the prompts of p, whose words come from e. Close ends
// it.
func NewChecker(p *Prompter, e *token.Encoding) *Checker {
	c := &Checker{Prompter: p, encoding: e, queue: make(chan check, checkQueue), done: make(chan struct{})}
	go func() {
		defer crash.Caught()
		c.encodeQueued()
	}()
	return c
}

// Prompt is [Prompter.Prompt], checked later.
func (c *Checker) Prompt(row *trace.Request, buf []byte) ([]byte, error) {
	from := len(buf)
	buf, err := c.Prompter.Prompt(row, buf)
	if err == nil && c.admit(len(buf)-from) {
		c.queue <- check{text: string(buf[from:]), want: c.Count(row)}
	}
	return buf, err
}

// Tokens is [Prompter.Tokens], checked later: the text of the ids must encode to
// them.
func (c *Checker) Tokens(row *trace.Request, buf []uint32) ([]uint32, error) {
	from := len(buf)
	buf, err := c.Prompter.Tokens(row, buf)
	if err == nil && c.admit(4*(len(buf)-from)) {
		c.queue <- check{ids: slices.Clone(buf[from:]), want: c.Count(row)}
	}
	return buf, err
}

// admit reports whether there is room for a check of so many bytes, and takes
// it: what is admitted never waits for the queue.
func (c *Checker) admit(bytes int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == checkQueue || c.waiting > 0 && c.bytes+bytes > checkBytes {
		c.skipped++
		return false
	}
	c.waiting++
	c.bytes += bytes
	return true
}

// encodeQueued encodes the queued prompts again until the queue is closed.
func (c *Checker) encodeQueued() {
	defer close(c.done)
	var text []byte
	var again []uint32
	for k := range c.queue {
		size, ok := len(k.text)+4*len(k.ids), true
		if k.ids != nil {
			var err error
			text, err = c.encoding.AppendText(text[:0], k.ids)
			k.text, ok = string(text), err == nil
		}
		again = c.encoding.Append(again[:0], k.text)
		c.result.add(len(again), ok && len(again) == k.want && (k.ids == nil || slices.Equal(again, k.ids)))
		c.mu.Lock()
		c.waiting--
		c.bytes -= size
		c.mu.Unlock()
	}
}

// Close waits until what is queued is checked, and returns the result. No
// prompt may be made through c any more.
func (c *Checker) Close() Verified {
	close(c.queue)
	<-c.done
	c.result.Skipped = c.skipped
	return c.result
}
