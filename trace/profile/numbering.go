package profile

import (
	"errors"
	"math"

	"reprise/trace/sample"
)

// A numbering numbers blocks from 0 by first appearance, up to a bound. Any further block
// goes by its id, behind these numbers, which takes no memory. That takes ids about as small
// as there are blocks, as import gives them: sets of blocks are bitsets.
//
// Memory: none for the first blocks whose ids are their numbers already, 4 bytes for each other of those before the
// bound; some 40 for one whose id is far larger than
// there are blocks.
type numbering struct {
	bound int
	same  uint32   // ids below it are their own numbers
	to    []uint32 // by id: number plus one; 0 is unseen
	far   map[uint64]uint32
	next  int   // number
	later int64 // references to blocks that have none
}

// errSparse refuses ids that take a map without bound.
var errSparse = errors.New("the trace has too many distinct blocks for ids that are so far above their number: " +
	"reprise slice TRACE -o NEW numbers them anew")

// beyond tells whether blocks were seen that have no number of their own.
func (n *numbering) beyond() bool { return n.later > 0 }

// number is that of a block.
func (n *numbering) number(id uint64) (uint32, error) {
	if id < uint64(n.same) {
		return uint32(id), nil
	}
	if id < uint64(len(n.to)) && n.to[id] != 0 {
		return n.to[id] - 1, nil
	}
	if number, ok := n.far[id]; ok {
		return number, nil
	}
	if n.next >= n.bound {
		n.later++
		if id > math.MaxUint32-uint64(n.bound) || id > 1<<20+8*(uint64(n.later)+uint64(n.next)) {
			return 0, errSparse
		}
		return uint32(n.bound) + uint32(id), nil
	}
	number := uint32(n.next)
	n.next++
	if id == uint64(number) && n.same == number {
		n.same++
		return number, nil
	}
	if id > 1<<20+8*uint64(n.next) { // one huge id cannot claim memory for all below it
		if n.far == nil {
			n.far = map[uint64]uint32{}
		}
		n.far[id] = number
		return number, nil
	}
	if id >= uint64(len(n.to)) {
		n.to = append(n.to, make([]uint32, id+1-uint64(len(n.to)))...)
	}
	n.to[id] = number + 1
	return number, nil
}

// An idSet is a set of blocks by their ids: a bit for each where ids are about as small as
// their number, else an entry of a map.
type idSet struct {
	bits []uint64
	far  map[uint64]struct{}
	n    uint64
}

func (s *idSet) has(id uint64) bool {
	if id/64 < uint64(len(s.bits)) && s.bits[id/64]>>(id%64)&1 != 0 {
		return true
	}
	_, ok := s.far[id] // also one that came before the bits went so far
	return ok
}

func (s *idSet) put(id uint64) {
	s.n++
	if id > 1<<23+64*s.n {
		if s.far == nil {
			s.far = map[uint64]struct{}{}
		}
		s.far[id] = struct{}{}
		return
	}
	if n := id/64 + 1; n > uint64(len(s.bits)) {
		s.bits = append(s.bits, make([]uint64, n-uint64(len(s.bits)))...)
	}
	s.bits[id/64] |= 1 << (id % 64)
}

// hashed is the hash that chooses blocks for samples: the leading bits say whether a block is
// in one, and the last ones to which of its parts it belongs.
func hashed(id uint64) uint64 { return sample.Mix64((id + 1) * sample.Golden) }

// inSample tells whether a block or session is in a sample of one in 2^shift.
func inSample(id uint64, shift uint) bool { return shift == 0 || hashed(id)>>(64-shift) == 0 }

// A sampleOf keeps something of a sample of blocks or sessions, which is thinned when it
// grows above a limit: half of them are dropped, by their hashes, and each of the others
// stands for twice as many. The zero value keeps all.
type sampleOf[V any] struct {
	limit int
	shift uint
	held  map[uint64]V
}

// has tells whether one is in the sample, held or not yet.
func (s *sampleOf[V]) has(id uint64) bool { return inSample(id, s.shift) }

// weight is how many each stands for.
func (s *sampleOf[V]) weight() int64 { return 1 << s.shift }

// put keeps v of one that is in the sample.
func (s *sampleOf[V]) put(id uint64, v V) {
	if s.held == nil {
		s.held = map[uint64]V{}
	}
	s.held[id] = v
	for len(s.held) > s.limit && s.shift < 63 {
		s.shift++
		for id := range s.held {
			if !s.has(id) {
				delete(s.held, id)
			}
		}
	}
}
