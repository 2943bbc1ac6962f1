package stage

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"

	"reprise/trace/block"
	"reprise/trace/sample"
)

// curveParts is into how many parts the sample of blocks is cut, each with an LRU stack of its own. By
// their spread it is known how far the curve may be off.
const curveParts = 8

// hashOf is the hash of a block by which it is in the sample, and in one of its parts.
func hashOf(hi, lo uint64) uint64 {
	return sample.Mix64(hi + sample.Mix64((lo+1)*sample.Golden))
}

// partOf is the part of a block, where one block in oneIn is in the sample; false where it is not.
func partOf(hash uint64, oneIn int) (part int, ok bool) {
	n, _ := bits.Mul64(hash, uint64(curveParts*oneIn))
	return int(n), n < curveParts
}

// halved tells whether a block is in the half of its part by which the part is judged. It takes bits
// that say nothing of the part.
func halved(hash uint64) bool { return hash&1 == 0 }

// A place is that of a request in the order of the trace: by arrival, then by its place in the source.
type place struct {
	arrival   int64
	file, row int64
}

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.arrival, o.arrival), cmp.Compare(p.file, o.file), cmp.Compare(p.row, o.row))
}

// A chunk holds the references of some requests to the blocks of one part.
type chunk struct {
	bytes []byte
	last  place
}

// add takes the references of a request, as pairs of words.
func (c *chunk) add(at place, blocks []uint64) {
	b := binary.AppendVarint(c.bytes, at.arrival-c.last.arrival)
	b = binary.AppendVarint(b, at.file-c.last.file)
	b = binary.AppendVarint(b, at.row-c.last.row)
	b = binary.AppendUvarint(b, uint64(len(blocks)/2))
	for _, w := range blocks {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	c.bytes, c.last = b, at
}

// references are those of all requests to the blocks of one part.
type references struct {
	places []place
	from   []int    // in ids, and its end
	ids    []uint64 // of blocks, numbered by first appearance in the chunks
	half   []bool   // by number: the block is in the half of the part
}

// decode reads chunks that [chunk.add] made, in any order.
func decode(chunks iter.Seq[[]byte]) (*references, error) {
	r := &references{from: []int{0}}
	numbers := block.NewIDs(1<<31, 0)
	for b := range chunks {
		var at place
		for len(b) > 0 {
			for _, to := range []*int64{&at.arrival, &at.file, &at.row} {
				d, n := binary.Varint(b)
				if n <= 0 {
					return nil, errChunk
				}
				*to, b = *to+d, b[n:]
			}
			blocks, n := binary.Uvarint(b)
			if n <= 0 || blocks > uint64(len(b)-n)/16 {
				return nil, errChunk
			}
			for b = b[n:]; blocks > 0; blocks, b = blocks-1, b[16:] {
				hi, lo := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
				id, ok := numbers.ID(hi, lo)
				if !ok {
					return nil, errTooMany
				}
				if id == len(r.half) {
					r.half = append(r.half, halved(hashOf(hi, lo)))
				}
				r.ids = append(r.ids, uint64(id))
			}
			r.places, r.from = append(r.places, at), append(r.from, len(r.ids))
		}
	}
	return r, nil
}

// each calls do for the requests in their order, with their blocks from the first on.
func (r *references) each(do func(at place, blocks []uint64)) {
	order := make([]int, len(r.places))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return r.places[a].compare(r.places[b]) })
	for _, i := range order {
		do(r.places[i], r.ids[r.from[i]:r.from[i+1]])
	}
}
