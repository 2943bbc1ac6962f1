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
			v := resolver{x: x, mu: &mu, ids: block.NewIDs(0)}
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
	ids    *block.IDs
	blocks []past
	buf    []byte
}

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
	v.ids.Clear()
	v.blocks = v.blocks[:0]
	r := v.x.refs.Reader(256<<10, p.refs...)
	var k key
	var ref reference
	for {
		err := readRef(r, &k, &ref)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		n, _ := v.ids.ID(k.hi, k.lo)
		if n == len(v.blocks) {
			v.blocks = append(v.blocks, past{first: ref.ordinal})
		}
		v.answer(&v.blocks[n], ref)
		if len(v.buf) > 1<<20 {
			if err := v.flush(p); err != nil {
				return err
			}
		}
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

// readRef reads what put wrote; k and ref are those before and become the next.
func readRef(r *trace.SpillReader, k *key, ref *reference) error {
	meta, err := r.Uvarint()
	if err != nil {
		return err // io.EOF: there is no other
	}
	ref.ordinal += int64(meta >> refBits)
	ref.prompt, ref.end = meta&refPrompt != 0, meta&refEnd != 0
	if meta&refHi != 0 {
		if k.hi, err = r.Uvarint(); err != nil {
			return whole(err)
		}
	}
	if k.lo, err = r.Uvarint(); err != nil {
		return whole(err)
	}
	if ref.prompt {
		rows, err := r.Uvarint()
		if err != nil {
			return whole(err)
		}
		ref.row += int64(rows)
	}
	return nil
}

// whole makes an end in the middle of something unexpected.
func whole(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// answer writes the distance to the first reference, 0 for that itself, and
// for later ones in prompts the touch before, 0 when there was none.
func (v *resolver) answer(b *past, ref reference) {
	back := uint64(ref.ordinal - b.first)
	v.buf = binary.AppendUvarint(v.buf, back)
	if !ref.prompt {
		return
	}
	// Within a row, a block that comes again is no better known than before.
	if b.touch != 0 && b.touch.row() != ref.row {
		b.earlier = b.touch
	}
	b.touch = newTouch(ref.row, ref.end)
	b.carried++
	switch {
	case back == 0:
	case b.earlier == 0:
		v.buf = append(v.buf, 0)
	default:
		distance := uint64(ref.row-b.earlier.row()) << 1
		v.buf = binary.AppendUvarint(v.buf, distance|uint64(b.earlier&1))
	}
}

func (v *resolver) flush(p *part) error {
	v.mu.Lock()
	e, err := v.x.answers.Append(v.buf)
	v.mu.Unlock()
	p.answers, v.buf = append(p.answers, e), v.buf[:0]
	return err
}
