package anonymize

import (
	"context"
	"errors"
	"math"
	"math/bits"

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
func (f *finisher) inferSessions(ctx context.Context, x *partitions) (finder profile.SessionFinder, ends hitEnds, err error) {
	n := x.numberer()
	err = f.eachBatch(ctx, func(row int64, rows []trace.Request) error {
		n.begin()
		for i := range rows {
			r, load := &rows[i], isLoad(&rows[i])
			blocks, seen, err := n.list(r.Blocks, load)
			if err != nil {
				return err
			}
			if _, _, err = n.list(r.OutputBlocks, false); err != nil {
				return err
			}
			if seen.hit > 0 {
				ends.blocks.set(int64(blocks[seen.hit-1]))
			}
			if r.Blocks = blocks; load {
				finder.See(profile.SightingOf(r, x.size, seen.hit, row+int64(i)-int64(seen.deepest.before)))
			} else {
				finder.Skip()
			}
		}
		return nil
	}, nil)
	finder.Finish()
	ends.marks = make([]uint32, ends.blocks.count())
	return finder, ends, err
}

// hitEnds say which sessions had a block, for each block in which the hit of a row ends. A category
// asks for no other block.
type hitEnds struct {
	blocks rankedBits
	marks  []uint32 // of each of them, see [profile.BlockUsers]
	users  profile.BlockUsers
}

// take says who had the block in which the hit of a row ends, and notes whose the row is.
func (h *hitEnds) take(blocks []uint64, hit int, who uint32) (use profile.BlockUse) {
	if hit > 0 {
		use = h.users.Use(h.marks[h.blocks.before(int64(blocks[hit-1]))], who)
	}
	for _, id := range blocks {
		if h.blocks.has(int64(id)) {
			h.users.Add(&h.marks[h.blocks.before(int64(id))], who)
		}
	}
	return use
}

// finishSpilled does what finishInMemory does, with the state of blocks on disk.
func (f *finisher) finishSpilled(ctx context.Context, numbered *block.IDs, refs int64, dst trace.Writer[trace.Request]) (err error) {
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
	err = f.eachBatch(ctx, func(row int64, rows []trace.Request) error {
		for i := range rows {
			r, row, load := &rows[i], row+int64(i), isLoad(&rows[i])
			if err := x.list(row, r.Blocks, load); err != nil {
				return err
			}
			if err := x.list(row, r.OutputBlocks, false); err != nil {
				return err
			}
			if f.keepSessions {
				who = append(who, named.Who(row, r.Session))
			}
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	if err := x.resolve(ctx, f.p.workers(), who); err != nil {
		return err
	}
	var finder profile.SessionFinder
	var ends hitEnds
	if !f.keepSessions {
		if finder, ends, err = f.inferSessions(ctx, x); err != nil {
			return err
		}
	}
	n := x.numberer()
	f.totals.Inferred = finder.Inferred()
	var rule profile.CategoryRule
	turns := make([]int32, finder.Inferred().Sessions)
	err = f.eachBatch(ctx, func(row int64, rows []trace.Request) error {
		n.begin()
		for i := range rows {
			r, row := &rows[i], row+int64(i)
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
					use = ends.take(r.Blocks, seen.hit, session)
				}
				r.Category = rule.Category(r, x.size, seen.hit, use)
			}
			f.totals.Sources.add(r)
			f.ids.ApplyPeople(r)
			f.rename(row, r)
		}
		return nil
	}, dst)
	f.totals.Blocks = int(n.firsts.marks)
	f.totals.SpillBytes += x.refs.Size() + x.answers.Size()
	return err
}

// surveyTrunks looks for what sessions share, where rows without blocks tell of it.
func (f *finisher) surveyTrunks(ctx context.Context) error {
	if !f.prefixAlone {
		return nil
	}
	return f.eachBatch(ctx, func(_ int64, rows []trace.Request) error {
		for i := range rows {
			f.trunks.note(&rows[i])
		}
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
	err = f.eachBatch(ctx, func(row int64, rows []trace.Request) error {
		for i := range rows {
			r := &rows[i]
			before := r.ReuseSource
			infer.fill(row+int64(i), r)
			if r.ReuseSource == before {
				continue
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
		}
		_, err := sorter.Write(rows)
		return err
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
	firsts  rankedBits
	ids     []uint64 // of the rows at hand
	before  [trace.PassBatches][]uint64
	batch   int // which of them is ids
}

func (x *partitions) numberer() *numberer {
	n := &numberer{x: x}
	for i := range n.before {
		n.before[i] = make([]uint64, 0, 1<<12) // never nil: no blocks are an empty list
	}
	n.ids = n.before[0]
	for i := range x.parts {
		n.answers = append(n.answers, x.answers.Reader(x.buffer, x.parts[i].answers...))
	}
	return n
}

// begin begins a batch of rows, and reuses the memory of a batch that nobody reads any more.
func (n *numberer) begin() {
	n.before[n.batch] = n.ids
	n.batch = (n.batch + 1) % len(n.before)
	n.ids = n.before[n.batch][:0]
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
			if same < 1 || same > left || a.back > uint64(n.firsts.n) {
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
	first := n.firsts.n - int64(a.back)
	n.firsts.add(same, a.back == 0)
	for id := n.firsts.before(first); same > 0; same-- {
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

// rankedBits are a sequence of bits in 1.15 bits of memory each. They count the set bits before any
// bit. A set bit marks the first reference to a block, or a block in which a hit ends.
type rankedBits struct {
	pages [][]line
	n     int64  // bits so far
	marks uint64 // that are set among them
}

// A line is a cache line: the set bits before it, and the next 448 bits.
type line [8]uint64

const (
	lineBits  = 7 * 64
	pageLines = 1 << 14
)

// add appends n bits, all set or none. Of block references, the number of the first's block is the
// number of firsts before it.
func (f *rankedBits) add(n int, first bool) {
	for n > 0 {
		at := f.n / lineBits
		page := at / pageLines
		if page == int64(len(f.pages)) {
			f.pages = append(f.pages, make([]line, pageLines))
		}
		l, bit := &f.pages[page][at%pageLines], f.n%lineBits
		if bit == 0 {
			l[0] = f.marks
		}
		m := min(n, int(64-bit%64)) // within a word
		if first {
			l[1+bit/64] |= (1<<m - 1) << (bit % 64)
			f.marks += uint64(m)
		}
		f.n += int64(m)
		n -= m
	}
}

// set sets bit i. Nothing may be added then, and [rankedBits.before] is known after count.
func (f *rankedBits) set(i int64) {
	at := i / lineBits
	for int64(len(f.pages)) <= at/pageLines {
		f.pages = append(f.pages, make([]line, pageLines))
	}
	f.pages[at/pageLines][at%pageLines][1+i%lineBits/64] |= 1 << (i % lineBits % 64)
}

// count counts the bits that are set.
func (f *rankedBits) count() uint64 {
	f.marks = 0
	for _, page := range f.pages {
		for i := range page {
			page[i][0] = f.marks
			for _, w := range page[i][1:] {
				f.marks += uint64(bits.OnesCount64(w))
			}
		}
	}
	return f.marks
}

// has reports whether bit i is set.
func (f *rankedBits) has(i int64) bool {
	at := i / lineBits
	return at/pageLines < int64(len(f.pages)) && f.pages[at/pageLines][at%pageLines][1+i%lineBits/64]>>(i%lineBits%64)&1 != 0
}

// before counts the set bits before bit i, which was added or set.
func (f *rankedBits) before(i int64) uint64 {
	at := i / lineBits
	l, bit := &f.pages[at/pageLines][at%pageLines], i%lineBits
	n := l[0]
	for _, w := range l[1 : 1+bit/64] {
		n += uint64(bits.OnesCount64(w))
	}
	return n + uint64(bits.OnesCount64(l[1+bit/64]&(1<<(bit%64)-1)))
}
