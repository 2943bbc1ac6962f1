package result

import (
	"context"
	"time"

	"reprise/trace"
)

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

// A Launcher is an Endpoint that can send without waiting, so that the goroutine
// that waits for due times sends by itself. One that is woken for each request
// stands behind all those that have an event to read: at 40,000 events a second on
// two cores, that is most of a request's lateness.
type Launcher interface {
	Endpoint
	// Launch sends the request if that can be done at once, and returns what reads
	// the answer, to be called once, in a goroutine of its own. It is nil, and
	// nothing was sent, when the request would have to wait: then Fire sends it.
	// r is as in Fire.
	Launch(ctx context.Context, s Shot, r *Result) (land func())
}

// A RowEndpoint is an [Endpoint] that is told which row of the workload it prepares.
type RowEndpoint interface {
	// PrepareRow is called in place of Prepare.
	PrepareRow(id int64, row *trace.Request, p Prompter) (Call, error)
}
