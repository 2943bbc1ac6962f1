package token

import "unicode/utf8"

// DeepSeek V3 and R1 cut a text three times, each time what the time before left: at numbers, at runs of Chinese and Japanese
// characters, and at words.

// splitThree is \p{N}{1,3}, with what lies between numbers as pieces too.
func splitThree(t *classTable, s string, i int) int { return t.numbers(s, i, 3) }

// splitOne is \p{N}, with what lies between.
func splitOne(t *classTable, s string, i int) int { return t.numbers(s, i, 1) }

// splitNumbers is \p{N}+, with what lies between.
func splitNumbers(t *classTable, s string, i int) int { return t.numbers(s, i, len(s)) }

func (t *classTable) numbers(s string, i, most int) int {
	if end := t.digits(s, i, most); end > i {
		return end
	}
	return t.run(s, i, letter|space|other)
}

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

// splitDeepSeek is the last of the three. Controls and numbers match nothing, unless letters follow; a run of them is a piece.
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

func isASCIILetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }
