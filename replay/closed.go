package replay

import (
	"slices"
	"sync"
	"time"
)

// A closed loop sends the next row when one is over. Rows are prepared ahead
// without a due time, which is the end of the request whose place they take: the
// goroutine of that request itself puts them into the line, so that a place does
// not stay empty while another row is being prepared.
type closed struct {
	limit int           // in flight, and prepared ahead
	until time.Duration // from when on no row is sent; 0 is never
	line  *line

	mu    sync.Mutex
	room  []time.Duration // since when there is a place, in their order
	come  []time.Duration // when there will be further ones, of a ramp-up
	spare []*flight       // prepared, in the order of the file
	bytes int64           // of them
	last  time.Duration   // due time
	over  bool
}

func newClosed(o *Options, l *line) *closed {
	c := &closed{limit: o.Concurrency, until: o.Duration, line: l, come: o.room()}
	c.open(o.Resume.base())
	return c
}

// room is from when on there is each place of a closed loop. One that goes on has
// been through its ramp-up.
func (o *Options) room() []time.Duration {
	room := slices.Repeat([]time.Duration{o.Resume.base()}, o.Concurrency)
	if o.Resume == nil {
		for i := range room {
			room[i] += time.Duration(i) * (o.RampUp / time.Duration(o.Concurrency))
		}
	}
	return room
}

// takes says that a further row is to be prepared.
func (c *closed) takes() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.spare) < min(c.limit, preparedCalls) && (len(c.spare) == 0 || c.bytes < preparedBytes)
}

// open gives out the places that there are by now, and says when the next one comes.
func (c *closed) open(now time.Duration) (next time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.come) > 0 && c.come[0] <= now {
		c.room, c.come = append(c.room, c.come[0]), c.come[1:]
	}
	c.match()
	if len(c.come) == 0 || c.over {
		return never
	}
	return c.come[0]
}

// leave gives a place up.
func (c *closed) leave(at time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.room = append(c.room, at)
	c.match()
}

// hold takes a row that is prepared.
func (c *closed) hold(fl *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare = append(c.spare, fl)
	c.bytes += fl.size
	c.match()
}

// match gives the next row the next place, while there are both.
func (c *closed) match() {
	for len(c.room) > 0 && len(c.spare) > 0 && !c.over {
		due, fl := c.room[0], c.spare[0]
		c.room = c.room[1:]
		if c.until > 0 && due >= c.until {
			continue
		}
		c.spare, c.bytes = c.spare[1:], c.bytes-fl.size
		fl.due, fl.result.DueNS = due, int64(due)
		c.last = max(c.last, due)
		c.line.push(fl)
	}
}

// waiting is the number of rows that are prepared and have no place.
func (c *closed) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.spare)
}

// stop has no further row sent, and returns the last due time.
func (c *closed) stop() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	return c.last
}
