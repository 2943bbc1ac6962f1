package tenant

import (
	"cmp"
	"slices"

	"reprise/trace/sample"
)

// A Burst is what the others waited while a tenant asked for far more than it usually does.
type Burst struct {
	Seconds         float64       // that its bursts lasted
	During, Outside sample.Values // times to the first token of the others
}

// A tenant bursts in a slot of time in which it asks for three times its mean work or more.
// Slots are a second, or a hundredth of the run where that is longer. What the others sent in
// the slot behind counts too, since the queue is still there.
const (
	burstTimes = 3
	leastSlot  = int64(1e9)
	slots      = 100
)

// Bursts finds the bursts of a tenant; nil where it has none, or there are too many requests
// to keep. Whatever else happened at those times is in the difference too.
func (t *Table) Bursts(user int64) *Burst {
	if t.full || len(t.requests) == 0 {
		return nil
	}
	byDue := func(a, b arrived) int { return cmp.Compare(a.due, b.due) }
	first, last := slices.MinFunc(t.requests, byDue).due, slices.MaxFunc(t.requests, byDue).due
	slot := max(leastSlot, (last-first)/slots+1)
	work := make([]float64, (last-first)/slot+1)
	total := 0.0
	for i := range t.requests {
		if r := &t.requests[i]; r.user == user {
			work[(r.due-first)/slot] += r.work
			total += r.work
		}
	}
	limit := burstTimes * total / float64(len(work))
	b := &Burst{During: sample.Values{Limit: maxRequests}, Outside: sample.Values{Limit: maxRequests}}
	for _, w := range work {
		if w >= limit && w > 0 {
			b.Seconds += float64(slot) / 1e9
		}
	}
	if b.Seconds == 0 {
		return nil
	}
	bursts := func(i int64) bool { return i >= 0 && work[i] >= limit && work[i] > 0 }
	for i := range t.requests {
		r := &t.requests[i]
		if r.user == user || r.ttft < 0 {
			continue
		}
		if at := (r.due - first) / slot; bursts(at) || bursts(at-1) {
			b.During.Add(r.ttft)
		} else {
			b.Outside.Add(r.ttft)
		}
	}
	return b
}
