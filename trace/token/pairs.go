package token

import (
	"math/bits"
	"math/rand/v2"
)

// Pairs is a list of merges: which neighbouring tokens become one, the earlier in the list the sooner.
//
// It is an open-addressed table of eight bytes a slot: the two ids above the rank plus one. Zero is an empty slot. A Go map
// takes three times the memory and twice the time.
type pairs struct {
	slots []uint64
	mask  uint64
	seed  uint64   // of this process, so that no file can be made to collide
	made  []uint32 // by rank: the id of the union
}

const (
	rankBits  = 24
	rankMask  = 1<<rankBits - 1
	maxMerges = 1 << 22 // Gemma has 580,604
)

func newPairs(merges int) *pairs {
	size := 1 << bits.Len(uint(merges+merges/2)) // at most two thirds full
	return &pairs{slots: make([]uint64, size), mask: uint64(size - 1), seed: rand.Uint64() | 1, made: make([]uint32, 0, merges)}
}

// add puts a merge behind all others. Of two merges of the same pair the later stands, as in the reference.
func (p *pairs) add(left, right, made uint32) {
	key := pairKey(left, right)
	i := p.slot(key)
	p.slots[i] = key | uint64(len(p.made)+1)
	p.made = append(p.made, made)
}

// rank is the place in the list of the merge of two tokens, or none.
func (p *pairs) rank(left, right uint32) uint32 {
	if s := p.slots[p.slot(pairKey(left, right))]; s != 0 {
		return uint32(s&rankMask) - 1
	}
	return none
}

// slot finds the slot of a pair, or the empty one where it belongs.
func (p *pairs) slot(key uint64) uint64 {
	h, l := bits.Mul64(key^0x9e3779b97f4a7c15, p.seed)
	i := (h ^ l) & p.mask
	for s := p.slots[i]; s != 0 && s&^rankMask != key; s = p.slots[i] {
		i = (i + 1) & p.mask
	}
	return i
}

func pairKey(left, right uint32) uint64 {
	return uint64(left)<<(64-20) | uint64(right)<<rankBits
}
