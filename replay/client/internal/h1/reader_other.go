//go:build !linux || !(amd64 || arm64)

package h1

import (
	"net"
	"time"
)

// Readers are not to be had here: Go's poller reads.
type Readers struct{}

// NewReaders returns nil.
func NewReaders() *Readers { return nil }

// Watch returns 0: there is no reader.
func (*Readers) Watch(func(reader int)) int { return 0 }

// Close does nothing.
func (*Readers) Close() {}

type feed struct {
	net.Conn
	readAt    time.Time
	readDelay time.Duration
}

func newFeed(net.Conn, *Readers) *feed { return nil }

func (*feed) begin()                          {}
func (*feed) end() bool                       { return true }
func (*feed) inBatches(bool)                  {}
func (*feed) readOnce([]byte) (int, error)    { return 0, nil }
func (*feed) writeOnce(p []byte) (int, error) { return 0, nil }
