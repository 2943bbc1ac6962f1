package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsSpace is Python's str.isspace for one character.
func IsSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// unescaped returns the value of a Python string literal without its quotes.
func unescaped(s string, line int) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	simple := map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': `"`, 'a': "\a", 'b': "\b",
		'f': "\f", 'v': "\v", '\n': ""}
	hex := map[byte]int{'x': 2, 'u': 4, 'U': 8}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if t, ok := simple[s[i]]; ok {
			b.WriteString(t)
			continue
		}
		n := hex[s[i]]
		octal := 0
		for octal < 3 && i+octal < len(s) && s[i+octal] >= '0' && s[i+octal] <= '7' {
			octal++
		}
		switch {
		case octal > 0:
			r, _ := strconv.ParseUint(s[i:i+octal], 8, 32)
			b.WriteRune(rune(r))
			i += octal - 1
			continue
		case s[i] == 'N':
			fail(line, "a character by its name: give its number")
		case n == 0:
			b.WriteString(s[i-1 : i+1]) // Python leaves unknown escapes as they are
			continue
		}
		if i+n >= len(s) {
			fail(line, "an escape that is not whole")
		}
		r, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
		if err != nil || r > unicode.MaxRune {
			fail(line, "an escape that is no character")
		}
		b.WriteRune(rune(r))
		i += n
	}
	return b.String()
}

// runes returns the length of s in characters.
func runes(s string) int { return utf8.RuneCountInString(s) }

// cutRunes returns the characters of s from i up to j.
func cutRunes(s string, i, j int) string {
	if runes(s) == len(s) {
		return s[i:j]
	}
	return string([]rune(s)[i:j])
}

// floatText is Python's repr of a float: the fewest digits that identify it, with an exponent below 1e-4 and from 1e16.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if strings.IndexByte(s, '.') < 0 {
		s += ".0"
	}
	return s
}

// quote is Python's repr of a string.
func quote(s string) string {
	mark := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		mark = '"'
	}
	var b strings.Builder
	b.WriteByte(mark)
	for _, r := range s {
		switch {
		case r == rune(mark) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			b.WriteString(`\x` + pad(strconv.FormatInt(int64(r), 16), 2))
		case r < 0x10000:
			b.WriteString(`\u` + pad(strconv.FormatInt(int64(r), 16), 4))
		default:
			b.WriteString(`\U` + pad(strconv.FormatInt(int64(r), 16), 8))
		}
	}
	b.WriteByte(mark)
	return b.String()
}

func pad(s string, n int) string { return strings.Repeat("0", max(n-len(s), 0)) + s }
