package h1

import (
	"net"
	"syscall"
	"time"
)

// A socket is the connection below TLS, if there is TLS. It can be asked once, and
// without waiting, for what has come.
type socket struct {
	net.Conn
	raw    syscall.RawConn // nil where one cannot be had
	asking bool            // Read does not wait
}

// Read implements net.Conn. While the socket is only asked, nothing yet is
// errNothingYet, from which a TLS connection recovers as from a deadline.
func (s *socket) Read(p []byte) (int, error) {
	if !s.asking {
		return s.Conn.Read(p)
	}
	return s.readOnce(p)
}

// errNothingYet is a net.Error, so that crypto/tls takes it for a passing one.
var errNothingYet net.Error = nothingYet{}

type nothingYet struct{}

func (nothingYet) Error() string   { return "h1: nothing has come yet" }
func (nothingYet) Timeout() bool   { return true }
func (nothingYet) Temporary() bool { return true }

// past is a deadline that has passed.
var past = time.Unix(1, 0)
