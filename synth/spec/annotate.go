package spec

import (
	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/profile"
)

// An annotator gives rows the categories that [profile.Annotator] gives them, in memory that
// does not grow with their number: it forgets the blocks that no later row can have.
type annotator struct {
	size   int                   // of a block
	pages  map[uint64]*blockPage // by id of a block, over pageBlocks
	most   int                   // pages before some are forgotten
	rows   uint64                // of the first pass
	global int                   // leading blocks that more than half of the rows have
}

// A blockPage has a number for each of its blocks: in the first pass how many rows had it, in
// the second whether one had, and whether it was the last full one of the latest of these.
type blockPage [pageBlocks]uint64

const (
	pageBlocks = 64
	leastPages = 1 << 12 // 2 MiB

	known   = 1
	wasLast = 2
)

func newAnnotator(size, global int) *annotator {
	return &annotator{size: size, pages: map[uint64]*blockPage{}, most: leastPages, global: global}
}

// each calls f with the index of a block and its number, until that returns false.
func (a *annotator) each(blocks []uint64, f func(i int, n *uint64) bool) {
	var page *blockPage
	for i, id := range blocks {
		if i == 0 || id/pageBlocks != blocks[i-1]/pageBlocks {
			if page = a.pages[id/pageBlocks]; page == nil {
				page = new(blockPage)
				a.pages[id/pageBlocks] = page
			}
		}
		if !f(i, &page[id%pageBlocks]) {
			return
		}
	}
}

// count takes a row in the first pass.
func (a *annotator) count(r *trace.Request) {
	a.rows++
	a.each(r.Blocks, func(_ int, n *uint64) bool { *n++; return true })
}

// isGlobal tells whether more than half of the rows so far have a block of the page.
func (a *annotator) isGlobal(page *blockPage) (blocks int) {
	for _, n := range page {
		if 2*n > a.rows {
			blocks++
		}
	}
	return blocks
}

// counted is how many blocks the global prefix has, after the first pass. They lie on one
// path from the root, since ids are chained.
func (a *annotator) counted() (global int) {
	for _, page := range a.pages {
		global += a.isGlobal(page)
	}
	return global
}

// annotate takes a row in the second pass.
func (a *annotator) annotate(r *trace.Request) {
	hit, end := 0, false
	a.each(r.Blocks, func(_ int, n *uint64) bool {
		if *n == 0 {
			return false
		}
		hit, end = hit+1, *n&wasLast != 0
		return true
	})
	r.Category, _ = profile.Classifier{GlobalBlocks: a.global}.Classify(hit, len(r.Blocks), end)
	last := block.Full(int(r.InputTokens), a.size) - 1
	a.each(r.Blocks, func(i int, n *uint64) bool {
		if *n = known; i == last {
			*n |= wasLast
		}
		return true
	})
}

// forget drops, once there are twice as many pages as were left the last time, those of
// which no later row can have a block. In the first pass those stay that may be of the
// global prefix: a block that no later row has, and half of the rows so far have not, is
// not. live calls its argument with lists of the blocks that later rows can have.
func (a *annotator) forget(live func(func(blocks []uint64))) {
	if len(a.pages) < a.most {
		return
	}
	needed := map[uint64]bool{}
	live(func(blocks []uint64) {
		for i, id := range blocks {
			if i == 0 || id/pageBlocks != blocks[i-1]/pageBlocks {
				needed[id/pageBlocks] = true
			}
		}
	})
	for at, page := range a.pages {
		if !needed[at] && (a.rows == 0 || a.isGlobal(page) == 0) {
			delete(a.pages, at)
		}
	}
	a.most = max(leastPages, 2*len(a.pages))
}

// annotated are the rows of a generator on their way through an annotator.
type annotated struct {
	*generator
	a    *annotator
	take func(*trace.Request)
}

// Read implements [trace.Reader]. The generator is ahead of the annotator by what one call
// reads, so that blocks are forgotten between calls.
func (s *annotated) Read(rows []trace.Request) (int, error) {
	n, err := s.generator.Read(rows)
	for i := range rows[:n] {
		s.take(&rows[i])
	}
	s.a.forget(s.live)
	return n, err
}

// live calls each with the blocks that later rows can have, in lists.
func (g *generator) live(each func(blocks []uint64)) {
	for _, p := range g.parts {
		each(p.global)
		each(p.agents.sub.global)
		for _, group := range p.groups {
			for _, prefix := range group.alive {
				each(prefix.blocks)
			}
		}
		for _, was := range p.recent {
			each(was.Blocks)
		}
	}
	for _, x := range g.turns {
		for x != nil {
			each(x.row.Blocks) // it begins with x.prefix
			if x.join == nil {
				break
			}
			x = x.join.next
		}
	}
}
