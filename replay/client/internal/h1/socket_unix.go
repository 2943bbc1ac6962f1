//go:build unix

package h1

import (
	"io"
	"syscall"
)

// askedAtUse says that asking is cheap enough to do before each use.
const askedAtUse = true

func (s *socket) readOnce(p []byte) (n int, err error) {
	var rerr error
	switch {
	case s.feed != nil:
		n, err = s.feed.readOnce(p)
	case s.raw == nil:
		return 0, errNothingYet
	default:
		rerr = s.raw.Read(func(fd uintptr) bool {
			n, err = syscall.Read(int(fd), p)
			return true
		})
	}
	switch {
	case rerr != nil:
		return 0, rerr
	case err == syscall.EAGAIN || err == syscall.EINTR:
		return 0, errNothingYet
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// writeOnce writes as much as there is room for.
func (s *socket) writeOnce(p []byte) (n int, err error) {
	var werr error
	switch {
	case s.feed != nil:
		n, err = s.feed.writeOnce(p)
	case s.raw == nil:
		return 0, nil
	default:
		werr = s.raw.Write(func(fd uintptr) bool {
			n, err = syscall.Write(int(fd), p)
			return true
		})
	}
	switch {
	case werr != nil:
		return 0, werr
	case err == syscall.EAGAIN || err == syscall.EINTR:
		return 0, nil
	}
	return max(n, 0), err
}
