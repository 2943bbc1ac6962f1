package anonymize

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/crash"
)

// Run reads all of src and writes its rows to dst in their final order.
//
// Memory is bounded: up to 134 million distinct blocks are numbered in it, for 4 to 26 bytes each and 64 for up to
// 8 million stretches of them, or a million where ids are hashes, see [block.IDs], and 48 MiB of rows are held. What
// is beyond goes to
// private files without names, about as many bytes as a source of hashed block
// ids has, and a third of them where ids count up; see [Totals]. What grows with
// the source is a hundred bytes or so for each session and user, 8 bytes for
// each row that has parents and comes out of order, and 4 bytes a row or, when blocks spill, 1.15 bits for each
// block of a row and each different block, with 4 bytes a row or, where sessions are inferred, what
// their finder in package profile takes and up to 16 bytes for each block in which the hit of a request
// ends; and 50 bytes for each of up to 1,048,576
// answers that other requests may go on from. Inferred blocks spill as those of text
// do, and to infer them takes some 130 bytes for each turn of up to 8,192 sessions. Errors name a request by its
// position and never quote it.
func Run(ctx context.Context, p Policy, src trace.EntryReader, dst trace.Writer[trace.Request]) (Card, error) {
	if err := p.check(); err != nil {
		return Card{}, err
	}
	key, err := block.NewKey()
	if err != nil {
		return Card{}, fmt.Errorf("draw a random key: %w", err)
	}
	c := newCollector(&p)
	if p.KTemplate > 0 {
		c.prompts = newTemplateCounter(p.KTemplate)
	}
	sums := &digestWriter{dst, trace.NewDigest()}
	if p.Raw != nil {
		if c.raw, err = newRawKeeper(p.SpillDir); err != nil {
			return Card{}, err
		}
		dst = sums
		defer c.raw.close()
	}
	sorter := c.sorter
	defer sorter.Close()
	if err := encodeAll(ctx, &p, key, nil, src, c.addRow); err != nil {
		return Card{}, err
	}
	if err := c.checkLengths(&p); err != nil {
		return Card{}, err
	}
	return c.finish(ctx, &p, sums, dst)
}

// finish sorts, annotates and renumbers the rows that were collected, and writes them
// to dst.
func (c *collector) finish(ctx context.Context, p *Policy, sums *digestWriter,
	dst trace.Writer[trace.Request]) (Card, error) {
	sorted, err := c.sorter.Sort()
	if err != nil {
		return Card{}, err
	}
	defer sorted.Close()
	f := &finisher{p: p, sorted: sorted, seen: c.seen, totals: c.totals, answers: c.answers,
		keepSessions: c.totals.Sessions > 0, prefixAlone: c.prefixAlone}
	f.trunks.apart = p.apart()
	if p.Capture.Declared() {
		f.declared, f.begin = true, p.Capture.Begin.UnixNano()
	}
	f.answers.named = int64(c.sessions.Len())
	f.totals.SpillBytes = sorted.SpillBytes()
	numbered, refs, keyed, models, breakers, prompts, raw := c.blocks, c.refs, c.keyed, c.models,
		cmp.Or(c.breakers.report(), c.recorded), c.prompts, c.raw
	c = nil // it is large
	dst = Enforce(p.Tier, dst)
	if err := f.surveyTrunks(ctx); err != nil {
		return Card{}, err
	}
	if !keyed && !f.trunks.tells() {
		numbered = nil // it is large too
	}
	if err = errManyInferred; !keyed {
		err = f.finishInMemory(ctx, dst)
	}
	if err == errManyInferred {
		f.seen = nil
		if !keyed {
			numbered.Freeze()
		}
		err = f.finishSpilled(ctx, numbered, refs, dst)
	}
	if err != nil {
		return Card{}, err
	}
	f.totals.Models = f.modelCounts(models)
	card := newCard(p, f.totals)
	card.Breakers = f.named(breakers)
	if prompts != nil {
		card.Templates = prompts.report()
		card.Risks = append(card.Risks,
			fmt.Sprintf("System prompts that at least %d users have are kept as text in a separate file. Have "+
				"someone read it before it is shared.", p.KTemplate))
	}
	if raw != nil {
		card.Raw, err = raw.write(p.Raw, sorted, sums.sum.Sum())
		card.Risks = append(card.Risks, rawRisk)
		card.Totals.SpillBytes += raw.spill.Size()
	}
	return card, err
}

const (
	batchEntries = 128     // entries a worker takes at once…
	batchText    = 1 << 20 // …or fewer, when their text is this long
	batchPlain   = 512     // plain ones
)

// A job is a batch on its way from the source to the sorter. Its memory is used
// again for later ones.
type job struct {
	first   int64
	entries []trace.Entry
	plain   trace.PlainEntries // in place of them: rows has the first, and the others differ in nothing else
	rows    []encoded
	tokens  []uint32      // of prompts, as rows say
	done    chan struct{} // gets a value when rows is whole
}

// encodeAll reads src in batches, encodes them on all workers and hands the
// rows to add in the order of the source. Where src is a part of a source, head is the begin
// of the whole; it is nil otherwise.
func encodeAll(ctx context.Context, p *Policy, key block.Key, head, src trace.EntryReader, add func(*encoded,
	[]uint32) error) error {
	workers := p.workers()
	jobs, order, free := make(chan *job), make(chan *job, 2*workers), make(chan *job, 3*workers)
	first := newJob()
	end := first.read(src)
	if end != nil && end != io.EOF {
		return end
	}
	e, err := newEncoder(p, key)
	if err != nil {
		return err
	}
	beginning := first
	if head != nil {
		beginning = newJob()
		if err := beginning.read(head); err != nil && err != io.EOF {
			return err
		}
	}
	survey := e.survey(beginning.entries)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer crash.Caught()
		return readAll(ctx, src, first, end, jobs, order, free)
	})
	for range workers {
		e, err := newEncoder(p, key)
		if err != nil {
			return err
		}
		e.source = survey
		g.Go(func() error {
			defer crash.Caught()
			for j := range jobs {
				if err := e.encodeJob(j); err != nil {
					return err
				}
			}
			return nil
		})
	}
	g.Go(func() error { // collect
		defer crash.Caught()
		for j := range order {
			select {
			case <-j.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			for i := range j.len() {
				if err := add(j.row(i), j.tokens); err != nil {
					return err
				}
			}
			p.progress("import", j.first+int64(j.len()))
			select {
			case free <- j:
			default:
			}
		}
		return nil
	})
	return g.Wait()
}

func newJob() *job {
	return &job{entries: make([]trace.Entry, 0, batchEntries), done: make(chan struct{}, 1)}
}

// readAll makes jobs of src, for the workers and, in order, for the collector. The first
// one was read before, and end is what came after it.
func readAll(ctx context.Context, src trace.EntryReader, j *job, end error, jobs, order chan<- *job,
	free <-chan *job) error {
	defer close(jobs)
	defer close(order)
	for first := int64(0); ; {
		j.first = first
		if n := j.len(); n > 0 {
			first += int64(n)
			for _, c := range []chan<- *job{order, jobs} {
				select {
				case c <- j:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		if end == io.EOF {
			return nil
		}
		if end != nil {
			return end
		}
		select {
		case j = <-free:
		default:
			j = newJob()
		}
		end = j.read(src)
	}
}

// len is how many rows there are.
func (j *job) len() int { return max(len(j.entries), j.plain.Len()) }

// row is row i of them, until the next one is asked for.
func (j *job) row(i int) *encoded {
	p := &j.plain
	if p.Len() == 0 {
		return &j.rows[i]
	}
	x := &j.rows[0]
	x.row.ArrivalNS, x.row.InputTokens, x.row.OutputTokens, x.source = p.UnixNS[i], p.Input[i], &p.Output[i], p.IDsOf(i)
	return x
}

// encodeJob fills the rows of a job.
func (e *encoder) encodeJob(j *job) error {
	failed := func(i int, err error) error {
		return fmt.Errorf("request %d of the source: %w", j.first+int64(i)+1, err) // it quotes nothing
	}
	n := j.len()
	e.parts = parts{tokens: j.tokens[:0]}
	if p := &j.plain; p.Len() > 0 {
		j.rows = slices.Grow(j.rows[:0], 1)[:1]
		first := p.Entry(0)
		if err := e.encode(&first, &j.rows[0]); err != nil {
			return failed(0, err)
		}
		for i, at := range p.UnixNS {
			var err error
			if p.UnixNS[i], err = e.arrival(time.Unix(0, at)); err != nil {
				return failed(i, err)
			}
		}
	} else {
		j.rows = slices.Grow(j.rows[:0], n)[:n]
		for i := range j.entries {
			if err := e.encode(&j.entries[i], &j.rows[i]); err != nil {
				return failed(i, err)
			}
		}
	}
	j.tokens = e.parts.tokens
	clear(j.entries) // the text is needed no more
	j.done <- struct{}{}
	return nil
}

// read reads entries until there are enough for a worker.
func (j *job) read(src trace.EntryReader) error {
	batch := j.entries[:0]
	defer func() { j.entries = batch }()
	j.plain.Clear()
	if r, ok := src.(trace.PlainReader); ok {
		if r.ReadPlain(&j.plain, batchPlain); j.plain.Len() > 0 {
			return nil
		}
	}
	for text := 0; len(batch) < batchEntries && text < batchText; {
		from := len(batch)
		n, err := src.Read(batch[from:min(from+8, batchEntries)])
		batch = batch[:from+n]
		for i := from; i < from+n; i++ {
			e := &batch[i]
			for k, m := range e.Messages { // what it does not share with the entry before it
				if i == 0 || k >= len(batch[i-1].Messages) || m.Content != batch[i-1].Messages[k].Content {
					text += m.Content.Len() + m.Calls.Len()
				}
			}
			if e.Reply != nil {
				text += e.Reply.Len()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
