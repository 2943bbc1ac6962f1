package datasets

import "reprise/trace"

// A step is what a format adds to the fields of a mapping: what a row says
// through the rows before it, or in another way than one field at a time.
type step interface {
	// set sets the rest of the entry. It may not rely on the entry being taken.
	set(b *builder, r row) error
	// taken is told of an entry that was handed out, and of its position.
	taken(e *trace.Entry, position int64)
}

// A steppedDecoder decodes rows by a mapping and a step.
type steppedDecoder struct {
	*mappedDecoder
	step  step
	gives bool // the step gives a time to rows without one
}

func (d *steppedDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	r, err := d.rows.next()
	if err != nil {
		return dst, err
	}
	b := &d.builder
	*b = builder{}
	if err := fill(b, d.fields, r); err != nil {
		return dst, err
	}
	if _, _, ok := find(r, d.times); ok || !d.gives || d.timing != withTimes {
		if err := d.setTime(&b.e, r); err != nil {
			return dst, err
		}
	}
	if err := d.step.set(b, r); err != nil {
		return dst, err
	}
	if why := b.finish(d.blockSize); why != "" {
		return dst, badAt(r, "", why)
	}
	d.tell(b, r)
	d.step.taken(&b.e, d.entries)
	d.entries++
	return append(dst, b.e), nil
}

// A freshIDs yields ids for blocks that no other request holds, from the upper
// half of the 64-bit numbers. Sources number theirs from 0, so that they do not
// get there; one that does is at fault.
type freshIDs uint64

const firstFresh = 1 << 63

const reservedID = "blocks: want ids below 9223372036854775808, since some are added to them"

func (f *freshIDs) next() uint64 {
	*f++
	return firstFresh + uint64(*f) - 1
}

// reserved reports whether a source uses ids that are kept for fresh ones.
func reserved(ids []uint64) bool {
	for _, id := range ids {
		if id >= firstFresh {
			return true
		}
	}
	return false
}
