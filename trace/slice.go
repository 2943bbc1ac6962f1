package trace

import "io"

// Renumber gives dense ids from 0 by first appearance. Ids that are about as
// small as their number cost 8 bytes each, in a slice; any other goes to a map,
// so that one huge id in a hostile file cannot claim memory for all below it.
type Renumber struct {
	to   []uint64 // new id plus one; 0 is unseen
	far  map[uint64]uint64
	next uint64
}

// ID returns the new id of old.
func (r *Renumber) ID(old uint64) uint64 {
	if old >= uint64(len(r.to)) {
		if old > 1<<20+8*r.next {
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
// a parent outside it is dropped.
type Slice struct {
	Src      Reader[Request]
	From, To int64 // ns; To 0 means to the end

	row, first int64
	started    bool
	ids        Dense
}

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
			rows[kept] = *s.cut(r)
			kept++
		}
		if kept > 0 || err != nil {
			return kept, err
		}
	}
}

func (s *Slice) cut(r *Request) *Request {
	r.ArrivalNS -= s.From
	var parents []int64
	for _, p := range r.Parents {
		if p >= s.first && p < s.row {
			parents = append(parents, p-s.first)
		}
	}
	r.Parents = parents
	s.ids.Apply(r)
	return r
}
