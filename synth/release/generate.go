package release

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"reprise/synth"
	"reprise/trace"
	"reprise/trace/profile"
)

// A Drawing says what is drawn from a model.
type Drawing struct {
	Seed  uint64
	Scale float64       // times as many sessions as the trace had; 0 is 1
	Grid  time.Duration // step of the clock, as the operator declares it; 0 is none
}

// maxSessions is how many sessions one drawing may have.
const maxSessions = 1 << 26

// Generate draws sessions. The same model and drawing give the same rows on every
// machine. Memory: some 60 bytes for each request, and some twice the block ids of sessions
// that go on.
func (m *Model) Generate(d Drawing) (*Release, error) {
	if d.Scale == 0 {
		d.Scale = 1
	}
	n := math.Round(float64(m.units) * d.Scale)
	switch {
	case !(d.Scale > 0) || n > maxSessions:
		return nil, fmt.Errorf("a scale of %g: want above 0, and at most %d sessions", d.Scale, maxSessions)
	case d.Grid < 0 || int64(d.Grid) > m.span:
		return nil, errors.New("the step of the clock must be within the capture window")
	}
	p := m.draw(d.Seed, int(max(1, n)))
	if len(p.turns) > math.MaxInt32 {
		return nil, errors.New("too many requests: lower the scale")
	}
	rows := p.place(d.Seed)
	if grid := int64(d.Grid); grid > 0 {
		for i := range rows {
			rows[i].at -= rows[i].at % grid
		}
	}
	return &Release{p: p, rows: rows, drawing: d}, nil
}

// A Release is what was drawn.
type Release struct {
	p       *population
	rows    []placed
	drawing Drawing
}

// Rows is the number of requests.
func (w *Release) Rows() int64 { return int64(len(w.rows)) }

// Meta is the metadata of the rows.
func (w *Release) Meta() trace.Meta {
	meta := w.p.meta
	meta.Digest = ""
	meta.Seed = strconv.FormatUint(w.drawing.Seed, 10)
	meta.SourceFormat = synth.GeneratedSource + meta.SourceFormat
	if meta.Sessions, meta.SessionDoubt = "", ""; w.p.later {
		meta.Sessions = sessionsOfSource
	}
	if meta.BlockSize > 0 {
		meta.Convention, meta.Categories = trace.PartialTail, trace.CategoryRule
	}
	return meta
}

// Reader yields the rows in order of arrival, with their reuse categories. Each reader
// starts again.
func (w *Release) Reader() trace.Reader[trace.Request] {
	return &reader{Release: w, categories: profile.NewCategorizer(w.p.size, true), live: map[int32]*liveSession{},
		trunks: make([][]uint64, len(w.p.trunks))}
}

// A reader numbers sessions and blocks by first appearance.
type reader struct {
	*Release
	categories *profile.Categorizer

	next     int
	sessions int64
	blocks   uint64
	live     map[int32]*liveSession
	trunks   [][]uint64 // ids so far of each trunk, behind those of its parent
}

// A liveSession is one that goes on.
type liveSession struct {
	id   int64
	turn int32
	last []uint64 // blocks of the turn before
}

// Read implements [trace.Reader].
func (r *reader) Read(rows []trace.Request) (int, error) {
	n := 0
	for ; n < len(rows) && r.next < len(r.rows); n++ {
		rows[n] = r.row(r.rows[r.next])
		rows[n].Category = r.categories.Category(&rows[n])
		r.categories.Forget(r.blocksToCome)
		r.next++
	}
	if r.next == len(r.rows) {
		return n, io.EOF
	}
	return n, nil
}

func (r *reader) row(at placed) trace.Request {
	t := &r.p.turns[at.turn]
	q := trace.Request{ArrivalNS: at.at, InputTokens: t.input, OutputTokens: trace.Ptr(t.output),
		Status: trace.StatusOK}
	s := r.live[t.session]
	if s == nil {
		s = &liveSession{id: r.sessions}
		r.sessions++
		r.live[t.session] = s
	}
	if r.p.later {
		q.Session, q.Turn = trace.Ptr(s.id), trace.Ptr(s.turn)
	}
	if r.p.size > 0 {
		n := (int(t.input) + r.p.size - 1) / r.p.size
		q.Blocks = make([]uint64, 0, n)
		if s.turn > 0 {
			q.Blocks = append(q.Blocks, s.last[:min(n, int(t.keep), len(s.last))]...)
		}
		if trunk := r.p.trunk[t.session]; trunk != none {
			for len(q.Blocks) < min(n, r.p.trunks[trunk].depth) {
				q.Blocks = append(q.Blocks, r.trunkBlock(trunk, len(q.Blocks)))
			}
		}
		for len(q.Blocks) < n {
			q.Blocks = append(q.Blocks, r.blocks)
			r.blocks++
		}
		s.last = append(s.last[:0], q.Blocks...) // the row is the reader's no more
	}
	if s.turn++; at.turn+1 == r.p.first[t.session+1] {
		delete(r.live, t.session)
	}
	return q
}

// blocksToCome calls each with the blocks so far that later rows can have.
func (r *reader) blocksToCome(each func(blocks []uint64)) {
	for _, trunk := range r.trunks {
		each(trunk)
	}
	for _, s := range r.live {
		each(s.last)
	}
}

// trunkBlock is the i-th id of a trunk.
func (r *reader) trunkBlock(trunk int32, i int) uint64 {
	above := 0
	if p := r.p.trunks[trunk].parent; p != none {
		if above = r.p.trunks[p].depth; i < above {
			return r.trunkBlock(p, i)
		}
	}
	for len(r.trunks[trunk]) <= i-above {
		r.trunks[trunk] = append(r.trunks[trunk], r.blocks)
		r.blocks++
	}
	return r.trunks[trunk][i-above]
}
