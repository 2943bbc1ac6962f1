package breaker

import "reprise/trace/block"

// A promptTree holds the prompts of late as a radix tree, as an engine's prefix
// cache does: prompts share nodes as far as they agree. When it is full it
// forgets what was used least recently, a whole leaf at a time. Nodes are
// numbered, and 0 is none.
type promptTree struct {
	nodes   []promptNode
	free    []int32
	roots   map[block.ID]int32
	kids    map[kid]int32
	cost    int // in tokens
	limit   int
	domains uint32 // roots so far
	path    []int32
	now     int64 // walks so far
}

// A promptNode is a stretch of tokens behind that of its parent. Its neighbours
// in the order of use are older and newer.
type promptNode struct {
	tokens       []uint32
	array        int32 // length of what the tokens are a part of
	start        int32 // tokens in front
	parent       int32
	recent       int32 // the child used last
	kids         int32
	older, newer int32
	gen          uint32 // counts the nodes that had this number
	domain       uint32
	root         block.ID // of a root
	passed       int64    // the walk that was last here
	source       int64    // the prompt that was last here, by its position in the source
}

type kid struct {
	parent int32
	token  uint32
}

const (
	treeTokens = 2 << 20 // of 4 bytes
	nodeTokens = 40      // what a node costs beside its tokens
)

func newPromptTree(limit int) *promptTree {
	return &promptTree{nodes: make([]promptNode, 1, 64), roots: map[block.ID]int32{}, kids: map[kid]int32{}, limit: limit}
}

// walk follows tokens from the root of a domain and says how many of them are
// known. The way is in t.path.
func (t *promptTree) walk(domain block.ID, tokens []uint32) int {
	t.now++
	n, ok := t.roots[domain]
	if !ok {
		t.domains++
		n = t.add(promptNode{root: domain, domain: t.domains})
		t.roots[domain] = n
	}
	pos := 0
	t.path = append(t.path[:0], n)
	for pos < len(tokens) {
		next := t.kids[kid{n, tokens[pos]}]
		if next == 0 {
			break
		}
		n = next
		t.path = append(t.path, n)
		m := agree(t.nodes[n].tokens, tokens[pos:])
		if pos += m; m < len(t.nodes[n].tokens) {
			break
		}
	}
	for _, n := range t.path {
		t.nodes[n].passed = t.now
	}
	return pos
}

// agree is how many leading tokens two sequences share.
func agree(a, b []uint32) int {
	const stride = 32
	n, limit := 0, min(len(a), len(b))
	for n+stride <= limit && *(*[stride]uint32)(a[n:]) == *(*[stride]uint32)(b[n:]) {
		n += stride
	}
	for n < limit && a[n] == b[n] {
		n++
	}
	return n
}

// grow takes the tokens behind the last walk, of which so many were known, and
// returns the node that they are in. Then it forgets what is too much.
func (t *promptTree) grow(tokens []uint32, known int, source int64) int32 {
	last := t.path[len(t.path)-1]
	if t.extends(known) {
		t.lengthen(last, tokens[known:])
	} else if known < len(tokens) {
		if at := known - int(t.nodes[last].start); at < len(t.nodes[last].tokens) {
			last = t.split(last, at)
			t.path[len(t.path)-1] = last
		}
		tail := exactly(tokens[known:])
		top := &t.nodes[last]
		last = t.add(promptNode{tokens: tail, array: int32(len(tail)), start: int32(known), parent: last, domain: top.domain, passed: t.now})
		t.link(last)
		t.path = append(t.path, last)
	}
	for i := len(t.path) - 1; i >= 0; i-- { // the leaf first, so that it is the first to go
		t.touch(t.path[i])
		t.nodes[t.path[i]].source = source
		if i > 0 {
			t.nodes[t.path[i-1]].recent = t.path[i]
		}
	}
	for t.cost > t.limit && t.nodes[0].newer != last { // never the prompt at hand
		t.drop(t.nodes[0].newer)
	}
	return last
}

// lengthen puts tokens behind those of a leaf.
func (t *promptTree) lengthen(n int32, tokens []uint32) {
	node := &t.nodes[n]
	room := cap(node.tokens)
	node.tokens = append(node.tokens, tokens...)
	if now := cap(node.tokens); now != room {
		t.cost += now - int(node.array)
		node.array = int32(now)
	}
}

// split makes a node of the first tokens of n, which keeps the others.
func (t *promptTree) split(n int32, at int) int32 {
	old := t.nodes[n]
	top := t.add(promptNode{tokens: exactly(old.tokens[:at]), array: int32(at), start: old.start, parent: old.parent,
		recent: n, domain: old.domain, passed: old.passed})
	low := &t.nodes[n]
	low.tokens, low.start, low.parent = old.tokens[at:], old.start+int32(at), top
	if rest := int32(len(low.tokens)); low.array > 2*rest {
		t.cost -= int(low.array - rest)
		low.tokens, low.array = exactly(low.tokens), rest
	}
	t.kids[kid{old.parent, old.tokens[0]}] = top
	t.kids[kid{top, low.tokens[0]}] = n
	t.nodes[top].kids = 1
	return top
}

// exactly copies tokens into an array of their length; slices.Clone may take a
// longer one.
func exactly(tokens []uint32) []uint32 {
	c := make([]uint32, len(tokens))
	copy(c, tokens)
	return c
}

// link enters a new node with its parent.
func (t *promptTree) link(n int32) {
	node := &t.nodes[n]
	t.kids[kid{node.parent, node.tokens[0]}] = n
	t.nodes[node.parent].kids++
}

// add gives a node a number. It is the newest.
func (t *promptTree) add(node promptNode) int32 {
	var n int32
	if last := len(t.free) - 1; last >= 0 {
		n = t.free[last]
		t.free = t.free[:last]
		node.gen = t.nodes[n].gen + 1
		t.nodes[n] = node
	} else {
		n = int32(len(t.nodes))
		t.nodes = append(t.nodes, node)
	}
	t.cost += int(node.array) + nodeTokens
	t.enqueue(n)
	return n
}

// The order of use is a ring through node 0, whose newer is the oldest.

func (t *promptTree) enqueue(n int32) {
	newest := t.nodes[0].older
	t.nodes[n].older, t.nodes[n].newer = newest, 0
	t.nodes[newest].newer, t.nodes[0].older = n, n
}

func (t *promptTree) dequeue(n int32) {
	older, newer := t.nodes[n].older, t.nodes[n].newer
	t.nodes[older].newer, t.nodes[newer].older = newer, older
}

func (t *promptTree) touch(n int32) {
	t.dequeue(n)
	t.enqueue(n)
}

// drop forgets a leaf.
func (t *promptTree) drop(n int32) {
	node := &t.nodes[n]
	t.dequeue(n)
	t.cost -= int(node.array) + nodeTokens
	if node.parent == 0 {
		delete(t.roots, node.root)
	} else {
		delete(t.kids, kid{node.parent, node.tokens[0]})
		above := &t.nodes[node.parent]
		if above.kids--; above.recent == n {
			above.recent = 0
		}
	}
	t.nodes[n] = promptNode{gen: node.gen + 1}
	t.free = append(t.free, n)
}

// alive says whether n is still the node that had this gen.
func (t *promptTree) alive(n int32, gen uint32) bool { return t.nodes[n].gen == gen }

// extends says whether the prompt of the last walk, of which so many tokens were
// known, goes on where all that is known ends.
func (t *promptTree) extends(known int) bool {
	node := &t.nodes[t.path[len(t.path)-1]]
	return known > 0 && node.kids == 0 && known == int(node.start)+len(node.tokens)
}

// parting is where the prompts through n part from the prompt of the last walk,
// of which so many tokens were known. They may share pos and then some; pos is a
// position on the way to n or in it.
func (t *promptTree) parting(n, pos, known int32) int32 {
	for t.nodes[n].start > pos {
		n = t.nodes[n].parent
	}
	for t.nodes[n].passed != t.now {
		n = t.nodes[n].parent
	}
	return min(known, t.nodes[n].start+int32(len(t.nodes[n].tokens)))
}

// behind appends the tokens of a prompt through n from a position on, and goes
// on behind n along what was used last.
func (t *promptTree) behind(dst []uint32, n, from int32) []uint32 {
	first := len(t.path) // the way up goes behind the path at hand
	for at := n; ; at = t.nodes[at].parent {
		t.path = append(t.path, at)
		if t.nodes[at].start <= from {
			break
		}
	}
	for i := len(t.path) - 1; i >= first; i-- {
		node := &t.nodes[t.path[i]]
		dst = append(dst, node.tokens[max(0, min(from-node.start, int32(len(node.tokens)))):]...)
	}
	t.path = t.path[:first]
	for at := t.nodes[n].recent; at != 0; at = t.nodes[at].recent {
		dst = append(dst, t.nodes[at].tokens...)
	}
	return dst
}
