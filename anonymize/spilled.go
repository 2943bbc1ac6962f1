package anonymize

import (
	"context"
	"errors"

	"reprise/trace"
	"reprise/trace/block"
)

// runSpilled does what run does, with the state of blocks on disk.
func (f *finisher) runSpilled(ctx context.Context, numbered *block.IDs, refs int64, dst trace.Writer[trace.Request]) (err error) {
	x, err := newPartitions(f.p, numbered, refs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	if err := f.each(ctx, x.spread, nil); err != nil {
		return err
	}
	if err := x.resolve(ctx, f.p.workers(), func(int64) {}); err != nil {
		return err
	}
	n := x.numberer()
	c := &classifier{global: x.global, infer: !f.keepSessions}
	if f.p.GlobalBlocks != nil {
		c.global = max(*f.p.GlobalBlocks, 0)
	}
	err = f.each(ctx, func(row int64, r *trace.Request) error {
		seen, err := n.number(row, r)
		if err != nil {
			return err
		}
		c.place(r, seen)
		f.ids.ApplyPeople(r)
		f.rename(row, r)
		return nil
	}, dst)
	f.totals.Blocks = int(n.firsts.marks)
	f.totals.InferredSessions = len(c.turns) > 0
	f.totals.SpillBytes += x.refs.Size() + x.answers.Size()
	return err
}

// A numberer gives rows the final numbers of their blocks by the answers.
type numberer struct {
	x       *partitions
	answers []*trace.SpillReader // by partition
	firsts  firsts
}

func (x *partitions) numberer() *numberer {
	n := &numberer{x: x}
	for i := range x.parts {
		n.answers = append(n.answers, x.answers.Reader(x.buffer, x.parts[i].answers...))
	}
	return n
}

// number puts final numbers in place of the words of a row, and says what was
// known of its prompt.
func (n *numberer) number(row int64, r *trace.Request) (sight, error) {
	load := isLoad(r)
	var s sight
	words, out := r.Blocks, r.Blocks[:0]
	c, leading := keyCode{}, load
	for len(words) > 0 {
		var id uint64
		var t touch
		var err error
		if id, t, words, err = n.next(&c, words, row, load); err != nil {
			return s, err
		}
		out = append(out, id) // behind the words that were read
		if leading = leading && t != 0; leading {
			s.hit, s.deepest = s.hit+1, t
		}
	}
	r.Blocks = out
	c, words, out = keyCode{}, r.OutputBlocks, r.OutputBlocks[:0]
	for len(words) > 0 {
		var id uint64
		var err error
		if id, _, words, err = n.next(&c, words, row, false); err != nil {
			return s, err
		}
		out = append(out, id)
	}
	if r.OutputBlocks != nil {
		r.OutputBlocks = out
	}
	return s, nil
}

// next takes the first block of words and its answer.
func (n *numberer) next(c *keyCode, words []uint64, row int64, prompt bool) (id uint64, t touch, rest []uint64, err error) {
	k, rest, err := c.next(words, n.x.numbered)
	if err != nil {
		return 0, 0, nil, err
	}
	a := n.answers[n.x.of(k)]
	back, err := a.Uvarint()
	if err != nil {
		return 0, 0, nil, whole(err)
	}
	ordinal := n.firsts.n
	if back > uint64(ordinal) {
		return 0, 0, nil, errWords
	}
	n.firsts.add(back == 0)
	if prompt && back > 0 {
		distance, err := a.Uvarint()
		if err != nil {
			return 0, 0, nil, whole(err)
		}
		if distance != 0 {
			t = newTouch(row-int64(distance>>1), distance&1 != 0)
		}
	}
	return n.firsts.before(ordinal - int64(back)), t, rest, nil
}
