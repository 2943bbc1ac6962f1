package replay

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// Go collects no sooner than there is so much garbage, which most runs never
	// make. Each collection stops all goroutines twice, until each thread has come to
	// a safe point, for which one that the kernel has put aside takes milliseconds;
	// meanwhile nothing is sent.
	garbageAtLeast = 256 << 20
	// Streams make much garbage that lives briefly: at every doubling of the heap
	// they are delayed (16,000 of them: p99 skew 244 ms at 100, 13 ms at 400).
	garbagePercent = 400
	// Go multiplies a heap of 4 MB, where less than that is alive.
	smallestHeap = 4 << 20
)

// FewCollections makes Go collect garbage only when there is four times as much of it as
// of live memory, and at least 256 MB: that and the live memory bound the heap. A program
// calls it before its runs, and calls undo when they are over.
func FewCollections() (undo func()) { return CollectGarbage(garbagePercent, garbageAtLeast) }

// CollectGarbage makes Go collect garbage only when there are percent of live memory of
// it, and at least so many bytes, until undo is called.
func CollectGarbage(percent int, atLeast uint64) (undo func()) {
	c := &collections{least: percent, bytes: atLeast}
	c.percent = c.wanted(0)
	before := debug.SetGCPercent(c.percent)
	c.watch()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.over = true
		debug.SetGCPercent(before)
	}
}

type collections struct {
	least int    // percent of a live heap
	bytes uint64 // the least garbage

	mu      sync.Mutex
	percent int // as set
	over    bool
}

// wanted is the percentage of a live heap that is wanted as garbage.
func (c *collections) wanted(live uint64) int {
	return int(max(uint64(c.least), 100*c.bytes/max(live, smallestHeap)))
}

// watch has the percentage follow the heap: an object that nobody holds is found by
// each collection.
func (c *collections) watch() {
	runtime.AddCleanup(new([4]*int), (*collections).collected, c)
}

func (c *collections) collected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	// Setting it stops all goroutines too.
	if want := c.wanted(live[0].Value.Uint64()); want < c.percent || want > c.percent+c.percent/4 {
		c.percent = want
		debug.SetGCPercent(want)
	}
	c.watch()
}

// SpareProcessors lets Go run a few more threads than there are cores: one that waits for
// due times, and those that wait for answers, one for every four cores. They keep a
// processor while they wait, so that they need not wait for one when they wake. A program
// calls it before its runs, and calls undo when they are over. Run.Cores must be read
// before.
func SpareProcessors() (undo func()) {
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(before + 1 + (before+3)/4)
	return func() { runtime.GOMAXPROCS(before) }
}
