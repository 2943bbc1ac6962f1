package trace

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// sortBytes is how much a Sorter holds before it spills a run.
const sortBytes = 48 << 20

// A Sorter puts rows in order of arrival; rows that arrive at one instant keep
// the order in which they were written. Parents are given by position in that
// order and come out as rows of the sorted trace.
//
// Memory is bounded: rows beyond 48 MiB go to a private spill file that has no
// name. What stays is 8 bytes a row, and only for rows that have parents among
// them and come out of order.
type Sorter struct {
	dir        string
	limit      int64
	seq        int64
	last       int64    // arrival of the row before
	disordered bool     // some row arrives before the one before it
	parents    bool     // some row has parents
	like       *Request // that most rows are like: the first that others can be like, nil before
	rows       heldRows
	scratch    []byte
	spill      *Spill
	runs       [][]Extent // each in order
}

// NewSorter makes a Sorter that spills to dir, or to os.TempDir when empty.
func NewSorter(dir string) *Sorter { return &Sorter{dir: dir, limit: sortBytes} }

// Write implements [Writer]; nothing of the rows is kept.
func (s *Sorter) Write(rows []Request) (int, error) {
	for i := range rows {
		if err := s.Add(&rows[i]); err != nil {
			return i, err
		}
	}
	return len(rows), nil
}

// Add writes a row.
func (s *Sorter) Add(r *Request) error {
	s.disordered = s.disordered || s.seq > 0 && r.ArrivalNS < s.last
	s.parents = s.parents || len(r.Parents) > 0
	s.last = r.ArrivalNS
	if s.scratch = binary.AppendUvarint(s.scratch[:0], uint64(s.seq)); s.isLike(r) {
		s.scratch = append(binary.AppendVarint(s.scratch, r.ArrivalNS), likeMark)
		s.scratch = appendIDs(appendLengths(s.scratch, "", r.InputTokens, r.OutputTokens), r.Blocks)
	} else {
		s.scratch = appendCanonical(s.scratch, r)
	}
	s.rows.add(rowKey{r.ArrivalNS, s.seq}, s.scratch)
	s.seq++
	if s.rows.size >= s.limit {
		return s.flush()
	}
	return nil
}

// likeMark stands behind the arrival of a row that is like [Sorter.like], before the columns that it does not share
// with it. Behind that of another row is 0 or 1.
const likeMark = 2

func (s *Sorter) isLike(r *Request) bool {
	if s.like == nil {
		if like, ok := plain(r); ok {
			s.like = &like
		}
	}
	return s.like != nil && r.Session == nil && r.Turn == nil && r.Category == s.like.Category && alike(r, s.like)
}

// Disordered reports whether some row so far arrives before the one before it.
func (s *Sorter) Disordered() bool { return s.disordered }

// flush writes the rows in memory to a run of the spill, each after its length.
func (s *Sorter) flush() (err error) {
	if s.spill == nil {
		if s.spill, err = NewSpill(s.dir); err != nil {
			return err
		}
	}
	if s.disordered {
		s.rows.sort()
	}
	run := Extent{At: s.spill.Size()}
	buf := make([]byte, 0, chunkBytes)
	write := func() error {
		_, err := s.spill.Append(buf)
		buf = buf[:0]
		return err
	}
	for i := range s.rows.refs {
		b := s.rows.bytes(i)
		buf = append(binary.AppendUvarint(buf, uint64(len(b))), b...)
		if len(buf) >= chunkBytes-(4<<10) {
			if err := write(); err != nil {
				return err
			}
		}
	}
	if err := write(); err != nil {
		return err
	}
	run.Len = s.spill.Size() - run.At
	if s.disordered || len(s.runs) == 0 {
		s.runs = append(s.runs, nil)
	}
	of := &s.runs[len(s.runs)-1]
	*of = append(*of, run)
	s.rows.clear()
	return nil
}

// Close drops what was written. The Sorted that Sort returned is unaffected.
func (s *Sorter) Close() error {
	s.rows, s.runs = heldRows{}, nil
	if s.spill == nil {
		return nil
	}
	f := s.spill
	s.spill = nil
	return f.Close()
}

// Sort ends the writing and returns the rows in order of arrival.
func (s *Sorter) Sort() (*Sorted, error) {
	if s.spill != nil && len(s.rows.refs) > 0 {
		if err := s.flush(); err != nil {
			return nil, err
		}
	}
	out := &Sorted{rows: s.seq, spill: s.spill, runs: s.runs, like: s.like}
	if s.spill == nil {
		if s.disordered {
			s.rows.sort()
		}
		out.mem = s.rows
	}
	s.rows, s.spill, s.runs = heldRows{}, nil, nil
	if s.parents && s.disordered {
		if err := out.locate(); err != nil {
			return nil, errors.Join(err, out.Close())
		}
	}
	return out, nil
}

// Sorted holds rows in order of arrival. It can be read any number of times.
type Sorted struct {
	rows  int64
	pos   []int64 // by order of writing: the row in the sorted trace; nil when that is the same
	mem   heldRows
	spill *Spill // with all rows, or nil when they are in mem
	runs  [][]Extent
	like  *Request // see [Sorter]
}

// Rows returns the number of rows.
func (s *Sorted) Rows() int64 { return s.rows }

// SpillBytes returns the size of the private file that holds the rows.
func (s *Sorted) SpillBytes() int64 {
	if s.spill == nil {
		return 0
	}
	return s.spill.Size()
}

// locate finds where each row came to.
func (s *Sorted) locate() error {
	s.pos = make([]int64, s.rows)
	return s.Order(func(row, written int64) error {
		if written >= s.rows {
			return errSpill
		}
		s.pos[written] = row
		return nil
	})
}

// Reader reads the rows from the beginning, with parents as rows of the
// sorted trace. A parent that was never written is dropped.
func (s *Sorted) Reader() (Reader[Request], error) {
	m, err := s.merge()
	if err != nil {
		return nil, err
	}
	return &sortedReader{s: s, m: m, dec: &rowDecoder{like: s.like}}, nil
}

// Order calls f for each row of the sorted trace, in its order, with its position
// in the order of writing.
func (s *Sorted) Order(f func(row, written int64) error) error {
	m, err := s.merge()
	if err != nil {
		return err
	}
	for row := int64(0); ; row++ {
		k, _, err := m.next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = f(row, k.seq)
		}
		if err != nil {
			return err
		}
	}
}

// Close drops the rows.
func (s *Sorted) Close() error {
	s.mem = heldRows{}
	if s.spill == nil {
		return nil
	}
	return s.spill.Close()
}

type sortedReader struct {
	s    *Sorted
	m    *merge
	dec  *rowDecoder
	held []byte // the next row, where that was looked at
}

// next returns the next row, valid until the following call.
func (r *sortedReader) next() (row []byte, err error) {
	if row, r.held = r.held, nil; row == nil {
		_, row, err = r.m.next()
	}
	return row, err
}

func (r *sortedReader) Read(rows []Request) (int, error) {
	for n := range rows {
		b, err := r.next()
		if err != nil {
			return n, err
		}
		if err := r.dec.decode(b, &rows[n]); err != nil {
			return n, err
		}
		rows[n].Parents = r.s.remap(rows[n].Parents)
	}
	return len(rows), nil
}

func (s *Sorted) remap(parents []int64) []int64 {
	out := parents[:0]
	for _, p := range parents {
		switch {
		case p < 0 || p >= s.rows:
		case s.pos == nil:
			out = append(out, p)
		default:
			out = append(out, s.pos[p])
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// A rowKey is what rows are sorted by.
type rowKey struct{ arrival, seq int64 }

func (a rowKey) compare(b rowKey) int {
	if c := cmp.Compare(a.arrival, b.arrival); c != 0 {
		return c
	}
	return cmp.Compare(a.seq, b.seq)
}

// heldRows are encoded rows in memory: their bytes in chunks, so that nothing
// is copied as they grow, and where each is.
type heldRows struct {
	refs   []rowRef
	chunks [][]byte
	free   [][]byte
	size   int64
}

type rowRef struct {
	key          rowKey
	chunk, at, n int32
}

const (
	chunkBytes = 1 << 20
	refBytes   = 32
)

func (h *heldRows) add(key rowKey, b []byte) {
	last := len(h.chunks) - 1
	if last < 0 || cap(h.chunks[last])-len(h.chunks[last]) < len(b) {
		h.chunks = append(h.chunks, h.chunk(len(b)))
		last++
	}
	c := &h.chunks[last]
	if len(h.refs) == cap(h.refs) {
		h.refs = slices.Grow(h.refs, max(len(h.refs), 4096)) // append grows by a quarter, and copies as much each time
	}
	h.refs = append(h.refs, rowRef{key, int32(last), int32(len(*c)), int32(len(b))})
	*c = append(*c, b...)
	h.size += int64(len(b)) + refBytes
}

// chunk returns an empty chunk with room for n bytes.
func (h *heldRows) chunk(n int) []byte {
	if k := len(h.free) - 1; k >= 0 && n <= chunkBytes {
		c := h.free[k]
		h.free = h.free[:k]
		return c
	}
	return make([]byte, 0, max(n, chunkBytes))
}

func (h *heldRows) bytes(i int) []byte {
	r := &h.refs[i]
	return h.chunks[r.chunk][r.at : r.at+r.n]
}

func (h *heldRows) sort() {
	slices.SortFunc(h.refs, func(a, b rowRef) int { return a.key.compare(b.key) })
}

// clear forgets the rows and keeps the memory for others.
func (h *heldRows) clear() {
	for _, c := range h.chunks {
		if cap(c) == chunkBytes {
			h.free = append(h.free, c[:0])
		}
	}
	h.refs, h.chunks, h.size = h.refs[:0], h.chunks[:0], 0
}

// mergeBytes is the memory of all buffers of a merge together, as long as its
// runs are no more than 2,048.
const mergeBytes = 8 << 20

// A merge steps through encoded rows in their order, from memory or from the
// runs of a spill. The runs are merged again each time they are read. That costs
// one comparison of keys for each row, and saves writing the rows a second time.
type merge struct {
	mem  *heldRows
	i    int
	runs cursors
	used bool // the row of the first cursor was given out
}

func (s *Sorted) merge() (*merge, error) {
	m := &merge{mem: &s.mem}
	for _, run := range s.runs {
		c := &cursor{r: s.spill.Reader(min(max(mergeBytes/len(s.runs), 4<<10), 256<<10), run...)}
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

// cursors is a heap of the cursors that have a row.
type cursors []*cursor

func (h cursors) Len() int { return len(h) }

func (h cursors) Less(i, j int) bool { return h[i].key.compare(h[j].key) < 0 }

func (h cursors) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *cursors) Push(x any) { *h = append(*h, x.(*cursor)) }

func (h *cursors) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
