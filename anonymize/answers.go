package anonymize

import (
	"crypto/sha256"
	"encoding/binary"

	"reprise/trace"
	"reprise/trace/block"
)

// answerChains are the sessions of requests that go on from an earlier answer by its id
// (previous_response_id) and name no session themselves. Requests of one chain are one
// session, whatever their order in the source. The first of a chain does not know that
// others go on from it, so each row has a number of its own, below 0, until [answerChains.settle]
// is called for it.
//
// Up to 1,048,576 answers are told apart, for some 50 bytes each. Requests beyond that have
// no session.
type answerChains struct {
	ids    *block.IDs
	before []int32 // by number of an answer: one of its chain before it, or itself
	some   []bool  // of the first of a chain: requests go on from it
	chains int
	lost   int64 // requests that go on from an answer beyond the limit
	named  int64 // sessions that have names; those of chains are numbered after them
}

const maxAnswers = 1 << 20

// session is the number of a request below 0 until it is settled; 0 for none.
func (a *answerChains) session(x *encoded) int64 {
	if x.response == "" && x.previous == "" {
		return 0
	}
	answer, known := a.number(x.response)
	if x.previous == "" {
		if !known {
			return 0
		}
		return -1 - int64(answer)
	}
	from, ok := a.number(x.previous)
	if !ok {
		a.lost++
		return 0
	}
	first := a.first(from)
	if later := a.first(answer); known && later != first { // their chains become one
		a.before[later] = first
		if a.some[later] {
			a.some[later] = false
			a.chains--
		}
	}
	if !a.some[first] {
		a.some[first] = true
		a.chains++
	}
	return -1 - int64(from)
}

// number is that of an answer; false for none and beyond the limit.
func (a *answerChains) number(id string) (int32, bool) {
	if id == "" {
		return 0, false
	}
	if a.ids == nil {
		a.ids = block.NewIDs(maxAnswers, 0)
	}
	sum := sha256.Sum256([]byte(id))
	n, ok := a.ids.ID(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:]))
	if ok && int(n) == len(a.before) {
		a.before, a.some = append(a.before, int32(n)), append(a.some, false)
	}
	return int32(n), ok
}

// first is the first answer of a chain, so far.
func (a *answerChains) first(n int32) int32 {
	for a.before[n] != n {
		a.before[n] = a.before[a.before[n]]
		n = a.before[n]
	}
	return n
}

// settle gives a row the session of its chain, or none where nothing goes on from it.
func (a *answerChains) settle(r *trace.Request) {
	if r.Session == nil || *r.Session >= 0 {
		return
	}
	first := a.first(int32(-1 - *r.Session))
	if r.Session = nil; a.some[first] {
		r.Session = trace.Ptr(a.named + int64(first))
	}
}
