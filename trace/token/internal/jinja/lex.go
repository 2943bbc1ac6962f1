package jinja

import (
	"strings"
)

// A tokenKind tells tokens apart. Punctuation is kept by its spelling.
type tokenKind uint8

const (
	tokEnd   tokenKind = iota // of the source
	tokData                   // text between tags
	tokOpen                   // {{ or {%, as text "{{" or "{%"
	tokClose                  // }} or %}
	tokName
	tokString
	tokInt
	tokFloat
	tokPunct
)

type lexeme struct {
	kind tokenKind
	text string
	line int
}

// A lexer cuts a source into lexemes, and strips white space as the tags ask.
type lexer struct {
	src  string
	at   int
	line int
	out  []lexeme
}

// lex cuts a source into lexemes with the settings of transformers: trim_blocks, lstrip_blocks, and no line end at the
// end of the source.
func lex(src string) []lexeme {
	src = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src)
	l := &lexer{src: strings.TrimSuffix(src, "\n"), line: 1}
	for l.at < len(l.src) {
		l.data()
	}
	return append(l.out, lexeme{tokEnd, "", l.line})
}

// take advances by n bytes and returns them.
func (l *lexer) take(n int) string {
	s := l.src[l.at : l.at+n]
	l.line += strings.Count(s, "\n")
	l.at += n
	return s
}

func (l *lexer) emit(kind tokenKind, text string) {
	l.out = append(l.out, lexeme{kind, text, l.line})
}

// data reads the text up to the next tag, and the tag.
func (l *lexer) data() {
	n := l.nextTag()
	text := l.src[l.at : l.at+n]
	if l.at+n == len(l.src) {
		l.emit(tokData, l.take(n))
		return
	}
	tag := l.src[l.at+n:]
	kind, sign := tag[:2], byte(0)
	if len(tag) > 2 {
		sign = tag[2]
	}
	switch {
	case sign == '-':
		text = strings.TrimRightFunc(text, IsSpace)
	case sign != '+' && kind != "{{": // lstrip_blocks
		line := text[strings.LastIndexByte(text, '\n')+1:]
		begins := len(line) < len(text) || l.at == 0 || l.src[l.at-1] == '\n'
		if begins && strings.TrimFunc(line, IsSpace) == "" {
			text = text[:len(text)-len(line)]
		}
	}
	if text != "" {
		l.emit(tokData, text)
	}
	l.take(n)
	width := 2
	if sign == '-' || sign == '+' {
		width = 3
	}
	switch kind {
	case "{#":
		l.take(width)
		end := strings.Index(l.src[l.at:], "#}")
		if end < 0 {
			fail(l.line, "a comment that is not closed")
		}
		strip := end > 0 && l.src[l.at+end-1] == '-'
		l.take(end + 2)
		l.dropSpaceAfterTag(strip, true)
	default:
		l.tag(kind, width)
	}
}

// nextTag returns how many bytes there are before the next tag, or before the end.
func (l *lexer) nextTag() int {
	rest := l.src[l.at:]
	for i := 0; ; i++ {
		n := strings.IndexByte(rest[i:], '{')
		if n < 0 || i+n+1 >= len(rest) {
			return len(rest)
		}
		i += n
		if c := rest[i+1]; c == '{' || c == '%' || c == '#' {
			return i
		}
	}
}

// dropSpaceAfterTag skips the white space after a tag that is not text: all of it after a minus, one line end after a
// block.
func (l *lexer) dropSpaceAfterTag(strip, block bool) {
	rest := l.src[l.at:]
	switch {
	case strip:
		l.take(len(rest) - len(strings.TrimLeftFunc(rest, IsSpace)))
	case block && strings.HasPrefix(rest, "\n"):
		l.take(1)
	}
}

// tag reads a tag, its end included.
func (l *lexer) tag(open string, width int) {
	l.emit(tokOpen, open)
	l.take(width)
	end, depth := "}}", 0
	if open == "{%" {
		end = "%}"
	}
	for {
		l.take(len(l.src[l.at:]) - len(strings.TrimLeftFunc(l.src[l.at:], IsSpace)))
		rest := l.src[l.at:]
		signed := len(rest) > 2 && (rest[0] == '-' || rest[0] == '+') && rest[1:3] == end
		switch {
		case rest == "":
			fail(l.line, "a tag that is not closed")
		case depth == 0 && (signed || strings.HasPrefix(rest, end)):
			l.emit(tokClose, end)
			strip, keep := signed && rest[0] == '-', signed && rest[0] == '+'
			l.take(len(end))
			if signed {
				l.take(1)
			}
			if n := len(l.out); n >= 3 && l.out[n-3].kind == tokOpen && l.out[n-3].text == "{%" &&
				l.out[n-2].kind == tokName && l.out[n-2].text == "raw" {
				l.raw(strip)
				return
			}
			l.dropSpaceAfterTag(strip, open == "{%" && !keep)
			return
		}
		switch rest[0] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth = max(depth-1, 0)
		}
		l.inside(rest)
	}
}

// raw reads the text up to {% endraw %} unchanged.
func (l *lexer) raw(strip bool) {
	l.out = l.out[:len(l.out)-3]
	rest := l.src[l.at:]
	for i := 0; ; {
		n := strings.Index(rest[i:], "{%")
		if n < 0 {
			fail(l.line, "raw that is not closed")
		}
		i += n
		body, inside := rest[:i], strings.TrimLeft(rest[i+2:], "-+")
		word := strings.TrimLeftFunc(inside, IsSpace)
		end := strings.Index(rest[i:], "%}")
		if !strings.HasPrefix(word, "endraw") || end < 0 {
			i += 2
			continue
		}
		if rest[i+2] == '-' {
			body = strings.TrimRightFunc(body, IsSpace)
		}
		if strip {
			body = strings.TrimLeftFunc(body, IsSpace)
		}
		l.emit(tokData, body)
		after := rest[i+end-1] == '-'
		l.take(i + end + 2)
		l.dropSpaceAfterTag(after, true)
		return
	}
}

// inside reads one lexeme of a tag.
func (l *lexer) inside(rest string) {
	c := rest[0]
	switch {
	case c == '\'' || c == '"':
		l.quoted(rest)
	case isDigit(c):
		l.number(rest)
	case isNameByte(c):
		n := 1
		for n < len(rest) && (isNameByte(rest[n]) || isDigit(rest[n])) {
			n++
		}
		l.emit(tokName, rest[:n])
		l.take(n)
	default:
		n := 1
		if len(rest) > 1 && strings.Contains(" == != <= >= // ** ", " "+rest[:2]+" ") {
			n = 2
		}
		if !strings.ContainsRune("()[]{}.,:|~+-*/%<>=!", rune(c)) || rest[:n] == "!" {
			fail(l.line, "a character that has no meaning here")
		}
		l.emit(tokPunct, rest[:n])
		l.take(n)
	}
}

func isDigit(c byte) bool    { return c >= '0' && c <= '9' }
func isNameByte(c byte) bool { return c == '_' || c >= 0x80 || c|0x20 >= 'a' && c|0x20 <= 'z' }

func (l *lexer) number(rest string) {
	n, kind := 1, tokInt
	for n < len(rest) && (isDigit(rest[n]) || rest[n] == '_') {
		n++
	}
	if item := l.src[l.at-1] == '.'; !item && n+1 < len(rest) && rest[n] == '.' && isDigit(rest[n+1]) {
		kind = tokFloat
		for n++; n < len(rest) && isDigit(rest[n]); n++ {
		}
	}
	if m := exponent(rest[n:]); m > 0 {
		kind, n = tokFloat, n+m
	}
	l.emit(kind, strings.ReplaceAll(rest[:n], "_", ""))
	l.take(n)
}

// exponent is the length of the exponent that s begins with, or 0.
func exponent(s string) int {
	if s == "" || s[0]|0x20 != 'e' {
		return 0
	}
	n := 1
	if n < len(s) && (s[n] == '+' || s[n] == '-') {
		n++
	}
	from := n
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	if n == from {
		return 0
	}
	return n
}

// quoted reads a string with Python's escapes.
func (l *lexer) quoted(rest string) {
	for n := 1; n < len(rest); n++ {
		switch rest[n] {
		case '\\':
			n++
		case rest[0]:
			l.emit(tokString, unescaped(rest[1:n], l.line))
			l.take(n + 1)
			return
		}
	}
	fail(l.line, "a string that is not closed")
}
