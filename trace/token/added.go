package token

import "strings"

// A matcher finds added tokens in a text. The reference searches for them before anything else: the leftmost first, and
// of those that begin at one place the longest. The spellings of special tokens are searched for too, although they are
// plain text here, since they hide others that overlap them.
type matcher struct {
	next  map[uint64]int32 // from a node and a byte to a node: a trie
	ends  []addedEnd       // of each node
	first [256]bool        // the bytes that begin one
	only  int              // the one byte that begins one, or -1
}

// An addedEnd is the token that ends at a node, if any.
type addedEnd struct {
	id      uint32
	ends    bool
	special bool
}

func newMatcher() *matcher {
	return &matcher{next: make(map[uint64]int32), ends: make([]addedEnd, 1), only: -1}
}

// insert adds a spelling, which is not empty.
func (m *matcher) insert(spelling string, id uint32, special bool) {
	var node int32
	for _, b := range []byte(spelling) {
		key := uint64(node)<<8 | uint64(b)
		to, ok := m.next[key]
		if !ok {
			to = int32(len(m.ends))
			m.next[key] = to
			m.ends = append(m.ends, addedEnd{})
		}
		node = to
	}
	m.ends[node] = addedEnd{id: id, ends: true, special: special}
	switch b := spelling[0]; {
	case m.first == [256]bool{}:
		m.only, m.first[b] = int(b), true
	case !m.first[b]:
		m.only, m.first[b] = -1, true
	}
}

// find gives the next token in s at or after i that is not special, or false. A nil matcher finds none.
func (m *matcher) find(s string, i int) (start, end int, id uint32, ok bool) {
	for m != nil {
		if i = m.candidate(s, i); i < 0 {
			return 0, 0, 0, false
		}
		end, hit := m.longest(s, i)
		switch {
		case !hit.ends:
			i++
		case hit.special:
			i = end
		default:
			return i, end, hit.id, true
		}
	}
	return 0, 0, 0, false
}

// candidate gives the next place at or after i where a token may begin, or -1.
func (m *matcher) candidate(s string, i int) int {
	if m.only >= 0 {
		n := strings.IndexByte(s[i:], byte(m.only))
		if n < 0 {
			return -1
		}
		return i + n
	}
	for ; i < len(s); i++ {
		if m.first[s[i]] {
			return i
		}
	}
	return -1
}

// longest gives the longest token that begins at i, and where it ends.
func (m *matcher) longest(s string, i int) (end int, hit addedEnd) {
	var node int32
	for ; i < len(s); i++ {
		to, ok := m.next[uint64(node)<<8|uint64(s[i])]
		if !ok {
			break
		}
		if node = to; m.ends[node].ends {
			end, hit = i+1, m.ends[node]
		}
	}
	return end, hit
}

// A special is an added token by which templates mark the parts of a chat.
type special struct {
	id             uint32
	lstrip, rstrip bool // it swallows the white space before it, or after it
}
