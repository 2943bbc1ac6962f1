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
	feed   *feed           // the same connection, where a reader reads it
	raw    syscall.RawConn // nil where one cannot be had
	asking bool            // Read does not wait
}

// noDelay is the delay of a Read whose bytes have no receive timestamp.
const noDelay = time.Duration(-1)

// Read implements net.Conn. While the socket is only asked, nothing yet is
// errNothingYet, from which a TLS connection recovers as from a deadline.
func (s *socket) Read(p []byte) (int, error) {
	if s.asking {
		return s.readOnce(p)
	}
	return s.Conn.Read(p)
}

// lastRead is when the bytes of the last Read were read, zero for now, and how long they
// had been there by the kernel's stamp.
func (s *socket) lastRead() (time.Time, time.Duration) {
	if s.feed == nil {
		return time.Time{}, noDelay
	}
	return s.feed.readAt, s.feed.readDelay
}

// errNothingYet is a net.Error, so that crypto/tls takes it for a passing one.
var errNothingYet net.Error = nothingYet{}

type nothingYet struct{}

func (nothingYet) Error() string   { return "h1: nothing has come yet" }
func (nothingYet) Timeout() bool   { return true }
func (nothingYet) Temporary() bool { return true }

// past is a deadline that has passed.
var past = time.Unix(1, 0)
