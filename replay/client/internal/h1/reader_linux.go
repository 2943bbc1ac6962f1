//go:build linux && (amd64 || arm64)

package h1

import (
	"bytes"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"reprise/trace/crash"
)

// Readers read the answers of any number of connections, each reader in a goroutine of
// its own that waits in the kernel. They take the instant of every read, and wake the
// goroutine that an answer is for when it has something to do, not for each event.
//
// Go's own poller wakes a goroutine for each event, which looks for work and then sleeps
// again: that was most of the CPU time of a replay of slow streams. Close them after the
// clients that use them.
type Readers struct {
	each []*reader
	next atomic.Uint32
}

// NewReaders makes as many readers as suit this machine: one reads some 150,000 events
// a second. They run while they have something to read, or are watched.
func NewReaders() *Readers {
	rs := &Readers{}
	for i := range 1 + (runtime.GOMAXPROCS(0)-1)/4 {
		rs.each = append(rs.each, &reader{index: i, epoll: -1, feeds: map[int32]*feed{}})
	}
	return rs
}

// Watch has every reader call beat at least each millisecond with its number, from 0 on,
// until the next call. A nil beat ends it. It returns the number of readers, or 0 where they
// cannot be started.
func (rs *Readers) Watch(beat func(reader int)) int {
	if rs == nil {
		return 0
	}
	for _, r := range rs.each {
		if !r.watchBy(beat) {
			return 0
		}
	}
	return len(rs.each)
}

// Close gives the readers' descriptors back, once they have nothing left to read.
func (rs *Readers) Close() {
	if rs == nil {
		return
	}
	for _, r := range rs.each {
		r.mu.Lock()
		if r.closed = true; !r.runs && r.epoll >= 0 {
			unix.Close(r.epoll)
			r.epoll = -1
		}
		r.mu.Unlock()
	}
}

// forOne chooses the reader of a connection.
func (rs *Readers) forOne() *reader { return rs.each[int(rs.next.Add(1))%len(rs.each)] }

const (
	// readerTick bounds a wait of a reader, and so the resolution of what its watcher sees;
	// in milliseconds.
	readerTick = 1
	// batchFor is how long the events of a stream may wait for the goroutine that they are
	// for. Their instants have been taken.
	batchFor = 500 * time.Millisecond
	// wokenAlong is how many of those that wait are woken with one whose time has come:
	// a goroutine that is woken alone wakes a thread, which takes longer than to read
	// what has come.
	wokenAlong = 32
	// waitingRoom is how many bytes of all streams of a reader may wait so. It is shared
	// out evenly; a stream has at least keptRoom and at most feedRoom/4.
	waitingRoom = 16 << 20
	// readAtMost is how many bytes one read takes.
	readAtMost = 64 << 10
)

// A reader waits for the connections of many feeds.
type reader struct {
	index int

	mu     sync.Mutex
	epoll  int             // -1 before it has run, and at the end
	feeds  map[int32]*feed // that are watched, by file descriptor
	beat   func(reader int)
	runs   bool
	closed bool

	// For its goroutine alone.
	late    []lateWake // in the order of their instants
	share   int        // of waitingRoom, for each feed
	space   []byte
	msg     unix.Msghdr
	iov     unix.Iovec
	control [128]byte // a header and three times; the kernel drops what does not fit
}

// A lateWake wakes the goroutine that waits for a feed, if it still waits as it did.
type lateWake struct {
	feed *feed
	wait uint64
	at   time.Time
}

// watchBy sets the beat, and reports whether the reader runs.
func (r *reader) watchBy(beat func(reader int)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beat = beat
	return beat == nil || r.start() == nil
}

// start has the reader run. It is called with mu locked.
func (r *reader) start() error {
	if r.runs {
		return nil
	}
	if r.epoll < 0 {
		epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return os.NewSyscallError("epoll_create1", err)
		}
		r.epoll = epoll
	}
	if r.space == nil {
		r.space = make([]byte, readAtMost)
	}
	r.runs = true
	go func() {
		defer crash.Caught()
		r.read()
	}()
	return nil
}

// watch asks the kernel for events of a feed, in place of those that it was asked for
// before; 0 are none.
func (r *reader) watch(f *feed, before, events uint32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	call := unix.EPOLL_CTL_MOD
	switch {
	case before == 0:
		call = unix.EPOLL_CTL_ADD
		if err := r.start(); err != nil {
			return err
		}
	case events == 0:
		call = unix.EPOLL_CTL_DEL
	}
	if err := unix.EpollCtl(r.epoll, call, f.fd, &unix.EpollEvent{Events: events, Fd: int32(f.fd)}); err != nil {
		return os.NewSyscallError("epoll_ctl", err) // such as a limit on watches
	}
	if events == 0 {
		delete(r.feeds, int32(f.fd))
	} else {
		r.feeds[int32(f.fd)] = f
	}
	return nil
}

// read reads until nothing is watched.
func (r *reader) read() {
	var ready [256]unix.EpollEvent
	for {
		r.mu.Lock()
		beat, epoll := r.beat, r.epoll
		if len(r.feeds) == 0 && beat == nil {
			if r.runs = false; r.closed {
				unix.Close(epoll)
				r.epoll = -1
			}
			r.late = nil
			r.mu.Unlock()
			return
		}
		r.share = min(max(waitingRoom/max(len(r.feeds), 1), keptRoom), feedRoom/4)
		r.mu.Unlock()
		for _, e := range ready[:epollKept(epoll, ready[:])] {
			r.mu.Lock()
			f := r.feeds[e.Fd]
			r.mu.Unlock()
			if f != nil {
				f.ready(e.Events)
			}
		}
		r.wakeLate()
		if beat != nil {
			beat(r.index)
		}
	}
}

// epollKept waits for a tick without Go's knowledge, so that the wait keeps its processor:
// giving it back and getting one takes longer than the read that follows. When Go wants the
// goroutine to stop, its signal ends the wait, and the next call of this function, which
// for that must stay one, is where the goroutine stops.
//
//go:noinline
func epollKept(epoll int, ready []unix.EpollEvent) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(&ready[0])),
		uintptr(len(ready)), readerTick, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// wakeLate wakes those whose events have waited long enough, and others along with them.
func (r *reader) wakeLate() {
	if len(r.late) == 0 {
		return
	}
	now, n := time.Now(), 0
	if now.Before(r.late[0].at) {
		return
	}
	for n < len(r.late) && (n < wokenAlong || !now.Before(r.late[n].at)) {
		l := &r.late[n]
		l.feed.mu.Lock()
		if l.feed.waits == l.wait {
			l.feed.wakeUp()
		}
		l.feed.mu.Unlock()
		l.feed = nil
		n++
	}
	r.late = r.late[n:]
}

// receive reads what has come once, into the reader's space, with the instant and how long
// before it the kernel received the last segment.
func (r *reader) receive(fd int) (p []byte, at time.Time, delay time.Duration, errno syscall.Errno) {
	r.iov.Base = &r.space[0]
	r.iov.SetLen(len(r.space))
	r.msg.Iov = &r.iov
	r.msg.SetIovlen(1)
	r.msg.Control, r.msg.Flags = &r.control[0], 0
	r.msg.SetControllen(len(r.control))
	var n uintptr
	for {
		n, _, errno = unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.msg)), unix.MSG_DONTWAIT)
		if errno != unix.EINTR {
			break
		}
	}
	readOrdered(uintptr(fd))
	at = time.Now()
	if errno != 0 {
		return nil, at, noDelay, errno
	}
	delay = noDelay
	if stamp := r.stamp(); stamp > 0 {
		delay = max(time.Duration(at.UnixNano()-stamp), 0)
	}
	return r.space[:n], at, delay, 0
}

// stamp returns the kernel's software timestamp of the last read in Unix nanoseconds, 0
// without one. Of segments that the kernel has merged it is that of the last.
func (r *reader) stamp() int64 {
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

// lastChunk ends a chunked body without trailers. Where data ends so, nobody is the worse
// for a goroutine that was woken too early.
var lastChunk = []byte("\r\n0\r\n\r\n")

func endsBody(p []byte) bool { return bytes.HasSuffix(p, lastChunk) || string(p) == "0\r\n\r\n" }
