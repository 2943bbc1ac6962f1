package replay

import (
	"context"
	"time"

	"reprise/trace"
)

// A Prompter makes the prompt of a row just before it is sent: prompts are
// never stored. One goroutine calls it, in the order in which rows are due as far
// as that is known. It appends to buf[:0], may return a larger slice, and keeps
// neither the row nor the buffer. One that also has ShortTails() int64 says how
// many prompts hold a block too short to be told from others, and [Run] records it.
type Prompter interface {
	// Prompt makes the prompt as text, UTF-8.
	Prompt(row *trace.Request, buf []byte) ([]byte, error)
	// Tokens makes the same prompt as token ids.
	Tokens(row *trace.Request, buf []uint32) ([]uint32, error)
}

// A Call is a request ready to go.
type Call interface {
	// Size is the memory that it holds, in bytes. What waits to be sent is
	// bounded by it.
	Size() int
}

// A Shot is a Call with what its sending needs to know of the run.
type Shot struct {
	Call  Call
	Start time.Time     // of the run: the instants of a Result count from it
	Cut   time.Duration // hang up this long after sending; 0 is never
	Reply *Reply        // to be given what the server wrote, once it is all there; nil when nobody wants it
}

// An Endpoint prepares a request ahead of time and fires it when it is due.
type Endpoint interface {
	// Prepare makes everything that can be made before the due time. It keeps
	// nothing of the row. One goroutine calls it, in the order of [Prompter].
	Prepare(row *trace.Request, p Prompter) (Call, error)
	// Fire sends the request and reads the answer to its end, and writes into
	// r what happened, a failure included: Sent is the entry to the write.
	// It returns when the request is over, soon after the end of ctx. It is
	// called from many goroutines, once for each Call.
	Fire(ctx context.Context, s Shot, r *Result)
}
