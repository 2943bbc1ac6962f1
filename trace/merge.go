package trace

import (
	"container/heap"
	"encoding/binary"
	"io"
)

// mergeBytes is the memory of all buffers of a merge together, as long as its
// runs are no more than 2,048.
const mergeBytes = 8 << 20

// A merge steps through encoded rows in their order, from memory or from the
// runs of a spill. The runs are merged anew each time they are read: that is
// comparing one key a row, and spares writing the rows a second time.
type merge struct {
	mem  *heldRows
	i    int
	runs cursors
	used bool // the row of the first cursor was given out
}

func (s *Sorted) merge() (*merge, error) {
	m := &merge{mem: &s.mem}
	for _, run := range s.runs {
		c := &cursor{r: s.spill.Reader(min(max(mergeBytes/len(s.runs), 4<<10), 256<<10), run)}
		if err := c.next(); err != nil {
			return nil, err
		}
		m.runs = append(m.runs, c)
	}
	heap.Init(&m.runs)
	return m, nil
}

// next returns the next row, valid until the following call.
func (m *merge) next() (rowKey, []byte, error) {
	if m.i < len(m.mem.refs) {
		b := m.mem.bytes(m.i)
		key := m.mem.refs[m.i].key
		m.i++
		_, n := binary.Uvarint(b)
		return key, b[n:], nil
	}
	if m.used {
		switch err := m.runs[0].next(); {
		case err == io.EOF:
			heap.Pop(&m.runs)
		case err != nil:
			return rowKey{}, nil, err
		default:
			heap.Fix(&m.runs, 0)
		}
		m.used = false
	}
	if len(m.runs) == 0 {
		return rowKey{}, nil, io.EOF
	}
	m.used = true
	return m.runs[0].key, m.runs[0].row, nil
}

// A cursor steps through a run.
type cursor struct {
	r   *SpillReader
	key rowKey
	row []byte
}

func (c *cursor) next() error {
	n, err := c.r.Uvarint()
	if err != nil {
		return err
	}
	b, err := c.r.Next(int(n))
	if err != nil {
		return err
	}
	seq, k := binary.Uvarint(b)
	if k <= 0 {
		return errSpill
	}
	arrival, k2 := binary.Varint(b[k:])
	if k2 <= 0 {
		return errSpill
	}
	c.key, c.row = rowKey{arrival, int64(seq)}, b[k:]
	return nil
}

// cursors is a heap of those that have a row.
type cursors []*cursor

func (h cursors) Len() int           { return len(h) }
func (h cursors) Less(i, j int) bool { return h[i].key.compare(h[j].key) < 0 }
func (h cursors) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *cursors) Push(x any)        { *h = append(*h, x.(*cursor)) }
func (h *cursors) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
