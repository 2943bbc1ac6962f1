package profile

import (
	"cmp"
	"math"
	"slices"
)

// A capacity is a size of cache: whole blocks, and the memory in tokens that
// they fit into. A paged KV cache gives a partial block the room of a whole one.
// gib is the memory in GiB when it is a round number of these, and otherwise 0.
type capacity struct{ blocks, tokens, gib int64 }

const maxBlocks = 1 << 32

// inGiB is the memory of the capacity, or nil where that of a token is unknown.
func (c capacity) inGiB(kvBytes int64) *float64 {
	if c.gib > 0 {
		memory := float64(c.gib)
		return &memory
	}
	return inGiB(c.tokens, kvBytes)
}

// ofBlocks is the capacity of so many blocks. Its tokens are 0, unknown, with a
// size below 1, or one with which an int64 does not hold them.
func ofBlocks(blocks int64, size int) capacity {
	if size < 1 || blocks > math.MaxInt64/int64(size) {
		return capacity{blocks: blocks}
	}
	return capacity{blocks: blocks, tokens: blocks * int64(size)}
}

// listedCapacities lists, in ascending order, every capacity at which the LRU
// curve may be printed: 1k, 2k, 5k and so on blocks, with 30k between, and 1M,
// 2M, 5M and so on tokens, of which a cache fills whole blocks only; and when
// the memory of a token is known, 1, 2, 5 and so on GiB. Block numbers have 32
// bits, so nothing needs a larger cache than the last.
func listedCapacities(size int, kvBytes int64) []capacity {
	var list []capacity
	for _, n := range roundNumbers(1000, maxBlocks) {
		list = append(list, ofBlocks(n, size))
		if n == 20_000 {
			list = append(list, ofBlocks(30_000, size))
		}
	}
	if size >= 1 {
		most := min(maxBlocks, math.MaxInt64/10/int64(size)) * int64(size)
		for _, n := range roundNumbers(1_000_000, most) {
			list = append(list, capacity{blocks: n / int64(size), tokens: n})
		}
	}
	for _, n := range roundNumbers(1, 1<<32) {
		if size < 1 || kvBytes < 1 {
			break
		}
		tokens := n * gib / kvBytes
		list = append(list, capacity{tokens / int64(size), tokens, n})
		if tokens/int64(size) >= maxBlocks {
			break
		}
	}
	slices.SortFunc(list, func(a, b capacity) int {
		return cmp.Or(cmp.Compare(a.blocks, b.blocks), cmp.Compare(a.tokens, b.tokens))
	})
	list = slices.Compact(list)
	return slices.DeleteFunc(list, func(c capacity) bool { return c.blocks == 0 })
}

// roundNumbers lists 1, 2 and 5 times each power of 10 from first, itself a power
// of 10, up to the first number that is at least most.
func roundNumbers(first, most int64) []int64 {
	var list []int64
	for decade := first; ; decade *= 10 {
		for _, m := range []int64{1, 2, 5} {
			list = append(list, m*decade)
			if m*decade >= most {
				return list
			}
		}
	}
}

// upTo returns the capacities up to the first that holds all blocks.
func upTo(list []capacity, unique int64) []capacity {
	for i, c := range list {
		if c.blocks >= unique {
			return list[:i+1]
		}
	}
	return list
}

// denseCapacities lists 20 capacities a decade from 1 block up to all of them.
func denseCapacities(unique int64, size int) []capacity {
	var list []capacity
	for i := 0; ; i++ {
		c := int64(math.Round(math.Pow(10, float64(i)/20)))
		if c >= unique {
			break
		}
		list = append(list, ofBlocks(c, size))
	}
	return slices.Compact(append(list, ofBlocks(max(unique, 1), size)))
}
