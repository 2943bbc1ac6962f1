package replay

import (
	"sync"
	"time"

	"reprise/replay/result"
)

// A heartbeat notices that the client does not run: stopped by a signal, starved of
// the processor, or kept waiting by its own scheduler. It asks to be woken each
// millisecond, and a wake-up that comes much too late is a [result.Stall].
//
// It is a goroutine like those that read the answers, and not a thread of its own:
// it waits in the same queues, so that what keeps it from running keeps them. What
// keeps only some of them, it may miss.
type heartbeat struct {
	start time.Time

	mu    sync.Mutex
	last  time.Duration  // beat, from the start
	all   *result.Stalls // nil before it begins
	fresh *result.Stalls // not yet taken

	stop, done chan struct{}
}

const (
	beatEvery = time.Millisecond
	// lateBeat is how late a beat is a stall. Sleeping in epoll is up to a
	// millisecond late, and a thread that shares its core waits for another's slice of
	// 3 ms: of 18,200 beats in 20 s on two cores that others used too, 5 to 21 were more
	// than 3 ms late and one or two more than 5 ms.
	lateBeat = 5 * time.Millisecond
)

// begin starts the watch.
func (h *heartbeat) begin(start time.Time) {
	h.watch(start, time.Since(start))
	h.stop, h.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(h.done)
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				h.beat(time.Since(start))
			case <-h.stop:
				h.beat(time.Since(start))
				return
			}
		}
	}()
}

// watch makes the first beat.
func (h *heartbeat) watch(start time.Time, now time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.start, h.last = start, now
	h.all, h.fresh = &result.Stalls{AboveNS: int64(lateBeat)}, &result.Stalls{AboveNS: int64(lateBeat)}
}

// beat takes note of a wake-up.
func (h *heartbeat) beat(now time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.look(now)
	h.last = now
}

// look notices a stall that is over, or that goes on.
func (h *heartbeat) look(now time.Duration) {
	if due := h.last + beatEvery; now-due > lateBeat {
		x := result.Stall{FromNS: int64(due), ToNS: int64(now)}
		h.all.Add(x)
		h.fresh.Add(x)
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
	h.look(time.Since(h.start))
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
	close(h.stop)
	<-h.done
	return h.all
}
