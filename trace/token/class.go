package token

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// A class says to which sets of the split patterns a character belongs.
type class uint16

const (
	letter  class = 1 << iota // \p{L}
	number                    // \p{N}
	space                     // \s
	newline                   // [\r\n], which are space too
	upper                     // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], what a word of o200k begins with
	lower                     // [\p{Ll}\p{Lm}\p{Lo}\p{M}], what it goes on with
	other                     // [^\s\p{L}\p{N}]: punctuation, symbols, marks, controls, unassigned
	mark                      // \p{M}
	symbol                    // [\p{P}\p{S}]
)

// A classTable gives the class of every character, in pages of 256, most of which are the same page.
// The tables in package unicode are searched by bisection, once for each set, which is several times slower.
type classTable struct {
	ascii [utf8.RuneSelf]class
	page  [(utf8.MaxRune + 1) / 256]uint16
	pages [][256]class
}

// classes is built at the first use, in less than a millisecond.
var classes = sync.OnceValue(func() *classTable {
	all := make([]class, utf8.MaxRune+1)
	add := func(c class, tables ...*unicode.RangeTable) {
		for _, t := range tables {
			for _, r := range t.R16 {
				for x := uint32(r.Lo); x <= uint32(r.Hi); x += uint32(r.Stride) {
					all[x] |= c
				}
			}
			for _, r := range t.R32 {
				for x := r.Lo; x <= r.Hi; x += r.Stride {
					all[x] |= c
				}
			}
		}
	}
	add(letter, unicode.L)
	add(number, unicode.N)
	add(space, unicode.White_Space)
	add(upper, unicode.Lu, unicode.Lt, unicode.Lm, unicode.Lo, unicode.M)
	add(lower, unicode.Ll, unicode.Lm, unicode.Lo, unicode.M)
	add(mark, unicode.M)
	add(symbol, unicode.P, unicode.S)
	all['\r'] |= newline
	all['\n'] |= newline
	for i, c := range all {
		if c&(letter|number|space) == 0 {
			all[i] |= other
		}
	}
	// Pages with the same classes are stored once.
	t := &classTable{ascii: [utf8.RuneSelf]class(all)}
	seen := make(map[[256]class]uint16)
	for i := range t.page {
		page := [256]class(all[i*256:])
		at, ok := seen[page]
		if !ok {
			at = uint16(len(t.pages))
			seen[page] = at
			t.pages = append(t.pages, page)
		}
		t.page[i] = at
	}
	return t
})

// at gives the class and the length in bytes of the character at s[i].
func (t *classTable) at(s string, i int) (class, int) {
	if b := s[i]; b < utf8.RuneSelf {
		return t.ascii[b], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return t.pages[t.page[r>>8]][byte(r)], n
}

// run gives the end of the longest run from s[i] of characters that are in one of the sets.
func (t *classTable) run(s string, i int, sets class) int {
	for i < len(s) {
		if b := s[i]; b < utf8.RuneSelf {
			if t.ascii[b]&sets == 0 {
				break
			}
			i++
			continue
		}
		c, n := t.at(s, i)
		if c&sets == 0 {
			break
		}
		i += n
	}
	return i
}
