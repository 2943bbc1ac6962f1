package anonymize

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"math/rand/v2"
	"sync"

	"golang.org/x/sync/errgroup"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/crash"
	"reprise/trace/profile"
)

// With more distinct blocks than are numbered in memory, what a block needs to
// know of its past is found out by partitions, whose blocks fit:
//
//  1. distribute: every reference to a block, in the final order of rows, goes to
//     the partition that a hash of its key names. References to keys that count
//     up go together, see [keyReader].
//  2. resolve: each partition is read in turn. For every reference it writes an
//     answer, in the same order: how far back the first reference to the block
//     is, and which request touched the block last or, where the sessions of all
//     rows are known, who had it. Like answers in a row are
//     one: a prefix that comes again came whole before.
//  3. Reading the rows again, each reference takes the next answer of its
//     partition. Answers come in the order of rows, so nothing is sorted. Where sessions
//     are inferred, the rows are read twice: who had the blocks in which hits end is
//     found out the second time, see [profile.HitEnds].
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
	dir      string
	refs     *trace.Spill
	answers  *trace.Spill // nil before they are resolved
	n        int64        // references so far
}

// A part is a partition: the rows that are not written yet, and its place in the file.
type part struct {
	buf     []byte
	last    place // after the last references
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
	prompt bool // they are in the prompt of a load row, which touches the blocks
}

// References in a partition are a number, with these bits below the distance
// from those before; the first half of the key when it is another; how far the
// second half is from the key after those before; and what the bits announce:
// the rows since the last prompt, and how many more there are.
const (
	refPrompt = 1 << iota
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
		parts: make([]part, n), dir: p.SpillDir, buffer: max(bufferBytes/int(n), 4<<10)}
	var err error
	x.refs, err = trace.NewSpill(p.SpillDir)
	return x, err
}

func (x *partitions) close() error {
	err := x.refs.Close()
	if x.answers != nil {
		err = errors.Join(err, x.answers.Close())
	}
	return err
}

// of is the partition of a key, by a hash that no input can foresee.
func (x *partitions) partitionOf(k key) int {
	hi, lo := bits.Mul64(k.hi^x.seed[0], k.lo>>fieldBits^x.seed[1])
	i, _ := bits.Mul64(hi^lo, uint64(len(x.parts)))
	return int(i)
}

// list sends the references of a list of blocks to their partitions. Rows come one
// after the other, and of each the prompt before the output.
func (x *partitions) list(row int64, words []uint64, prompt bool) error {
	blocks := keyReader{words: words, numbered: x.numbered}
	for {
		k, n, err := blocks.nextStretch()
		if n == 0 || err != nil {
			return err
		}
		ref := references{place{k, x.n, row}, n, prompt}
		if err := x.put(&ref); err != nil {
			return err
		}
		x.n += int64(n)
	}
}

func (x *partitions) put(ref *references) error {
	p := &x.parts[x.partitionOf(ref.key)]
	if p.buf == nil {
		p.buf = make([]byte, 0, x.buffer)
	}
	// Most references belong to the same prompt and domain as those before, so that
	// the rest of what may be said costs nothing.
	meta := uint64(ref.ordinal-p.last.ordinal) << refBits
	if ref.prompt {
		meta |= refPrompt
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

// maxResolvers bounds the partitions that are in memory at once.
const maxResolvers = 4

// resolve answers all references: with who touched a block last or, where who names the session of
// each row, see [profile.CategoryRule], with who had it.
func (x *partitions) resolve(ctx context.Context, workers int, who []uint32) (err error) {
	for i := range x.parts {
		p := &x.parts[i]
		if p.buf == nil {
			continue
		}
		if err := p.flush(x.refs); err != nil {
			return err
		}
		p.buf = nil
	}
	if x.answers, err = trace.NewSpill(x.dir); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex
	next := 0
	for range min(workers, maxResolvers, len(x.parts)) {
		g.Go(func() error {
			defer crash.Caught()
			v := resolver{x: x, mu: &mu, ids: block.NewIDs(0, 0), who: who}
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(x.parts) || ctx.Err() != nil {
					return ctx.Err()
				}
				if err := v.resolvePart(&x.parts[i]); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

// A resolver answers the references of one partition after the other.
type resolver struct {
	x      *partitions
	mu     *sync.Mutex
	ids    *block.IDs
	blocks []blockHistory // by number
	who    []uint32       // by row; nil while sessions are not known
	users  profile.BlockUsers
	buf    []byte
}

// A blockHistory is what is known of a block after some reference.
type blockHistory struct {
	first  int64  // the first reference to it
	row    int64  // the last row that had it in its prompt, plus one
	before uint64 // what was known when that came, see [answer]
	users  uint32 // see [profile.BlockUsers]
}

func (v *resolver) resolvePart(p *part) error {
	v.ids.Clear()
	v.blocks, v.users = v.blocks[:0], profile.BlockUsers{}
	r := v.x.refs.Reader(256<<10, p.refs...)
	var at place
	for {
		ref, err := readReferences(r, at)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		v.answer(&ref)
		if len(v.buf) > 1<<20 {
			if err := v.flush(p); err != nil {
				return err
			}
		}
		at = place{ref.key.plus(ref.n), ref.ordinal + int64(ref.n), ref.row}
	}
	return v.flush(p)
}

// readReferences reads what put wrote after a place; io.EOF is the end of it.
func readReferences(r *trace.SpillReader, at place) (references, error) {
	ref := references{place: at, n: 1}
	meta, err := r.Uvarint()
	if err != nil {
		return ref, err
	}
	// The first error stays: what is read after it is 0.
	read := func() (x uint64) {
		if err == nil {
			x, err = r.Uvarint()
		}
		return x
	}
	ref.ordinal += int64(meta >> refBits)
	if meta&refHi != 0 {
		ref.key.hi = read()
	}
	lo := read()
	ref.key.lo += lo>>1 ^ -(lo & 1) // zigzag, as encoding/binary has it
	if ref.prompt = meta&refPrompt != 0; ref.prompt {
		ref.row += int64(read())
	}
	if meta&refMore != 0 {
		ref.n = int(read())
	}
	return ref, whole(err)
}

// whole makes an end in the middle of something unexpected.
func whole(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// An answer says how far back the first reference to a block is, 0 for that
// itself, and for later ones in prompts what was known of the block before the row, 0 for
// nothing: how many rows back the touch before is, or above a bit that is set, who had it.
type answer struct {
	back   uint64
	before uint64
}

const (
	beforeKnown = 1 << iota
	beforeOwn
	beforeMany
)

// use is who had a block.
func (a answer) use() profile.BlockUse {
	return profile.BlockUse{Own: a.before&beforeOwn != 0, Many: a.before&beforeMany != 0}
}

// before is what was known of a block before a row, which then has it.
func (v *resolver) before(b *blockHistory, row int64) (before uint64) {
	switch {
	case v.who == nil && b.row > 0:
		before = uint64(row + 1 - b.row)
	case v.who != nil:
		if b.users != 0 {
			before = beforeKnown
			use := v.users.Use(b.users, v.who[row])
			if use.Own {
				before |= beforeOwn
			}
			if use.Many {
				before |= beforeMany
			}
		}
		v.users.Add(&b.users, v.who[row])
	}
	return before
}

// answer writes the answers to the references of a stretch.
func (v *resolver) answer(ref *references) {
	var same answer // to the last n references
	n := 0
	for i := range ref.n {
		ordinal := ref.ordinal + int64(i)
		id, _ := v.ids.ID(ref.key.hi, ref.key.lo+uint64(i))
		if id == len(v.blocks) {
			v.blocks = append(v.blocks, blockHistory{first: ordinal})
		}
		b := &v.blocks[id]
		a := answer{back: uint64(ordinal - b.first)}
		if ref.prompt {
			// Within a row, a block that comes again is no better known than before.
			if b.row != ref.row+1 {
				b.before, b.row = v.before(b, ref.row), ref.row+1
			}
			a.before = b.before
		}
		if n > 0 && a != same {
			v.write(same, n, ref.prompt)
			n = 0
		}
		same = a
		n++
	}
	v.write(same, n, ref.prompt)
}

// write writes an answer to n references.
func (v *resolver) write(a answer, n int, prompt bool) {
	if n > 1 {
		v.buf = binary.AppendUvarint(v.buf, a.back<<1|1)
		v.buf = binary.AppendUvarint(v.buf, uint64(n))
	} else {
		v.buf = binary.AppendUvarint(v.buf, a.back<<1)
	}
	if prompt && a.back > 0 {
		v.buf = binary.AppendUvarint(v.buf, a.before)
	}
}

func (v *resolver) flush(p *part) error {
	v.mu.Lock()
	e, err := v.x.answers.Append(v.buf)
	v.mu.Unlock()
	p.answers, v.buf = append(p.answers, e), v.buf[:0]
	return err
}
