package token

import (
	"strings"
	"unicode/utf8"
)

// A splitter gives the end of the piece that starts at s[i], for i < len(s). Pieces tile the text; each is at least one
// character. The cost of all pieces together is linear in the length of the text.
type splitter func(t *classTable, s string, i int) int

// splitCL100K is the pattern of cl100k_base, whose alternatives are tried in this order:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func splitCL100K(t *classTable, s string, i int) int { return t.cl100k(s, i, 3) }

func (t *classTable) cl100k(s string, i, digits int) int {
	c, n := t.at(s, i)
	switch {
	case c&letter != 0:
		return t.run(s, i+n, letter)
	case c&number != 0:
		return t.digits(s, i, digits)
	case s[i] == '\'':
		if n := contraction(s, i); n > 0 {
			return i + n
		}
	}
	if next := i + n; c&newline == 0 && next < len(s) {
		switch d, _ := t.at(s, next); {
		case d&letter != 0:
			return t.run(s, next, letter)
		case d&other != 0 && s[i] == ' ':
			return t.symbols(s, next, false)
		}
	}
	if c&space != 0 {
		return t.blanks(s, i)
	}
	return t.symbols(s, i, false)
}

// splitO200K is the pattern of o200k_base. Its words begin anew at a capital, may hold combining marks and take their
// contraction with them; the rest differs from cl100k_base in one slash:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func splitO200K(t *classTable, s string, i int) int { return t.o200k(s, i, 3, contraction) }

func (t *classTable) o200k(s string, i, digits int, suffix func(s string, i int) int) int {
	c, n := t.at(s, i)
	if c&number != 0 {
		return t.digits(s, i, digits)
	}
	if c&letter != 0 {
		end, _ := t.word(s, i)
		return end + suffix(s, end)
	}
	if c&newline == 0 {
		next := i + n
		end, hasLower := t.word(s, next)
		if !hasLower && c&lower != 0 {
			// A mark before capitals, or before no word at all. The first alternative fails with the mark as its
			// leading character, and then matches with the mark as the whole word.
			end, _ = t.word(s, i)
		}
		if end > next || c&lower != 0 {
			return end + suffix(s, end)
		}
		if s[i] == ' ' && next < len(s) {
			if d, _ := t.at(s, next); d&other != 0 {
				return t.symbols(s, next, true)
			}
		}
	}
	if c&space != 0 {
		return t.blanks(s, i)
	}
	return t.symbols(s, i, true)
}

// word gives the end of the word of o200k_base at s[i], without leading character and contraction, and which of the
// first two alternatives found it: the first, whose word ends in lower, or the second, all upper. With no word the end
// is i.
func (t *classTable) word(s string, i int) (end int, hasLower bool) {
	both := i // end of the last character in both sets: as far as the greedy run of upper must give back
	for end = i; end < len(s); {
		c, n := t.at(s, end)
		if c&upper == 0 {
			if c&lower != 0 {
				return t.run(s, end+n, lower), true
			}
			break
		}
		end += n
		if c&lower != 0 {
			both = end
		}
	}
	if both > i {
		return both, true
	}
	return end, false
}

// contraction gives the length of (?i:'s|'t|'re|'ve|'m|'ll|'d) at s[i], or 0. The long s, U+017F, is an s to a pattern
// that ignores case, as it is to tiktoken.
func contraction(s string, i int) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return 0
	}
	a := s[i+1] | 0x20 // a letter in lower case; nothing else becomes one of the letters below
	if a == 's' || a == 't' || a == 'm' || a == 'd' {
		return 2
	}
	if i+2 >= len(s) {
		return 0
	}
	b := s[i+2] | 0x20
	if (a == 'r' || a == 'v') && b == 'e' || a == 'l' && b == 'l' || s[i+1:i+3] == "ſ" {
		return 3
	}
	return 0
}

// digits is \p{N}{1,most}.
func (t *classTable) digits(s string, i, most int) int {
	for n := 0; n < most && i < len(s); n++ {
		c, size := t.at(s, i)
		if c&number == 0 {
			break
		}
		i += size
	}
	return i
}

// symbols is [^\s\p{L}\p{N}]+ with the line ends after it, and with slashes among them if slash is set.
func (t *classTable) symbols(s string, i int, slash bool) int {
	i = t.run(s, i, other)
	for i < len(s) && (s[i] == '\r' || s[i] == '\n' || slash && s[i] == '/') {
		i++
	}
	return i
}

// blanks is the last three alternatives: a run of white space up to its last line end; else all of it at the end of the
// text; else all but its last character, which leads the next piece; else that one character.
func (t *classTable) blanks(s string, i int) int {
	afterNewline, last, end := i, i, i
	for end < len(s) {
		c, n := t.at(s, end)
		if c&space == 0 {
			break
		}
		last = end
		end += n
		if c&newline != 0 {
			afterNewline = end
		}
	}
	switch {
	case afterNewline > i:
		return afterNewline
	case end < len(s) && last > i:
		return last
	}
	return end
}

// splitGPT2 is the pattern of GPT-2, which r50k_base and p50k_base share:
//
//	's|'t|'re|'ve|'m|'ll|'d
//	 ?\p{L}+
//	 ?\p{N}+
//	 ?[^\s\p{L}\p{N}]+
//	\s+(?!\S)
//	\s+
func splitGPT2(t *classTable, s string, i int) int {
	if n := contraction(s, i); n > 0 && isLower(s[i+1:i+n]) {
		return i + n
	}
	c, n := t.at(s, i)
	if next := i + n; s[i] == ' ' && next < len(s) {
		if d, _ := t.at(s, next); d&space == 0 {
			return t.run(s, next, d&(letter|number|other))
		}
	}
	if c&space == 0 {
		return t.run(s, i, c&(letter|number|other))
	}
	last, end := i, i
	for end < len(s) {
		c, n := t.at(s, end)
		if c&space == 0 {
			break
		}
		last = end
		end += n
	}
	if end < len(s) && last > i {
		return last
	}
	return end
}

// isLower reports whether s is [a-z]*.
func isLower(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 'a' || r > 'z' }) < 0
}

// splitNumbers makes the splitter of \p{N}{1,most}, with what lies between numbers as pieces too.
func splitNumbers(most int) splitter {
	return func(t *classTable, s string, i int) int {
		if end := t.digits(s, i, most); end > i {
			return end
		}
		return t.run(s, i, letter|space|other)
	}
}

// DeepSeek V3 and R1 cut a text three times, each time the pieces of the time before: at numbers, at runs of Chinese
// and Japanese characters, and at words.

// splitHanKana is [一-龥぀-ゟ゠-ヿ]+, with what lies between.
func splitHanKana(_ *classTable, s string, i int) int {
	r, n := utf8.DecodeRuneInString(s[i:])
	in := isHanKana(r)
	for i += n; i < len(s); i += n {
		if s[i] < utf8.RuneSelf {
			if in {
				break
			}
			n = 1
			continue
		}
		r, n = utf8.DecodeRuneInString(s[i:])
		if isHanKana(r) != in {
			break
		}
	}
	return i
}

func isHanKana(r rune) bool { return r >= '一' && r <= '龥' || r >= '\u3040' && r <= '\u30ff' }

// splitDeepSeek is the last of the three. Controls and numbers match nothing, unless letters follow; a run of them is a
// piece.
//
//	[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+
//	[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+
//	 ?[\p{P}\p{S}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func splitDeepSeek(t *classTable, s string, i int) int {
	c, n := t.at(s, i)
	next := i + n
	var d class
	if next < len(s) {
		d, _ = t.at(s, next)
	}
	switch {
	case c&symbol != 0 && n == 1 && d != 0 && isASCIILetter(s[next]):
		for next < len(s) && isASCIILetter(s[next]) {
			next++
		}
		return next
	case c&(letter|mark) != 0:
		return t.run(s, i, letter|mark)
	case c&(symbol|newline) == 0 && d&(letter|mark) != 0:
		return t.run(s, next, letter|mark)
	case c&symbol != 0:
		return t.lineEnds(s, t.run(s, i, symbol))
	case s[i] == ' ' && d&symbol != 0:
		return t.lineEnds(s, t.run(s, next, symbol))
	case c&space != 0:
		return t.blanks(s, i)
	}
	for next < len(s) && d&(letter|mark|symbol|space) == 0 {
		at := next
		_, n := t.at(s, at)
		next += n
		d = 0
		if next < len(s) {
			d, _ = t.at(s, next)
		}
		if d&(letter|mark) != 0 {
			return at // this one leads the letters
		}
	}
	return next
}

// lineEnds is [\r\n]*.
func (t *classTable) lineEnds(s string, i int) int {
	for i < len(s) && (s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isASCIILetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// The joints say where a text of SentencePiece's kind can be cut although nothing splits it: between two characters
// that stand next to each other in no token that merging makes. No merge ever reaches across such a place, so the
// pieces encode to what the whole would, and short pieces are found in the vocabulary or the cache. In practice a text
// is cut before almost every word, and between most words and their punctuation.
//
// All characters beyond ASCII count as one, and are never cut apart: j[RuneSelf][RuneSelf] is true.
type joints [utf8.RuneSelf + 1][utf8.RuneSelf + 1]bool

func jointOf(b byte) int { return min(int(b), utf8.RuneSelf) }

// split is a [splitter].
func (j *joints) split(_ *classTable, s string, i int) int {
	left := jointOf(s[i])
	for i++; i < len(s); i++ {
		right := jointOf(s[i])
		if !j[left][right] {
			break
		}
		left = right
	}
	return i
}
