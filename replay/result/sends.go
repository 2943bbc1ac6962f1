package result

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"reprise/trace/objectstore"
)

// SendsName is the name of the [SendLog] of a run whose results are to be at path.
func SendsName(path string) string { return path + ".sent" }

// A SendLog notes which requests of a run were sent, each when it is: 8 bytes, its number
// among the rows that are read. A journal has a request only when it is over, so that of a
// run that was killed only this says what the server had already seen.
type SendLog struct {
	path    string
	resumed bool
	begun   sync.Once
	file    *os.File
	err     atomic.Pointer[error] // the first; nothing is written after it
}

// NewSendLog makes the log of a run whose results are to be at path. The file is opened
// with the first note: anew, or with resumed after what earlier parts of the run have left.
func NewSendLog(path string, resumed bool) *SendLog {
	return &SendLog{path: SendsName(path), resumed: resumed}
}

func (l *SendLog) open() {
	mode := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if !l.resumed {
		mode |= os.O_TRUNC
	}
	f, err := os.OpenFile(l.path, mode, 0o600)
	if err != nil {
		l.err.Store(&err)
		return
	}
	l.file = f
	fi, err := f.Stat()
	if err == nil && fi.Size()%8 != 0 { // killed within a write
		err = f.Truncate(fi.Size() - fi.Size()%8)
	}
	if err != nil {
		l.err.Store(&err)
	}
}

// Note notes a request. When it returns, the note is safe from the death of the process.
// Any number of goroutines may call it.
func (l *SendLog) Note(id int64) {
	if l == nil {
		return
	}
	if l.begun.Do(l.open); l.err.Load() != nil {
		return
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(id))
	if _, err := l.file.Write(b[:]); err != nil { // at the end, in one piece
		l.err.CompareAndSwap(nil, &err)
	}
}

// Close closes the log, which stays on disk until [Finish] removes it. Its error is that
// of a note that could not be written.
func (l *SendLog) Close() error {
	if l == nil {
		return nil
	}
	var err error
	if failed := l.err.Load(); failed != nil {
		err = fmt.Errorf("replay: what was sent cannot be noted, so that a resumption would not know it: %w", *failed)
	}
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	return err
}

// ReadSends calls each with every number in the log of a run whose results are to be at
// path. It reports whether there is a log: runs of earlier versions have none.
func ReadSends(path string, each func(id int64)) (found bool, err error) {
	f, err := objectstore.Open(SendsName(path))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	for {
		var b [8]byte
		switch _, err := io.ReadFull(in, b[:]); err {
		case nil:
			each(int64(binary.LittleEndian.Uint64(b[:])))
		case io.EOF, io.ErrUnexpectedEOF:
			return true, nil
		default:
			return true, fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
}
