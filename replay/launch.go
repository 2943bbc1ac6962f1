package replay

import (
	"context"
	"time"
)

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

// Launch implements [Launcher].
func (h *HTTP) Launch(ctx context.Context, s Shot, r *Result) (land func()) {
	c := s.Call.(*httpCall)
	w := h.targets[c.target].wire
	if w == nil {
		return nil
	}
	var at int64
	await := w.start(c, func() { at = int64(time.Since(s.Start)) })
	if await == nil {
		return nil
	}
	return func() {
		h.fire(ctx, s, r, func(ctx context.Context, t *try, sent func(at int64)) (*reply, error) {
			sent(at)
			return await(ctx, t)
		})
	}
}

// tooLate is how far behind its time the dispatcher may be and still send by
// itself, at some 15 µs a request. When it is later, hundreds are due at once: then
// each goes to a goroutine, which other cores may run. A realtime thread sends
// whatever it can, since a goroutine would stand behind all that it need not.
const tooLate = 5 * time.Millisecond

// launch sends a flight from the dispatcher's own goroutine, if that can be done.
func (p *play) launch(ctx context.Context, s Shot, fl *flight) (land func()) {
	l, ok := p.runner.Endpoint.(Launcher)
	if !ok || !p.opt.Realtime && time.Duration(fl.at)-fl.due > tooLate {
		return nil
	}
	return l.Launch(ctx, s, &fl.result)
}
