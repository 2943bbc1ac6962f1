//go:build !linux || !(amd64 || arm64)

package h1

// A receiver is not to be had here.
type receiver struct{}

// stampReceived leaves the socket as it is.
func (s *socket) stampReceived() {}

func (s *socket) readStamped(p []byte) (int, error) { return s.Conn.Read(p) }
