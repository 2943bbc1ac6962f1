package block

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
