package trace

import (
	"encoding/binary"
	"errors"
	"io"
)

// A Shelf keeps the rows of a trace in a private file and gives back any of them by its
// number, for a reader that needs them in an order of its own. It takes 8 bytes of memory
// for each row. Write all rows first; then one goroutine may read.
type Shelf struct {
	spill *Spill
	ends  []int64 // of each row in the file
	buf   []byte  // written, not in the file yet; then what was read
	dec   rowDecoder
}

// NewShelf opens an empty shelf in dir, or in os.TempDir when it is empty.
func NewShelf(dir string) (*Shelf, error) {
	spill, err := NewSpill(dir)
	if err != nil {
		return nil, err
	}
	return &Shelf{spill: spill}, nil
}

// Write implements [Writer]; nothing of the rows is kept in memory.
func (s *Shelf) Write(rows []Request) (int, error) {
	for i := range rows {
		s.buf = appendCanonical(s.buf, &rows[i])
		s.ends = append(s.ends, s.spill.Size()+int64(len(s.buf)))
		if len(s.buf) >= chunkBytes {
			if err := s.flush(); err != nil {
				return i, err
			}
		}
	}
	return len(rows), nil
}

func (s *Shelf) flush() error {
	_, err := s.spill.Append(s.buf)
	s.buf = s.buf[:0]
	return err
}

// Len is the number of rows.
func (s *Shelf) Len() int64 { return int64(len(s.ends)) }

var errShelf = errors.New("a shelf of rows has no row of this number")

// Row reads a row by its number. What it points to is not used again.
func (s *Shelf) Row(i int64, r *Request) error {
	if i < 0 || i >= int64(len(s.ends)) {
		return errShelf
	}
	if len(s.buf) > 0 && s.spill.Size() < s.ends[len(s.ends)-1] {
		if err := s.flush(); err != nil {
			return err
		}
	}
	from := int64(0)
	if i > 0 {
		from = s.ends[i-1]
	}
	b, err := s.spill.Reader(max(int(s.ends[i]-from), 2*binary.MaxVarintLen64), Extent{from, s.ends[i] - from}).Next(
		int(s.ends[i] - from))
	if err != nil {
		return err
	}
	*r = Request{}
	return s.dec.decode(b, r)
}

// Reader reads all rows in their order. What they point to is not used again.
func (s *Shelf) Reader() Reader[Request] {
	return &shelfReader{shelf: s}
}

type shelfReader struct {
	shelf *Shelf
	rest  *SpillReader
	next  int64
	dec   rowDecoder
}

// Read implements [Reader].
func (r *shelfReader) Read(rows []Request) (int, error) {
	if r.rest == nil {
		if err := r.shelf.flush(); err != nil {
			return 0, err
		}
		r.rest = r.shelf.spill.Reader(chunkBytes, Extent{0, r.shelf.spill.Size()})
	}
	for i := range rows {
		if r.next == r.shelf.Len() {
			return i, io.EOF
		}
		from := int64(0)
		if r.next > 0 {
			from = r.shelf.ends[r.next-1]
		}
		b, err := r.rest.Next(int(r.shelf.ends[r.next] - from))
		if err != nil {
			return i, err
		}
		rows[i] = Request{}
		if err := r.dec.decode(b, &rows[i]); err != nil {
			return i, err
		}
		r.next++
	}
	return len(rows), nil
}

// Close drops the rows.
func (s *Shelf) Close() error { return s.spill.Close() }
