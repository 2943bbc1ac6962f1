package trace

import (
	"cmp"
	"container/heap"
	"errors"
	"io"
	"os"
	"slices"
)

// sortBytes is how much a Sorter holds before it spills a run.
const sortBytes = 48 << 20

// A Sorter puts rows in order of arrival; rows that arrive at one instant keep
// the order in which they were written. Parents are given by position in that
// order and come out as rows of the sorted trace.
//
// Memory is bounded: rows beyond 48 MiB go to private spill files that have no
// name, and what stays is 16 bytes a row until Sort returns, 8 after it.
type Sorter struct {
	dir   string
	limit int64
	seq   int64
	held  int64
	buf   []sortRow
	runs  []*spill
}

type sortRow struct {
	Request
	seq int64 // order of writing
}

func byArrival(a, b *sortRow) int {
	if c := cmp.Compare(a.ArrivalNS, b.ArrivalNS); c != 0 {
		return c
	}
	return cmp.Compare(a.seq, b.seq)
}

// NewSorter makes a Sorter that spills to dir, or to os.TempDir when empty.
func NewSorter(dir string) *Sorter { return &Sorter{dir: dir, limit: sortBytes} }

// Write implements [Writer]; the lists of the rows are copied.
func (s *Sorter) Write(rows []Request) (int, error) {
	for i := range rows {
		r := sortRow{rows[i], s.seq}
		r.Blocks, r.OutputBlocks, r.Parents = slices.Clone(r.Blocks), slices.Clone(r.OutputBlocks), slices.Clone(r.Parents)
		s.seq++
		s.buf = append(s.buf, r)
		if s.held += requestBytes(&r.Request); s.held >= s.limit {
			if err := s.spill(); err != nil {
				return i, err
			}
		}
	}
	return len(rows), nil
}

func (s *Sorter) sortBuf() {
	slices.SortFunc(s.buf, func(a, b sortRow) int { return byArrival(&a, &b) })
}

func (s *Sorter) spill() error {
	s.sortBuf()
	run, err := newSpill(s.dir)
	if err != nil {
		return err
	}
	s.runs = append(s.runs, run)
	for i := range s.buf {
		if _, err := run.w.Write([]Request{s.buf[i].Request}); err != nil {
			return err
		}
		run.seqs = append(run.seqs, s.buf[i].seq)
	}
	clear(s.buf)
	s.buf, s.held = s.buf[:0], 0
	return run.finish()
}

// Close drops the spill files. The Sorted that Sort returned is unaffected.
func (s *Sorter) Close() error {
	var errs []error
	for _, r := range s.runs {
		errs = append(errs, r.file.Close())
	}
	s.runs, s.buf = nil, nil
	return errors.Join(errs...)
}

// Sort ends the writing and returns the rows in order of arrival.
func (s *Sorter) Sort() (*Sorted, error) {
	out := &Sorted{rows: s.seq, pos: make([]int64, s.seq)}
	if len(s.runs) == 0 {
		s.sortBuf()
		for i := range s.buf {
			out.pos[s.buf[i].seq] = int64(i)
		}
		out.mem, s.buf = s.buf, nil
		return out, nil
	}
	if len(s.buf) > 0 {
		if err := s.spill(); err != nil {
			return nil, err
		}
	}
	var err error
	if out.spill, err = newSpill(s.dir); err != nil {
		return nil, err
	}
	if err := s.merge(out); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// merge writes the runs to out in one order.
func (s *Sorter) merge(out *Sorted) error {
	h := &runHeap{}
	for _, run := range s.runs {
		c, err := run.cursor()
		if err == nil {
			err = c.next()
		}
		if err != nil {
			return err
		}
		*h = append(*h, c)
	}
	heap.Init(h)
	row := int64(0)
	for h.Len() > 0 {
		c := (*h)[0]
		out.pos[c.row.seq] = row
		row++
		if _, err := out.spill.w.Write([]Request{c.row.Request}); err != nil {
			return err
		}
		switch err := c.next(); {
		case err == io.EOF:
			heap.Pop(h)
		case err != nil:
			return err
		default:
			heap.Fix(h, 0)
		}
	}
	return out.spill.finish()
}

// Sorted holds rows in order of arrival. It can be read any number of times.
type Sorted struct {
	rows  int64
	pos   []int64 // by order of writing: the row in the sorted trace
	mem   []sortRow
	spill *spill
}

// Rows returns the number of rows.
func (s *Sorted) Rows() int64 { return s.rows }

// Reader reads the rows from the beginning, with parents as rows of the
// sorted trace. A parent that was never written is dropped.
func (s *Sorted) Reader() (Reader[Request], error) {
	r := &sortedReader{s: s}
	if s.spill != nil {
		var err error
		if r.c, err = s.spill.cursor(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Close drops the rows.
func (s *Sorted) Close() error {
	s.mem = nil
	if s.spill == nil {
		return nil
	}
	return s.spill.file.Close()
}

type sortedReader struct {
	s *Sorted
	i int
	c *cursor
}

func (r *sortedReader) Read(rows []Request) (int, error) {
	for n := range rows {
		if r.c == nil {
			if r.i == len(r.s.mem) {
				return n, io.EOF
			}
			rows[n] = r.s.mem[r.i].Request
			r.i++
		} else {
			if err := r.c.next(); err != nil {
				return n, err
			}
			rows[n] = r.c.row.Request
		}
		rows[n].Parents = r.s.remap(rows[n].Parents)
		// The caller may change lists in place; the copy in memory is read again.
		if r.c == nil {
			rows[n].Blocks, rows[n].OutputBlocks = slices.Clone(rows[n].Blocks), slices.Clone(rows[n].OutputBlocks)
		}
	}
	return len(rows), nil
}

func (s *Sorted) remap(parents []int64) []int64 {
	var out []int64
	for _, p := range parents {
		if p >= 0 && p < int64(len(s.pos)) {
			out = append(out, s.pos[p])
		}
	}
	return out
}

// A spill is a private Parquet file of rows. Their order of writing stays in
// memory: a column for it would need a row type that embeds Request, and the
// Parquet library reads the nulls of an embedded struct back as zeros.
type spill struct {
	file *os.File
	w    *RowsWriter[Request]
	size int64
	seqs []int64 // by row; nil once merged
}

func newSpill(dir string) (*spill, error) {
	f, err := tempFile(dir)
	if err != nil {
		return nil, err
	}
	return &spill{file: f, w: NewRowsWriter(f, requestBytes)}, nil
}

func (s *spill) finish() error {
	if err := s.w.Close(); err != nil {
		return err
	}
	s.w = nil
	fi, err := s.file.Stat()
	if err == nil {
		s.size = fi.Size()
	}
	return err
}

func (s *spill) cursor() (*cursor, error) {
	r, err := NewRowsReader[Request](s.file, s.size)
	if err != nil {
		return nil, err
	}
	return &cursor{r: r, seqs: s.seqs, buf: make([]Request, 64)}, nil
}

// A cursor steps through a spill one row at a time.
type cursor struct {
	r    *RowsReader[Request]
	seqs []int64
	buf  []Request
	rest []Request
	end  error
	row  sortRow
}

func (c *cursor) next() error {
	for len(c.rest) == 0 {
		if c.end != nil {
			return c.end
		}
		var n int
		n, c.end = c.r.Read(c.buf)
		c.rest = c.buf[:n]
	}
	c.row.Request, c.rest = c.rest[0], c.rest[1:]
	if len(c.seqs) > 0 {
		c.row.seq, c.seqs = c.seqs[0], c.seqs[1:]
	}
	return nil
}

type runHeap []*cursor

func (h runHeap) Len() int           { return len(h) }
func (h runHeap) Less(i, j int) bool { return byArrival(&h[i].row, &h[j].row) < 0 }
func (h runHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)        { *h = append(*h, x.(*cursor)) }
func (h *runHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
