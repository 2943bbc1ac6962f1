package token

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
)

// none is the rank of a pair of tokens that do not merge.
const none = 1<<32 - 1

// A slot of the hash table is an 11-bit tag taken from the hash, above a 21-bit id plus one. Zero is an empty slot.
const (
	idBits    = 21
	idMask    = 1<<idBits - 1
	tagShift  = 64 - (32 - idBits) // the tag is the top of the hash, the index its bottom
	maxTokens = 1 << 20            // o200k_base has 199,998, Gemma 3 has 262,145
)

// A vocab maps the bytes of a token to its id and back. The id is also the rank of the merge that makes the token,
// unless there is a list of merges.
//
// All tokens lie end to end in one string, found through an open-addressed table of four bytes a slot. A Go map from
// string to int takes twice the memory. Most look-ups are for pairs that do not merge, and the tag in the slot turns
// those away without touching the text.
type vocab struct {
	text   string   // every token, in id order
	off    []uint32 // token id is text[off[id]:off[id+1]]; an id that stands for nothing is empty
	slots  []uint32 // the pieces that are one token
	mask   uint64
	seed   maphash.Seed // of this process, so that no input can be made to collide
	single [256]uint32  // ids of the one-byte tokens
	// ranks of the unions of two bytes, by first byte then second, or none: the start of every merge
	double  [1 << 16]uint32
	longest int    // length of the longest token in bytes
	pairs   *pairs // the list of merges, or nil
	chars   bool   // pieces start as characters, and only those that are no token as bytes
}

func newVocab(text string, off []uint32) *vocab {
	return &vocab{text: text, off: off, seed: maphash.MakeSeed()}
}

// clear makes empty tables for the tokens in text.
func (v *vocab) clear() {
	size := 1
	for size < 2*v.len() {
		size *= 2
	}
	v.slots, v.mask = make([]uint32, size), uint64(size-1)
	for i := range v.single {
		v.single[i] = none
	}
	for i := range v.double {
		v.double[i] = none
	}
}

// insert puts a token into the table and reports whether it was new.
func (v *vocab) insert(t string, id uint32) bool {
	h := v.hash(t)
	if _, ok := v.find(t, h); ok {
		return false
	}
	i := h & v.mask
	for v.slots[i] != 0 {
		i = (i + 1) & v.mask
	}
	v.slots[i] = uint32(h>>tagShift)<<idBits | (id + 1)
	return true
}

// len is the number of tokens; ids run below it.
func (v *vocab) len() int { return len(v.off) - 1 }

// token is the bytes of an id below len.
func (v *vocab) token(id uint32) string { return v.text[v.off[id]:v.off[id+1]] }

func (v *vocab) hash(s string) uint64 { return maphash.String(v.seed, s) }

// find gives the id of s, whose hash is h.
func (v *vocab) find(s string, h uint64) (id uint32, ok bool) {
	tag := uint32(h >> tagShift)
	for i := h & v.mask; ; i = (i + 1) & v.mask {
		slot := v.slots[i]
		if slot == 0 {
			return none, false
		}
		if slot>>idBits == tag {
			if id := slot&idMask - 1; v.token(id) == s {
				return id, true
			}
		}
	}
}

// made is the id of a union by its rank.
func (v *vocab) made(rank uint32) uint32 {
	if v.pairs != nil {
		return v.pairs.made[rank]
	}
	return rank
}

// rank is the id of s, or none.
func (v *vocab) rank(s string) uint32 {
	switch {
	case len(s) == 2:
		return v.double[uint(s[0])<<8|uint(s[1])]
	case len(s) > v.longest:
		return none
	}
	id, _ := v.find(s, v.hash(s))
	return id
}

// A pairs is a list of merges: which neighbouring tokens become one, the earlier in the list the sooner.
//
// It is an open-addressed table of eight bytes a slot: the two ids above the rank plus one. Zero is an empty slot. A Go
// map takes three times the memory and twice the time.
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
	return &pairs{slots: make([]uint64, size), mask: uint64(size - 1), seed: rand.Uint64() | 1,
		made: make([]uint32, 0, merges)}
}

// add appends a merge. Of two merges of the same pair the later counts, as in the reference.
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
