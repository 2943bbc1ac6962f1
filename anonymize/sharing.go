package anonymize

import (
	"context"
	"errors"
	"math"

	"reprise/trace"
)

// How the units of a block are.
const (
	sharedByNone = iota // one unit has it, or none
	sharedByFew         // fewer than k
	sharedByAll         // k or more: it may be distinguished from others as what it is
)

// Nobody is the unit of rows that count for no unit.
const Nobody uint64 = math.MaxUint64

// sharing knows of every block how many units it has, in two bits.
type sharing struct {
	k     int
	state []uint64
}

const (
	sharingBits = 2
	perWord     = 64 / sharingBits
	// sharingBytes is the memory for the units of blocks. Blocks beyond it are
	// counted in another pass over the rows.
	sharingBytes = 256 << 20
)

var errDense = errors.New("its block ids are not dense (0, 1, 2, …), so it is not a trace of tier internal")

// countSharing counts the distinct units of each of n blocks, k at most.
func countSharing(ctx context.Context, open func() (trace.Reader[trace.Request], error), unit func(row int64, r *trace.Request) uint64, n int64, k int, limit int64) (*sharing, error) {
	s := &sharing{k: k, state: make([]uint64, (n+perWord-1)/perWord)}
	slots := int64(k - 1) // a block with more units is shared by all
	if slots == 0 {
		for i := range s.state {
			s.state[i] = math.MaxUint64 / 3 * sharedByAll
		}
		return s, nil
	}
	step := max(limit/(4*slots), 1)
	for from := int64(0); from < n; from += step {
		c := unitCounter{s: s, from: uint64(from), slots: int(slots), units: make([]uint32, min(step, n-from)*slots)}
		rows, err := open()
		if err != nil {
			return nil, err
		}
		if r, ok := rows.(interface{ Only(columns ...string) }); ok {
			r.Only("user", "session", "blocks") // what unit and add look at
		}
		err = trace.Each(rows, func(row int64, r *trace.Request) error {
			if row%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			return c.add(r, unit(row, r))
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// CountShared counts the blocks of prompts that at least k units have. unit returns
// the unit of a row, or [Nobody] for a row that counts for none. Audits hold a
// release against this count. It fails if block ids are not numbered from 0.
func CountShared(ctx context.Context, src Source, k int, unit func(row int64, r *trace.Request) uint64) (shared int64, err error) {
	rows, err := src.Open()
	if err != nil {
		return 0, err
	}
	if r, ok := rows.(interface{ Only(columns ...string) }); ok {
		r.Only("blocks", "output_blocks")
	}
	n, refs := uint64(0), uint64(0)
	err = trace.Each(rows, func(row int64, r *trace.Request) error {
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		refs += uint64(len(r.Blocks) + len(r.OutputBlocks))
		for _, b := range r.Blocks {
			n = max(n, b, b+1) // the largest number has no next
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if n > refs {
		return 0, errDense
	}
	s, err := countSharing(ctx, src.Open, unit, int64(n), k, sharingBytes)
	if err != nil {
		return 0, err
	}
	for b := range n {
		if s.stateOf(b) == sharedByAll {
			shared++
		}
	}
	return shared, nil
}

// unitCounter is one pass: the units of the blocks from a number on, so many for
// each, 0 where there is none.
type unitCounter struct {
	s     *sharing
	from  uint64
	slots int
	units []uint32
}

var errUnits = errors.New("more than four billion units of privacy")

func (c *unitCounter) add(r *trace.Request, unit uint64) error {
	if unit == Nobody {
		return nil
	}
	if unit >= math.MaxUint32 {
		return errUnits
	}
	id, n := uint32(unit)+1, uint64(len(c.units)/c.slots)
	for _, b := range r.Blocks {
		if b < c.from || b-c.from >= n {
			continue
		}
		if c.s.stateOf(b) == sharedByAll {
			continue
		}
		at := (b - c.from) * uint64(c.slots)
		c.s.set(b, c.note(c.units[at:at+uint64(c.slots)], id))
	}
	return nil
}

// note adds a unit to those of a block.
func (c *unitCounter) note(list []uint32, id uint32) int {
	for i, u := range list {
		switch u {
		case 0:
			list[i] = id
			return i // 0 for the first, more units than one after it
		case id:
			return -1
		}
	}
	return len(list)
}

// set takes how many other units a block had, -1 for no news.
func (s *sharing) set(b uint64, others int) {
	state := uint64(sharedByFew)
	switch {
	case others < 1:
		return
	case others == s.k-1:
		state = sharedByAll
	}
	word, bit := b/perWord, b%perWord*sharingBits
	s.state[word] = s.state[word]&^(3<<bit) | state<<bit
}

func (s *sharing) stateOf(b uint64) int {
	return int(s.state[b/perWord] >> (b % perWord * sharingBits) & 3)
}

// leading is how many blocks at the beginning are shared by all.
func (s *sharing) leading(blocks []uint64) int {
	for i, b := range blocks {
		if s.stateOf(b) != sharedByAll {
			return i
		}
	}
	return len(blocks)
}

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
	first := s.leading(blocks)
	if first == len(blocks) {
		return
	}
	b, seen := blocks[first], false
	if s.stateOf(b) == sharedByNone { // of one unit, so that a bit is enough
		word, bit := b/64, uint64(1)<<(b%64)
		for word >= uint64(len(o.alone)) {
			o.alone = append(o.alone, 0)
		}
		seen = o.alone[word]&bit != 0
		o.alone[word] |= bit
	} else {
		own := ownBlock{unit, b}
		switch _, seen = o.few[own]; {
		case seen:
		case len(o.few) == maxOwnBlocks:
			o.least = true
		case o.few == nil:
			o.few = map[ownBlock]struct{}{own: {}}
		default:
			o.few[own] = struct{}{}
		}
	}
	if seen {
		o.linked++
	}
}
