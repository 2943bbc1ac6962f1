package export

import (
	"strconv"
	"unicode/utf8"
)

// appendSeconds appends nanoseconds as a decimal number of seconds, exactly and
// always with a fraction, so that readers that tell types by their spelling
// take it for a float.
func appendSeconds(b []byte, ns int64) []byte {
	b = strconv.AppendInt(b, ns/1e9, 10)
	frac := ns % 1e9
	b = append(b, '.')
	for unit := int64(1e8); ; unit /= 10 {
		b = append(b, '0'+byte(frac/unit))
		if frac %= unit; frac == 0 {
			return b
		}
	}
}

// milliseconds rounds to the nearest.
func milliseconds(ns int64) int64 { return (ns + 5e5) / 1e6 }

// appendIDs appends ids as a JSON array.
func appendIDs(b []byte, ids []uint64, comma string) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, comma...)
		}
		b = strconv.AppendUint(b, id, 10)
	}
	return append(b, ']')
}

// appendText appends text as a JSON string. It stands in for encoding/json,
// which copies, and escapes what only HTML minds. Bytes that are not UTF-8
// become U+FFFD, as there.
func appendText[T string | []byte](b []byte, text T) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))]))
			b = utf8.AppendRune(b, r)
			i += n
			continue
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
		i++
	}
	return append(b, '"')
}
