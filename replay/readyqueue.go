package replay

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// What is prepared and not yet sent is bounded three ways: by time
// ([Options.Ahead]), by memory and by number.
const (
	preparedBytes = 256 << 20
	preparedCalls = 1 << 14
)

// A flight is one prepared request on its way to its Result.
type flight struct {
	id     int64 // among the rows that are read
	call   result.Call
	size   int64
	due    time.Duration
	drift  time.Duration // from its recorded time; of turns only
	turn   bool
	cut    time.Duration
	at     int64          // backs result.ReleasedNS
	row    *trace.Request // until result.Known is counted
	result result.Result

	// counted is done when result.Known is filled in. Without Options.Known there is
	// nothing to wait for.
	counted sync.WaitGroup

	prefix *threadPrefix // where its prompt holds the server's own reply
	reply  *threadReply  // where a turn may follow
}

func (fl *flight) dueAt() (time.Duration, int64) { return fl.due, fl.id }

// A readyQueue holds prepared requests, soonest first, between the feeder and the
// dispatcher. A turn that is due at once overtakes those that are due later.
type readyQueue struct {
	mu      sync.Mutex
	flights soonest[*flight]
	bytes   int64 // of prepared requests, until their room is freed
	calls   int
	closed  bool

	filled chan struct{} // signals a new request or the end; holds one
	room   chan struct{} // signals that room was freed; holds one

	// The dispatcher waits until awaited; sooner interrupts that.
	awaited time.Duration
	sooner  context.CancelFunc
}

// wake wakes the goroutine that waits on c, now or when it waits next.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// push adds a request, unless there is no room for it. There always is for one that is
// forced, and for one that is due before all others: it leaves next.
func (q *readyQueue) push(fl *flight, force bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	full := q.bytes > 0 && q.bytes+fl.size > preparedBytes || q.calls >= preparedCalls
	if full && !force && (len(q.flights) == 0 || !before(fl, q.flights[0])) {
		return false
	}
	q.bytes += fl.size
	q.calls++
	heap.Push(&q.flights, fl)
	if q.sooner != nil && fl.due < q.awaited {
		q.sooner()
	}
	wake(q.filled)
	return true
}

// close says that no request follows.
func (q *readyQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	wake(q.filled)
}

// nextDue returns when the next request is due. It waits for one, and is false when
// the queue is empty and closed.
func (q *readyQueue) nextDue() (due time.Duration, ok bool) {
	for {
		q.mu.Lock()
		switch {
		case len(q.flights) > 0:
			due = q.flights[0].due
			q.mu.Unlock()
			return due, true
		case q.closed:
			q.mu.Unlock()
			return 0, false
		}
		q.mu.Unlock()
		<-q.filled
	}
}

// interruptWait has sooner called when a request comes that is due before the instant
// until which the dispatcher waits.
func (q *readyQueue) interruptWait(due time.Duration, sooner context.CancelFunc) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.awaited, q.sooner = due, sooner
	if len(q.flights) > 0 && q.flights[0].due < due {
		sooner()
	}
}

// pop removes the next request, which keeps its room until freeRoom.
func (q *readyQueue) pop() *flight {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sooner = nil
	return heap.Pop(&q.flights).(*flight)
}

func (q *readyQueue) freeRoom(fl *flight) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= fl.size
	q.calls--
	wake(q.room)
}

// left are the requests that were never taken.
func (q *readyQueue) left() []*flight {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.flights
}

// overdue counts the requests that wait although they are due. It looks at no
// others: in a heap, nothing below an entry is due sooner than it.
func (q *readyQueue) overdue(now time.Duration) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.overdueBelow(0, now)
}

func (q *readyQueue) overdueBelow(i int, now time.Duration) int64 {
	if i >= len(q.flights) || q.flights[i].due > now {
		return 0
	}
	return 1 + q.overdueBelow(2*i+1, now) + q.overdueBelow(2*i+2, now)
}

// never is later than every due time.
const never = time.Duration(1<<63 - 1)

// A scheduled thing is due at an instant, on account of a row.
type scheduled interface {
	dueAt() (due time.Duration, row int64)
}

// before says that a is due sooner, or at the same time for a row that is earlier in
// the file.
func before(a, b scheduled) bool {
	due, row := a.dueAt()
	other, below := b.dueAt()
	return due < other || due == other && row < below
}

// soonest is a heap by due time.
type soonest[T scheduled] []T

func (s soonest[T]) Len() int { return len(s) }

func (s soonest[T]) Less(i, j int) bool { return before(s[i], s[j]) }

func (s soonest[T]) Swap(i, j int) { s[i], s[j] = s[j], s[i] }

func (s *soonest[T]) Push(x any) { *s = append(*s, x.(T)) }

func (s *soonest[T]) Pop() any {
	old := *s
	last := old[len(old)-1]
	var none T
	old[len(old)-1] = none
	*s = old[:len(old)-1]
	return last
}
