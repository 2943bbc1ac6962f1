package replay

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// A small heap is collected when there are 256 MB of garbage, a large one at four
// times what is alive, and so it is again when most of that has died.
func TestFewCollectionsFollowsTheHeap(t *testing.T) {
	percent := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	reaches := func(low, high uint64) {
		t.Helper()
		for range 1000 {
			runtime.GC()
			if p := percent(); p >= low && p <= high {
				return
			}
			time.Sleep(time.Millisecond) // cleanups have a goroutine of their own
		}
		t.Errorf("%d %%, want %d to %d", percent(), low, high)
	}
	before := percent()
	undo := FewCollections()
	if p := percent(); p != 6400 {
		t.Errorf("%d %% at the start", p)
	}
	alive := make([]byte, 150<<20)
	reaches(garbagePercent, garbagePercent)
	runtime.KeepAlive(alive)
	alive = nil
	reaches(1000, 6400)
	undo()
	if p := percent(); p != before {
		t.Errorf("%d %% afterwards, want %d", p, before)
	}
}
