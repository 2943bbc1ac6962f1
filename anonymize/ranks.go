package anonymize

import "math/bits"

// firsts marks, of a sequence of block references, those that are the first of
// their block, in 1.15 bits each, and counts the marks before any of them.
type firsts struct {
	pages [][]line
	n     int64  // references so far
	marks uint64 // among them
}

// A line is a cache line: the marks before it, and those of the next 448
// references.
type line [8]uint64

const (
	lineBits  = 7 * 64
	pageLines = 1 << 14
)

// add appends n references, which are all the first of their blocks or none of
// them. The number of the first's block is the number of firsts before it.
func (f *firsts) add(n int, first bool) {
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

// before counts the firsts before reference i, which was added.
func (f *firsts) before(i int64) uint64 {
	at := i / lineBits
	l, bit := &f.pages[at/pageLines][at%pageLines], i%lineBits
	n := l[0]
	for _, w := range l[1 : 1+bit/64] {
		n += uint64(bits.OnesCount64(w))
	}
	return n + uint64(bits.OnesCount64(l[1+bit/64]&(1<<(bit%64)-1)))
}
