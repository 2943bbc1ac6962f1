//go:build linux && (amd64 || arm64)

package h1

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A receiver reads from a TCP socket with the kernel's receive timestamps. What it
// hands to the kernel is kept, so that a read does not allocate.
type receiver struct {
	msg     unix.Msghdr
	iov     unix.Iovec
	control [128]byte // a header and three times; the kernel drops what does not fit
	n       uintptr
	errno   syscall.Errno
	once    func(fd uintptr) bool
}

// stampReceived asks the kernel to note when segments come (SO_TIMESTAMPING, software).
// It is not done where the kernel, or a seccomp filter, does not allow it.
func (s *socket) stampReceived() {
	if s.raw == nil {
		return
	}
	if _, ok := s.Conn.(*net.TCPConn); !ok {
		return
	}
	var err error
	const flags = unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE
	rerr := s.raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING, flags) })
	if rerr != nil || err != nil {
		return
	}
	r := &receiver{}
	r.once = r.recvmsg
	s.receiver = r
}

// recvmsg receives what has come. It returns false where the caller has to wait.
func (r *receiver) recvmsg(fd uintptr) bool {
	r.msg.Control, r.msg.Flags = &r.control[0], 0
	r.msg.SetControllen(len(r.control))
	for {
		r.n, _, r.errno = unix.Syscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&r.msg)), 0)
		if r.errno != unix.EINTR {
			readOrdered(fd)
			return r.errno != unix.EAGAIN
		}
	}
}

// readStamped reads as the connection's Read does, and notes how long ago the kernel
// received the last segment of what was read.
func (s *socket) readStamped(p []byte) (int, error) {
	r := s.receiver
	s.delay = noDelay
	if len(p) == 0 {
		return 0, nil
	}
	r.iov.Base = &p[0]
	r.iov.SetLen(len(p))
	r.msg.Iov = &r.iov
	r.msg.SetIovlen(1)
	err := s.raw.Read(r.once)
	r.iov.Base = nil
	switch {
	case err != nil: // of the same kind as the connection's own
		if op, ok := errors.AsType[*net.OpError](err); ok {
			op.Op = "read"
		}
		return 0, err
	case r.errno != 0:
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: os.NewSyscallError("recvmsg", r.errno)}
	case r.n == 0:
		return 0, io.EOF
	}
	if at := r.stamp(); at > 0 {
		s.delay = max(time.Duration(time.Now().UnixNano()-at), 0)
	}
	return int(r.n), nil
}

// stamp returns the kernel's software timestamp of the last read in Unix nanoseconds, 0
// without one. Of segments that the kernel has merged it is that of the last.
func (r *receiver) stamp() int64 {
	const header = unix.SizeofCmsghdr // of 16 bytes, so that the data is aligned
	if r.msg.Controllen < header+uint64(unsafe.Sizeof(unix.Timespec{})) {
		return 0
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&r.control[0]))
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SO_TIMESTAMPING {
		return 0
	}
	return (*unix.Timespec)(unsafe.Pointer(&r.control[header])).Nano()
}
