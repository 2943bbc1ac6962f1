package block

import "math/bits"

// Bits are a sequence of bits in 1.15 bits of memory each. They count the set bits before any
// bit. A set bit marks the first reference to a block, say, or a block in which a hit ends.
type Bits struct {
	pages [][]line
	n     int64  // bits so far
	marks uint64 // that are set among them
}

// Len is how many bits were added.
func (f *Bits) Len() int64 { return f.n }

// Marks is how many of them are set.
func (f *Bits) Marks() uint64 { return f.marks }

// A line is a cache line: the set bits before it, and the next 448 bits.
type line [8]uint64

const (
	lineBits  = 7 * 64
	pageLines = 1 << 14
)

// Add appends n bits, all set or none. Of block references, the number of the first's block is the
// number of firsts before it.
func (f *Bits) Add(n int, first bool) {
	for n > 0 {
		at := f.n / lineBits
		page := at / pageLines
		if page == int64(len(f.pages)) {
			f.pages = append(f.pages, make([]line, pageLines))
		}
		l, bit := &f.pages[page][at%pageLines], f.n%lineBits
		if bit == 0 {
			l[0] = f.marks
		}
		m := min(n, int(64-bit%64)) // within a word
		if first {
			l[1+bit/64] |= (1<<m - 1) << (bit % 64)
			f.marks += uint64(m)
		}
		f.n += int64(m)
		n -= m
	}
}

// Set sets bit i. Nothing may be added then, and [Bits.Before] is known after Count.
func (f *Bits) Set(i int64) {
	at := i / lineBits
	for int64(len(f.pages)) <= at/pageLines {
		f.pages = append(f.pages, make([]line, pageLines))
	}
	f.pages[at/pageLines][at%pageLines][1+i%lineBits/64] |= 1 << (i % lineBits % 64)
}

// Count counts the bits that are set.
func (f *Bits) Count() uint64 {
	f.marks = 0
	for _, page := range f.pages {
		for i := range page {
			page[i][0] = f.marks
			for _, w := range page[i][1:] {
				f.marks += uint64(bits.OnesCount64(w))
			}
		}
	}
	return f.marks
}

// From gives bit i and those behind it in its word, the lowest first, and how many these are.
func (f *Bits) From(i int64) (bits uint64, n int) {
	at, bit := i/lineBits, i%lineBits
	if n = int(64 - bit%64); at/pageLines < int64(len(f.pages)) {
		bits = f.pages[at/pageLines][at%pageLines][1+bit/64] >> (bit % 64)
	}
	return bits, n
}

// Before counts the set bits before bit i, which was added or set.
func (f *Bits) Before(i int64) uint64 {
	at := i / lineBits
	l, bit := &f.pages[at/pageLines][at%pageLines], i%lineBits
	n := l[0]
	for _, w := range l[1 : 1+bit/64] {
		n += uint64(bits.OnesCount64(w))
	}
	return n + uint64(bits.OnesCount64(l[1+bit/64]&(1<<(bit%64)-1)))
}
