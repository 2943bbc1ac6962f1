package row

import (
	"strconv"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/stamp"
)

// Latencies are the paths of the times of a record, by which latencies are told.
type Latencies struct{ Start, First, End []string }

const backwards = "records that end before they start: their latencies are left out"

// PutLatencies makes "e2e" and "ttft", both in nanoseconds, of the times of a
// record. A first token at or behind the end was not seen: several gateways put
// the end there when the answer was not streamed. unit is that of numbers which
// do not tell theirs by their size; 0 leaves them out.
func (v View) PutLatencies(p Latencies, unit time.Duration, tell *fault.Notes) {
	e2e, ended := since(v, p.Start, p.End, unit)
	ttft, seen := since(v, p.Start, p.First, unit)
	if ended && e2e < 0 || seen && ttft < 0 {
		tell.Count(backwards)
		return
	}
	if ended {
		v.Made["e2e"] = Number(strconv.FormatInt(int64(e2e), 10))
	}
	if seen && (!ended || ttft < e2e) {
		v.Made["ttft"] = Number(strconv.FormatInt(int64(ttft), 10))
	}
}

// since returns how long after one time another is, when both are there and
// written alike.
func since(r Row, from, to []string, unit time.Duration) (time.Duration, bool) {
	a, ok := TimeAt(r, from)
	b, ok2 := TimeAt(r, to)
	if !ok || !ok2 {
		return 0, false
	}
	return stamp.Between(a, b, unit)
}

// TimeAt is the time at the first path that has a value.
func TimeAt(r Row, paths []string) (stamp.Stamp, bool) {
	v, _, ok := Find(r, paths)
	if !ok {
		return stamp.Stamp{}, false
	}
	return stamp.Read(Plain(v))
}
