package synth

import (
	"container/heap"
	"io"

	"reprise/trace"
	"reprise/trace/profile"
)

// A workloadReader makes the rows of a workload in order of arrival: it numbers
// blocks, sessions and users by first appearance, and gives categories by the rule of
// [profile.Categorizer].
type workloadReader struct {
	*Workload
	order    states
	next     int32 // row
	blocks   uint64
	users    trace.Renumber
	known    [][]mark // by template, of one user after the other: the nodes that several populations share, so far
	sessions []sessionState

	categories *profile.Categorizer // nil where none are asked for
}

// A state is how far one population is read.
type state struct {
	*population
	number int
	next   int      // request
	base   []uint64 // by run: id of its first node that is not shared
	row    []int32  // by request
	seen   []int32  // by request: its session among all populations, or none
	ids    []int32  // by session of the population: the same
}

// A sessionState is one session so far.
type sessionState struct {
	turns int32
	user  *int64
}

// A mark says who last touched a node that several populations share.
type mark struct {
	id      uint64
	session int32 // or none
}

// nextRow makes the next row of s.
func (r *workloadReader) nextRow(s *state) trace.Request {
	i := int32(s.next)
	t := &r.model.places[s.places[i]]
	length, owner := s.forest.length[i], s.owner[i]
	q := trace.Request{ArrivalNS: r.scale(s.times[i] - r.first), InputTokens: s.tail[i]}
	if length > 0 {
		q.InputTokens += (length - 1) * int32(s.size)
	}
	r.describe(&q, t)
	s.row = append(s.row, r.next)

	// What is known: in the population's own forest, or of what all share.
	overlap := s.overlap[i]
	hit := max(s.hit[i], r.knownOf(s, s.template[i], overlap))
	session := int32(none)
	switch {
	case hit <= r.prefix || r.model.cells != nil && t.class == branches: // what others have makes no session
	case hit <= overlap:
		session = r.mark(s, s.template[i], hit).session
	case owner != none:
		session = s.seen[owner]
	}
	q.Blocks = r.expand(s, i, overlap)
	switch {
	case r.model.sourced:
		r.joinSession(s, i, t, &q)
	case length == 0 || r.model.sessions() == "":
		q.User = r.user(s, t)
		s.seen = append(s.seen, none)
	default:
		r.enterSession(s, t, session, &q)
	}
	for d := range overlap {
		r.mark(s, s.template[i], d+1).session = s.seen[i]
	}
	if r.categories != nil {
		q.Category = r.categories.Category(&q)
	}
	return q
}

// expand lists the blocks of request i. New ones get the next ids.
func (r *workloadReader) expand(s *state, i, overlap int32) []uint64 {
	x, to := s.forest.leaf[i], s.forest.length[i]
	if x == none {
		return nil
	}
	for d := r.knownOf(s, s.template[i], overlap); d < overlap; d++ {
		known := r.knownBy(s, templateAt(r.model.templates, s.template[i], d+1))
		*known = append(*known, mark{id: r.blocks, session: none})
		r.blocks++
	}
	if int(x) == len(s.base) {
		u := s.forest.runs[x]
		s.base = append(s.base, r.blocks)
		r.blocks += uint64(u.end - max(u.start, overlap))
	}
	out := make([]uint64, to)
	for d := range overlap {
		out[d] = r.mark(s, s.template[i], d+1).id
	}
	for ; x != none && to > overlap; x = s.forest.runs[x].parent {
		from := max(s.forest.runs[x].start, overlap) // a run that leaves what is shared has ids after it
		for d := from; d < to; d++ {
			out[d] = s.base[x] + uint64(d-from)
		}
		to = from
	}
	return out
}

// knownBy are the nodes of a template that a population shares with others, so far: with all, or with those of its
// user.
func (r *workloadReader) knownBy(s *state, t int32) *[]mark {
	if r.model.templates[t].cut {
		return &r.known[int(t)+s.number/r.model.copies()*len(r.model.templates)]
	}
	return &r.known[t]
}

// mark is that of a depth on the path of a template, where several populations share it.
func (r *workloadReader) mark(s *state, t, depth int32) *mark {
	t = templateAt(r.model.templates, t, depth)
	return &(*r.knownBy(s, t))[depth-r.model.templates[t].from-1]
}

// knownOf is how many of the first blocks on the path of a template are known so far.
func (r *workloadReader) knownOf(s *state, t, depth int32) int32 {
	for depth > 0 {
		t = templateAt(r.model.templates, t, depth)
		from := r.model.templates[t].from
		if n := int32(len(*r.knownBy(s, t))); n > 0 {
			return min(depth, from+n)
		}
		depth = from
	}
	return 0
}

// joinSession gives request i the session that placing found for it, its parent, and
// the pause between them.
func (r *workloadReader) joinSession(s *state, i int32, t *place, q *trace.Request) {
	number := s.session[i]
	if number == none {
		q.User = r.user(s, t)
		s.seen = append(s.seen, none)
		return
	}
	if int(number) == len(s.ids) {
		s.ids = append(s.ids, none)
	}
	session := s.ids[number]
	if session != none {
		if prior := s.prior[i]; t.waits && prior != none {
			q.Parents = []int64{int64(s.row[prior])}
		}
		if p := t.pause; p != nil {
			q.ThinkNS, q.ToolNS = r.scaled(p.think), r.scaled(p.tool)
		}
	}
	s.ids[number] = r.enterSession(s, t, session, q)
}

// enterSession makes a request the next turn of a session, or the first of a new one,
// and returns which.
func (r *workloadReader) enterSession(s *state, t *place, session int32, q *trace.Request) int32 {
	if session == none {
		session = int32(len(r.sessions))
		r.sessions = append(r.sessions, sessionState{user: r.user(s, t)})
	}
	n := &r.sessions[session]
	q.User = n.user // a session is one user's
	q.Session, q.Turn = trace.Ptr(int64(session)), trace.Ptr(n.turns)
	n.turns++
	s.seen = append(s.seen, session)
	return session
}

// user numbers the user of a place; each population has users of its own.
func (r *workloadReader) user(s *state, t *place) *int64 {
	if t.user == none {
		return nil
	}
	return trace.Ptr(int64(r.users.ID(uint64(t.user)*uint64(len(r.populations)) + uint64(s.number))))
}

// describe fills what the place says about the request itself.
func (r *workloadReader) describe(q *trace.Request, t *place) {
	l, e := &r.model.labels[t.label], &r.model.ends[t.end]
	q.Model, q.Adapter, q.Kind = l.model, l.adapter, l.kind
	q.Status, q.FinishReason = e.status, e.finish
	if t.output != none {
		q.OutputTokens = trace.Ptr(t.output)
	}
	if l.hasClass {
		q.Class = &l.class
	}
	if l.hasTemperature {
		q.Temperature = &l.temperature
	}
	if l.stream != none {
		q.Stream = trace.Ptr(l.stream == 1)
	}
	if x := t.extra; x != nil {
		q.ReasoningTokens, q.ImageTokens, q.Images, q.MaxTokens = x.reasoning, x.imageTokens, x.images, x.maxTokens
		q.E2ENS = x.cancelledAt
	}
}

// scale divides a time by the speed. Division rounds correctly on every
// machine, so the result is the same on all.
func (w *Workload) scale(ns int64) int64 {
	if w.options.Speed == 1 {
		return ns
	}
	return int64(min(float64(ns)/w.options.Speed, 1<<62)) // a pause may be longer than the workload
}

func (w *Workload) scaled(ns *int64) *int64 {
	if ns == nil {
		return nil
	}
	return trace.Ptr(w.scale(*ns))
}

// Reader reads the rows from the beginning.
func (w *Workload) Reader() trace.Reader[trace.Request] {
	r := w.reader()
	r.categories = profile.NewCategorizer(w.model.meta.BlockSize, true)
	return r
}

// Uncategorised reads the rows without their categories, which take most of the memory of a reader, for those
// who find their own.
func (w *Workload) Uncategorised() trace.Reader[trace.Request] { return w.reader() }

func (w *Workload) reader() *workloadReader {
	r := &workloadReader{Workload: w, known: make([][]mark, len(w.model.templates)*w.options.Users)}
	for i := range w.populations {
		if len(w.populations[i].times) > 0 {
			r.order = append(r.order, &state{population: &w.populations[i], number: i})
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
		rows[i] = r.nextRow(s)
		r.next++
		if s.next++; s.next == len(s.times) {
			heap.Pop(&r.order)
		} else {
			heap.Fix(&r.order, 0)
		}
	}
	return len(rows), nil
}

// states is a heap of the populations by the time of their next request.
type states []*state

func (s states) Len() int { return len(s) }

func (s states) Less(i, j int) bool {
	a, b := s[i].times[s[i].next], s[j].times[s[j].next]
	return a < b || a == b && s[i].number < s[j].number
}

func (s states) Swap(i, j int) { s[i], s[j] = s[j], s[i] }

func (s *states) Push(x any) { *s = append(*s, x.(*state)) }

func (s *states) Pop() any {
	old := *s
	x := old[len(old)-1]
	*s = old[:len(old)-1]
	return x
}
