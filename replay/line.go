package replay

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// What is prepared and not yet sent is bounded three ways: by time
// ([Options.Ahead]), by memory and by number.
const (
	preparedBytes = 256 << 20
	preparedCalls = 1 << 14
)

// A line holds prepared flights, soonest first, between the feeder and the
// dispatcher. A turn that is due at once passes those that are due later.
type line struct {
	mu     sync.Mutex
	queue  soonest[*flight]
	bytes  int64 // prepared, until they are let go
	calls  int
	closed bool

	filled chan struct{} // told of a new flight or of the end; holds one
	room   chan struct{} // told when a flight was let go; holds one

	// The dispatcher waits until awaited; sooner interrupts that.
	awaited time.Duration
	sooner  context.CancelFunc
}

func newLine() *line {
	return &line{filled: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// tell wakes who waits on c, now or next.
func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put adds a flight, unless there is no room. One that goes before all others
// always finds some: it leaves next.
func (l *line) put(fl *flight) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := l.bytes > 0 && l.bytes+fl.size > preparedBytes || l.calls >= preparedCalls
	if full && (len(l.queue) == 0 || !before(fl, l.queue[0])) {
		return false
	}
	l.add(fl)
	return true
}

// push adds a flight whether there is room or not.
func (l *line) push(fl *flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(fl)
}

func (l *line) add(fl *flight) {
	l.bytes += fl.size
	l.calls++
	heap.Push(&l.queue, fl)
	if l.sooner != nil && fl.due < l.awaited {
		l.sooner()
	}
	tell(l.filled)
}

// end says that no flight follows.
func (l *line) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	tell(l.filled)
}

// head returns when the next flight is due. It waits for one, and is false at
// the end of the line.
func (l *line) head() (due time.Duration, ok bool) {
	for {
		l.mu.Lock()
		switch {
		case len(l.queue) > 0:
			due = l.queue[0].due
			l.mu.Unlock()
			return due, true
		case l.closed:
			l.mu.Unlock()
			return 0, false
		}
		l.mu.Unlock()
		<-l.filled
	}
}

// await says until when the dispatcher waits and how that is interrupted.
func (l *line) await(due time.Duration, sooner context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaited, l.sooner = due, sooner
	if len(l.queue) > 0 && l.queue[0].due < due {
		sooner()
	}
}

// take removes the next flight, which keeps its room until [line.letGo].
func (l *line) take() *flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sooner = nil
	return heap.Pop(&l.queue).(*flight)
}

// letGo gives up the room of a flight.
func (l *line) letGo(fl *flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes -= fl.size
	l.calls--
	tell(l.room)
}

func (l *line) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

// A scheduled thing is due at an instant, on account of a row.
type scheduled interface {
	when() (due time.Duration, row int64)
}

// before says that a is due sooner, or at once with b and above it in the file.
func before(a, b scheduled) bool {
	due, row := a.when()
	other, below := b.when()
	return due < other || due == other && row < below
}

// soonest is a heap of what is scheduled.
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
