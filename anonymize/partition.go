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
//     the partition that a hash of its key names. References to keys that count
//     up go together, see [keyReader].
//  2. resolve: each partition is read in turn. For every reference it writes an
//     answer, in the same order: how far back the first reference to the block
//     is, and which request touched the block last. Like answers in a row are
//     one: a prefix that comes again came whole before.
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
	last    place // behind the last references
	refs    []trace.Extent
	answers []trace.Extent
}

// A place is where the references of a stretch are read or written.
type place struct {
	key     key   // of the next block
	ordinal int64 // among all references
	row     int64
}

// References are those of one row to the blocks of one stretch.
type references struct {
	place
	n      int
	prompt bool // they are in the prompt of a load row, which touches the blocks…
	end    int  // …this one of them as its last full block; -1 for none
}

// References in a partition are a number, with these bits below the distance
// from those before; the first half of the key when it is another; how far the
// second half is from the key behind those before; and what the bits announce:
// the rows since the last prompt, how many more there are, and which is the end.
const (
	refPrompt = 1 << iota
	refEnd
	refMore
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
	hi, lo := bits.Mul64(k.hi^x.seed[0], k.lo>>fieldBits^x.seed[1])
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
	if err := x.list(row, r.Blocks, load, end); err != nil {
		return err
	}
	return x.list(row, r.OutputBlocks, false, -1)
}

// list takes the references of a list of blocks.
func (x *partitions) list(row int64, words []uint64, prompt bool, end int) error {
	blocks := keyReader{words: words, numbered: x.numbered}
	for {
		k, n, err := blocks.next()
		if n == 0 || err != nil {
			return err
		}
		ref := references{place{k, x.n, row}, n, prompt, -1}
		if prompt && 0 <= end && end < n {
			ref.end = end
		}
		if err := x.put(&ref); err != nil {
			return err
		}
		x.n += int64(n)
		end -= n
	}
}

// isLoad says whether a row takes part in reuse, as package profile has it.
func isLoad(r *trace.Request) bool { return r.Status != trace.StatusFailed && len(r.Blocks) > 0 }

func (x *partitions) put(ref *references) error {
	p := &x.parts[x.of(ref.key)]
	if p.buf == nil {
		p.buf = make([]byte, 0, x.buffer)
	}
	// Most references are of a prompt and of the domain of those before, so that
	// the rest of what may be said costs nothing.
	meta := uint64(ref.ordinal-p.last.ordinal) << refBits
	if ref.prompt {
		meta |= refPrompt
	}
	if ref.end >= 0 {
		meta |= refEnd
	}
	if ref.n > 1 {
		meta |= refMore
	}
	if ref.key.hi != p.last.key.hi {
		meta |= refHi
	}
	b := binary.AppendUvarint(p.buf, meta)
	if meta&refHi != 0 {
		b = binary.AppendUvarint(b, ref.key.hi)
	}
	b = binary.AppendVarint(b, int64(ref.key.lo-p.last.key.lo))
	if ref.prompt {
		b = binary.AppendUvarint(b, uint64(ref.row-p.last.row))
		p.last.row = ref.row
	}
	if ref.n > 1 {
		b = binary.AppendUvarint(b, uint64(ref.n))
	}
	if ref.end >= 0 {
		b = binary.AppendUvarint(b, uint64(ref.end))
	}
	p.buf = b
	p.last.key, p.last.ordinal = ref.key.plus(ref.n), ref.ordinal+int64(ref.n)
	if len(b) > x.buffer-6*binary.MaxVarintLen64 {
		return p.flush(x.refs)
	}
	return nil
}

func (p *part) flush(s *trace.Spill) error {
	e, err := s.Append(p.buf)
	p.refs, p.buf = append(p.refs, e), p.buf[:0]
	return err
}
