package block

import (
	"math/bits"
	"math/rand/v2"
)

// Dense numbers keys 0, 1, 2… in the order of their first appearance. It is for one goroutine.
type Dense[K comparable] struct{ ids map[K]uint64 }

// NewDense makes an empty numbering.
func NewDense[K comparable]() *Dense[K] { return &Dense[K]{ids: make(map[K]uint64)} }

// ID is the number of k, the next free one when k is new.
func (d *Dense[K]) ID(k K) uint64 {
	id, ok := d.ids[k]
	if !ok {
		id = uint64(len(d.ids))
		d.ids[k] = id
	}
	return id
}

// Len is how many keys have been numbered.
func (d *Dense[K]) Len() int { return len(d.ids) }

// IDs numbers as [Dense] does, for keys of 128 bits and up to a limit, beyond which new keys get no number. A key costs 24 to
// 48 bytes. The hash is seeded, so that no input can be made to collide.
type IDs struct {
	limit int
	keys  []key128
	slots []slot // open addressing with linear probing, at most half full
	seed  key128
}

type key128 struct{ hi, lo uint64 }

// A slot is the upper half of a key's hash above its number plus one; 0 is an empty slot.
type slot uint64

// maxIDs is how many numbers a slot has room for.
const maxIDs = 1<<32 - 2

// NewIDs makes an empty numbering of up to limit keys; a limit below 1 means the greatest, 2^32-2.
func NewIDs(limit int) *IDs {
	if limit < 1 || limit > maxIDs {
		limit = maxIDs
	}
	return &IDs{limit: limit, slots: make([]slot, 1<<10), seed: key128{rand.Uint64(), rand.Uint64()}}
}

// ID is the number of the key hi, lo. It is not ok when the key is new and there are as many as the limit.
func (d *IDs) ID(hi, lo uint64) (n int, ok bool) {
	k := key128{hi, lo}
	h := d.hash(k)
	mask := uint64(len(d.slots) - 1)
	i := h & mask
	for ; d.slots[i] != 0; i = (i + 1) & mask {
		if s := uint64(d.slots[i]); s>>32 == h>>32 {
			if n := int(uint32(s)) - 1; d.keys[n] == k {
				return n, true
			}
		}
	}
	n = len(d.keys)
	if n >= d.limit {
		return 0, false
	}
	d.keys = append(d.keys, k)
	d.slots[i] = slot(h>>32<<32 | uint64(n+1))
	if 2*len(d.keys) > len(d.slots) {
		d.grow()
	}
	return n, true
}

// hash folds a product of the halves of the key, each masked by half of the seed.
func (d *IDs) hash(k key128) uint64 {
	hi, lo := bits.Mul64(k.hi^d.seed.hi, k.lo^d.seed.lo)
	return hi ^ lo
}

func (d *IDs) grow() {
	d.slots = make([]slot, 2*len(d.slots))
	mask := uint64(len(d.slots) - 1)
	for n, k := range d.keys {
		h := d.hash(k)
		i := h & mask
		for d.slots[i] != 0 {
			i = (i + 1) & mask
		}
		d.slots[i] = slot(h>>32<<32 | uint64(n+1))
	}
}

// Key is the key with the number n, which must have been given.
func (d *IDs) Key(n int) (hi, lo uint64) { return d.keys[n].hi, d.keys[n].lo }

// Freeze gives up what is needed to number, half of the memory or more: after it, only Key and Len may be called.
func (d *IDs) Freeze() { d.slots = nil }

// Len is how many keys have been numbered.
func (d *IDs) Len() int { return len(d.keys) }

// Clear forgets all keys and keeps the memory for others.
func (d *IDs) Clear() {
	d.keys = d.keys[:0]
	clear(d.slots)
}
