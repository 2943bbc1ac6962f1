package datasets

import (
	"bufio"
	"bytes"
	"io"
)

// maxRecord bounds a record in bytes, and so the memory of a reader. A prompt
// of a million tokens is some 5 MB.
const maxRecord = 64 << 20

const tooLong = "the record is longer than 64 MiB: is this the right format?"

// records yields the raw records of a source one at a time.
type records interface {
	// next returns the next record, valid until the following call, and where
	// it begins; io.EOF at the end. Other errors are faults that stop.
	next() (raw []byte, err error)
	// place converts an offset in the current record to a line and a column.
	place(offset int) (line, col int64)
	// last reports that the input ends within or directly behind the current
	// record, so that a record that does not parse was cut off.
	last() bool
}

// A lineReader yields the lines of an input, without blank ones.
type lineReader struct {
	in   *bufio.Reader
	max  int
	buf  []byte // a line that is longer than the buffer of in
	line int64
	eof  bool
}

func newLineReader(in *bufio.Reader) *lineReader { return &lineReader{in: in, max: maxRecord} }

func (l *lineReader) next() ([]byte, error) {
	for !l.eof {
		raw, err := l.read()
		if err != nil {
			return nil, err
		}
		if raw = bytes.TrimRight(raw, "\r\n"); len(bytes.TrimSpace(raw)) > 0 {
			return raw, nil
		}
	}
	return nil, io.EOF
}

// read returns the next line with its end.
func (l *lineReader) read() ([]byte, error) {
	l.line++
	l.buf = l.buf[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		switch {
		case err == nil && len(l.buf) == 0:
			return part, nil
		case err == io.EOF:
			l.eof = true
		case err != nil && err != bufio.ErrBufferFull:
			return nil, broken(l.line, int64(len(l.buf)+len(part))+1, err)
		}
		l.buf = append(l.buf, part...)
		if len(l.buf) > l.max {
			return nil, refuse(l.line, 1, tooLong)
		}
		if err != bufio.ErrBufferFull {
			return l.buf, nil
		}
	}
}

func (l *lineReader) place(offset int) (line, col int64) { return l.line, int64(offset) + 1 }

func (l *lineReader) last() bool { return l.eof }
