package trace

import (
	"context"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"reprise/trace/crash"
)

// A passBatch is some rows on their way through [Sorted.Pass], and what they point to.
type passBatch struct {
	rows  []Request
	plain PlainRows // in place of them, where the first is like others
	dec   rowDecoder
}

const (
	// PassBatches is how many batches are in a [Sorted.Pass] at once: one that is read, one that is
	// taken and one that is written.
	PassBatches = 3
	passRows    = 128
	plainRows   = 512
)

// Pass reads the rows once, in order. It calls take for each with its number, and begin before some of them with that
// of the first, and then writes these to dst, if there is one. Reading, taking and writing go on at once, in a
// goroutine each. What rows point to is used again [PassBatches] begins later, and a row itself after take.
func (s *Sorted) Pass(ctx context.Context, begin func(row int64), take func(row int64, r *Request) error,
	dst Writer[Request]) error {
	m, err := s.merge()
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	// Each has room for all batches, so that nothing waits but for a batch.
	free, read, taken := make(chan *passBatch, PassBatches), make(chan *passBatch, PassBatches),
		make(chan *passBatch, PassBatches)
	for range PassBatches {
		free <- &passBatch{dec: rowDecoder{like: s.like}}
	}
	g.Go(func() error {
		defer close(read)
		defer crash.Caught()
		r := &sortedReader{s: s, m: m}
		for {
			var b *passBatch
			select {
			case b = <-free:
			case <-ctx.Done():
				return ctx.Err()
			}
			err := b.read(r)
			if len(b.rows)+b.plain.Len() > 0 {
				read <- b
			}
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	g.Go(func() error {
		defer close(taken)
		defer crash.Caught()
		row := int64(0)
		for b := range read {
			begin(row)
			n, err := b.take(row, take)
			if err != nil {
				return err
			}
			row += n
			taken <- b
		}
		return nil
	})
	g.Go(func() error {
		defer crash.Caught()
		for b := range taken {
			if err := b.write(dst); err != nil {
				return err
			}
			free <- b
		}
		return nil
	})
	return g.Wait()
}

// read reads the next rows: those that are like the one that most are like, or else others.
func (b *passBatch) read(r *sortedReader) error {
	b.dec.reuse()
	b.plain.clear()
	b.rows, r.dec = b.rows[:0], &b.dec
	for b.plain.Len() < plainRows {
		row, err := r.next()
		if err != nil {
			return err
		}
		if !isLike(row) {
			r.held = row
			break
		}
		if err := b.dec.decodePlain(row, &b.plain); err != nil {
			return err
		}
	}
	if b.plain.Len() > 0 {
		return nil
	}
	b.rows = slices.Grow(b.rows, passRows)[:passRows]
	n, err := r.Read(b.rows)
	b.rows = b.rows[:n]
	return err
}

// take takes the rows. Those that are not like each other any more are then whole rows.
func (b *passBatch) take(row int64, take func(row int64, r *Request) error) (rows int64, err error) {
	for i := range b.rows {
		if err := take(row+int64(i), &b.rows[i]); err != nil {
			return 0, err
		}
	}
	p, n := &b.plain, b.plain.Len()
	var r Request
	for i := range n {
		p.row(i, b.dec.like, &r)
		if err := take(row+int64(i), &r); err != nil {
			return 0, err
		}
		if i == 0 {
			p.Like = r
		}
		if len(b.rows) == 0 && p.set(i, &r) {
			continue
		}
		if len(b.rows) == 0 {
			b.rows = p.Append(b.rows, i)
		}
		b.rows = append(b.rows, r)
	}
	if n > 0 && len(b.rows) > 0 {
		p.clear()
	}
	return int64(len(b.rows) + p.Len()), nil
}

func (b *passBatch) write(dst Writer[Request]) (err error) {
	to, ok := dst.(PlainWriter)
	switch {
	case dst == nil:
	case ok && b.plain.Len() > 0:
		return to.WritePlain(&b.plain)
	default:
		_, err = dst.Write(b.plain.Append(b.rows, b.plain.Len()))
	}
	return err
}
