package token

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// nfc gives Unicode's normal form C. Package norm does, but puts a joiner, U+034F, into every run of more than thirty
// combining marks, as the Stream-Safe Text Format has it; the reference does not. No normal form adds or takes away
// that character, so a second count of it shows where this happened.
func nfc(s string) string {
	const joiner = "\u034f"
	n := norm.NFC.String(s)
	if n == s || strings.Count(n, joiner) == strings.Count(s, joiner) {
		return n
	}
	return composed(s)
}

// composed gives normal form C without package norm's limit on marks.
func composed(s string) string {
	// Normal form D: each character decomposed by itself, then the marks between two starters sorted by class.
	var d []rune
	for _, r := range s {
		d = append(d, []rune(norm.NFD.String(string(r)))...)
	}
	for i := 0; i < len(d); i++ {
		end := i
		for end < len(d) && combining(d[end]) != 0 {
			end++
		}
		slices.SortStableFunc(d[i:end], func(a, b rune) int { return combining(a) - combining(b) })
		i = end
	}
	// Then each character joins the last starter before it where the two have a composite, unless one of its own class
	// or a higher stands between (Unicode Standard Annex 15, section 1.3).
	out := d[:0]
	starter, last := -1, -1 // class of the last between; -1 for none
	for _, r := range d {
		class := combining(r)
		if starter >= 0 && last < class {
			pair := norm.NFC.String(string([]rune{out[starter], r}))
			if c, n := utf8.DecodeRuneInString(pair); n == len(pair) {
				out[starter] = c
				continue
			}
		}
		if last = class; class == 0 {
			starter, last = len(out), -1
		}
		out = append(out, r)
	}
	return string(out)
}

// combining is the canonical combining class; a starter has 0.
func combining(r rune) int { return int(norm.NFC.PropertiesString(string(r)).CCC()) }
