package datasets

import (
	"strconv"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/stamp"
)

// Paths of the times of a record, by which latencies are told.
type latencyPaths struct{ start, first, end []string }

const backwards = "records that end before they start: their latencies are left out"

// latencies makes "e2e" and "ttft", both in nanoseconds, of the times of a
// record. A first token at or behind the end was not seen: several gateways put
// the end there when the answer was not streamed. unit is that of numbers which
// do not tell theirs by their size; 0 leaves them out.
func (v viewRow) latencies(p latencyPaths, unit time.Duration, tell *fault.Notes) {
	e2e, ended := since(v, p.start, p.end, unit)
	ttft, seen := since(v, p.start, p.first, unit)
	if ended && e2e < 0 || seen && ttft < 0 {
		tell.Count(backwards)
		return
	}
	if ended {
		v.made["e2e"] = number(strconv.FormatInt(int64(e2e), 10))
	}
	if seen && (!ended || ttft < e2e) {
		v.made["ttft"] = number(strconv.FormatInt(int64(ttft), 10))
	}
}

// since returns how long after one time another is, when both are there and
// written alike.
func since(r row, from, to []string, unit time.Duration) (time.Duration, bool) {
	a, ok := stampAt(r, from)
	b, ok2 := stampAt(r, to)
	if !ok || !ok2 {
		return 0, false
	}
	return stamp.Between(a, b, unit)
}

func stampAt(r row, paths []string) (stamp.Stamp, bool) {
	v, _, ok := findFirst(r, paths)
	if !ok {
		return stamp.Stamp{}, false
	}
	return stamp.Read(plain(v))
}
