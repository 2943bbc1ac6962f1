package breaker

// Numbers gives each token a number, in order of first appearance. A [Finder] takes
// numbered tokens: it chooses fingerprints by their values, and what it finds must not
// depend on what a tokenizer calls its tokens. Memory: 4 bytes for each id below 2^20
// up to the highest, and about 40 for each above.
type Numbers struct {
	low  []uint32 // by token, number + 1; 0 is none yet
	high map[uint32]uint32
	next uint32
}

const lowTokens = 1 << 20

// Append appends the numbers of tokens to dst. Marks of messages stay as they are.
func (n *Numbers) Append(dst, tokens []uint32) []uint32 {
	for _, t := range tokens {
		dst = append(dst, n.of(t))
	}
	return dst
}

func (n *Numbers) of(t uint32) uint32 {
	if int(t) < len(n.low) && n.low[t] > 0 {
		return n.low[t] - 1
	}
	switch {
	case t >= messageMark:
		return t
	case t < lowTokens:
		for int(t) >= len(n.low) {
			n.low = append(n.low, make([]uint32, max(1<<12, len(n.low)))...)
		}
		n.next++
		n.low[t] = n.next
		return n.next - 1
	}
	if number, ok := n.high[t]; ok {
		return number
	}
	if n.high == nil {
		n.high = map[uint32]uint32{}
	}
	n.high[t] = n.next
	n.next++
	return n.next - 1
}
