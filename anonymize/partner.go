package anonymize

import (
	"bufio"
	"cmp"
	"context"
	"fmt"

	"reprise/trace"
)

// Release writes the rows of tier partner of a trace of tier internal to dst,
// in their final order:
//
//  1. The units (users) of each pair of buckets of lengths, of each name and of
//     each block are counted.
//  2. Pairs with fewer than KClass units are merged with their neighbours, or
//     left out; a name with fewer is other.
//  3. Turns of a session stay linked as long as LinkK units have sessions of the
//     same lengths, turn by turn; then another session begins.
//  4. A block that at least KShare units have keeps one id; that of fewer is
//     another one for each of them. So reuse of what few have stays within each,
//     and nobody can find out by prompts of their own what another one sent. With
//     DropOwn it is gone as well, and with it what links the requests of each.
//     Where the unit is the request, users count all the same, or sessions of the
//     source, so that nobody confirms a guess by sending it KShare times. Where the
//     source has neither, a conversation of KShare requests would share its own
//     beginning: DropOwn counts inferred sessions then, and no rows of none, so that
//     blocks are shared by never more requests than without. The list is cut, or filled with ids that come once, to the length
//     of the bucket.
//  5. Arrivals are drawn anew within the bin of the quantum that they were in, and
//     count from the begin of the declared capture, or else from the first of them.
//  6. Rows are sorted, annotated and numbered as at an import: categories and
//     inferred sessions are those of what is released. With DropOwn no sessions
//     are inferred: what several have in common is nobody's conversation.
//
// What becomes of each column is in the rules of the [Card]. Memory is bounded as
// in [Run], with two bits for each distinct block beside, 20 bytes for each row
// while links are decided, and 256 MB while units of blocks are counted, which
// takes more passes over the rows for more blocks.
func Release(ctx context.Context, p PartnerPolicy, src Source, dst trace.Writer[trace.Request]) (Card, error) {
	if err := p.settle(); err != nil {
		return Card{}, err
	}
	if src.Meta.Tier != Internal {
		return Card{}, fmt.Errorf("a trace of tier %s cannot be released to a partner: use one of tier %s", cmp.Or(src.Meta.Tier, "none"), Internal)
	}
	r := &release{p: &p, src: src, buckets: newBuckets(p.PerOctave)}
	if err := r.survey(ctx); err != nil {
		return Card{}, err
	}
	s := &r.counts
	if s.blocks > s.refs {
		return Card{}, errDense
	}
	var err error
	budget := int64(p.Suppressed * float64(s.rows))
	if r.merging, err = s.classes.merge(2*p.PerOctave, budget); err != nil && s.rows > 0 {
		return Card{}, err
	}
	r.links = r.link()
	if r.sharing, err = countSharing(ctx, src.Open, r.sharerOf, s.blocks, p.KShare, p.limits.sharing); err != nil {
		return Card{}, err
	}
	return r.write(ctx, dst)
}

// write transforms the rows, and brings them in their final order.
func (r *release) write(ctx context.Context, dst trace.Writer[trace.Request]) (Card, error) {
	p := Policy{Tier: Partner, SourceBlock: r.src.Meta.BlockSize, BlockSize: max(r.src.Meta.BlockSize, 1), SpillDir: r.p.SpillDir, Progress: r.p.Progress, limits: r.p.limits}
	c := newCollector(&p)
	sorter := c.sorter
	defer sorter.Close()
	r.counts.label()
	t := &transformer{release: r, c: c, times: retimer{quantum: int64(r.p.Quantum), end: int64(r.src.Meta.Capture.Length()), noise: bufio.NewReaderSize(r.p.Noise, 1<<16)}}
	if err := r.eachRow(ctx, "release", t.addRow); err != nil {
		return Card{}, err
	}
	if t.times.err != nil {
		return Card{}, fmt.Errorf("read random numbers: %w", t.times.err)
	}
	sorted, err := sorter.Sort()
	if err != nil {
		return Card{}, err
	}
	defer sorted.Close()
	f := &finisher{p: &p, sorted: sorted, totals: c.totals, keepSessions: r.sourced() || r.p.dropsOwn(), keepNames: true, noBlocks: r.counts.refs == 0,
		declared: r.src.Meta.Capture.Declared()}
	after := &countingWriter{dst: Enforce(Partner, dst), size: r.src.Meta.BlockSize}
	if c.keyed {
		err = f.finishSpilled(ctx, c.blocks, c.refs, after)
	} else {
		err = f.finishInMemory(ctx, after)
	}
	if err != nil {
		return Card{}, err
	}
	return r.card(t, after, f.totals), nil
}

// link decides about the sessions of the source; nil keeps all links.
func (r *release) link() *links {
	if !r.cutsLinks() {
		return nil
	}
	l := &links{segment: make([]int32, r.counts.rows)}
	for i := range l.segment {
		l.segment[i] = -1
	}
	classes, n := r.merging.numbers()
	turns, sequences := r.counts.turns.released(classes)
	r.counts.turns = sessionTurns{}
	l.before = int64(len(turns) - len(sequences))
	cutter := cutter{k: r.p.LinkK, turns: turns, cuts: make([]bool, len(turns)), turnSorter: turnSorter{ends: make([]int, n+1)}}
	cutter.cut(sequences)
	segment := int32(-1)
	for i, t := range turns {
		if cutter.cuts[i] {
			segment++
		}
		l.segment[t.row] = segment
	}
	l.after = int64(len(turns)) - int64(segment) - 1
	return l
}
