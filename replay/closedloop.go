package replay

import (
	"sync"
	"time"
)

// A closedLoop sends the next row when a request is over. Rows are prepared ahead
// without a due time, which is the end of the request whose slot they take. The
// goroutine of that request itself puts them into the ready queue, so that a slot
// does not stay empty while another row is being prepared.
type closedLoop struct {
	limit int           // in flight, and prepared ahead
	until time.Duration // from when on no row is sent; 0 is never
	queue *readyQueue

	mu       sync.Mutex
	free     []time.Duration // since when each free slot is free, in their order
	rampUp   []time.Duration // when further slots open
	prepared []*flight       // without a slot, in the order of the file
	bytes    int64           // of them
	lastDue  time.Duration
	over     bool
}

// slotTimes returns when each slot of a closed loop opens that belongs to the share.
func (o *Options) slotTimes() []time.Duration {
	opens := make([]time.Duration, o.Share.Count(o.Concurrency))
	for i := range opens {
		opens[i] = time.Duration(o.Share.Number(int64(i))) * (o.RampUp / time.Duration(o.Concurrency))
	}
	return opens
}

// wantsRow says that a further row is to be prepared.
func (c *closedLoop) wantsRow() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.prepared) < min(c.limit, preparedCalls) && (len(c.prepared) == 0 || c.bytes < preparedBytes)
}

// openSlots opens the slots whose time has come, and returns when the next one opens.
func (c *closedLoop) openSlots(now time.Duration) (next time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.rampUp) > 0 && c.rampUp[0] <= now {
		c.free, c.rampUp = append(c.free, c.rampUp[0]), c.rampUp[1:]
	}
	c.fillSlots()
	if len(c.rampUp) == 0 || c.over {
		return never
	}
	return c.rampUp[0]
}

// freeSlot gives up the slot of a request that is over.
func (c *closedLoop) freeSlot(at time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, at)
	c.fillSlots()
}

// addPrepared takes a request that is prepared.
func (c *closedLoop) addPrepared(fl *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prepared = append(c.prepared, fl)
	c.bytes += fl.size
	c.fillSlots()
}

// fillSlots gives the next request the next slot, while there are both.
func (c *closedLoop) fillSlots() {
	for len(c.free) > 0 && len(c.prepared) > 0 && !c.over {
		due, fl := c.free[0], c.prepared[0]
		c.free = c.free[1:]
		if c.until > 0 && due >= c.until {
			continue
		}
		c.prepared, c.bytes = c.prepared[1:], c.bytes-fl.size
		fl.due, fl.result.DueNS = due, int64(due)
		c.lastDue = max(c.lastDue, due)
		c.queue.push(fl, true)
	}
}

// waiting is the number of requests that are prepared and have no slot.
func (c *closedLoop) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.prepared)
}

// stop ends the sending, and returns the last due time.
func (c *closedLoop) stop() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	return c.lastDue
}
