package breaker

import "reprise/trace/block"

// A promptTree holds recent prompts as a radix tree, as an engine's prefix cache
// does: prompts share nodes as far as they agree. A full tree evicts the leaf that
// was used least recently. Nodes are numbered; 0 means none.
type promptTree struct {
	nodes   []promptNode
	free    []int32
	roots   map[block.ID]int32
	child   map[childKey]int32
	cost    int // in tokens
	limit   int
	domains uint32 // roots so far
	path    []int32
	now     int64 // walks so far
}

// A promptNode holds the tokens that follow those of its parent. older and newer are
// its neighbours in the order of use.
type promptNode struct {
	tokens       []uint32
	array        int32 // length of the array that the tokens are a part of
	start        int32 // tokens before the node
	parent       int32
	recent       int32 // the child used last
	children     int32
	older, newer int32
	gen          uint32 // how many nodes had this number before
	domain       uint32
	root         block.ID // of a root
	passed       int64    // the last walk through the node
	source       int64    // the last prompt through the node, by its position in the source
}

// A childKey finds a child by the first of its tokens.
type childKey struct {
	parent int32
	token  uint32
}

const (
	treeTokens = 2 << 20 // of 4 bytes
	nodeTokens = 40      // what a node costs in addition to its tokens
)

func newPromptTree(limit int) *promptTree {
	return &promptTree{nodes: make([]promptNode, 1, 64), roots: map[block.ID]int32{},
		child: map[childKey]int32{}, limit: limit}
}

// walk follows tokens from the root of a domain, leaves the nodes in t.path, and
// returns how many of the tokens are known.
func (t *promptTree) walk(domain block.ID, tokens []uint32) int {
	t.now++
	n, ok := t.roots[domain]
	if !ok {
		t.domains++
		n = t.addNode(promptNode{root: domain, domain: t.domains})
		t.roots[domain] = n
	}
	pos := 0
	t.path = append(t.path[:0], n)
	for pos < len(tokens) {
		next := t.child[childKey{n, tokens[pos]}]
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

// grow adds the tokens of the last walk, whose first known were in the tree, and returns
// the node that holds the last of them. Then it evicts leaves until the tree is within
// its limit.
func (t *promptTree) grow(tokens []uint32, known int, source int64) int32 {
	last := t.path[len(t.path)-1]
	if t.extends(known) {
		leaf := &t.nodes[last]
		room := cap(leaf.tokens)
		leaf.tokens = append(leaf.tokens, tokens[known:]...)
		if now := cap(leaf.tokens); now != room {
			t.cost += now - int(leaf.array)
			leaf.array = int32(now)
		}
	} else if known < len(tokens) {
		if at := known - int(t.nodes[last].start); at < len(t.nodes[last].tokens) {
			last = t.split(last, at)
			t.path[len(t.path)-1] = last
		}
		tail := exactly(tokens[known:])
		top := &t.nodes[last]
		last = t.addNode(promptNode{tokens: tail, array: int32(len(tail)), start: int32(known), parent: last,
			domain: top.domain, passed: t.now})
		leaf := &t.nodes[last]
		t.child[childKey{leaf.parent, tail[0]}] = last
		t.nodes[leaf.parent].children++
		t.path = append(t.path, last)
	}
	for i := len(t.path) - 1; i >= 0; i-- { // the leaf first, so that it is evicted first
		t.dequeue(t.path[i])
		t.enqueue(t.path[i])
		t.nodes[t.path[i]].source = source
		if i > 0 {
			t.nodes[t.path[i-1]].recent = t.path[i]
		}
	}
	for t.cost > t.limit && t.nodes[0].newer != last { // never this prompt
		t.evict(t.nodes[0].newer)
	}
	return last
}

// split moves the first tokens of n to a new parent of n, and returns the parent.
func (t *promptTree) split(n int32, at int) int32 {
	old := t.nodes[n]
	top := t.addNode(promptNode{tokens: exactly(old.tokens[:at]), array: int32(at), start: old.start,
		parent: old.parent,
		recent: n, domain: old.domain, passed: old.passed})
	low := &t.nodes[n]
	low.tokens, low.start, low.parent = old.tokens[at:], old.start+int32(at), top
	if rest := int32(len(low.tokens)); low.array > 2*rest {
		t.cost -= int(low.array - rest)
		low.tokens, low.array = exactly(low.tokens), rest
	}
	t.child[childKey{old.parent, old.tokens[0]}] = top
	t.child[childKey{top, low.tokens[0]}] = n
	t.nodes[top].children = 1
	return top
}

// exactly copies tokens into an array of their length; slices.Clone may take a
// longer one.
func exactly(tokens []uint32) []uint32 {
	c := make([]uint32, len(tokens))
	copy(c, tokens)
	return c
}

// addNode gives a node a number and makes it the newest.
func (t *promptTree) addNode(node promptNode) int32 {
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

// evict removes a leaf.
func (t *promptTree) evict(n int32) {
	node := &t.nodes[n]
	t.dequeue(n)
	t.cost -= int(node.array) + nodeTokens
	if node.parent == 0 {
		delete(t.roots, node.root)
	} else {
		delete(t.child, childKey{node.parent, node.tokens[0]})
		above := &t.nodes[node.parent]
		if above.children--; above.recent == n {
			above.recent = 0
		}
	}
	t.nodes[n] = promptNode{gen: node.gen + 1}
	t.free = append(t.free, n)
}

// extends reports whether the prompt of the last walk, whose first known tokens were in the
// tree, continues a whole earlier prompt.
func (t *promptTree) extends(known int) bool {
	node := &t.nodes[t.path[len(t.path)-1]]
	return known > 0 && node.children == 0 && known == int(node.start)+len(node.tokens)
}

// appendFrom appends to dst the tokens, from a position on, of the prompt that last
// passed n.
func (t *promptTree) appendFrom(dst []uint32, n, from int32) []uint32 {
	first := len(t.path) // the way up is appended to the path of the walk
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
