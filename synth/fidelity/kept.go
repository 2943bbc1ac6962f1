package fidelity

import (
	"math"

	"reprise/trace"
)

// keptLimits are up to how many requests and block references a [keptRows] keeps; tests
// lower them.
type keptLimits struct {
	rows, references int
	routed           int  // references of rows that count, up to which these are routed
	hashes           int  // up to so many hashes of sessions are tried of a small trace
	asTheyAppear     bool // sessions are hashed by the order in which they appear, and not by their rank
}

// Of a longer trace, what a benchmark feels is measured over its first requests: 262,144
// of them, or as many as have 4.2 million blocks. As many as have 1.05 million are routed, which
// takes some 3 s.
var defaultKept = keptLimits{rows: 1 << 18, references: 1 << 22, routed: 1 << 20, hashes: 16}

// keptRows are the first requests of a trace, in memory: routing, queues, rates, links
// and copies are measured over them. They take 40 bytes for each request and 4 for each
// block, at most 27 MB.
//
// Links are what prompts show: the parent of a request is the one that last touched its
// deepest known block. A request that knows no more than the global prefix has none and
// begins a session; a session is a tree of such links.
type keptRows struct {
	limit keptLimits
	more  bool // requests were left out

	at       []float64 // s since the first arrival
	in, out  []int32
	parent   []int32 // row, or -1
	session  []int32 // by links, in order of appearance
	source   []int64 // of the source; noSession without
	sessions int32
	begin    []uint32 // where the blocks of a row begin, and in the end where they end
	blocks   []uint32 // numbers of the blocks of all rows
	toucher  []int32  // by block: the row that touched it last
	from     int      // the first row that counts
	global   int      // blocks of the global prefix
}

const noSession = math.MinInt64

// add takes the next row with its category and hit.
func (k *keptRows) add(r *trace.Request, first int64, source *int64, hit int, counted bool) {
	if k.more || len(k.at) == k.limit.rows || len(k.blocks)+len(r.Blocks) > k.limit.references {
		k.more = true
		return
	}
	row, parent := int32(len(k.at)), int32(-1)
	if hit > k.global {
		parent = k.toucher[r.Blocks[hit-1]]
	}
	if !counted {
		k.from = int(row) + 1
	}
	session := k.sessions
	if parent >= 0 {
		session = k.session[parent]
	} else {
		k.sessions++
	}
	k.at = append(k.at, float64(r.ArrivalNS-first)/1e9)
	k.in, k.out = append(k.in, r.InputTokens), append(k.out, r.OutputOr(-1))
	k.parent, k.session = append(k.parent, parent), append(k.session, session)
	of := int64(noSession)
	if source != nil {
		of = *source
	}
	k.source = append(k.source, of)
	for _, id := range r.Blocks {
		n := uint32(id)
		if int(n) >= len(k.toucher) {
			k.toucher = append(k.toucher, make([]int32, int(n)+1-len(k.toucher))...)
		}
		k.toucher[n] = row
		k.blocks = append(k.blocks, n)
	}
	k.begin = append(k.begin, uint32(len(k.blocks)))
}

// finish drops what only add needs.
func (k *keptRows) finish() { k.toucher = nil }

// path has the numbers of the blocks of a row.
func (k *keptRows) path(row int) []uint32 {
	return k.blocks[k.begin[row]:k.begin[row+1]]
}

// counted are the rows that count.
func (k *keptRows) counted() int { return len(k.at) - k.from }

// sessionsBy are the sessions of all rows, numbered in order of appearance: those of the
// source, where a row without one is a session of its own, or those of links.
func (k *keptRows) sessionsBy(source bool) []int32 {
	if !source {
		return k.session
	}
	list, number, n := make([]int32, len(k.source)), map[int64]int32{}, int32(0)
	for i, id := range k.source {
		of, known := number[id]
		if id == noSession || !known {
			of, n = n, n+1
			number[id] = of
		}
		list[i] = of
	}
	return list
}

// firstPart tells of each row whether it is in the first of two parts of the trace. Conversations are in the part of
// their first row: those of the source where it names them, or else requests that each hold the prompt and the answer
// before.
func (k *keptRows) firstPart(isFirst func(row int64) bool) []bool {
	list, began := make([]bool, len(k.at)), map[int64]bool{}
	for row := range k.at {
		list[row] = isFirst(int64(row))
		if of := k.source[row]; of != noSession {
			if _, known := began[of]; !known {
				began[of] = list[row]
			}
			list[row] = began[of]
		} else if p := k.parent[row]; p >= 0 && k.in[row] >= k.in[p]+max(0, k.out[p]) {
			list[row] = list[p]
		}
	}
	return list
}
