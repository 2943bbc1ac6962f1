package trace

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
)

// A Spill is a private file for what does not fit in memory. It has no name
// where the system allows that, and is gone when it is closed or the process
// ends. One goroutine may append at a time; readers of what was appended may be
// used beside it and beside each other.
type Spill struct {
	file *os.File
	size int64
}

// An Extent is a stretch of a [Spill], in bytes.
type Extent struct{ At, Len int64 }

// NewSpill opens an empty spill in dir, or in os.TempDir when it is empty.
func NewSpill(dir string) (*Spill, error) {
	f, err := TempFile(dir)
	if err != nil {
		return nil, err
	}
	return &Spill{file: f}, nil
}

// Append writes p behind all before it and says where it is.
func (s *Spill) Append(p []byte) (Extent, error) {
	n, err := s.file.WriteAt(p, s.size)
	e := Extent{s.size, int64(n)}
	s.size += int64(n)
	return e, err
}

// Size is how many bytes were appended.
func (s *Spill) Size() int64 { return s.size }

// Close drops the file.
func (s *Spill) Close() error { return s.file.Close() }

// Reader reads extents one after the other through a buffer of about so many
// bytes, which grows to the longest piece that [SpillReader.Next] is asked for.
// It allocates the buffer when it is first used.
func (s *Spill) Reader(buffer int, extents ...Extent) *SpillReader {
	return &SpillReader{file: s.file, rest: slices.Clone(extents), size: max(buffer, 2*binary.MaxVarintLen64)}
}

// A SpillReader reads numbers and pieces of a [Spill]. Its errors are io.EOF
// at the end and those of the file; a number or a piece that is cut off is
// io.ErrUnexpectedEOF.
type SpillReader struct {
	file io.ReaderAt
	rest []Extent // not in buf yet
	size int
	buf  []byte
	pos  int // of the next byte in buf
}

// fill makes n bytes of buf readable, or as many as there are.
func (r *SpillReader) fill(n int) error {
	if len(r.rest) == 0 {
		return nil
	}
	r.size = max(r.size, n)
	if r.buf == nil || cap(r.buf) < r.size {
		r.buf = append(make([]byte, 0, r.size), r.buf[r.pos:]...)
	} else {
		r.buf = r.buf[:copy(r.buf, r.buf[r.pos:])]
	}
	r.pos = 0
	for len(r.buf) < n && len(r.rest) > 0 {
		e := &r.rest[0]
		end := min(int64(cap(r.buf)), int64(len(r.buf))+e.Len)
		m, err := r.file.ReadAt(r.buf[len(r.buf):end], e.At)
		r.buf = r.buf[:len(r.buf)+m]
		e.At, e.Len = e.At+int64(m), e.Len-int64(m)
		if e.Len == 0 {
			r.rest = r.rest[1:]
		} else if err != nil {
			return errors.Join(io.ErrUnexpectedEOF, err)
		}
	}
	return nil
}

// Uvarint reads a number as encoding/binary writes it.
func (r *SpillReader) Uvarint() (uint64, error) {
	if r.pos < len(r.buf) {
		if b := r.buf[r.pos]; b < 0x80 {
			r.pos++
			return uint64(b), nil
		}
	}
	if len(r.buf)-r.pos < binary.MaxVarintLen64 {
		if err := r.fill(binary.MaxVarintLen64); err != nil {
			return 0, err
		}
	}
	x, n := binary.Uvarint(r.buf[r.pos:])
	switch {
	case n > 0:
		r.pos += n
		return x, nil
	case r.pos == len(r.buf):
		return 0, io.EOF
	}
	return 0, io.ErrUnexpectedEOF
}

// Next returns the next n bytes, which are valid until the following call.
func (r *SpillReader) Next(n int) ([]byte, error) {
	if missing := int64(n - (len(r.buf) - r.pos)); n < 0 || missing > 0 {
		for _, e := range r.rest {
			missing -= e.Len
		}
		if n < 0 || missing > 0 {
			return nil, io.ErrUnexpectedEOF
		}
		if err := r.fill(n); err != nil {
			return nil, err
		}
	}
	p := r.buf[r.pos : r.pos+n]
	r.pos += n
	return p, nil
}
