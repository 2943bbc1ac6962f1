package anonymize

import (
	"errors"

	"reprise/trace/block"
)

// A block in a row that is with the sorter is one or two words; the low bits
// of the first tell which:
//
//	00  its provisional number
//	01  the first half of its key, without its top bits; the second half follows
//	11  the second half of its key, when it is below 1<<62; the first is that of
//	    the last key in two words, or 0 before any
//
// Ids of a source's own, which differ in the second half only, are so one short
// word each.
const (
	wordKey   = 1
	wordAgain = 3
	wordBits  = 2
)

// A key is 126 bits that tell a block from all others.
type key struct{ hi, lo uint64 }

func newKey(hi, lo uint64) key { return key{hi << wordBits >> wordBits, lo} }

// A keyCode writes or reads the keys of one list of blocks. It begins as the
// zero keyCode.
type keyCode struct {
	hi uint64 // first half of the last key in two words
}

// append appends a key to the words of a list.
func (c *keyCode) append(dst []uint64, k key) []uint64 {
	if c.hi == k.hi && k.lo>>(64-wordBits) == 0 {
		return append(dst, k.lo<<wordBits|wordAgain)
	}
	c.hi = k.hi
	return append(dst, k.hi<<wordBits|wordKey, k.lo)
}

var errWords = errors.New("the spilled blocks are not those of the rows")

// next takes the first block of words. Numbers are those of numbered.
func (c *keyCode) next(words []uint64, numbered *block.IDs) (key, []uint64, error) {
	switch w := words[0]; {
	case w&wordKey == 0:
		return newKey(numbered.Key(int(w >> wordBits))), words[1:], nil
	case w&wordAgain == wordAgain:
		return key{c.hi, w >> wordBits}, words[1:], nil
	case len(words) > 1:
		c.hi = w >> wordBits
		return key{c.hi, words[1]}, words[2:], nil
	}
	return key{}, nil, errWords
}
