package token

// A state is what one goroutine needs to encode: scratch, and the pieces that were merged lately. It holds pieces of text in
// memory for as long as it is pooled, and gives them to no one.
type state struct {
	nodes  []node
	heap   candidates
	recent [1 << recentBits]piece
}

// recentBits sets the size of the cache: 2^12 pieces in 256 KiB. Eight times as many gain nothing on chat logs.
const recentBits = 12

// A piece is one that was merged, with its ids. It fills a cache line and holds no pointer: entering one allocates nothing,
// and the garbage collector does not look inside. Longer ones are rare and merged again.
type piece struct {
	size, count uint8
	text        [34]byte
	ids         [7]uint32
}

// append appends the ids of one piece of text.
func (st *state) append(dst []uint32, v *vocab, p string) []uint32 {
	if len(p) == 1 {
		return append(dst, v.single[p[0]])
	}
	h := v.hash(p)
	if id, ok := v.find(p, h); ok {
		return append(dst, id)
	}
	// The slot comes from other bits than the vocabulary's index and tag.
	c := &st.recent[h>>24&(1<<recentBits-1)]
	if string(c.text[:c.size]) == p {
		return append(dst, c.ids[:c.count]...)
	}
	before := len(dst)
	dst = st.merge(dst, v, p)
	if ids := dst[before:]; len(p) <= len(c.text) && len(ids) <= len(c.ids) {
		c.size, c.count = uint8(copy(c.text[:], p)), uint8(copy(c.ids[:], ids))
	}
	return dst
}
