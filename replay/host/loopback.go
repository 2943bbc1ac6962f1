package host

import (
	"net"
	"strings"
)

// Loopback tells whether a name or an address of a URL is this machine's own, which no network carries. A name other
// than localhost is not looked up.
func Loopback(name string) bool {
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}
