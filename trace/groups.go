package trace

// Groups find the rows that belong together: rows that name one session, and rows of
// which one is the parent of the other, directly or through others. A row with neither
// is a group by itself. The zero value has no rows.
//
// It is a forest whose roots are the first rows of their groups (Tarjan's union by a rank
// that is the order of rows, with paths halved), in 4 bytes a row and 8 a session.
type Groups struct {
	up       []uint32
	sessions Renumber
	first    []uint32 // row of each session
}

func (g *Groups) grow(rows int64) {
	for int64(len(g.up)) < rows {
		g.up = append(g.up, uint32(len(g.up)))
	}
}

// Add takes a row by its number, below 2^32, with its session, or nil, and its parents.
func (g *Groups) Add(row int64, session *int64, parents []int64) {
	g.grow(row + 1)
	if session != nil {
		id := g.sessions.ID(uint64(*session))
		if id == uint64(len(g.first)) {
			g.first = append(g.first, uint32(row))
		}
		g.join(g.first[id], uint32(row))
	}
	for _, parent := range parents {
		g.join(uint32(parent), uint32(row))
	}
}

// First is the first row of the group that a row belongs to.
func (g *Groups) First(row int64) int64 { return int64(g.root(uint32(row))) }

func (g *Groups) root(i uint32) uint32 {
	for g.up[i] != i {
		g.up[i] = g.up[g.up[i]]
		i = g.up[i]
	}
	return i
}

// join puts two rows into one group, under the row that comes first.
func (g *Groups) join(a, b uint32) {
	a, b = g.root(a), g.root(b)
	g.up[max(a, b)] = min(a, b)
}
