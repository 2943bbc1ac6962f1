//go:build unix

package objectstore

import (
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pipePatience is how long a writer may take to open a named pipe.
const pipePatience = 20 * time.Second

func openFile(name string) (*os.File, error) { return openWithin(name, pipePatience) }

// openWithin opens a file. To open a named pipe would wait for a writer, without end and past any
// interrupt.
func openWithin(name string, patience time.Duration) (*os.File, error) {
	if info, err := os.Stat(name); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return os.Open(name)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	raw, err := f.SyscallConn()
	if err == nil {
		var ready bool
		if raw.Control(func(fd uintptr) { ready = comes(int(fd), patience) }); !ready {
			err = fmt.Errorf("open %s: it is a pipe, and nothing has written to it for %v: start its writer, and "+
				"then this command", name, patience)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// comes waits until something has come, or its writer has come and gone.
func comes(fd int, patience time.Duration) bool {
	for end := time.Now().Add(patience); ; {
		left := time.Until(end)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(max(left, 0)/time.Millisecond))
		if n > 0 {
			return true
		}
		if err != nil && err != unix.EINTR || left <= 0 {
			return false
		}
	}
}
