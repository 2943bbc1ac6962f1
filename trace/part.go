package trace

import (
	"errors"
	"io"
	"slices"
)

// A Part is a choice of rows of a trace: a window of them, or some within it.
// Its rows are numbered anew from 0, in their order. Unlike a [Slice] it leaves
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

// Row returns which row of the trace is the i-th of the part.
func (p *Part) Row(i int64) int64 {
	if p.rows != nil {
		i = int64(p.rows[i])
	}
	return p.from + i
}

// Index says where in the part a row of the trace is.
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

// Parents numbers parents anew, in place, and drops those outside the part.
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

// An Arrival is the column that a window is found by.
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

// Pick reads the rows of p from src, which reads all of the trace or columns of
// it. edit, which may be nil, is called for each: a row still has the parents and
// the time of the whole trace, see [Part.Edit].
func Pick[T TextFree](src Reader[T], p Part, edit func(*T)) Reader[T] {
	return &picker[T]{src: src, part: p, edit: edit}
}

// Edit returns what makes a row of the trace one of the part: its parents are
// numbered anew, and times begin at fromNS.
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

var errShort = errors.New("the trace has fewer rows than a part of it was chosen from")
