package anonymize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"golang.org/x/sync/errgroup"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/profile"
)

// Run reads all of src and writes its rows to dst in their final order.
//
// Memory is bounded by what must be unique or in order: about 50 bytes for
// each distinct block, 16 for each row, 48 MiB of rows before they spill, and
// the entries in the hands of the workers. Errors name a request by its
// position and never quote it.
func Run(ctx context.Context, p Policy, src trace.EntryReader, dst trace.Writer[trace.Request]) (Card, error) {
	if err := p.check(); err != nil {
		return Card{}, err
	}
	key, err := block.NewKey()
	if err != nil {
		return Card{}, fmt.Errorf("no random key: %w", err)
	}
	c := newCollector(&p)
	defer c.sorter.Close()
	if err := encodeAll(ctx, &p, key, src, c.add); err != nil {
		return Card{}, err
	}
	sorted, err := c.sorter.Sort()
	if err != nil {
		return Card{}, err
	}
	defer sorted.Close()
	f := &finisher{p: &p, totals: c.totals, keepSessions: c.sessions.Len() > 0,
		annotator: profile.NewAnnotator(p.blockSize(), profile.Options{GlobalBlocks: p.GlobalBlocks})}
	if err := f.run(ctx, sorted, dst); err != nil {
		return Card{}, err
	}
	return newCard(&p, f.totals), nil
}

const (
	batchEntries = 128     // entries a worker takes at once…
	batchText    = 1 << 20 // …or fewer, when their text is this long
)

// encodeAll reads src in batches, encodes them on all workers and hands the
// rows to add in the order of the source.
func encodeAll(ctx context.Context, p *Policy, key block.Key, src trace.EntryReader, add func(*encoded) error) error {
	type job struct {
		first   int64
		entries []trace.Entry
		rows    []encoded
		done    chan struct{}
	}
	workers := p.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	jobs, order := make(chan *job), make(chan *job, 2*workers)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { // read
		defer close(jobs)
		defer close(order)
		for first := int64(0); ; {
			entries, err := readBatch(src)
			if len(entries) > 0 {
				j := &job{first: first, entries: entries, done: make(chan struct{})}
				first += int64(len(entries))
				for _, c := range []chan *job{order, jobs} {
					select {
					case c <- j:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
			}
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	for range workers {
		e, err := newEncoder(p, key)
		if err != nil {
			return err
		}
		g.Go(func() error { // encode
			for j := range jobs {
				for i := range j.entries {
					x, err := e.encode(&j.entries[i])
					if err != nil {
						return entryError(j.first+int64(i), err)
					}
					j.rows = append(j.rows, x)
				}
				j.entries = nil
				close(j.done)
			}
			return nil
		})
	}
	g.Go(func() error { // collect
		for j := range order {
			select {
			case <-j.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			for i := range j.rows {
				if err := add(&j.rows[i]); err != nil {
					return err
				}
			}
			p.progress("import", j.first+int64(len(j.rows)))
		}
		return nil
	})
	return g.Wait()
}

// readBatch reads entries until there are enough for a worker.
func readBatch(src trace.EntryReader) ([]trace.Entry, error) {
	batch := make([]trace.Entry, 0, batchEntries)
	for text := 0; len(batch) < batchEntries && text < batchText; {
		from := len(batch)
		n, err := src.Read(batch[from:min(from+8, batchEntries)])
		batch = batch[:from+n]
		for i := range batch[from:] {
			for _, m := range batch[from+i].Messages {
				text += m.Content.Len()
			}
		}
		if err != nil {
			return batch, err
		}
	}
	return batch, nil
}

func (p *Policy) progress(step string, done int64) {
	if p.Progress != nil {
		p.Progress(step, done)
	}
}

// A collector numbers what is unique in the order of the source and hands rows
// to the sorter. Its numbers are provisional: they hide no order yet.
type collector struct {
	sorter   *trace.Sorter
	blocks   *block.Dense[block.ID]
	domains  *block.Dense[[3]string]
	sessions *block.Dense[string]
	users    *block.Dense[string]
	totals   Totals
}

func newCollector(p *Policy) *collector {
	return &collector{
		sorter: trace.NewSorter(p.SpillDir), blocks: block.NewDense[block.ID](), domains: block.NewDense[[3]string](),
		sessions: block.NewDense[string](), users: block.NewDense[string](),
	}
}

func (c *collector) add(x *encoded) error {
	r := &x.row
	if x.session != "" {
		r.Session = trace.Ptr(int64(c.sessions.ID(x.session)))
	}
	if x.user != "" {
		r.User = trace.Ptr(int64(c.users.ID(x.user)))
	}
	if !x.text {
		c.setDomain(x)
	}
	r.Blocks = c.number(x.blocks)
	if x.out != nil {
		r.OutputBlocks = c.number(x.out)
	}
	c.count(x)
	_, err := c.sorter.Write([]trace.Request{*r})
	return err
}

// setDomain makes a source's block ids unique to their cache domain. The key
// cannot collide with the chained hashes of text but by a 64-bit accident.
func (c *collector) setDomain(x *encoded) {
	domain := c.domains.ID([3]string{x.row.Model, x.row.Adapter, x.salt})
	for i := range x.blocks {
		for b := range 8 {
			x.blocks[i][b] = byte(domain >> (8 * (7 - b)))
		}
	}
}

func (c *collector) number(ids []block.ID) []uint64 {
	out := make([]uint64, len(ids))
	for i, id := range ids {
		out[i] = c.blocks.ID(id)
	}
	return out
}

func (c *collector) count(x *encoded) {
	t := &c.totals
	t.Requests++
	if x.row.Status == trace.StatusFailed {
		t.Failed++
	}
	t.InputTokens += int64(x.row.InputTokens)
	t.OutputTokens += int64(x.row.OutputTokens)
	t.Blocks, t.Sessions, t.Users = c.blocks.Len(), c.sessions.Len(), c.users.Len()
	if x.text {
		t.Texts++
		t.TextInput += int64(x.row.InputTokens)
		if x.sourceInput != nil {
			t.TextInputSource += int64(*x.sourceInput)
			t.TextInputComparable += int64(x.row.InputTokens)
		}
	}
}

// A finisher annotates sorted rows and gives them their final ids and names.
type finisher struct {
	p            *Policy
	annotator    *profile.Annotator
	keepSessions bool // the source has sessions: infer none beside them
	totals       Totals
	ids          trace.Dense
	models       labels
	adapters     labels
	classes      labels
	replicas     labels
	begin        int64
}

func (f *finisher) run(ctx context.Context, sorted *trace.Sorted, dst trace.Writer[trace.Request]) error {
	src, err := sorted.Reader()
	if err != nil {
		return err
	}
	err = trace.Each(src, func(row int64, r *trace.Request) error {
		if row == 0 {
			f.begin = r.ArrivalNS
		}
		f.annotator.Count(r)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	if src, err = sorted.Reader(); err != nil {
		return err
	}
	one := make([]trace.Request, 1)
	return trace.Each(src, func(row int64, r *trace.Request) error {
		f.finish(row, r)
		if row%1000 == 0 {
			f.p.progress("write", row)
		}
		one[0] = *r
		_, err := dst.Write(one)
		return errors.Join(err, ctx.Err())
	})
}

func (f *finisher) finish(row int64, r *trace.Request) {
	session, turn := r.Session, r.Turn
	f.annotator.Annotate(row, r)
	if f.keepSessions && session == nil {
		r.Session, r.Turn = session, turn
	} else if session == nil && r.Session != nil {
		f.totals.InferredSessions = true
	}
	f.ids.Apply(r)
	r.ArrivalNS -= f.begin
	if !f.p.KeepModel {
		r.Model = f.models.name("model", r.Model)
	}
	r.Adapter = f.adapters.name("adapter", r.Adapter)
	r.Class = f.classes.optional("class", r.Class)
	r.Replica = f.replicas.optional("replica", r.Replica)
}

// labels gives names by first appearance; the empty name stays empty.
type labels struct{ seen map[string]string }

func (l *labels) name(kind, s string) string {
	if s == "" {
		return ""
	}
	if l.seen == nil {
		l.seen = map[string]string{}
	}
	label, ok := l.seen[s]
	if !ok {
		label = fmt.Sprintf("%s-%d", kind, len(l.seen))
		l.seen[s] = label
	}
	return label
}

func (l *labels) optional(kind string, s *string) *string {
	if s == nil {
		return nil
	}
	return trace.Ptr(l.name(kind, *s))
}
