package replay

import (
	"slices"
	"testing"
	"time"
)

// Slots open one after another over the ramp-up.
func TestSlotsOpen(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want []time.Duration
	}{
		{Options{Concurrency: 3}, []time.Duration{0, 0, 0}},
		{Options{Concurrency: 4, RampUp: 8}, []time.Duration{0, 2, 4, 6}},
	} {
		if got := c.o.slotTimes(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %d, want %d", c.o, got, c.want)
		}
	}
}

func emptyQueue() *readyQueue {
	return &readyQueue{filled: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// The next request takes the slot that is free for longest, from when it is free on. No
// slot is taken from the end of the run on.
func TestSlotsAreTaken(t *testing.T) {
	q := emptyQueue()
	c := &closedLoop{limit: 3, until: 100, queue: q, rampUp: []time.Duration{5, 20, 60}}
	sent := func() (due []time.Duration) {
		for len(q.left()) > 0 {
			fl := q.pop()
			if int64(fl.due) != fl.result.DueNS {
				t.Errorf("a request is due at %d, and says %d", fl.due, fl.result.DueNS)
			}
			due = append(due, fl.due)
		}
		return due
	}
	if next := c.openSlots(4); next != 5 || !c.wantsRow() {
		t.Errorf("before a slot is open the next opens at %d", next)
	}
	c.addPrepared(&flight{id: 1, size: 10})
	if got := sent(); got != nil || c.waiting() != 1 || c.bytes != 10 {
		t.Errorf("sent at %d, %d wait", got, c.waiting())
	}
	if next := c.openSlots(20); next != 60 || c.waiting() != 0 || c.bytes != 0 {
		t.Errorf("the next opens at %d", next)
	}
	c.addPrepared(&flight{id: 2})
	if got := sent(); !slices.Equal(got, []time.Duration{5, 20}) {
		t.Errorf("sent at %d", got)
	}
	if next := c.openSlots(60); next != never {
		t.Errorf("a fourth slot opens at %d", next)
	}
	for range 3 {
		c.addPrepared(&flight{size: 1})
	}
	if got := sent(); !slices.Equal(got, []time.Duration{60}) || c.waiting() != 2 || !c.wantsRow() {
		t.Errorf("sent at %d, %d wait", got, c.waiting())
	}
	if c.addPrepared(&flight{}); c.wantsRow() {
		t.Error("as many are prepared as slots, and more are wanted")
	}
	c.freeSlot(99)
	c.freeSlot(100)
	if got := sent(); !slices.Equal(got, []time.Duration{99}) || c.waiting() != 2 || c.stop() != 99 {
		t.Errorf("sent at %d, %d wait", got, c.waiting())
	}
	c.freeSlot(50)
	if got := sent(); got != nil || c.openSlots(200) != never {
		t.Errorf("sent at %d after the end", got)
	}
	if c := (&closedLoop{rampUp: []time.Duration{9}, over: true}); c.openSlots(1) != never {
		t.Error("a slot opens after the end")
	}
	// Memory bounds what is prepared, but for one.
	c = &closedLoop{limit: 1 << 20, queue: q}
	c.addPrepared(&flight{size: preparedBytes})
	if c.wantsRow() {
		t.Error("256 MB are prepared, and more is wanted")
	}
	c.prepared, c.bytes = nil, preparedBytes
	if !c.wantsRow() {
		t.Error("nothing is prepared, and nothing is wanted")
	}
	if c.prepared, c.bytes = make([]*flight, preparedCalls-1), 0; !c.wantsRow() {
		t.Error("one call fewer than may be prepared")
	}
	if c.prepared = make([]*flight, preparedCalls); c.wantsRow() {
		t.Error("as many calls as may be prepared")
	}
}

// A queue takes what fits by memory and number, and what leaves next or is forced.
func TestReadyQueueIsBounded(t *testing.T) {
	q := emptyQueue()
	push := func(due time.Duration, id, size int64, force, want bool) {
		t.Helper()
		if got := q.push(&flight{id: id, due: due, size: size}, force); got != want {
			t.Errorf("a request due at %d of %d bytes: %v, want %v", due, size, got, want)
		}
	}
	push(50, 1, preparedBytes+1, false, true) // one may be of any size
	push(50, 2, 0, false, false)
	push(50, 0, 1, false, true)
	push(49, 9, 1, false, true)
	push(60, 3, 1, true, true)
	if q.overdue(48) != 0 || q.overdue(49) != 1 || q.overdue(50) != 3 || q.overdue(99) != 4 || len(q.left()) != 4 || q.bytes != preparedBytes+4 || q.calls != 4 {
		t.Errorf("%d requests of %d bytes", len(q.left()), q.bytes)
	}
	var order []int64
	for len(q.left()) > 0 {
		fl := q.pop()
		order = append(order, fl.id)
		q.freeRoom(fl)
	}
	if !slices.Equal(order, []int64{9, 0, 1, 3}) || q.bytes != 0 || q.calls != 0 {
		t.Errorf("they leave as %d, and %d bytes stay", order, q.bytes)
	}
	push(1, 1, preparedBytes-1, false, true)
	push(2, 2, 1, false, true)
	push(3, 3, 1, false, false)
	q = emptyQueue()
	q.calls = preparedCalls - 1
	push(1, 1, 0, false, true)
	push(2, 2, 0, false, false)
	// A request that comes to be due sooner ends the dispatcher's wait; one at the same
	// instant does not.
	ended := 0
	q = emptyQueue()
	q.interruptWait(10, func() { ended++ })
	push(10, 1, 0, false, true)
	if ended != 0 {
		t.Error("a request that is due at the same instant ends the wait")
	}
	push(9, 2, 0, false, true)
	if ended != 1 {
		t.Error("a request that is due sooner does not end the wait")
	}
	if q.interruptWait(9, func() { ended++ }); ended != 1 {
		t.Error("what is due at the instant ends the wait for it")
	}
	if q.interruptWait(10, func() { ended++ }); ended != 2 {
		t.Error("what is due before the instant does not end the wait for it")
	}
	q.pop()
	if push(1, 3, 0, false, true); ended != 2 {
		t.Error("a wait that is over is ended again")
	}
}
