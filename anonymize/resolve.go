package anonymize

import (
	"context"
	"encoding/binary"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"reprise/trace"
	"reprise/trace/block"
)

// maxResolvers bounds the partitions that are in memory at once.
const maxResolvers = 4

// resolve answers all references.
func (x *partitions) resolve(ctx context.Context, workers int, progress func(done int64)) error {
	for i := range x.parts {
		if err := x.parts[i].flush(x.refs); err != nil {
			return err
		}
		x.parts[i].buf = nil
	}
	g, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex
	next := 0
	for range min(workers, maxResolvers, len(x.parts)) {
		g.Go(func() error {
			v := resolver{x: x, mu: &mu, pages: block.NewIDs(0)}
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(x.parts) || ctx.Err() != nil {
					return ctx.Err()
				}
				if err := v.run(&x.parts[i]); err != nil {
					return err
				}
				progress(int64(i) + 1)
			}
		})
	}
	return g.Wait()
}

// A resolver answers the references of one partition after the other.
type resolver struct {
	x      *partitions
	mu     *sync.Mutex
	pages  *block.IDs         // by key without its low bits
	slots  [][pageKeys]uint32 // by page and low bits: where the block is in blocks, plus one; 0 for nowhere
	blocks []past
	buf    []byte
}

// A page is so many keys that count up: few enough that one block alone in its
// page costs little, and enough that a stretch is looked up once or twice.
const (
	pageBits = 4
	pageKeys = 1 << pageBits
)

// A past is what is known of a block behind some reference.
type past struct {
	first   int64  // the first reference to it
	touch   touch  // the last
	earlier touch  // the last one by another row than that
	carried uint64 // prompts that have it, once for each place
}

// A touch says which row touched a block last, and whether as its last full
// block. The zero touch is none.
type touch uint64

func newTouch(row int64, end bool) touch {
	t := touch(row+1) << 1
	if end {
		t |= 1
	}
	return t
}

func (t touch) row() int64 { return int64(t>>1) - 1 }
func (t touch) end() bool  { return t&1 != 0 }

func (v *resolver) run(p *part) error {
	v.pages.Clear()
	v.slots, v.blocks = v.slots[:0], v.blocks[:0]
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
	global := 0
	for i := range v.blocks {
		if 2*v.blocks[i].carried > uint64(v.x.rows) {
			global++
		}
	}
	if err := v.flush(p); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.x.global += global
	return nil
}

// readReferences reads what put wrote behind a place; io.EOF is the end of it.
func readReferences(r *trace.SpillReader, at place) (references, error) {
	ref := references{place: at, n: 1, end: -1}
	meta, err := r.Uvarint()
	if err != nil {
		return ref, err
	}
	// The first error stays: what is read behind it is 0.
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
	if meta&refEnd != 0 {
		ref.end = int(read())
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
// itself, and for later ones in prompts how many rows back the touch before is,
// above a bit that says whether that was as the last full block; 0 when there
// was none.
type answer struct {
	back    uint64
	touched uint64
}

// answer writes the answers to the references of a stretch.
func (v *resolver) answer(ref *references) {
	var page *[pageKeys]uint32
	var same answer // to the last n references
	n := 0
	for i := range ref.n {
		slot := (ref.key.lo + uint64(i)) % pageKeys
		if page == nil || slot == 0 {
			page = v.page(ref.key.plus(i))
		}
		ordinal := ref.ordinal + int64(i)
		if page[slot] == 0 {
			v.blocks = append(v.blocks, past{first: ordinal})
			page[slot] = uint32(len(v.blocks))
		}
		b := &v.blocks[page[slot]-1]
		a := answer{back: uint64(ordinal - b.first)}
		if ref.prompt {
			a.touched = b.touchBy(ref.row, i == ref.end)
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

func (v *resolver) page(k key) *[pageKeys]uint32 {
	n, _ := v.pages.ID(k.hi, k.lo>>pageBits)
	if n == len(v.slots) {
		v.slots = append(v.slots, [pageKeys]uint32{})
	}
	return &v.slots[n]
}

// touchBy touches the block and says who did before, as an [answer] has it.
func (b *past) touchBy(row int64, end bool) uint64 {
	// Within a row, a block that comes again is no better known than before.
	if b.touch != 0 && b.touch.row() != row {
		b.earlier = b.touch
	}
	b.touch = newTouch(row, end)
	b.carried++
	if b.earlier == 0 {
		return 0
	}
	return uint64(row-b.earlier.row())<<1 | uint64(b.earlier&1)
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
		v.buf = binary.AppendUvarint(v.buf, a.touched)
	}
}

func (v *resolver) flush(p *part) error {
	v.mu.Lock()
	e, err := v.x.answers.Append(v.buf)
	v.mu.Unlock()
	p.answers, v.buf = append(p.answers, e), v.buf[:0]
	return err
}
