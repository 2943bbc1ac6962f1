package trace

import (
	"errors"
	"io"
	"math"
	"slices"
)

// A Part is a selection of rows of a trace: a window, or some rows within one.
// Its rows are numbered from 0, in their order. Unlike a [Slice] it leaves
// ids as they are, so that prompts made of them are those of the whole trace.
type Part struct {
	from, to int64    // rows [from, to)
	rows     []uint32 // of these, counted from from; nil for all
}

// Whole is the part that has all rows of a trace.
func Whole(rows int64) Part { return Part{to: rows} }

// Len returns the number of rows.
func (p *Part) Len() int64 {
	if p.rows != nil {
		return int64(len(p.rows))
	}
	return p.to - p.from
}

// First returns the number of rows of the trace before the part.
func (p *Part) First() int64 { return p.from }

// Row returns the row of the trace that is the i-th of the part.
func (p *Part) Row(i int64) int64 {
	if p.rows != nil {
		i = int64(p.rows[i])
	}
	return p.from + i
}

// Index returns the index in the part of a row of the trace; ok is false outside of
// the part.
func (p *Part) Index(row int64) (i int64, ok bool) {
	if row < p.from || row >= p.to {
		return 0, false
	}
	if row -= p.from; p.rows == nil {
		return row, true
	}
	at, ok := slices.BinarySearch(p.rows, uint32(row))
	return int64(at), ok
}

// Parents renumbers parents in place and drops those outside of the part.
func (p *Part) Parents(parents []int64) []int64 {
	kept := parents[:0]
	for _, row := range parents {
		if i, ok := p.Index(row); ok {
			kept = append(kept, i)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// Head returns the first n rows of the part.
func (p Part) Head(n int64) Part {
	if n < p.Len() {
		if p.rows != nil {
			p.rows = p.rows[:n]
		} else {
			p.to = p.from + n
		}
	}
	return p
}

// Turns keeps the first n turns of each conversation and the rows without a turn, and counts the rows with one.
func (p Part) Turns(src Reader[Member], n int64) (first Part, numbered int64, err error) {
	if p.Len() >= math.MaxUint32 {
		return p, 0, errTooManyRows
	}
	rows := []uint32{}
	err = Each(Pick(src, p, nil), func(i int64, r *Member) error {
		if r.Turn != nil {
			numbered++
		}
		if r.Turn == nil || int64(*r.Turn) < n {
			rows = append(rows, uint32(i))
		}
		return nil
	})
	return p.only(rows), numbered, err
}

// only returns the rows of the part that rows numbers, in place: from 0 within the part.
func (p Part) only(rows []uint32) Part {
	if p.rows != nil {
		for i, r := range rows {
			rows[i] = p.rows[r]
		}
	}
	return Part{from: p.from, to: p.to, rows: rows}
}

// An Arrival is the one column that [Window] needs.
type Arrival struct {
	Row `parquet:"-"`

	ArrivalNS int64 `parquet:"arrival_ns,delta,zstd"`
}

// Window finds the rows that arrive in [from, to), in ns; to 0 is the end. src
// reads all rows of the trace, in their order.
func Window(src Reader[Arrival], from, to int64) (Part, error) {
	var p Part
	err := Each(src, func(row int64, a *Arrival) error {
		if a.ArrivalNS < from {
			p.from = row + 1
		}
		if to != 0 && a.ArrivalNS >= to {
			return io.EOF
		}
		p.to = row + 1
		return nil
	})
	if err == io.EOF {
		err = nil
	}
	p.to = max(p.to, p.from)
	return p, err
}

// Pick reads the rows of p from src, which reads the whole trace or columns of
// it. edit, which may be nil, is called for each row, which still has the parents
// and the time of the whole trace: see [Part.Edit].
func Pick[T TextFree](src Reader[T], p Part, edit func(*T)) Reader[T] {
	return &picker[T]{src: src, part: p, edit: edit}
}

// Edit returns a function that makes a row of the trace a row of the part: it
// renumbers its parents, and counts its times from fromNS.
func (p *Part) Edit(fromNS int64) func(*Request) {
	return func(r *Request) {
		r.ArrivalNS -= fromNS
		r.Parents = p.Parents(r.Parents)
	}
}

type picker[T TextFree] struct {
	src  Reader[T]
	part Part
	edit func(*T)
	row  int64 // of the trace: the next that src gives
	next int64 // of the part
}

// Read implements [Reader].
func (k *picker[T]) Read(rows []T) (int, error) {
	for k.next < k.part.Len() {
		n, err := k.src.Read(rows)
		kept := 0
		for i := range rows[:n] {
			if k.next < k.part.Len() && k.row == k.part.Row(k.next) {
				// Swapped, so that no two rows of the batch share their lists.
				rows[kept], rows[i] = rows[i], rows[kept]
				if k.edit != nil {
					k.edit(&rows[kept])
				}
				kept++
				k.next++
			}
			k.row++
		}
		switch {
		case err == io.EOF && k.next < k.part.Len():
			return kept, errShort
		case kept > 0 || err != nil:
			return kept, err
		}
	}
	return 0, io.EOF
}

var errShort = errors.New("the trace has fewer rows than when a part of it was chosen")

// Renumber gives dense ids from 0 by first appearance. Ids that are about as
// small as their number cost 8 bytes each, in a slice; any other goes to a map,
// so that one huge id in a hostile file cannot claim memory for all below it. Ids that are
// numbered so already, as those of a trace mostly are, take none.
type Renumber struct {
	same uint64   // ids below it are their own
	to   []uint64 // new id plus one; 0 is unseen
	far  map[uint64]uint64
	next uint64
}

// ID returns the new id of old.
func (r *Renumber) ID(old uint64) uint64 {
	if r.isSame(old) {
		if old == r.same {
			r.same, r.next = old+1, old+1
		}
		return old
	}
	if old >= uint64(len(r.to)) {
		if r.isFar(old) {
			return r.farID(old)
		}
		r.to = append(r.to, make([]uint64, old+1-uint64(len(r.to)))...)
	}
	if r.to[old] == 0 {
		id, ok := r.far[old]
		if !ok {
			id = r.next
			r.next++
		}
		r.to[old] = id + 1
	}
	return r.to[old] - 1
}

// isSame says whether an id is its own.
func (r *Renumber) isSame(old uint64) bool { return old < r.same || old == r.same && r.next == r.same }

// isFar says whether an id is far larger than the number of ids.
func (r *Renumber) isFar(old uint64) bool { return old > 1<<20+8*r.next }

func (r *Renumber) farID(old uint64) uint64 {
	id, ok := r.far[old]
	if !ok {
		if r.far == nil {
			r.far = map[uint64]uint64{}
		}
		id = r.next
		r.far[old] = id
		r.next++
	}
	return id
}

// Len returns how many ids were given.
func (r *Renumber) Len() int { return int(r.next) }

// Dense renumbers sessions, users and blocks of rows by first appearance, so
// that ids tell neither the size nor the order of what the rows came from.
type Dense struct{ sessions, users, blocks Renumber }

// Apply rewrites the ids of one row in place; call it in the final order.
func (d *Dense) Apply(r *Request) {
	d.ApplyPeople(r)
	d.ApplyBlocks(r)
}

// ApplyBlocks rewrites the ids of blocks of one row.
func (d *Dense) ApplyBlocks(r *Request) {
	for _, ids := range [][]uint64{r.Blocks, r.OutputBlocks} {
		for i, id := range ids {
			ids[i] = d.blocks.ID(id)
		}
	}
}

// ApplyPeople rewrites the session and the user of one row, for rows whose
// blocks are numbered by other means.
func (d *Dense) ApplyPeople(r *Request) {
	if r.Session != nil {
		r.Session = Ptr(int64(d.sessions.ID(uint64(*r.Session))))
	}
	if r.User != nil {
		r.User = Ptr(int64(d.users.ID(uint64(*r.User))))
	}
}

// Blocks returns how many distinct blocks were seen.
func (d *Dense) Blocks() int { return d.blocks.Len() }

// Sessions returns how many distinct sessions were seen.
func (d *Dense) Sessions() int { return d.sessions.Len() }

// A Slice reads the rows of src that arrive in [From, To) and makes a trace of
// them: times begin at From, ids are dense, parents are rows of the slice, and
// a parent outside it is dropped. Memory does not grow with the number of blocks, of which
// some are kept in a private file in [os.TempDir].
type Slice struct {
	Src      Reader[Request]
	From, To int64 // ns; To 0 means to the end

	row, first int64
	started    bool
	people     Dense
	blocks     BlockNumbers
}

// Close drops what the slice keeps in a private file.
func (s *Slice) Close() error { return s.blocks.Close() }

// Read implements [Reader].
func (s *Slice) Read(rows []Request) (int, error) {
	for {
		n, err := s.Src.Read(rows)
		kept := 0
		for i := range rows[:n] {
			r, row := &rows[i], s.row
			s.row++
			if r.ArrivalNS < s.From {
				continue
			}
			if s.To != 0 && r.ArrivalNS >= s.To {
				return kept, io.EOF
			}
			if !s.started {
				s.started, s.first = true, row
			}
			if err := s.cut(r); err != nil {
				return kept, err
			}
			rows[kept] = *r
			kept++
		}
		if kept > 0 || err != nil {
			return kept, err
		}
	}
}

func (s *Slice) cut(r *Request) error {
	r.ArrivalNS -= s.From
	var parents []int64
	for _, p := range r.Parents {
		if p >= s.first && p < s.row {
			parents = append(parents, p-s.first)
		}
	}
	r.Parents = parents
	s.people.ApplyPeople(r)
	for _, ids := range [][]uint64{r.Blocks, r.OutputBlocks} {
		for i, old := range ids {
			id, err := s.blocks.ID(old)
			if err != nil {
				return err
			}
			ids[i] = id
		}
	}
	return nil
}
