package host

import (
	"net"
	"strings"
	"unicode"
)

// longestName bounds a name that another program or a server gives.
const longestName = 200

// Label makes a name from another program or a server safe to keep and print: at most
// 200 characters, valid UTF-8, and printable characters only.
func Label(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "?"))
	if r := []rune(s); len(r) > longestName {
		s = string(r[:longestName-1]) + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// Loopback tells whether a name or an address of a URL is this machine's own, which no network carries. A name other
// than localhost is not looked up.
func Loopback(name string) bool {
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}
