package profile

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
)

// An lru is an LRU stack that tells how deep a block lies in it, which is the
// capacity from which on a cache would still hold it (Mattson, Gecsei, Slutz
// and Traiger: Evaluation techniques for storage hierarchies, 1970).
//
// Every touch puts its block at a new position, counted up; a bit stands at
// each position that is the latest of a block, and the depth of a block is the
// number of bits from its position on. A Fenwick tree counts them. Its leaves
// are lines of 512 bits and not single bits: the tree then takes an eighth of a
// byte for each position in place of four bytes, and stays in the processor's
// cache. When positions run out they are given anew in the same order, over
// twice as many as there are blocks, so memory follows the distinct blocks and
// not the references.
//
// Above limit blocks the stack keeps a sample. A block is in it when the hash
// of its number begins with shift zero bits, and stands for 2^shift blocks: one
// with d−1 blocks of the sample above it is expected to lie at depth
// (d−1)·2^shift + 1. This is SHARDS with a falling rate (Waldspurger, Park,
// Garthwaite and Ahmad: Efficient MRC construction with SHARDS, FAST'15), except
// that the paper scales d itself, which counts the block as 2^shift of its own.
type lru struct {
	limit int
	shift uint

	last []uint32          // by block: its position plus one; 0 when not in the stack
	far  map[uint32]uint32 // the same, in place of last, for a sample

	live int      // blocks in the stack
	next uint32   // the next free position
	bits []uint64 // by position
	tree []uint32 // Fenwick tree over lines, from 1
}

const (
	lineBits  = 512
	lineWords = lineBits / 64
	minLines  = 64 // 32,768 positions, 4 KiB
)

// sampleBlocks is how many blocks a sample holds at most. The paper finds mean
// errors below 0.01 with samples in 1 MB of memory; this takes about 40 MB.
const sampleBlocks = 1 << 20

// sampleParts is into how many disjoint parts a sample is cut, whose spread tells its error.
const sampleParts = 8

func newLRU(limit int) *lru {
	s := &lru{limit: min(limit, 1<<30)}
	s.resize(minLines)
	return s
}

func (s *lru) resize(lines int) {
	s.bits = make([]uint64, lines*lineWords)
	s.tree = make([]uint32, lines+1)
}

// clone copies the stack.
func (s *lru) clone() *lru {
	c := *s
	c.last = append([]uint32(nil), s.last...)
	c.bits = append([]uint64(nil), s.bits...)
	c.tree = append([]uint32(nil), s.tree...)
	c.far = maps.Clone(s.far)
	return &c
}

// sampled tells whether block id is in the sample; without one every block is.
func (s *lru) sampled(id uint32) bool {
	return inSample(uint64(id), s.shift)
}

// position returns the position of id plus one, or 0 when it is not held.
func (s *lru) position(id uint32) uint32 {
	if s.far != nil {
		return s.far[id]
	}
	if int(id) < len(s.last) {
		return s.last[id]
	}
	return 0
}

// depth returns how deep block id lies, from 1 for the block touched last. It
// is 0 for a block that is not held: never touched, or outside the sample.
func (s *lru) depth(id uint32) int {
	p := s.position(id)
	if p == 0 {
		return 0
	}
	return s.live - s.rank(p-1) + 1
}

// rank counts the bits at positions 0 to p.
func (s *lru) rank(p uint32) int {
	n := 0
	for i := p / lineBits; i > 0; i &= i - 1 {
		n += int(s.tree[i])
	}
	word := p / 64
	for _, w := range s.bits[p/lineBits*lineWords : word] {
		n += bits.OnesCount64(w)
	}
	return n + bits.OnesCount64(s.bits[word]<<(63-p%64))
}

// add changes the count of the line of position p.
func (s *lru) add(p uint32, delta uint32) {
	for i := p/lineBits + 1; int(i) < len(s.tree); i += i & -i {
		s.tree[i] += delta
	}
}

// touch moves block id to the top, or puts it there.
func (s *lru) touch(id uint32) {
	if !s.sampled(id) {
		return
	}
	if int(s.next) == len(s.bits)*64 {
		s.compact()
	}
	if p := s.position(id); p != 0 {
		s.clear(p - 1)
	}
	s.bits[s.next/64] |= 1 << (s.next % 64)
	s.add(s.next, 1)
	s.live++
	s.next++
	s.set(id, s.next)
}

func (s *lru) clear(p uint32) {
	s.bits[p/64] &^= 1 << (p % 64)
	s.add(p, ^uint32(0))
	s.live--
}

func (s *lru) set(id, p uint32) {
	if s.far != nil {
		s.far[id] = p
		return
	}
	if n := int(id) + 1 - len(s.last); n > 0 {
		s.last = append(s.last, make([]uint32, n)...)
	}
	s.last[id] = p
}

// compact gives the blocks the positions from 0 on, in their order, with as
// many free ones after them as there are blocks.
func (s *lru) compact() {
	for id, p := range s.last {
		if p != 0 {
			s.last[id] = uint32(s.rank(p - 1))
		}
	}
	for id, p := range s.far {
		s.far[id] = uint32(s.rank(p - 1))
	}
	s.resize(max(len(s.tree)-1, (2*s.live+lineBits-1)/lineBits))
	for p := range s.live {
		s.bits[p/64] |= 1 << (p % 64)
	}
	lines := len(s.tree) - 1
	for i := 1; i <= lines; i++ {
		for _, w := range s.bits[(i-1)*lineWords : i*lineWords] {
			s.tree[i] += uint32(bits.OnesCount64(w))
		}
	}
	for i := 1; i <= lines; i++ {
		if up := i + i&-i; up <= lines {
			s.tree[up] += s.tree[i]
		}
	}
	s.next = uint32(s.live)
}

// held lists the blocks of a sample, the one touched last at the end.
func (s *lru) held() []uint32 {
	return slices.SortedFunc(maps.Keys(s.far), func(a, b uint32) int { return cmp.Compare(s.far[a], s.far[b]) })
}

// full tells whether the stack holds more blocks than it may.
func (s *lru) full() bool { return s.live > s.limit }

// fitting is the least shift, above the one that it has, at which a sample is no larger than it may be.
func (s *lru) fitting() uint {
	var leave [65]int // blocks, by the shift at which they leave
	s.each(func(id, _ uint32) { leave[bits.LeadingZeros64(hashed(uint64(id)))+1]++ })
	shift := s.shift + 1
	for left := s.live - leave[shift]; left > sampleBlocks && shift < 64; left -= leave[shift] {
		shift++
	}
	return shift
}

// each visits the blocks with their positions plus one.
func (s *lru) each(visit func(id, p uint32)) {
	for id, p := range s.last {
		if p != 0 {
			visit(uint32(id), p)
		}
	}
	for id, p := range s.far {
		visit(id, p)
	}
}

// thin lowers the rate of the sample to one in 2^shift and drops the blocks that leave it.
func (s *lru) thin(shift uint) {
	s.shift = shift
	kept := map[uint32]uint32{}
	s.each(func(id, p uint32) {
		if s.sampled(id) {
			kept[id] = p
		} else {
			s.clear(p - 1)
		}
	})
	s.last, s.far = nil, kept
	s.limit = min(s.limit, sampleBlocks)
}
