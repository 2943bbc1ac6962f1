package anonymize

import (
	"errors"

	"reprise/trace/block"
)

// The blocks of a row that is with the sorter are words; the low bits of each
// tell what it stands for:
//
//	00  a block by its provisional number; one by its number comes before all others
//	01  the first half of a key, without its top bits; the second half follows
//	11  the second half of a key, when it is below 1<<62; the first is that of
//	    the last key in two words, or 0 before any
//	10  so many more blocks, each with the key, or the number, before it plus one
//
// Ids of a source's own differ in the second half only, and most sources number
// them by first appearance, so that what is new in a prompt counts up: a row of
// these takes a few short words. What follows works on such runs as they are,
// and a hashed id is a run of one.
const (
	wordNumber = 0
	wordKey    = 1
	wordRun    = 2
	wordAgain  = 3
	wordMask   = 3
	wordBits   = 2
)

// A key is 126 bits that tell a block from all others.
type key struct{ hi, lo uint64 }

func newKey(hi, lo uint64) key { return key{hi << wordBits >> wordBits, lo} }

// plus is the key that is n further on.
func (k key) plus(n int) key { return key{k.hi, k.lo + uint64(n)} }

// A keyWriter makes words of the keys of one list of blocks. It begins as the
// zero keyWriter.
type keyWriter struct {
	last key
	any  bool // there is a last one
	run  bool // it is in the run that the last word counts
	next int  // the last number plus one; 0 before any
}

// number appends a block by its number.
func (w *keyWriter) number(dst []uint64, n int) []uint64 {
	again := w.next == n && n > 0
	w.next = n + 1
	switch {
	case again && w.run:
		dst[len(dst)-1] += 1 << wordBits
		return dst
	case again:
		w.run = true
		return append(dst, 1<<wordBits|wordRun)
	}
	w.run = false
	return append(dst, uint64(n)<<wordBits)
}

// appendNumbers appends the numbers of a list that has no keys.
func appendNumbers(dst, words []uint64) ([]uint64, error) {
	for _, w := range words {
		switch {
		case w&wordMask == wordNumber:
			dst = append(dst, w>>wordBits)
		case w&wordMask == wordRun && len(dst) > 0:
			n := dst[len(dst)-1]
			for range w >> wordBits {
				n++
				dst = append(dst, n)
			}
		default:
			return dst, errWords
		}
	}
	return dst, nil
}

// append appends a key to the words of a list.
func (w *keyWriter) append(dst []uint64, k key) []uint64 {
	before := w.last
	w.last = k
	if w.any && k == before.plus(1) {
		if w.run {
			dst[len(dst)-1] += 1 << wordBits
			return dst
		}
		w.run = true
		return append(dst, 1<<wordBits|wordRun)
	}
	w.any, w.run = true, false
	if k.hi == before.hi && k.lo>>(64-wordBits) == 0 {
		return append(dst, k.lo<<wordBits|wordAgain)
	}
	return append(dst, k.hi<<wordBits|wordKey, k.lo)
}

var errWords = errors.New("the spilled blocks do not match the rows")

// A keyReader reads the blocks of one list.
type keyReader struct {
	words    []uint64
	numbered *block.IDs // what the provisional numbers stand for
	hi       uint64     // first half of the last key in two words
	at       key        // of the next block of a run…
	left     uint64     // …that has so many more
	number   int        // of that block, where it is a run of numbers
	isNumber bool
}

// A stretch is so many blocks that keys name which count up one by one. It ends
// where the keys of a field end, so that all of it is in one partition. Fields are long, so that
// new blocks of row after row go to one partition, whose place in memory is near then; and short
// enough that a partition has many of them, and all partitions are about as large.
const (
	fieldBits = 10
	fieldKeys = 1 << fieldBits
)

// nextStretch returns the next stretch of blocks and the key of its first; n is 0 at
// the end.
func (r *keyReader) nextStretch() (k key, n int, err error) {
	if r.left == 0 {
		if len(r.words) == 0 {
			return key{}, 0, nil
		}
		if err := r.start(); err != nil {
			return key{}, 0, err
		}
	}
	more := r.left
	if r.isNumber {
		hi, lo, same := r.numbered.Stretch(r.number)
		r.at, more = newKey(hi, lo), min(more, uint64(same))
	}
	k, n = r.at, int(min(more, fieldKeys-r.at.lo%fieldKeys))
	r.at, r.number = k.plus(n), r.number+n
	r.left -= uint64(n)
	return k, n, nil
}

// start reads a block and the run after it.
func (r *keyReader) start() error {
	w := r.words[0]
	r.words = r.words[1:]
	r.left, r.isNumber = 1, w&wordMask == wordNumber
	switch {
	case r.isNumber:
		r.number = int(w >> wordBits)
	case w&wordMask == wordAgain:
		r.at = key{r.hi, w >> wordBits}
	case w&wordMask == wordKey && len(r.words) > 0:
		r.hi = w >> wordBits
		r.at = key{r.hi, r.words[0]}
		r.words = r.words[1:]
	default:
		return errWords
	}
	if len(r.words) > 0 && r.words[0]&wordMask == wordRun {
		r.left += r.words[0] >> wordBits
		r.words = r.words[1:]
	}
	return nil
}
