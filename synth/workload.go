package synth

import (
	"container/heap"
	"io"
	"strconv"

	"reprise/trace"
)

// Values of trace.Meta.Sessions.
const (
	sessionsOfSource = "source"
	sessionsInferred = "inferred"
)

// A Workload is what [Model.Generate] made. It can be read any number of times.
type Workload struct {
	model   *Model
	options Options
	crowds  []crowd
	rows    int64
	first   int64 // time of the first arrival
	prefix  int32 // blocks of the global prefix
}

// Rows is the number of requests.
func (w *Workload) Rows() int64 { return w.rows }

// Meta describes the workload: as the trace that the model was fitted to, with
// its tier and card; the seed; and a line that names the model. It has no
// digest, which the writer of the rows adds.
func (w *Workload) Meta() trace.Meta {
	meta := w.model.meta
	meta.Digest = ""
	meta.Seed = strconv.FormatUint(w.options.Seed, 10)
	meta.SourceFormat = w.model.describe(w.options)
	switch {
	case w.model.sourced:
		meta.Sessions = sessionsOfSource
	case meta.BlockSize > 0:
		meta.Sessions = sessionsInferred
	default:
		meta.Sessions = ""
	}
	if meta.BlockSize > 0 {
		meta.Convention = trace.PartialTail
	}
	return meta
}

// prepare finds where the workload begins and how deep its global prefix is:
// the deepest block that more than half of its requests with blocks carry, be
// it on a trunk, which all crowds share, or in one crowd.
func (w *Workload) prepare() {
	w.first = -1
	blocked := int64(0)
	var trunks [][]int64 // by domain and depth: requests that follow the trunk so far and no further
	for i := range w.crowds {
		c := &w.crowds[i]
		w.rows += int64(len(c.tail))
		if len(c.times) > 0 && (w.first < 0 || c.times[0] < w.first) {
			w.first = c.times[0]
		}
		trunks = append(trunks, make([][]int64, max(0, len(c.domains)-len(trunks)))...)
		for r, x := range c.forest.leaf {
			if x == none {
				continue
			}
			blocked++
			ends := &trunks[c.domain[r]]
			if n := int(c.overlap[r]) + 1 - len(*ends); n > 0 {
				*ends = append(*ends, make([]int64, n)...)
			}
			(*ends)[c.overlap[r]]++
		}
	}
	for _, ends := range trunks {
		carriers := int64(0)
		for depth := len(ends) - 1; depth > 0; depth-- {
			if carriers += ends[depth]; 2*carriers > blocked {
				w.prefix = max(w.prefix, int32(depth))
			}
		}
	}
	for i := range w.crowds {
		w.ownPrefix(&w.crowds[i], blocked)
	}
}

// ownPrefix deepens the global prefix by what more than half of all requests
// carry that are of one crowd, behind its trunk.
func (w *Workload) ownPrefix(c *crowd, blocked int64) {
	for _, s := range c.forest.common(nil, 1)[0] {
		for k, carriers := range s.carriers {
			depth := c.forest.runs[s.run].start + int32(k) + 1
			if 2*carriers > blocked {
				w.prefix = max(w.prefix, depth)
			}
		}
	}
}

// GlobalBlocks is the length of the prefix that more than half of the requests
// carry.
func (w *Workload) GlobalBlocks() int { return int(w.prefix) }

// Reader reads the rows from the beginning.
func (w *Workload) Reader() trace.Reader[trace.Request] {
	r := &workloadReader{Workload: w, known: make([][]mark, domainCount(domainsOf(w.model.labels)))}
	for i := range w.crowds {
		if len(w.crowds[i].times) > 0 {
			r.order = append(r.order, &state{crowd: &w.crowds[i], number: i})
		}
	}
	heap.Init(&r.order)
	return r
}

// Read implements [trace.Reader].
func (r *workloadReader) Read(rows []trace.Request) (int, error) {
	for i := range rows {
		if len(r.order) == 0 {
			return i, io.EOF
		}
		s := r.order[0]
		rows[i] = r.row(s)
		r.next++
		if s.next++; s.next == len(s.times) {
			heap.Pop(&r.order)
		} else {
			heap.Fix(&r.order, 0)
		}
	}
	return len(rows), nil
}

// states is a heap of the crowds by the time of their next request.
type states []*state

func (s states) Len() int { return len(s) }
func (s states) Less(i, j int) bool {
	a, b := s[i].times[s[i].next], s[j].times[s[j].next]
	return a < b || a == b && s[i].number < s[j].number
}
func (s states) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *states) Push(x any)   { *s = append(*s, x.(*state)) }
func (s *states) Pop() any {
	old := *s
	x := old[len(old)-1]
	*s = old[:len(old)-1]
	return x
}
