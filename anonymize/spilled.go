package anonymize

import (
	"context"
	"errors"
	"math"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/profile"
)

// A prefixHit is what was known of a prompt when it came: how many leading blocks,
// and what of the last of them.
type prefixHit struct {
	hit     int
	deepest answer
}

// inferSessions reads the rows with who touched their blocks last, and finds the blocks in which
// their hits end.
func (f *finisher) inferSessions(ctx context.Context,
	x *partitions) (finder profile.SessionFinder, ends profile.HitEnds, err error) {
	n := x.numberer()
	err = f.eachRow(ctx, n.begin, func(row int64, r *trace.Request) error {
		load := isLoad(r)
		blocks, seen, err := n.list(r.Blocks, load)
		if err != nil {
			return err
		}
		if _, _, err = n.list(r.OutputBlocks, false); err != nil {
			return err
		}
		if seen.hit > 0 {
			ends.Mark(blocks[seen.hit-1])
		}
		if r.Blocks = blocks; load {
			finder.See(profile.SightingOf(r, x.size, seen.hit, row-int64(seen.deepest.before)))
		} else {
			finder.Skip()
		}
		return nil
	}, nil)
	finder.Finish()
	ends.Finish()
	return finder, ends, err
}

// finishSpilled does what finishInMemory does, with the state of blocks on disk.
func (f *finisher) finishSpilled(ctx context.Context, numbered *block.IDs, refs int64,
	dst trace.Writer[trace.Request]) (err error) {
	if f.trunks.tells() {
		rows := f.sorted
		defer func() { f.sorted = rows }()
		inferred, more, fault := f.inferSpilled(ctx)
		if fault != nil {
			return fault
		}
		defer func() { err = errors.Join(err, inferred.Close()) }()
		f.totals.SpillBytes += inferred.SpillBytes()
		f.sorted, refs = inferred, refs+more
	}
	x, err := newPartitions(f.p, numbered, refs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	var who []uint32 // by row: its session, where sessions are given
	var named profile.CategoryRule
	err = f.eachRow(ctx, nil, func(row int64, r *trace.Request) error {
		if err := x.list(row, r.Blocks, isLoad(r)); err != nil {
			return err
		}
		if f.keepSessions {
			who = append(who, named.Who(row, r.Session))
		}
		return x.list(row, r.OutputBlocks, false)
	}, nil)
	if err != nil {
		return err
	}
	if err := x.resolve(ctx, f.p.workers(), who); err != nil {
		return err
	}
	var finder profile.SessionFinder
	var ends profile.HitEnds
	if !f.keepSessions {
		if finder, ends, err = f.inferSessions(ctx, x); err != nil {
			return err
		}
	}
	n := x.numberer()
	f.totals.Inferred = finder.Inferred()
	var rule profile.CategoryRule
	turns := make([]int32, finder.Inferred().Sessions)
	err = f.eachRow(ctx, n.begin, func(row int64, r *trace.Request) error {
		blocks, seen, err := n.list(r.Blocks, isLoad(r))
		if err != nil {
			return err
		}
		r.Blocks = blocks
		if r.OutputBlocks != nil {
			if r.OutputBlocks, _, err = n.list(r.OutputBlocks, false); err != nil {
				return err
			}
		}
		if session, ok := finder.Session(row); ok {
			r.Session, r.Turn = trace.Ptr(session), trace.Ptr(turns[session])
			turns[session]++
		}
		session := rule.Who(row, r.Session)
		if r.Category = ""; isLoad(r) {
			use := seen.deepest.use()
			if !f.keepSessions {
				use = ends.Take(r.Blocks, seen.hit, session)
			}
			r.Category = rule.Category(r, x.size, seen.hit, use)
		}
		f.totals.Sources.add(r)
		f.ids.ApplyPeople(r)
		f.rename(row, r)
		return nil
	}, dst)
	f.totals.Blocks = int(n.firsts.Marks())
	f.totals.SpillBytes += x.refs.Size() + x.answers.Size()
	return err
}

// surveyTrunks looks for what sessions share, where rows without blocks tell of it.
func (f *finisher) surveyTrunks(ctx context.Context) error {
	if !f.prefixAlone {
		return nil
	}
	return f.eachRow(ctx, nil, func(_ int64, r *trace.Request) error {
		f.trunks.note(r)
		return nil
	}, nil)
}

// inferredKeys are the first half of the keys of inferred blocks. Others have it by
// accident only.
const inferredKeys = 1<<62 - 1

// inferSpilled writes the rows once more, in their order, with inferred blocks where they
// have none, and returns how many blocks these are.
func (f *finisher) inferSpilled(ctx context.Context) (out *trace.Sorted, refs int64, err error) {
	sorter := trace.NewSorter(f.p.SpillDir)
	defer sorter.Close()
	infer := f.trunks.newInferrer(f.p.blockSize(), 0, math.MaxUint64)
	err = f.eachRow(ctx, nil, func(row int64, r *trace.Request) error {
		before := r.ReuseSource
		if infer.fill(row, r); r.ReuseSource == before {
			return sorter.Add(r)
		}
		for _, list := range []*[]uint64{&r.Blocks, &r.OutputBlocks} {
			if *list == nil {
				continue
			}
			refs += int64(len(*list))
			words, code := make([]uint64, 0, 8), keyWriter{}
			for _, id := range *list {
				words = code.append(words, newKey(inferredKeys, id))
			}
			*list = words
		}
		return sorter.Add(r)
	}, nil)
	if err != nil {
		return nil, 0, err
	}
	out, err = sorter.Sort()
	return out, refs, err
}

// A numberer gives rows the final numbers of their blocks by the answers.
type numberer struct {
	x       *partitions
	answers []*trace.SpillReader // by partition
	firsts  block.Bits
	idBatches
}

// idBatches are the ids of the blocks of rows, of as many batches as somebody may read.
type idBatches struct {
	ids    []uint64 // of the rows at hand
	before [trace.PassBatches][]uint64
	batch  int // which of them is ids
}

func (x *partitions) numberer() *numberer {
	n := &numberer{x: x}
	for i := range x.parts {
		n.answers = append(n.answers, x.answers.Reader(x.buffer, x.parts[i].answers...))
	}
	return n
}

// begin begins a batch of rows, and reuses the memory of a batch that nobody reads any more.
func (n *idBatches) begin() {
	n.before[n.batch] = n.ids
	n.batch = (n.batch + 1) % len(n.before)
	if n.ids = n.before[n.batch][:0]; n.ids == nil {
		n.ids = make([]uint64, 0, 1<<12) // never nil: no blocks are an empty list
	}
}

// list returns the numbers of a list of blocks that has no keys.
func (n *idBatches) list(words []uint64) (ids []uint64, err error) {
	from := len(n.ids)
	n.ids, err = appendNumbers(n.ids, words)
	return n.ids[from:len(n.ids):len(n.ids)], err
}

// list returns the numbers of a list of blocks.
func (n *numberer) list(words []uint64, prompt bool) ([]uint64, prefixHit, error) {
	var s prefixHit
	from, leading := len(n.ids), prompt
	blocks := keyReader{words: words, numbered: n.x.numbered}
	for {
		k, left, err := blocks.nextStretch()
		if err != nil {
			return nil, s, err
		}
		if left == 0 {
			return n.ids[from:len(n.ids):len(n.ids)], s, nil
		}
		for answers := n.answers[n.x.partitionOf(k)]; left > 0; {
			a, same, err := readAnswer(answers, prompt)
			if err != nil {
				return nil, s, err
			}
			if same < 1 || same > left || a.back > uint64(n.firsts.Len()) {
				return nil, s, errWords
			}
			left -= same
			n.add(a, same)
			if leading = leading && a.before != 0; leading {
				s = prefixHit{s.hit + same, a}
			}
		}
	}
}

// add gives their numbers to blocks with the same answer. These count up, as
// the first references to them follow each other.
func (n *numberer) add(a answer, same int) {
	first := n.firsts.Len() - int64(a.back)
	n.firsts.Add(same, a.back == 0)
	for id := n.firsts.Before(first); same > 0; same-- {
		n.ids = append(n.ids, id)
		id++
	}
}

// readAnswer reads what [resolver.write] wrote.
func readAnswer(r *trace.SpillReader, prompt bool) (a answer, n int, err error) {
	back, err := r.Uvarint()
	if err != nil {
		return a, 0, whole(err)
	}
	a.back, n = back>>1, 1
	if back&1 != 0 {
		more, err := r.Uvarint()
		if err != nil {
			return a, 0, whole(err)
		}
		n = int(more)
	}
	if prompt && a.back > 0 {
		a.before, err = r.Uvarint()
	}
	return a, n, whole(err)
}
