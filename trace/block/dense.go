package block

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// Dense numbers keys 0, 1, 2… in the order of their first appearance. It is for one goroutine.
type Dense[K comparable] struct{ ids map[K]uint64 }

// NewDense makes an empty numbering.
func NewDense[K comparable]() *Dense[K] { return &Dense[K]{ids: make(map[K]uint64)} }

// ID is the number of k, the next free one when k is new.
func (d *Dense[K]) ID(k K) uint64 {
	id, ok := d.ids[k]
	if !ok {
		id = uint64(len(d.ids))
		d.ids[k] = id
	}
	return id
}

// Len is how many keys have been numbered.
func (d *Dense[K]) Len() int { return len(d.ids) }

// IDs numbers as [Dense] does, for keys of 128 bits and up to a limit, beyond which new keys get no number. Keys that
// come in their order, one or several apart, share a page: the first of one costs 56 to 104 bytes, the others nothing.
// The hash is seeded, so that no input can be made to collide.
type IDs struct {
	limit, pageLimit int
	n                int
	pages            [][]idPage // in chunks, so that nothing is copied as they grow
	count            int        // pages
	slots            []slot     // open addressing with linear probing, at most half full
	seed             [2]uint64
	last             *idPage    // of the last key
	alone            bool       // no other page has keys near those of the last
	before           []uint32   // by so many numbers as a page has keys: the pages that begin below them
	at               int        // page of the last number
	parts            [][]uint16 // by number of a key, in chunks: of which part it is
}

// An idPage has those of 32 neighbouring keys whose numbers rise with the keys and are less than 64 apart. Keys of
// other pages may have the numbers between. Keys that do not come in their order would need a page each: beyond the
// first pages for the same keys, such a page has one key.
type idPage struct {
	hi, lo uint64 // of the keys, lo without its low bits, unless it is that of one key
	span   uint64 // a bit for each number from the first on: whether it is of a key of the page
	has    uint32 // a bit for each key; 0 for one key
	first  uint32 // number of the first key
	part   uint32 // a bit for each that names a part, as has
}

const (
	idBits  = 5
	idKeys  = 1 << idBits
	idChunk = 1 << 10
	idMost  = 4 // pages for the same keys

	partChunk = 1 << 16
	otherPart = 1 << 63 // in the upper half of a key: its place without a size is taken
)

// A slot is the tag of a page's key above its place plus one; 0 is an empty slot.
type slot uint64

// NewIDs makes an empty numbering of up to limit keys on up to so many pages, or an eighth of them where these have
// fewer than two keys each: then there are as many keys as pages, which spares nothing. A limit below 1 means the
// greatest.
func NewIDs(limit, pages int) *IDs {
	if limit < 1 || limit > math.MaxUint32 {
		limit = math.MaxUint32
	}
	if pages < 1 || pages > math.MaxUint32 {
		pages = math.MaxUint32
	}
	return &IDs{limit: limit, pageLimit: pages, slots: make([]slot, 1<<10),
		seed: [2]uint64{rand.Uint64(), rand.Uint64()}, last: new(idPage)}
}

// number is that of the key whose bit is given.
func (p *idPage) number(bit uint64) uint32 {
	before, span := bits.OnesCount32(p.has&(1<<bit-1)), p.span
	if rest := ^span; rest>>(before+1)<<(before+1) == rest { // most pages have no numbers of others up to there
		return p.first + uint32(before)
	}
	for ; before > 0; before-- {
		span &= span - 1
	}
	return p.first + uint32(bits.TrailingZeros64(span))
}

// fits reports whether the key whose bit is given may have the number n on the page.
func (p *idPage) fits(bit uint64, n int) bool {
	return p.has>>bit == 0 && uint64(n)-uint64(p.first) < 64
}

// ID is the number of the key hi, lo. It is not ok when the key is new and there are as many as the limit.
func (d *IDs) ID(hi, lo uint64) (n int, ok bool) { return d.Part(hi, lo, 0) }

// Part is the number of the part of a size of what is named by the key hi, lo; 0 is the whole. The size is a part of
// its key, above the lower half of hi. Most keys name one thing only, so that it has the place on a page of the key
// without a size, unless that is taken.
func (d *IDs) Part(hi, lo uint64, size uint16) (n int, ok bool) {
	page, bit := lo>>idBits, lo%idKeys
	p := d.last
	near := p.hi == hi && p.lo == page
	if near && p.has>>bit&1 != 0 {
		return d.known(p, bit, hi, lo, size)
	}
	pages, alone := 0, true
	if !near || !d.alone || !p.fits(bit, d.n) {
		if p, pages = d.find(hi, page, bit); p != nil && p.has>>bit&1 != 0 {
			d.last, d.alone = p, false
			return d.known(p, bit, hi, lo, size)
		}
		if pages >= idMost {
			if one, _ := d.find(hi, lo, idKeys); one != nil {
				return d.known(one, 0, hi, lo, size)
			}
		}
		alone = pages == 0 || pages == 1 && p != nil
	}
	if d.n >= d.limit || p == nil && (d.count >= d.pageLimit || d.count >= d.pageLimit/8 && d.n < 2*d.count) {
		return 0, false
	}
	if d.alone, d.n = alone, d.n+1; size > 0 {
		*d.sizeOf(d.n - 1) = size
	}
	part := uint32(min(size, 1))
	switch {
	case p != nil:
	case pages >= idMost:
		d.add(idPage{hi: hi, lo: lo, first: uint32(d.n) - 1, span: 1, part: part})
		return d.n - 1, true
	default:
		p = d.add(idPage{hi: hi, lo: page, first: uint32(d.n) - 1})
	}
	p.has |= 1 << bit
	p.span |= 1 << (uint32(d.n) - 1 - p.first)
	p.part |= part << bit
	d.last = p
	return d.n - 1, true
}

// known is the number of a key that has one, or of another part than has it.
func (d *IDs) known(p *idPage, bit, hi, lo uint64, size uint16) (n int, ok bool) {
	if n = int(p.number(bit)); p.part>>bit&1 == 0 && size == 0 || p.part>>bit&1 != 0 && *d.sizeOf(n) == size {
		return n, true
	}
	return d.ID(hi|otherPart|uint64(size)<<32, lo)
}

// sizeOf is where the size stands of the part that a number is of.
func (d *IDs) sizeOf(n int) *uint16 {
	for n/partChunk >= len(d.parts) {
		d.parts = append(d.parts, nil)
	}
	if d.parts[n/partChunk] == nil {
		d.parts[n/partChunk] = make([]uint16, partChunk)
	}
	return &d.parts[n/partChunk][n%partChunk]
}

// find looks for the page that has a key, or else for the one that the key fits next, and counts those for the same
// keys. A page of one key has bit 32 alone.
func (d *IDs) find(hi, lo, bit uint64) (fits *idPage, pages int) {
	at, tag := d.hash(hi, lo)
	mask := uint64(len(d.slots) - 1)
	for i := at & mask; d.slots[i] != 0; i = (i + 1) & mask {
		if s := uint64(d.slots[i]); s>>32 == tag {
			p := d.page(int(uint32(s)) - 1)
			if p.hi != hi || p.lo != lo || (p.has == 0) != (bit == idKeys) {
				continue
			}
			if bit == idKeys || p.has>>bit&1 != 0 {
				return p, pages
			}
			if pages++; p.fits(bit, d.n) {
				fits = p
			}
		}
	}
	return fits, pages
}

func (d *IDs) page(i int) *idPage { return &d.pages[i/idChunk][i%idChunk] }

// add adds a page.
func (d *IDs) add(p idPage) *idPage {
	if d.count%idChunk == 0 && d.count/idChunk == len(d.pages) {
		d.pages = append(d.pages, make([]idPage, idChunk))
	}
	*d.page(d.count) = p
	d.count++
	if 2*d.count > len(d.slots) {
		d.slots = make([]slot, 4*len(d.slots))
		for i := range d.count {
			d.put(i)
		}
	} else {
		d.put(d.count - 1)
	}
	return d.page(d.count - 1)
}

// put puts a page into an empty slot.
func (d *IDs) put(page int) {
	p, mask := d.page(page), uint64(len(d.slots)-1)
	i, tag := d.hash(p.hi, p.lo)
	for i &= mask; d.slots[i] != 0; {
		i = (i + 1) & mask
	}
	d.slots[i] = slot(tag<<32 | uint64(page+1))
}

// hash folds a product of the lower half of hi and the page, each masked by half of the seed, and adds the upper half
// of hi, in which ends of prompts differ: a block may have thousands, which must not be probed one after the other.
func (d *IDs) hash(hi, page uint64) (at, tag uint64) {
	upper, lower := bits.Mul64(hi&math.MaxUint32^d.seed[0], page^d.seed[1])
	at = upper ^ lower + hi>>32*0x9e3779b97f4a7c15
	return at, at >> 32
}

// Freeze gives up what is needed to number: after it, only [IDs.Stretch] and Len may be called.
func (d *IDs) Freeze() {
	d.slots, d.last = nil, nil
	d.before = make([]uint32, d.n/idKeys+2)
	for i := range d.count { // pages begin in the order in which they were added
		d.before[d.page(i).first/idKeys+1] = uint32(i + 1)
	}
	for i := range d.before[1:] {
		d.before[i+1] = max(d.before[i], d.before[i+1])
	}
}

// Stretch is the key of the number n, which must have been given, and how many numbers from it on are those of the
// keys from that on, as far as their page tells. The key of a part has its size above the lower half of hi, and the
// highest bit of hi tells nothing. It may be called after Freeze alone.
func (d *IDs) Stretch(n int) (hi, lo uint64, more int) {
	p := d.page(d.at)
	if !p.numbers(n) {
		// The page that has it begins less than 64 numbers before it, where few others begin.
		for d.at = int(d.before[n/idKeys+1]); !p.numbers(n); p = d.page(d.at) {
			d.at--
		}
	}
	at, has := uint32(n)-p.first, p.has
	for range bits.OnesCount64(p.span & (1<<at - 1)) {
		has &= has - 1
	}
	bit := bits.TrailingZeros32(has) % idKeys // 0 where there is one key
	if hi = p.hi; p.part>>bit&1 != 0 {
		hi |= uint64(*d.sizeOf(n)) << 32
	}
	if p.has == 0 {
		return hi, p.lo, 1
	}
	more = min(bits.TrailingZeros64(^(p.span >> at)), bits.TrailingZeros32(^(p.has &^ p.part >> bit)))
	return hi, p.lo<<idBits | uint64(bit), max(1, more)
}

// numbers reports whether one of the keys has the number n.
func (p *idPage) numbers(n int) bool { return p.span>>(uint64(n)-uint64(p.first))&1 != 0 }

// Len is how many keys have been numbered.
func (d *IDs) Len() int { return d.n }

// Clear forgets all keys and keeps the memory for others.
func (d *IDs) Clear() {
	d.n, d.count, d.last, d.alone, d.parts = 0, 0, new(idPage), false, nil
	clear(d.slots)
}
