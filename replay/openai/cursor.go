package openai

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A cursor walks over JSON without building anything: it finds the few members that
// matter and skips the rest. It exists for speed: a chunk takes a fraction of a
// microsecond where encoding/json takes several and a dozen allocations.
//
// On valid JSON it is exact. On invalid JSON it either notices, and then bad is set and
// every loop ends, or it is lenient (it does not check literals, or that a bracket is
// closed by its own kind); it never reads out of bounds and never loops for ever.
type cursor struct {
	b   []byte
	i   int
	bad bool
}

// A jsonString is what stands between the quotes of a JSON string.
type jsonString struct {
	raw     []byte
	escaped bool // raw holds a backslash
}

func (c *cursor) fail() {
	c.bad = true
	c.i = len(c.b)
}

// peek returns the next byte that is not white space, 0 at the end.
func (c *cursor) peek() byte {
	for c.i < len(c.b) {
		switch ch := c.b[c.i]; ch {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return ch
		}
	}
	return 0
}

// open enters an object or an array; if the next value is no such thing, it skips the
// value and returns false.
func (c *cursor) open(bracket byte) bool {
	if c.peek() != bracket {
		c.skip()
		return false
	}
	c.i++
	return true
}

// more reports whether another member or element follows, and stands before it:
//
//	for first := true; c.more('}', first); first = false { … }
func (c *cursor) more(bracket byte, first bool) bool {
	switch ch := c.peek(); {
	case ch == bracket:
		c.i++
		return false
	case first && ch != 0:
		return true
	case ch == ',':
		c.i++
		return true
	}
	c.fail()
	return false
}

// key reads a member's name and the colon. A name with escapes is rare and is decoded.
func (c *cursor) key() []byte {
	s := c.str()
	if c.peek() != ':' {
		c.fail()
		return nil
	}
	c.i++
	if s.escaped {
		return appendUnquoted(nil, s)
	}
	return s.raw
}

// str reads a string.
func (c *cursor) str() jsonString {
	if c.peek() != '"' {
		c.fail()
		return jsonString{}
	}
	c.i++
	start := c.i
	end := bytes.IndexByte(c.b[start:], '"')
	if end < 0 {
		c.fail()
		return jsonString{}
	}
	slash := bytes.IndexByte(c.b[start:start+end], '\\')
	if slash < 0 {
		c.i = start + end + 1
		return jsonString{raw: c.b[start : start+end]}
	}
	for c.i = start + slash; c.i < len(c.b); c.i++ {
		switch c.b[c.i] {
		case '"':
			c.i++
			return jsonString{raw: c.b[start : c.i-1], escaped: true}
		case '\\':
			c.i++
		}
	}
	c.fail()
	return jsonString{}
}

// optionalString reads a string, or skips a value of another kind and reports false.
func (c *cursor) optionalString() (jsonString, bool) {
	if c.peek() != '"' {
		c.skip()
		return jsonString{}, false
	}
	return c.str(), true
}

// value reads any value and returns its text.
func (c *cursor) value() []byte {
	c.peek()
	start := c.i
	c.skip()
	if c.bad {
		return nil
	}
	return c.b[start:c.i]
}

// something reads any value and returns its text, nil where it is null, false or holds nothing.
func (c *cursor) something() []byte {
	if raw := c.value(); !isEmpty(raw) {
		return raw
	}
	return nil
}

// member passes over an object, and returns the text of one of its members; nil without it.
func (c *cursor) member(name string) (raw []byte) {
	if !c.open('{') {
		return nil
	}
	for first := true; c.more('}', first); first = false {
		if string(c.key()) == name {
			raw = c.value()
		} else {
			c.skip()
		}
	}
	return raw
}

// skip passes over any value.
func (c *cursor) skip() {
	switch ch := c.peek(); {
	case ch == '"':
		c.str()
	case ch == '{' || ch == '[':
		c.skipNested()
	case ch == '-' || ch >= '0' && ch <= '9' || ch == 't' || ch == 'f' || ch == 'n':
		for c.i++; c.i < len(c.b); c.i++ {
			switch c.b[c.i] {
			case ',', '}', ']', ' ', '\t', '\n', '\r':
				return
			}
		}
	default:
		c.fail()
	}
}

func (c *cursor) skipNested() {
	depth := 0
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case '"':
			c.str()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				c.i++
				return
			}
		}
		c.i++
	}
	c.fail()
}

// count reads a number of things: false for null, a negative or anything else that no
// count can be. A number written as a float (some gateways do) is taken if it is whole.
func (c *cursor) count() (int, bool) {
	raw := c.value()
	n := 0
	for i, ch := range raw {
		if ch < '0' || ch > '9' || i >= 18 {
			f, err := strconv.ParseFloat(string(raw), 64)
			if err != nil || f < 0 || f >= 1e18 || f != float64(int64(f)) {
				return 0, false
			}
			return int(f), true
		}
		n = n*10 + int(ch-'0')
	}
	return n, len(raw) > 0
}

// appendUnquoted appends the text of a JSON string. Where encoding/json writes U+FFFD
// for a lone surrogate or a byte of invalid UTF-8, so does this.
func appendUnquoted(dst []byte, s jsonString) []byte {
	if !s.escaped && utf8.Valid(s.raw) {
		return append(dst, s.raw...)
	}
	for b := s.raw; len(b) > 0; {
		switch {
		case b[0] == '\\':
			r, n := unescape(b)
			dst = utf8.AppendRune(dst, r)
			b = b[n:]
		case b[0] < utf8.RuneSelf:
			n := 1
			for n < len(b) && b[n] < utf8.RuneSelf && b[n] != '\\' {
				n++
			}
			dst = append(dst, b[:n]...)
			b = b[n:]
		default:
			r, n := utf8.DecodeRune(b)
			dst = utf8.AppendRune(dst, r)
			b = b[n:]
		}
	}
	return dst
}

// unescape decodes the escape that b begins with and returns its length.
func unescape(b []byte) (rune, int) {
	if len(b) < 2 {
		return utf8.RuneError, len(b)
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r, ok := hexRune(b)
		if !ok {
			return utf8.RuneError, 2
		}
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if low, ok := hexRune(b[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	}
	return utf8.RuneError, 2
}

// size is how long the text of a JSON string is, in bytes.
func (s jsonString) size() (n int64) {
	if !s.escaped {
		return int64(len(s.raw))
	}
	for b := s.raw; len(b) > 0; {
		if b[0] != '\\' {
			n, b = n+1, b[1:]
			continue
		}
		r, length := unescape(b)
		n, b = n+int64(utf8.RuneLen(r)), b[length:]
	}
	return n
}

// hexRune decodes the \uXXXX that b begins with.
func hexRune(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, ch := range b[2:6] {
		switch {
		case ch >= '0' && ch <= '9':
			ch -= '0'
		case ch >= 'a' && ch <= 'f':
			ch -= 'a' - 10
		case ch >= 'A' && ch <= 'F':
			ch -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(ch)
	}
	return r, true
}
