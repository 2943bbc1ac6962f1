package block

// A Cutter cuts one token sequence at a time, written in any number of pieces, into blocks. It uses its hasher, so cutters of
// one hasher belong to one goroutine.
type Cutter struct {
	h    *Hasher
	last ID       // of the last full block, or the root
	full []ID     // of all full blocks
	rest []uint32 // tokens of the block that is not full yet
}

// Cutter makes a cutter for a sequence in the domain of root.
func (h *Hasher) Cutter(root ID) *Cutter { return &Cutter{h: h, last: root} }

// Reset forgets the sequence and begins one in the domain of root. The memory is used again.
func (c *Cutter) Reset(root ID) {
	c.last, c.full, c.rest = root, c.full[:0], c.rest[:0]
}

// Write adds tokens to the sequence.
func (c *Cutter) Write(tokens []uint32) {
	if len(c.rest) > 0 {
		n := min(c.h.size-len(c.rest), len(tokens))
		c.rest = append(c.rest, tokens[:n]...)
		tokens = tokens[n:]
		if len(c.rest) < c.h.size {
			return
		}
		c.push(c.rest)
		c.rest = c.rest[:0]
	}
	for len(tokens) >= c.h.size {
		c.push(tokens[:c.h.size])
		tokens = tokens[c.h.size:]
	}
	c.rest = append(c.rest, tokens...)
}

func (c *Cutter) push(tokens []uint32) {
	c.last = c.h.next(c.last, tokens)
	c.full = append(c.full, c.last)
}

// Len is the number of tokens written since the start of the sequence.
func (c *Cutter) Len() int { return len(c.full)*c.h.size + len(c.rest) }

// Append appends the ids of the blocks written so far: those of the full ones and, when tokens are left over, that of the
// partial block they make. Writing may go on afterwards; the partial block then grows, and its id changes.
func (c *Cutter) Append(dst []ID) []ID {
	dst = c.AppendFull(dst)
	if len(c.rest) > 0 {
		dst = append(dst, c.h.next(c.last, c.rest))
	}
	return dst
}

// AppendFull appends the ids of the full blocks written so far.
func (c *Cutter) AppendFull(dst []ID) []ID { return append(dst, c.full...) }
