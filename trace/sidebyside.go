package trace

import (
	"container/heap"
	"io"
)

// A SideBySide reads the rows of several readers, each in its order, in the order of all. Rows
// that compare as equal come in the order of their readers. It holds one batch of each reader.
type SideBySide[T TextFree] struct {
	heads heads[T]
	begun bool
}

// A head is a reader with the row that it has at hand.
type head[T TextFree] struct {
	Reader[T]
	i     int
	batch []T
	left  []T   // of the batch, from the row at hand on
	err   error // after the batch
}

// NewSideBySide reads so many rows of each reader at once. Compare says which of two rows comes
// first, as [cmp.Compare] does, by the index of each one's reader and the row.
func NewSideBySide[T TextFree](readers []Reader[T], batch int, compare func(i int, a *T, j int,
	b *T) int) *SideBySide[T] {
	s := &SideBySide[T]{heads: heads[T]{compare: compare}}
	for i, r := range readers {
		s.heads.of = append(s.heads.of, &head[T]{Reader: r, i: i, batch: make([]T, batch)})
	}
	return s
}

// Next is the first row that is left, and the index of its reader; of an error, the index of the
// reader that has it. The row is good until the next call, and the slices in it for good.
func (s *SideBySide[T]) Next() (reader int, row *T, err error) {
	if !s.begun {
		s.begun = true
		all := s.heads.of
		s.heads.of = nil
		for _, h := range all {
			switch err := h.load(); {
			case err == nil:
				s.heads.of = append(s.heads.of, h)
			case err != io.EOF:
				return h.i, nil, err
			}
		}
		heap.Init(&s.heads)
	} else if len(s.heads.of) > 0 {
		h := s.heads.of[0]
		h.left = h.left[1:]
		switch err := h.load(); {
		case err == nil:
			heap.Fix(&s.heads, 0)
		case err == io.EOF:
			heap.Pop(&s.heads)
		default:
			return h.i, nil, err
		}
	}
	if len(s.heads.of) == 0 {
		return 0, nil, io.EOF
	}
	return s.heads.of[0].i, &s.heads.of[0].left[0], nil
}

// load makes sure that there is a row at hand, or returns the error after the last one.
func (h *head[T]) load() error {
	for len(h.left) == 0 {
		if h.err != nil {
			return h.err
		}
		clear(h.batch) // so that a reader gives them slices of their own
		var n int
		n, h.err = h.Read(h.batch)
		h.left = h.batch[:n]
	}
	return nil
}

// heads are a heap of the readers that have a row at hand.
type heads[T TextFree] struct {
	of      []*head[T]
	compare func(i int, a *T, j int, b *T) int
}

// Len implements [heap.Interface].
func (h *heads[T]) Len() int { return len(h.of) }

// Less implements [heap.Interface].
func (h *heads[T]) Less(i, j int) bool {
	a, b := h.of[i], h.of[j]
	if c := h.compare(a.i, &a.left[0], b.i, &b.left[0]); c != 0 {
		return c < 0
	}
	return a.i < b.i
}

// Swap implements [heap.Interface].
func (h *heads[T]) Swap(i, j int) { h.of[i], h.of[j] = h.of[j], h.of[i] }

// Push implements [heap.Interface].
func (h *heads[T]) Push(x any) { h.of = append(h.of, x.(*head[T])) }

// Pop implements [heap.Interface].
func (h *heads[T]) Pop() any {
	last := h.of[len(h.of)-1]
	h.of = h.of[:len(h.of)-1]
	return last
}
