package synth

import (
	"errors"
	"fmt"
	"math"

	"reprise/trace"
	"reprise/trace/block"
)

// An extractor turns the rows of a trace into places. Rows that failed are no
// load and leave no place.
type extractor struct {
	size   int // tokens in a block; 0 when the trace has none
	forest forest
	ids    trace.Renumber
	nodes  []node // by number of the block

	sessions trace.Renumber
	last     []int32 // by session: its latest request
	session  []int32 // by request; none without one

	labels numbering[label]
	ends   numbering[end]
	users  trace.Renumber

	cuts map[int32]int32 // by run: the deepest block behind which a sample has not all requests

	places    []place
	shapes    []shape // by request
	owners    []int32 // by request: which last touched its deepest known block
	templates []template
	times     []int64
}

// A shape is a request's prompt in the trace.
type shape struct {
	tokens int32
	tail   int32 // of them, in the last block; all without blocks
	length int32 // blocks
	hit    int32 // leading blocks that were known
	trunk  int32 // leading blocks on a template
	// The template that these end on, or none.
	template int32
}

// begin is the depth behind which a request's own blocks begin.
func (s *shape) begin() int32 { return max(s.hit, s.trunk) }

// full is the depth of the last full block.
func (s *shape) full(size int) int32 {
	if s.length > 0 && int(s.tail) < size {
		return s.length - 1
	}
	return s.length
}

// A node is where a block stands in the forest.
type node struct{ run, depth int32 }

// addRow takes the next row; row is its number, for errors.
func (e *extractor) addRow(row int64, r *trace.Request) error {
	if r.Status == trace.StatusFailed {
		return nil
	}
	sh, err := e.shape(r)
	if err != nil {
		return fmt.Errorf("row %d: %w", row, err)
	}
	if len(e.places) == math.MaxInt32 {
		return fmt.Errorf("row %d: a model holds at most 2^31-1 requests", row)
	}
	if sh.hit, err = e.known(r.Blocks); err != nil {
		return fmt.Errorf("row %d: %w", row, err)
	}
	x, owner := int32(none), int32(none)
	if sh.hit > 0 {
		x = e.nodes[e.ids.ID(r.Blocks[sh.hit-1])].run
		owner = e.forest.owner(x, sh.hit)
	}
	p := place{user: none, template: none, link: link{parent: none}, seat: seat{after: none}}
	e.describe(r, &p)
	e.joinSession(r, &p, owner)
	e.forest.appendRequest(x, sh.hit, sh.length-sh.hit, nil)
	for i, b := range r.Blocks[sh.hit:] {
		e.nodes[e.ids.ID(b)] = node{e.forest.leaf[len(e.places)], sh.hit + int32(i) + 1}
	}
	e.owners = append(e.owners, owner)
	e.shapes = append(e.shapes, sh)
	e.places = append(e.places, p)
	e.times = append(e.times, r.ArrivalNS)
	return nil
}

// cutBehind notes that a sample has not all requests that have these blocks, which are known.
func (e *extractor) cutBehind(blocks []uint64) {
	if n := len(blocks); n > 0 {
		x := e.nodes[e.ids.ID(blocks[n-1])].run
		e.cuts[x] = max(e.cuts[x], int32(n))
	}
}

// shape measures a prompt: blocks that the row does not name count as new (see
// [Unshared]).
func (e *extractor) shape(r *trace.Request) (shape, error) {
	s := shape{tokens: r.InputTokens, tail: r.InputTokens}
	if r.InputTokens < 0 || r.OutputOr(0) < 0 {
		return s, errors.New("a token count is negative")
	}
	if e.size == 0 {
		if len(r.Blocks) > 0 {
			return s, errors.New("it has blocks, but the trace has no block size")
		}
		return s, nil
	}
	n := block.Count(int(r.InputTokens), e.size)
	if len(r.Blocks) > n {
		return s, fmt.Errorf("%d blocks are too many for its %d tokens", len(r.Blocks), r.InputTokens)
	}
	if n > maxBlocks {
		return s, fmt.Errorf("its prompt has more than %d blocks", maxBlocks)
	}
	if n > 0 {
		s.length, s.tail = int32(n), r.InputTokens-int32((n-1)*e.size)
	}
	return s, nil
}

// hits is the share of all blocks that were known.
func (e *extractor) hits() float64 {
	known, all := int64(0), int64(0)
	for i := range e.shapes {
		known, all = known+int64(e.shapes[i].hit), all+int64(e.shapes[i].length)
	}
	return float64(known) / float64(max(1, all))
}

// errChain is what a synthesiser cannot work with: its tree has one place for
// each block.
var errChain = errors.New("its blocks are not chained: one block follows two different prefixes, " +
	"so there is no prefix tree to fit. Use synth --mirror, which keeps blocks as they are")

// known counts the leading blocks that earlier rows carried and makes room for
// the rest. A block stands in one place of the tree.
func (e *extractor) known(blocks []uint64) (int32, error) {
	hit := int32(0)
	at := node{run: none}
	for i, b := range blocks {
		id := e.ids.ID(b)
		if int(id) == len(e.nodes) {
			e.nodes = append(e.nodes, node{depth: int32(i) + 1})
			continue
		}
		n := e.nodes[id]
		if int(hit) != i || n.depth != int32(i)+1 || !e.below(n, at) {
			return 0, errChain
		}
		hit, at = hit+1, n
	}
	return hit, nil
}

// below tells whether node n hangs on node up, or is a root when up is none.
func (e *extractor) below(n, up node) bool {
	if n.depth > e.forest.runs[n.run].start+1 {
		return n.run == up.run
	}
	return e.forest.runs[n.run].parent == up.run
}

// describe fills what the row says about itself.
func (e *extractor) describe(r *trace.Request, t *place) {
	t.output = r.OutputOr(none)
	l := label{model: r.Model, adapter: r.Adapter, kind: r.Kind, stream: none}
	if r.Class != nil {
		l.class, l.hasClass = *r.Class, true
	}
	if r.Stream != nil {
		l.stream = 0
		if *r.Stream {
			l.stream = 1
		}
	}
	if r.Temperature != nil && !math.IsNaN(float64(*r.Temperature)) {
		l.temperature, l.hasTemperature = *r.Temperature, true
	}
	t.label = e.labels.numberOf(l)
	t.end = e.ends.numberOf(end{r.Status, r.FinishReason})
	x := extra{reasoning: r.ReasoningTokens, imageTokens: r.ImageTokens, images: r.Images, maxTokens: r.MaxTokens}
	if r.Status == trace.StatusCancelled {
		x.cancelledAt = r.E2ENS
	}
	if x != (extra{}) {
		t.extra = &x
	}
	if r.User != nil {
		t.user = int64(e.users.ID(uint64(*r.User)))
	}
}

// joinSession finds how the row got to its session. owner is the request that last
// touched its deepest known block.
func (e *extractor) joinSession(r *trace.Request, p *place, owner int32) {
	if r.Session == nil {
		e.session = append(e.session, none)
		return
	}
	s := int32(e.sessions.ID(uint64(*r.Session)))
	if int(s) == len(e.last) {
		p.join = begins
		e.last = append(e.last, none)
	} else {
		p.join, p.after = byPlace, e.last[s]
		if owner != none && e.session[owner] == s {
			p.join = byParent
		}
	}
	p.waits = len(r.Parents) > 0
	if r.ThinkNS != nil || r.ToolNS != nil {
		p.pause = &pause{r.ThinkNS, r.ToolNS}
	}
	e.last[s] = int32(len(e.places))
	e.session = append(e.session, s)
}

// finish gives the places what needs all of them: the templates, and with them links and
// sizes. The last request to touch a template is no parent.
func (e *extractor) finish(k int) {
	e.findTemplates(k)
	for i := range e.places {
		p, s := &e.places[i], &e.shapes[i]
		if s.hit <= s.trunk {
			p.openPrompt(s)
			if p.join == byParent {
				p.join = byPlace
			}
		} else {
			p.link = e.linkOf(i)
			switch p.class {
			case continues, edits:
				p.growth = s.tokens - e.shapes[p.parent].tokens
			case branches:
				p.fresh, p.tail = s.length-s.hit, s.tail
			}
		}
		if p.join != byPlace {
			p.after = none
		}
	}
}

// openPrompt makes a place one that builds on nothing but a template, with a prompt of
// a shape.
func (p *place) openPrompt(s *shape) {
	p.link, p.template = link{class: opens, parent: none}, s.template
	p.size = size{trunk: s.trunk, fresh: s.length - s.trunk, tail: s.tail}
}

// Rules for an edit: it leaves within a fifth of its parent's end or so many blocks,
// with a length within a fifth or as many blocks. A turn whose last messages were
// changed is one.
const (
	editBlocks = 4
	editShare  = 5
)

// linkOf is the link of request i, which has a parent.
func (e *extractor) linkOf(i int) link {
	s, up := &e.shapes[i], e.owners[i]
	o := &e.shapes[up]
	l := link{parent: up, hit: s.hit, parentHit: min(o.begin(), o.full(e.size)), parentFull: o.full(e.size),
		parentLength: o.length}
	growth := s.tokens - o.tokens
	most := max(editBlocks*int32(e.size), o.tokens/editShare)
	switch {
	case s.hit == s.length:
		l.class = repeats
	case s.hit == l.parentFull:
		l.class = continues
	case l.parentFull > editBlocks+1 && s.hit < l.parentFull &&
		l.parentFull-s.hit <= max(editBlocks, l.parentFull/editShare) && max(growth, -growth) <= most:
		l.class = edits
	default:
		l.class = branches
	}
	return l
}
