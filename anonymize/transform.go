package anonymize

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"math/bits"
	"sort"

	"reprise/trace"
	"reprise/trace/block"
)

// A transformer makes the rows of a release.
type transformer struct {
	*release
	c     *collector
	times retimer

	turns      bySession[int32] // by released session: those so far
	suppressed []int64          // rows that are left out, in their order
	one        [1]trace.Request
	parents    []int64
	words      []uint64
	input      int64
	output     int64
	cut        int64 // blocks that a shorter length cost
	own        ownBlocks
}

// addRow releases the next row, or leaves it out.
func (t *transformer) addRow(row int64, q *trace.Request) error {
	shown, ok := t.merging.shown[t.cellOf(q)]
	if !ok {
		t.suppressed = append(t.suppressed, row)
		return nil
	}
	s := &t.counts
	in, out := t.buckets.middle(shown.in), t.buckets.middle(shown.out)
	t.input, t.output = t.input+in, t.output+out
	r := trace.Request{
		ArrivalNS: t.times.arrival(q.ArrivalNS, q.Session), Parents: t.kept(row, q.Parents), Session: q.Session, Turn: q.Turn,
		ThinkNS: t.pause(q.ThinkNS), ToolNS: t.pause(q.ToolNS),
		Model: s.labelOf(columnModel, q.Model), Adapter: s.labelOf(columnAdapter, q.Adapter),
		Kind: s.labelOf(columnKind, q.Kind), Status: s.labelOf(columnStatus, q.Status),
		InputTokens: int32(in), OutputTokens: int32(out),
	}
	if q.Class != nil {
		r.Class = trace.Ptr(s.labelOf(columnClass, *q.Class))
	}
	if t.links != nil {
		segment := int64(t.links.segment[row])
		r.Session, r.Turn = nil, nil
		if segment >= 0 {
			r.Session = &segment
		}
		if segment < 0 || t.turns.get(segment) == 0 { // the first turn of a session waits for nobody
			r.Parents, r.ThinkNS, r.ToolNS = nil, nil, nil
		}
	}
	switch {
	case !t.sourced():
		r.Session, r.Turn = nil, nil // inferred anew from what is released, if at all
	case r.Session != nil:
		turn := t.turns.get(*r.Session)
		r.Turn = &turn // without a gap where one was left out
		t.turns.set(*r.Session, turn+1)
	}
	if len(q.Blocks) > 0 {
		r.Blocks = t.blocks(row, q, block.Count(int(in), t.src.Meta.BlockSize))
	}
	t.c.refs += int64(block.Count(int(in), max(t.src.Meta.BlockSize, 1)))
	if t.p.watch != nil {
		t.p.watch(row, r.ArrivalNS)
	}
	t.one[0] = r
	_, err := t.c.sorter.Write(t.one[:])
	return err
}

// kept are the parents that are released and linked to the row, by where they
// stand among what is released.
func (t *transformer) kept(row int64, parents []int64) []int64 {
	t.parents = t.parents[:0]
	for _, p := range parents {
		if !t.links.linked(row, p) {
			continue
		}
		i := sort.Search(len(t.suppressed), func(i int) bool { return t.suppressed[i] >= p })
		if i == len(t.suppressed) || t.suppressed[i] != p {
			t.parents = append(t.parents, p-int64(i))
		}
	}
	return t.parents
}

// pause puts a pause into a bucket of whole quanta; one below a quantum is half
// of one.
func (t *transformer) pause(ns *int64) *int64 {
	if ns == nil {
		return nil
	}
	quantum := int64(t.p.Quantum)
	n := min(max(*ns, 0)/quantum, math.MaxInt32)
	if n == 0 {
		return trace.Ptr(quantum / 2)
	}
	return trace.Ptr(t.buckets.middle(t.buckets.bucketOf(n)) * quantum)
}

// Keys of blocks: those of several units as they are, those of few for each unit,
// and those that only fill a list up.
const fillerKey = 1 << 61

// blocks are n words for the blocks of a row: what it shares, and after it
// blocks that come once, so that their number says no more than the bucket does.
func (t *transformer) blocks(row int64, q *trace.Request, n int) []uint64 {
	unit, _ := t.unitOf(row, q)
	t.c.code, t.words = keyWriter{}, t.words[:0]
	kept := min(len(q.Blocks), n)
	t.cut += int64(len(q.Blocks) - kept)
	if t.p.DropOwn {
		kept = t.sharing.leading(q.Blocks[:kept])
	}
	// A request has no past. Its blocks may be counted by users, and those that one user
	// has are split like those of few: else one's own requests would say which it is.
	request := t.p.Unit == UnitRequest
	if !request {
		t.own.add(t.sharing, unit, q.Blocks[:kept])
	}
	for _, b := range q.Blocks[:kept] {
		hi := uint64(0)
		if s := t.sharing.stateOf(b); s == sharedByFew || request && s == sharedByNone {
			hi = unit + 1
		}
		t.words = t.c.word(t.words, hi, b)
	}
	for i := kept; i < n; i++ {
		t.words = t.c.word(t.words, fillerKey|uint64(row), uint64(i))
	}
	return t.words
}

// A retimer replaces instants by others of the same bin, drawn uniformly, so that
// no more of an instant is left than the bin it was in. Turns of a session keep
// their order.
type retimer struct {
	quantum int64 // ns
	end     int64 // ns, of the last bin, which may be a short one; 0 for none
	noise   *bufio.Reader
	last    bySession[int64] // the instant after the last one that came out
	buf     [8]byte
	err     error
}

// arrival draws an instant in the bin of ns.
func (t *retimer) arrival(ns int64, session *int64) int64 {
	from := ns - ns%t.quantum
	to := from + t.quantum
	if t.end > 0 {
		to = min(to, max(t.end, ns+1))
	}
	if session != nil {
		from = max(from, t.last.get(*session))
	}
	if from >= to { // a bin cannot hold more turns than it has nanoseconds
		from = to - 1
	}
	// Lemire's method draws below to-from: the high half of a product, redrawn where
	// some values would come up more often than others.
	at := from
	for n := uint64(to - from); ; {
		if _, err := io.ReadFull(t.noise, t.buf[:]); err != nil {
			t.err = err
			break
		}
		if hi, lo := bits.Mul64(binary.LittleEndian.Uint64(t.buf[:]), n); lo >= -n%n {
			at += int64(hi)
			break
		}
	}
	if session != nil {
		t.last.set(*session, at+1)
	}
	return at
}
