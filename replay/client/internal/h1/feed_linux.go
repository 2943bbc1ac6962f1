//go:build linux && (amd64 || arm64)

package h1

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A feed is a TCP connection that a reader reads while an exchange is under way. It is a
// net.Conn for one goroutine; deadlines and Close may come from others.
type feed struct {
	reader        *reader
	local, remote net.Addr
	fd            int

	mu      sync.Mutex
	closed  bool
	begun   bool   // an exchange is under way
	writing bool   // Write waits for room
	watched uint32 // what the kernel was asked for
	broken  bool   // by a deadline that has passed: what came before it is read, and no more
	room    int    // the most bytes that wait to be read

	come  *backlog // what waits to be read, nil without any
	err   error    // after it
	errAt time.Time

	batch   bool // events may wait
	waiting bool // a Read or a Write does
	waits   uint64
	wake    chan struct{}

	// Of the last Read, for the goroutine that reads.
	readAt    time.Time
	readDelay time.Duration
}

// A backlog is what has come and waits to be read. One that is empty serves another
// connection.
type backlog struct {
	bytes []byte
	at    int // of bytes, has been read
	reads []oneRead
	first int // of reads, that has something left
}

// A oneRead is what the reader read at once.
type oneRead struct {
	end   int // in bytes
	at    time.Time
	delay time.Duration
}

var backlogs = sync.Pool{New: func() any { return &backlog{bytes: make([]byte, 0, keptRoom)} }}

const (
	// feedRoom bounds the bytes of a connection that wait to be read. Those of many
	// connections are at most four times the waitingRoom of their reader.
	feedRoom = 256 << 10
	keptRoom = 4 << 10 // of a backlog that is new
)

// unread is how many bytes wait to be read.
func (f *feed) unread() int {
	if f.come == nil {
		return 0
	}
	return len(f.come.bytes) - f.come.at
}

// drop gives the backlog to other connections, unless it has become large.
func (f *feed) drop() {
	if b := f.come; b != nil && cap(b.bytes) <= feedRoom/4 {
		b.bytes, b.at, b.reads, b.first = b.bytes[:0], 0, b.reads[:0], 0
		backlogs.Put(b)
	}
	f.come = nil
}

// newFeed takes a TCP connection over from Go's poller, or returns nil where that cannot
// be done.
func newFeed(nc net.Conn, rs *Readers) *feed {
	tcp, ok := nc.(*net.TCPConn)
	if !ok || rs == nil {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	fd := -1
	rerr := raw.Control(func(original uintptr) {
		if fd, err = unix.FcntlInt(original, unix.F_DUPFD_CLOEXEC, 0); err != nil {
			return
		}
		// The kernel is asked to note when segments come. It is not done where the kernel,
		// or a seccomp filter, does not allow it.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING,
			unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
	})
	if rerr != nil || err != nil {
		return nil
	}
	f := &feed{reader: rs.forOne(), local: nc.LocalAddr(), remote: nc.RemoteAddr(), fd: fd, room: feedRoom,
		wake: make(chan struct{}, 1), readDelay: noDelay}
	nc.Close() // the connection lives on in its other descriptor
	return f
}

// begin has the reader read.
func (f *feed) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = true
	f.watch()
}

// end ends an exchange, and reports whether nothing was read that nobody asked for.
func (f *feed) end() (clean bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	clean = f.unread() == 0
	f.begun, f.batch, f.err = false, false, nil
	f.drop()
	f.watch()
	return clean
}

// inBatches says that events may wait for each other: the answer is a stream.
func (f *feed) inBatches(may bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.batch = may
}

// watch asks the kernel for what is wanted now.
func (f *feed) watch() {
	var want uint32
	if f.begun && f.err == nil && !f.broken && f.unread() < f.room {
		want |= unix.EPOLLIN
	}
	if f.writing {
		want |= unix.EPOLLOUT
	}
	if want == f.watched || f.closed {
		return
	}
	if err := f.reader.watch(f, f.watched, want); err != nil && want != 0 {
		f.fail(&net.OpError{Op: "read", Net: "tcp", Source: f.local, Addr: f.remote, Err: err})
		return
	}
	f.watched = want
}

// fail notes an error after what has come.
func (f *feed) fail(err error) {
	f.err, f.errAt = err, time.Now()
	f.wakeUp()
}

// wakeUp wakes the goroutine that waits.
func (f *feed) wakeUp() {
	if f.waiting {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

// ready is called by the reader when the kernel has something to tell.
func (f *feed) ready(events uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watched == 0 || f.closed {
		return // it is about what was here before
	}
	if f.writing && events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		f.writing = false
		f.wakeUp()
	}
	if f.watched&unix.EPOLLIN != 0 && events&^unix.EPOLLOUT != 0 {
		f.room = 4 * f.reader.share
		f.take()
	}
	f.watch()
}

// take reads once.
func (f *feed) take() {
	p, at, delay, errno := f.reader.receive(f.fd)
	switch {
	case errno == unix.EAGAIN:
		return
	case errno != 0:
		f.fail(&net.OpError{Op: "read", Net: "tcp", Source: f.local, Addr: f.remote,
			Err: os.NewSyscallError("recvmsg", errno)})
		return
	case len(p) == 0:
		f.fail(io.EOF)
		return
	}
	if f.come == nil {
		f.come = backlogs.Get().(*backlog)
	}
	b := f.come
	b.bytes = append(b.bytes, p...)
	b.reads = append(b.reads, oneRead{len(b.bytes), at, delay})
	switch {
	case !f.waiting:
	case !f.batch || f.unread() >= f.reader.share || endsBody(p):
		f.wakeUp()
	case len(b.reads) == 1:
		f.reader.late = append(f.reader.late, lateWake{f, f.waits, at.Add(batchFor)})
	}
}

// wait waits to be woken. It is called, and returns, with mu locked.
func (f *feed) wait() {
	f.waiting = true
	f.waits++
	f.mu.Unlock()
	<-f.wake
	f.mu.Lock()
	f.waiting = false
	select {
	case <-f.wake: // a second one
	default:
	}
}

// Read implements net.Conn. It returns bytes of one read of the reader.
func (f *feed) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.come == nil {
		switch {
		case f.closed:
			return 0, net.ErrClosed
		case f.err != nil:
			f.readAt, f.readDelay = f.errAt, noDelay
			return 0, f.err
		case f.broken:
			f.readAt, f.readDelay = time.Now(), noDelay
			return 0, os.ErrDeadlineExceeded
		}
		f.wait()
	}
	b := f.come
	one := &b.reads[b.first]
	n := copy(p, b.bytes[b.at:one.end])
	f.readAt, f.readDelay = one.at, one.delay
	if b.at += n; b.at == one.end {
		b.first++
	}
	if b.at == len(b.bytes) {
		f.drop()
		f.watch()
	}
	return n, nil
}

// readOnce reads what has come while no exchange is under way.
func (f *feed) readOnce(p []byte) (int, error) { return syscall.Read(f.fd, p) }

// writeOnce writes as much as there is room for.
func (f *feed) writeOnce(p []byte) (int, error) { return syscall.Write(f.fd, p) }

// Write implements net.Conn.
func (f *feed) Write(p []byte) (n int, err error) {
	for n < len(p) {
		m, err := f.writeOnce(p[n:])
		n += max(m, 0)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			if err := f.waitForRoom(); err != nil {
				return n, err
			}
		case err != nil:
			return n, &net.OpError{Op: "write", Net: "tcp", Source: f.local, Addr: f.remote,
				Err: os.NewSyscallError("write", err)}
		}
	}
	return n, nil
}

func (f *feed) waitForRoom() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.writing = true; f.writing; {
		switch {
		case f.closed:
			return net.ErrClosed
		case f.broken:
			f.writing = false
			f.watch()
			return os.ErrDeadlineExceeded
		}
		f.watch()
		if f.watched == 0 { // it could not be watched
			f.writing = false
			return f.err
		}
		f.wait()
	}
	return nil
}

// Close implements net.Conn.
func (f *feed) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return net.ErrClosed
	}
	f.begun, f.writing = false, false
	f.watch()
	f.closed = true
	f.wakeUp()
	return unix.Close(f.fd)
}

// SetDeadline implements net.Conn for deadlines that have passed, and for none.
func (f *feed) SetDeadline(t time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !t.IsZero() && t.After(time.Now()) {
		return os.ErrNoDeadline
	}
	f.broken = !t.IsZero()
	f.watch()
	f.wakeUp()
	return nil
}

// SetReadDeadline implements net.Conn as SetDeadline does.
func (f *feed) SetReadDeadline(t time.Time) error { return f.SetDeadline(t) }

// SetWriteDeadline implements net.Conn as SetDeadline does.
func (f *feed) SetWriteDeadline(t time.Time) error { return f.SetDeadline(t) }

// LocalAddr implements net.Conn.
func (f *feed) LocalAddr() net.Addr { return f.local }

// RemoteAddr implements net.Conn.
func (f *feed) RemoteAddr() net.Addr { return f.remote }
