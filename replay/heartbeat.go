package replay

import (
	"sync"
	"time"

	"reprise/replay/result"
	"reprise/trace/crash"
)

// A heartbeat notices that the client does not run: stopped by a signal, starved of
// the processor, or kept waiting by its own scheduler. It asks to be woken each
// millisecond, and a wake-up that comes much too late is a [result.Stall].
//
// It beats in the readers of an endpoint that has them of their own: what keeps
// these from running keeps events from being read. Elsewhere it is a goroutine like those
// that read the answers, which waits in the same queues; what keeps only some of them
// from running, it may miss.
type heartbeat struct {
	start time.Time
	began time.Duration // from the start

	mu    sync.Mutex
	last  []time.Duration // beat of each reader, from the start
	all   *result.Stalls  // nil before it begins
	fresh *result.Stalls  // not yet taken

	stop func() // nil before it begins
	over bool   // beats count no more
}

const (
	beatEvery = time.Millisecond
	// lateBeat is how late a beat is a stall. Sleeping in epoll is up to a
	// millisecond late, and a thread that shares its core waits for another's slice of
	// 3 ms: of 18,200 beats in 20 s on two cores that others used too, 5 to 21 were more
	// than 3 ms late and one or two more than 5 ms.
	lateBeat = 5 * time.Millisecond
)

// A watchable endpoint reads answers in goroutines of its own. It has each call beat at
// least each millisecond, with its number, and returns how many there are.
type watchable interface {
	Watch(beat func(reader int)) (readers int)
}

// begin starts the watch.
func (h *heartbeat) begin(start time.Time, endpoint result.Endpoint) {
	h.watch(start, time.Since(start))
	if w, ok := endpoint.(watchable); ok && w.Watch(func(reader int) { h.beat(reader, time.Since(start)) }) > 0 {
		h.stop = func() { w.Watch(nil) }
		return
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer crash.Caught()
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			h.beat(0, time.Since(start))
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	h.stop = func() {
		close(stop)
		<-done
	}
}

// watch makes the first beat.
func (h *heartbeat) watch(start time.Time, now time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.start, h.began, h.last = start, now, []time.Duration{now}
	h.all, h.fresh = &result.Stalls{AboveNS: int64(lateBeat)}, &result.Stalls{AboveNS: int64(lateBeat)}
}

// beat takes note of a wake-up.
func (h *heartbeat) beat(reader int, now time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over { // a reader was about to beat when the watch ended
		return
	}
	for len(h.last) <= reader {
		h.last = append(h.last, h.began)
	}
	h.look(reader, now)
	h.last[reader] = now
}

// look notices a stall that is over, or that goes on. One before the start, which may be an
// instant of the wall clock that is still to come, is none of the run's.
func (h *heartbeat) look(reader int, now time.Duration) {
	if due := max(h.last[reader]+beatEvery, 0); now-due > lateBeat {
		x := result.Stall{FromNS: int64(due), ToNS: int64(now)}
		h.all.Add(x)
		h.fresh.Add(x)
	}
}

// lookAtAll notices the stalls that go on.
func (h *heartbeat) lookAtAll() {
	now := time.Since(h.start)
	for reader := range h.last {
		h.look(reader, now)
	}
}

// takeNew returns what was noticed since it was last called, with a stall that goes on:
// after a stall, the caller may be woken before the heartbeat. It is nil where there is no
// watch.
func (h *heartbeat) takeNew() *result.Stalls {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		return nil
	}
	h.lookAtAll()
	out := h.fresh
	h.fresh = &result.Stalls{AboveNS: int64(lateBeat)}
	return out
}

// total is how long all that was noticed so far lasted.
func (h *heartbeat) total() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		return 0
	}
	return time.Duration(h.all.TotalNS)
}

// end stops the watch. It returns all that was noticed, nil where there was no watch.
func (h *heartbeat) end() *result.Stalls {
	if h.stop == nil {
		return nil
	}
	h.stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lookAtAll()
	h.over = true
	return h.all
}
