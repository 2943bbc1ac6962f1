package token

import "strings"

// level maps the byte-level alphabet of GPT-2 to bytes: those that print stand for themselves, the others are the characters
// from U+0100 on, in order.
var level = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	next := rune(0x100)
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= '¡' && b <= '¬' || b >= '®' && b <= 'ÿ' {
			m[b] = byte(b)
			continue
		}
		m[next] = byte(b)
		next++
	}
	return m
}()

// appendLevel appends the bytes that a token in the byte-level alphabet stands for; a token that holds any other character
// stands for itself, as special tokens do.
func appendLevel(dst []byte, s string) []byte {
	before := len(dst)
	for _, r := range s {
		b, ok := level[r]
		if !ok {
			return append(dst[:before], s...)
		}
		dst = append(dst, b)
	}
	return dst
}

// byteToken reads the spelling <0xNN> of a byte in a vocabulary with byte_fallback.
func byteToken(s string) (byte, bool) {
	const hex = "0123456789ABCDEF"
	if len(s) != 6 || s[:3] != "<0x" || s[5] != '>' {
		return 0, false
	}
	high, low := strings.IndexByte(hex, s[3]), strings.IndexByte(hex, s[4])
	return byte(high<<4 | low), high >= 0 && low >= 0
}
