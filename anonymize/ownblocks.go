package anonymize

// ownBlocks counts the rows that blocks of few units link to an earlier row of
// the same unit, whatever becomes of sessions. That cannot be otherwise: the reuse
// within a unit is what such blocks are kept for.
//
// Blocks are chained, so that a prompt has an own block in common with an earlier
// one just when it has the first of its own in common. Those of one unit alone
// take a bit each; those of a few are kept in a set, up to so many.
type ownBlocks struct {
	linked int64
	least  bool // there may be more: the set was full
	alone  []uint64
	few    map[ownBlock]struct{}
}

type ownBlock struct{ unit, block uint64 }

const maxOwnBlocks = 1 << 20

// add takes the blocks of the next row.
func (o *ownBlocks) add(s *sharing, unit uint64, blocks []uint64) {
	for _, b := range blocks {
		switch s.of(b) {
		case sharedByAll:
			continue
		case sharedByNone:
			o.note(o.seen(b))
		case sharedByFew:
			o.note(o.seenBy(ownBlock{unit, b}))
		}
		return
	}
}

func (o *ownBlocks) note(seen bool) {
	if seen {
		o.linked++
	}
}

// seen marks a block.
func (o *ownBlocks) seen(b uint64) bool {
	word, bit := b/64, uint64(1)<<(b%64)
	for word >= uint64(len(o.alone)) {
		o.alone = append(o.alone, 0)
	}
	seen := o.alone[word]&bit != 0
	o.alone[word] |= bit
	return seen
}

// seenBy marks a block of one of its units.
func (o *ownBlocks) seenBy(b ownBlock) bool {
	if _, seen := o.few[b]; seen {
		return true
	}
	if len(o.few) == maxOwnBlocks {
		o.least = true
		return false
	}
	if o.few == nil {
		o.few = map[ownBlock]struct{}{}
	}
	o.few[b] = struct{}{}
	return false
}
