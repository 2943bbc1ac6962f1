package audit

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// window is how many characters of a planted string in a row are a hit: readers
// and writers of files cut values, at 64 bytes or so, and a column index may add
// one to the last of them.
const window = 10

// A Scanner looks for planted strings in streams of bytes, by every window of 10
// characters that they have: as they are and case-folded, in UTF-16 of either
// order, in hex, and in base64 of any alignment and either alphabet.
//
// For strings of random base32 a window has 50 bits, so that text that looks as
// random gives a false alarm in one of 2^50 places for each window: see
// [Scanner.FalseAlarms].
type Scanner struct {
	strings []string
	numbers map[uint64]int // values that were planted
	windows int
	longest int // bytes of a pattern
	folded  index
	exact   index // of base64, which tells cases apart
}

// A pattern is one spelling of a window of a planted string.
type pattern struct {
	bytes string
	of    int // which string
}

// An index finds patterns by their last bytes.
type index struct {
	some  []uint64 // bits by a hash of the key: most places are none
	found map[uint64][]pattern
}

const (
	keyBytes = 8
	someBits = 20
)

func (x *index) add(p pattern) {
	k := uint64(0) // the last bytes, as the register of a scan has them
	for i := len(p.bytes) - keyBytes; i < len(p.bytes); i++ {
		k = k<<8 | uint64(p.bytes[i])
	}
	if x.found == nil {
		x.found, x.some = map[uint64][]pattern{}, make([]uint64, 1<<someBits/64)
	}
	if slices.Contains(x.found[k], p) {
		return
	}
	x.found[k] = append(x.found[k], p)
	h := hashOf(k)
	x.some[h/64] |= 1 << (h % 64)
}

func hashOf(k uint64) uint64 { return k * 0x9e3779b97f4a7c15 >> (64 - someBits) }

// NewScanner makes a scanner for planted strings of 10 bytes or more. One of
// digits alone is a number: it is looked for among decoded values and, where 5
// digits or more, as a decimal number in text.
func NewScanner(planted []string) (*Scanner, error) {
	s := &Scanner{strings: planted, numbers: map[uint64]int{}}
	for i, p := range planted {
		if n, ok := number(p); ok {
			s.numbers[n] = i
			continue
		}
		if len(p) < window {
			return nil, fmt.Errorf("canary %d is shorter than %d bytes, so it would match by chance: use a longer one",
				i+1, window)
		}
		if len(p) > 1<<16 {
			return nil, fmt.Errorf("canary %d is longer than %d bytes", i+1, 1<<16)
		}
		for at := 0; at+window <= len(p); at++ {
			s.addWindow(p[at:at+window], i)
		}
	}
	return s, nil
}

func number(s string) (n uint64, ok bool) {
	if s == "" || len(s) > 19 {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

func (s *Scanner) addWindow(w string, of int) {
	s.windows++
	add := func(x *index, bytes string) {
		x.add(pattern{bytes, of})
		s.longest = max(s.longest, len(bytes))
	}
	lower, upper := fold(w), strings.ToUpper(w)
	wide := make([]byte, 2*len(lower)-1) // the zero at either end is left out: both orders have this
	for i := range len(lower) {
		wide[2*i] = lower[i]
	}
	add(&s.folded, lower)
	add(&s.folded, string(wide))
	for _, spelling := range []string{w, lower, upper} {
		add(&s.folded, hex.EncodeToString([]byte(spelling)))
		for shift := range 3 {
			for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				// The characters that depend on nothing but the spelling, when shift
				// bytes stand before it in its group of three.
				all := enc.EncodeToString([]byte(strings.Repeat("\x00", shift) + spelling))
				from, bits := (8*shift+5)/6, 8*(shift+len(spelling))
				add(&s.exact, all[from:bits/6])
			}
		}
	}
}

func fold(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = folds[c]
	}
	return string(b)
}

var folds = func() (t [256]byte) {
	for i := range t {
		t[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			t[i] += 'a' - 'A'
		}
	}
	return t
}()

// Planted is how many strings and numbers are looked for.
func (s *Scanner) Planted() int { return len(s.strings) }

// FalseAlarms is how many hits are expected in n bytes that are random base32
// themselves, the worst case: windows·n/32^10, where planted strings are random.
func (s *Scanner) FalseAlarms(n int64) float64 {
	return float64(s.windows) * float64(n) * math.Pow(32, -window)
}

// Hits are what a scan found.
type Hits struct {
	Bytes   int64        // that were looked at, decoded ones beside those of the file
	Values  int64        // decoded numbers that were compared
	Strings map[int]bool // planted ones that were found, by their place in the list from 0
	Where   []string     // in what sinks, in order and each once
}

func (h *Hits) add(of int, where string) {
	if h.Strings == nil {
		h.Strings = map[int]bool{}
	}
	h.Strings[of] = true
	if !slices.Contains(h.Where, where) {
		h.Where = append(h.Where, where)
	}
}

// Bytes looks through a stream; where names it among the hits.
func (s *Scanner) Bytes(h *Hits, where string, r io.Reader) error {
	w := s.walk(h, where)
	_, err := io.Copy(w, r)
	w.endNumber()
	return err
}

// A walk is a scan of one stream.
type walk struct {
	s             *Scanner
	h             *Hits
	where         string
	tail          []byte // the end of what was seen, as long as the longest pattern
	folded, exact uint64 // the last bytes
	digits        int    // of the decimal number at hand; -1 for one that is too long
	value         uint64
}

func (s *Scanner) walk(h *Hits, where string) *walk { return &walk{s: s, h: h, where: where} }

// Write implements io.Writer; it fails never.
func (w *walk) Write(p []byte) (int, error) {
	start := len(w.tail)
	all := append(w.tail, p...)
	f, x, folded, exact := &w.s.folded, &w.s.exact, w.folded, w.exact
	strings, numbers := f.some != nil, len(w.s.numbers) > 0
	for i := start; i < len(all); i++ {
		c := all[i]
		if strings {
			folded, exact = folded<<8|uint64(folds[c]), exact<<8|uint64(c)
			if k := hashOf(folded); f.some[k/64]>>(k%64)&1 != 0 {
				w.matchPatterns(f.found[folded], all[:i+1], true)
			}
			if k := hashOf(exact); x.some[k/64]>>(k%64)&1 != 0 {
				w.matchPatterns(x.found[exact], all[:i+1], false)
			}
		}
		if numbers {
			switch {
			case c < '0' || c > '9':
				w.endNumber()
			case w.digits < 0 || w.digits == 19:
				w.digits = -1
			default:
				w.value = w.value*10 + uint64(c-'0')
				w.digits++
			}
		}
	}
	w.folded, w.exact = folded, exact
	w.h.Bytes += int64(len(p))
	keep := all[max(0, len(all)-w.s.longest):]
	w.tail = append(w.tail[:0], keep...)
	return len(p), nil
}

// matchPatterns compares what stands at the end of seen with patterns that end as it does.
func (w *walk) matchPatterns(patterns []pattern, seen []byte, folded bool) {
	for _, p := range patterns {
		if len(seen) < len(p.bytes) {
			continue
		}
		at := string(seen[len(seen)-len(p.bytes):])
		if folded {
			at = fold(at)
		}
		if at == p.bytes {
			w.h.add(p.of, w.where)
		}
	}
}

// minDigits is how long a decimal number in bytes must be to be told from chance.
const minDigits = 5

// endNumber ends a decimal number.
func (w *walk) endNumber() {
	if w.digits >= minDigits {
		if of, ok := w.s.numbers[w.value]; ok {
			w.h.add(of, w.where)
		}
	}
	w.digits, w.value = 0, 0
}

// Value compares a decoded number with those that were planted.
func (s *Scanner) Value(h *Hits, where string, v uint64) {
	h.Values++
	if of, ok := s.numbers[v]; ok {
		h.add(of, where)
	}
}
