package anonymize

// bySession keeps something for each session: in a slice where their ids are
// dense, as those of traces are, and in a map where they are not.
type bySession[T any] struct {
	dense []T
	rest  map[int64]T
}

// denseSlack is how far beyond twice as many ids as before one may be, and still
// be in the slice.
const denseSlack = 4096

func (s *bySession[T]) get(id int64) (v T) {
	if id >= 0 && id < int64(len(s.dense)) {
		return s.dense[id]
	}
	return s.rest[id]
}

func (s *bySession[T]) set(id int64, v T) {
	if n := int64(len(s.dense)); id >= n && id <= 2*n+denseSlack {
		s.grow(2*n + denseSlack + 1)
	}
	if id >= 0 && id < int64(len(s.dense)) {
		s.dense[id] = v
		return
	}
	if s.rest == nil {
		s.rest = map[int64]T{}
	}
	s.rest[id] = v
}

// grow makes the slice n long, and takes over what was beyond it.
func (s *bySession[T]) grow(n int64) {
	from := int64(len(s.dense))
	s.dense = append(s.dense, make([]T, n-from)...)
	for id, v := range s.rest {
		if id >= from && id < n {
			s.dense[id] = v
			delete(s.rest, id)
		}
	}
}
