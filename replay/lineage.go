package replay

import (
	"errors"
	"math"

	"reprise/trace"
)

// A Turn is the part of a row that says which rows it waits for. Reading these
// columns alone costs little, however long the lists of blocks.
type Turn struct {
	trace.Row `parquet:"-"`

	Parents []int64 `parquet:"parents,list"`
	ThinkNS *int64  `parquet:"think_ns,optional"`
	ToolNS  *int64  `parquet:"tool_ns,optional"`
}

// A Lineage says which rows of a workload wait for which, so that a causal run
// knows how far it must have read when a request is over: with a fast server a
// turn is due long before its recorded time. It takes 8 bytes for each row and
// 4 for each parent.
type Lineage struct {
	first    []uint32  // the children of row r are child[first[r]:first[r+1]]
	child    []uint32  // in the order of rows
	pause    []float32 // by row: think and tool time in seconds, rounded; NaN where neither is known
	timed    int64
	backward int64
	repeat   bool
}

var errTooManyRows = errors.New("replay: a causal run can have at most 2^32 rows and parents")

// ReadLineage reads which rows wait for which.
func ReadLineage(rows trace.Reader[Turn]) (*Lineage, error) {
	l := new(Lineage)
	var parents []uint32 // of child[i], until the children are put in order
	err := trace.Each(rows, func(id int64, t *Turn) error {
		if id >= math.MaxUint32-1 || len(l.child) >= math.MaxUint32-len(t.Parents) {
			return errTooManyRows
		}
		pause, known := pauseOf(t.ThinkNS, t.ToolNS)
		l.pause = append(l.pause, float32(math.NaN()))
		if known {
			l.pause[id] = float32(float64(pause) / 1e9)
		}
		waits := false
		for _, p := range t.Parents {
			if p < 0 || p >= id {
				l.backward++
				continue
			}
			waits = true
			parents, l.child = append(parents, uint32(p)), append(l.child, uint32(id))
		}
		if waits && known {
			l.timed++
		}
		return nil
	})
	// Put the children of each row together.
	l.first = make([]uint32, len(l.pause)+1)
	for _, p := range parents {
		l.first[p+1]++
	}
	for i := range l.pause {
		l.first[i+1] += l.first[i]
	}
	next, child := append([]uint32(nil), l.first...), make([]uint32, len(parents))
	for i, p := range parents {
		child[next[p]] = l.child[i]
		next[p]++
	}
	l.child = child
	return l, err
}

// Timed is the number of rows that wait for another and have a think or tool
// time: without any, a source says nothing of how its users wait.
func (l *Lineage) Timed() int64 { return l.timed }

// Backward is the number of parents that come after their children in the file. A run
// does not wait for them.
func (l *Lineage) Backward() int64 { return l.backward }

// Repeat makes the lineage that of a [Loop], whose rows are those of the workload
// again and again.
func (l *Lineage) Repeat() { l.repeat = true }

// children are the rows that wait for a row, in their order, each counted from
// the first row of the round.
func (l *Lineage) children(row int64) (rows []uint32, first int64) {
	if n := int64(len(l.pause)); row >= n {
		if !l.repeat || n == 0 {
			return nil, 0
		}
		first = row - row%n
		row %= n
	}
	return l.child[l.first[row]:l.first[row+1]], first
}

// following is how many rows wait for a row.
func (l *Lineage) following(row int64) int {
	rows, _ := l.children(row)
	return len(rows)
}

// pauseOf is the time between the end of a row's parents and the row: think and
// tool time together. It is not known when the source recorded neither.
func pauseOf(think, tool *int64) (ns int64, known bool) {
	for _, part := range []*int64{think, tool} {
		if part != nil {
			ns, known = ns+max(*part, 0), true
		}
	}
	return ns, known
}
