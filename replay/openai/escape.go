package openai

import (
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

const hexDigits = "0123456789abcdef"

// appendText appends text as a JSON string, see appendString.
func appendText(dst, text []byte) []byte {
	// Safe: the string lives no longer than the call, and nothing changes text meanwhile.
	return appendString(dst, unsafe.String(unsafe.SliceData(text), len(text)))
}

// appendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD, a character
// for each bad byte, as in encoding/json; unlike there, '<', '>' and '&' stay as they
// are, since no browser reads these bodies.
//
// Text is copied in runs between the few bytes that need an escape, and the end of a
// run is looked for eight bytes at a time.
func appendString(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s)) // the conversion replaces bad bytes one by one
	}
	dst = append(dst, '"')
	start, i := 0, 0
	for i < len(s) {
		if i+8 <= len(s) {
			// Set the high bit of each byte that needs an escape. The subtraction borrows into
			// the high bit of an ASCII byte that is below the limit, or that the exclusive or
			// made zero. The borrow may also mark bytes above such a one, so that only the
			// lowest mark is exact.
			x := load64(s[i:])
			quote, backslash := x^lowBits*'"', x^lowBits*'\\'
			mask := ((x-lowBits*' ')&^x | (quote-lowBits)&^quote | (backslash-lowBits)&^backslash) & highBits
			if mask == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(mask) / 8
		}
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			start = i + 1
		}
		i++
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// load64 reads eight bytes, the first one lowest; the compiler makes it one load.
func load64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)
