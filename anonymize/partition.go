package anonymize

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"math/rand/v2"

	"reprise/trace"
	"reprise/trace/block"
)

// With more distinct blocks than are numbered in memory, what a block needs to
// know of its past is found out by partitions, whose blocks fit:
//
//  1. spread: every reference to a block, in the final order of rows, goes to
//     the partition that a hash of its key names.
//  2. resolve: each partition is read in turn. For every reference it writes an
//     answer, in the same order: how far back the first reference to the block
//     is, and which request touched the block last.
//  3. Reading the rows again, each reference takes the next answer of its
//     partition. The order is that of the rows, so nothing is sorted.
//
// Memory is that of the partitions' buffers and of one partition for each
// worker. Sorting all references by key instead was rejected: it moves as many
// bytes and compares more.
type partitions struct {
	size     int        // tokens in a block
	numbered *block.IDs // the blocks that the collector numbered
	seed     [2]uint64
	parts    []part
	buffer   int // bytes for each partition
	refs     *trace.Spill
	answers  *trace.Spill
	n        int64 // references so far
	rows     int64 // load with blocks so far
	global   int   // blocks that more than half of these rows carry
}

// A part is a partition: what of it is not written yet, and where it is.
type part struct {
	buf     []byte
	last    reference
	hi      uint64 // of its key
	refs    []trace.Extent
	answers []trace.Extent
}

// A reference is one block of one row.
type reference struct {
	ordinal int64 // among all references
	row     int64
	prompt  bool // it is in the prompt of a load row, which touches the block…
	end     bool // …as its last full block
}

// A reference in a partition is a number, with these bits below the distance to
// the one before it; the halves of its key, the first only when it is another
// than before; and the rows since the last prompt.
const (
	refPrompt = 1 << iota
	refEnd
	refHi
	refBits = iota
)

const (
	refsInPart  = 1 << 16 // some 5 MiB of memory, when all blocks differ
	maxParts    = 1 << 12 // with a quarter of a billion references or more, partitions grow
	bufferBytes = 16 << 20
)

func newPartitions(p *Policy, numbered *block.IDs, refs int64) (*partitions, error) {
	perPart := int64(refsInPart)
	if p.limits.refs > 0 {
		perPart = int64(p.limits.refs)
	}
	n := min(refs/perPart+1, maxParts)
	x := &partitions{size: p.blockSize(), numbered: numbered, seed: [2]uint64{rand.Uint64(), rand.Uint64()},
		parts: make([]part, n), buffer: max(bufferBytes/int(n), 4<<10)}
	var err error
	if x.refs, err = trace.NewSpill(p.SpillDir); err != nil {
		return nil, err
	}
	if x.answers, err = trace.NewSpill(p.SpillDir); err != nil {
		return nil, errors.Join(err, x.refs.Close())
	}
	return x, nil
}

func (x *partitions) close() error { return errors.Join(x.refs.Close(), x.answers.Close()) }

// of is the partition of a key, by a hash that no input can foresee.
func (x *partitions) of(k key) int {
	hi, lo := bits.Mul64(k.hi^x.seed[0], k.lo^x.seed[1])
	i, _ := bits.Mul64(hi^lo, uint64(len(x.parts)))
	return int(i)
}

// spread takes the references of the next row, which must be one more.
func (x *partitions) spread(row int64, r *trace.Request) error {
	load := isLoad(r)
	if load {
		x.rows++
	}
	end := block.Full(int(r.InputTokens), x.size) - 1
	n := 0
	for c, words := (keyCode{}), r.Blocks; len(words) > 0; n++ {
		var k key
		var err error
		if k, words, err = c.next(words, x.numbered); err == nil {
			err = x.put(k, reference{x.n, row, load, load && n == end})
		}
		if err != nil {
			return err
		}
	}
	for c, words := (keyCode{}), r.OutputBlocks; len(words) > 0; {
		var k key
		var err error
		if k, words, err = c.next(words, x.numbered); err == nil {
			err = x.put(k, reference{ordinal: x.n, row: row})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isLoad says whether a row takes part in reuse, as package profile has it.
func isLoad(r *trace.Request) bool { return r.Status != trace.StatusFailed && len(r.Blocks) > 0 }

func (x *partitions) put(k key, ref reference) error {
	x.n++
	p := &x.parts[x.of(k)]
	if p.buf == nil {
		p.buf = make([]byte, 0, x.buffer)
	}
	// Most references are of a prompt and of the domain of the one before, so
	// that the rest of what may be said costs nothing.
	meta := uint64(ref.ordinal-p.last.ordinal) << refBits
	if k.hi != p.hi {
		meta |= refHi
	}
	if ref.end {
		meta |= refEnd
	}
	if ref.prompt {
		meta |= refPrompt
	} else {
		ref.row = p.last.row
	}
	b := binary.AppendUvarint(p.buf, meta)
	if k.hi != p.hi {
		p.hi = k.hi
		b = binary.AppendUvarint(b, k.hi)
	}
	b = binary.AppendUvarint(b, k.lo)
	if ref.prompt {
		b = binary.AppendUvarint(b, uint64(ref.row-p.last.row))
	}
	p.buf, p.last = b, ref
	if len(b) > x.buffer-5*binary.MaxVarintLen64 {
		return p.flush(x.refs)
	}
	return nil
}

func (p *part) flush(s *trace.Spill) error {
	e, err := s.Append(p.buf)
	p.refs, p.buf = append(p.refs, e), p.buf[:0]
	return err
}
