package synth

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"reprise/trace"
	"reprise/trace/block"
)

// An extractor turns the rows of a trace into tuples. Rows that failed are no
// load and leave no tuple.
type extractor struct {
	size   int // tokens in a block; 0 when the trace has none
	forest forest
	ids    trace.Renumber
	nodes  []node // by number of the block

	sessions trace.Renumber
	last     []int32 // by session: its latest request
	turns    []int32 // by session: requests so far
	session  []int32 // by request; none without one
	active   weights // by request: 1 when it is the latest of its session

	labels numbering[label]
	ends   numbering[end]
	users  trace.Renumber

	tuples  []tuple
	owners  []int32
	extends []bool // by request: its hit ends at an endpoint
	times   []int64
}

// A node is where a block stands in the forest.
type node struct{ run, depth int32 }

// addRow takes the next row; row is its number, for errors.
func (e *extractor) addRow(row int64, r *trace.Request) error {
	if r.Status == trace.StatusFailed {
		return nil
	}
	t, err := e.lengths(r)
	if err != nil {
		return fmt.Errorf("row %d: %w", row, err)
	}
	if len(e.tuples) == math.MaxInt32 {
		return fmt.Errorf("row %d: a model holds at most 2^31-1 requests", row)
	}
	hit, err := e.known(r.Blocks)
	if err != nil {
		return fmt.Errorf("row %d: %w", row, err)
	}
	t.hit, t.fresh = hit, t.fresh-hit
	x, owner := int32(none), int32(none)
	if hit > 0 {
		x = e.nodes[e.ids.ID(r.Blocks[hit-1])].run
		owner = e.forest.owner(x, hit)
		t.distance = e.forest.distance(owner, hit)
		for q := range t.profile {
			t.profile[q] = e.forest.ancestor(owner, quarter(hit, q+1))
		}
	}
	e.owners = append(e.owners, owner)
	e.extends = append(e.extends, owner != none && hit == e.full(owner))
	e.describe(r, &t)
	e.joinSession(r, &t, owner)
	e.forest.appendRequest(x, hit, t.fresh, func(int32, int32) {})
	for i, b := range r.Blocks[hit:] {
		e.nodes[e.ids.ID(b)] = node{e.forest.leaf[len(e.tuples)], hit + int32(i) + 1}
	}
	e.tuples = append(e.tuples, t)
	e.times = append(e.times, r.ArrivalNS)
	return nil
}

// full is the depth of the last full block of a request.
func (e *extractor) full(r int32) int32 {
	if int(e.tuples[r].tail) < e.size {
		return e.forest.length[r] - 1
	}
	return e.forest.length[r]
}

// lengths begins a tuple: all of its blocks count as fresh, those that the row
// does not name included (see [Unshared]).
func (e *extractor) lengths(r *trace.Request) (tuple, error) {
	t := tuple{user: none, tail: r.InputTokens}
	if r.InputTokens < 0 || r.OutputTokens < 0 {
		return t, errors.New("a token count is negative")
	}
	t.output = r.OutputTokens
	if e.size == 0 {
		if len(r.Blocks) > 0 {
			return t, errors.New("it has blocks, but the trace has no block size")
		}
		return t, nil
	}
	n := block.Count(int(r.InputTokens), e.size)
	if len(r.Blocks) > n {
		return t, fmt.Errorf("%d blocks are too many for its %d tokens", len(r.Blocks), r.InputTokens)
	}
	if n > maxBlocks {
		return t, fmt.Errorf("its prompt has more than %d blocks", maxBlocks)
	}
	if n > 0 {
		t.fresh, t.tail = int32(n), r.InputTokens-int32((n-1)*e.size)
	}
	return t, nil
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
func (e *extractor) describe(r *trace.Request, t *tuple) {
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
func (e *extractor) joinSession(r *trace.Request, t *tuple, owner int32) {
	if r.Session == nil {
		e.session = append(e.session, none)
		e.active.pushWeight(0)
		return
	}
	s := int32(e.sessions.ID(uint64(*r.Session)))
	if int(s) == len(e.last) {
		t.join = opens
		e.last, e.turns = append(e.last, none), append(e.turns, 0)
	} else {
		t.join = byRecency
		t.back = e.active.weightAfter(int(e.last[s])) + 1
		if owner != none && e.session[owner] == s {
			t.join = byTree
		}
		e.active.addWeight(int(e.last[s]), -1)
	}
	t.waits = len(r.Parents) > 0
	if r.ThinkNS != nil || r.ToolNS != nil {
		t.pause = &pause{r.ThinkNS, r.ToolNS}
	}
	t.turn = e.turns[s]
	e.turns[s]++
	e.last[s] = int32(len(e.tuples))
	e.session = append(e.session, s)
	e.active.pushWeight(1)
}

// finish gives the tuples what needs all of them: how far they follow the trunk
// of their domain, and their categories, which need the global prefix. A tuple
// that hits no more than that does not follow its session by the tree: the last
// request to touch a global prefix is no parent.
func (e *extractor) finish() {
	e.trunks()
	sourced := joined(e.tuples)
	prefix := 0
	for _, p := range e.forest.common(nil, 1)[0] {
		prefix = int(p.to)
	}
	for i := range e.tuples {
		t := &e.tuples[i]
		t.category = categorise(t.hit, e.forest.length[i], int32(prefix), e.extends[i])
		if t.join == byTree && t.category <= global {
			t.join = byRecency
		}
		switch {
		case sourced && t.join == byTree:
			t.chain = e.tuples[e.owners[i]].turn + 1
		case !sourced && t.category > global:
			t.chain = e.tuples[e.owners[i]].chain + 1
		}
	}
}

// joined tells whether tuples have sessions of the source.
func joined(tuples []tuple) bool {
	return slices.ContainsFunc(tuples, func(t tuple) bool { return t.join != joinless })
}

// trunks finds the blocks that more than half of the requests of each domain
// carry, and how many of them each tuple has.
func (e *extractor) trunks() {
	domains := domainsOf(e.labels.values)
	of := make([]uint16, len(e.tuples))
	for i := range of {
		of[i] = domains[e.tuples[i].label]
	}
	to := map[int32]int32{} // by run on a trunk: how deep
	for _, path := range e.forest.common(of, domainCount(domains)) {
		for _, s := range path {
			to[s.run] = s.to
		}
	}
	for i := range e.tuples {
		depth := e.forest.length[i]
		for x := e.forest.leaf[i]; x != none; x = e.forest.runs[x].parent {
			if d, ok := to[x]; ok {
				e.tuples[i].trunk = min(d, depth)
				break
			}
			depth = e.forest.runs[x].start
		}
	}
}
