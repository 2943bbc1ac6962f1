package trace

import (
	"context"
	"io"

	"golang.org/x/sync/errgroup"

	"reprise/trace/crash"
)

// A passBatch is some rows on their way through [Sorted.Pass], and what they point to.
type passBatch struct {
	rows []Request
	dec  rowDecoder
}

const (
	// PassBatches is how many batches are in a [Sorted.Pass] at once: one that is read, one that is
	// taken and one that is written.
	PassBatches = 3
	passRows    = 128
)

// Pass reads the rows once, in order. It calls take for some at a time with the number of the first,
// and then writes them to dst, if there is one. Reading, taking and writing go on at once, in a
// goroutine each. Rows and what they point to are used again [PassBatches] batches later.
func (s *Sorted) Pass(ctx context.Context, take func(row int64, rows []Request) error, dst Writer[Request]) error {
	m, err := s.merge()
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	// Each has room for all batches, so that nothing waits but for a batch.
	free, read, taken := make(chan *passBatch, PassBatches), make(chan *passBatch, PassBatches), make(chan *passBatch, PassBatches)
	for range PassBatches {
		free <- &passBatch{rows: make([]Request, passRows)}
	}
	g.Go(func() error {
		defer close(read)
		defer crash.Caught()
		for {
			var b *passBatch
			select {
			case b = <-free:
			case <-ctx.Done():
				return ctx.Err()
			}
			b.dec.reuse()
			r := sortedReader{s: s, m: m, dec: &b.dec}
			n, err := r.Read(b.rows[:passRows])
			if b.rows = b.rows[:n]; n > 0 {
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
			if err := take(row, b.rows); err != nil {
				return err
			}
			row += int64(len(b.rows))
			taken <- b
		}
		return nil
	})
	g.Go(func() error {
		defer crash.Caught()
		for b := range taken {
			if dst != nil {
				if _, err := dst.Write(b.rows); err != nil {
					return err
				}
			}
			free <- b
		}
		return nil
	})
	return g.Wait()
}
