package engine

import "math/bits"

// blockKeys finds blocks by their keys: a hash table with open addressing, whose slots
// are so dealt out that the blocks of one prompt, which are looked up one after another,
// lie side by side in memory.
type blockKeys struct {
	keys  []uint64 // key + 1; 0 is a free slot
	nodes []int32
	count int
	shift uint // of the keys of a trace, in tokens: what one block of the engine spans
}

// neighbours is how many blocks of a prompt lie side by side.
const neighbours = 32

func newBlockKeys(blockSize int) blockKeys {
	return blockKeys{keys: make([]uint64, 2*neighbours), nodes: make([]int32, 2*neighbours),
		shift: uint(bits.Len(uint(blockSize)) - 1)}
}

// home is the slot at which the search for a key begins.
func (t *blockKeys) home(key uint64) int {
	at := key
	if key&privateKey == 0 {
		at >>= t.shift
	}
	group := (at / neighbours) * 0x9e3779b97f4a7c15 // of Knuth's multiplicative hashing: 2^64 ÷ the golden ratio
	group ^= group >> 32
	return int((group*neighbours + at%neighbours) & uint64(len(t.keys)-1))
}

// slot is that of a key, or the free one where it would be put.
func (t *blockKeys) slot(key uint64) int {
	i := t.home(key)
	for t.keys[i] != 0 && t.keys[i] != key+1 {
		i = (i + 1) & (len(t.keys) - 1)
	}
	return i
}

// find returns the block under key, or keyless.
func (t *blockKeys) find(key uint64) int32 {
	if i := t.slot(key); t.keys[i] != 0 {
		return t.nodes[i]
	}
	return keyless
}

// put adds a block under a key at the free slot that slot returned for it.
func (t *blockKeys) put(slot int, key uint64, n int32) {
	t.keys[slot], t.nodes[slot] = key+1, n
	if t.count++; t.count > len(t.keys)/4 {
		t.grow()
	}
}

// grow doubles the table.
func (t *blockKeys) grow() {
	old := *t
	t.keys, t.nodes = make([]uint64, 2*len(old.keys)), make([]int32, 2*len(old.keys))
	for i, k := range old.keys {
		if k != 0 {
			to := t.slot(k - 1)
			t.keys[to], t.nodes[to] = k, old.nodes[i]
		}
	}
}

// remove takes a key out, and moves those that were put behind it for want of a place, so
// that no search ends too early (Knuth, The Art of Computer Programming, volume 3, 6.4,
// algorithm R).
func (t *blockKeys) remove(key uint64) {
	free := t.slot(key)
	if t.keys[free] == 0 {
		return
	}
	t.count--
	mask := len(t.keys) - 1
	for i := (free + 1) & mask; t.keys[i] != 0; i = (i + 1) & mask {
		// It may move unless its home lies between the free slot and where it is.
		if home := t.home(t.keys[i] - 1); (i-home)&mask >= (i-free)&mask {
			t.keys[free], t.nodes[free] = t.keys[i], t.nodes[i]
			free = i
		}
	}
	t.keys[free] = 0
}
