package profile

// recentMarks are marks of blocks by their ids. Those of blocks that no later row can have are dropped.
type recentMarks struct {
	pages map[uint64]*markPage // by id, over pageBlocks
	most  int                  // pages before some are dropped
}

type markPage [pageBlocks]uint64

const (
	pageBlocks = 64
	leastPages = 1 << 12 // 2 MiB
)

func newRecentMarks() *recentMarks {
	return &recentMarks{pages: map[uint64]*markPage{}, most: leastPages}
}

// find appends the marks of blocks to a path.
func (m *recentMarks) find(path []*uint64, blocks []uint64) []*uint64 {
	var page *markPage
	for i, id := range blocks {
		if i == 0 || id/pageBlocks != blocks[i-1]/pageBlocks {
			if page = m.pages[id/pageBlocks]; page == nil {
				page = new(markPage)
				m.pages[id/pageBlocks] = page
			}
		}
		path = append(path, &page[id%pageBlocks])
	}
	return path
}

func (m *recentMarks) carriedByMost(rows int64) (blocks int) {
	for _, page := range m.pages {
		blocks += carriedByMost(page[:], rows)
	}
	return blocks
}

// Forget may drop the marks of blocks that no later row can have, between two rows of either
// pass. live calls its argument with lists of all those that later rows can have; it is
// called when there are twice as many marks as were left the last time. It is for an
// annotator that [Options] let forget, and for one that they do not it does nothing.
func (a *Annotator) Forget(live func(each func(blocks []uint64))) {
	m := a.recent
	if m == nil || len(m.pages) < m.most {
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
	for at, page := range m.pages {
		// What half of the rows so far did not carry is not of the global prefix, if no
		// later row does.
		if !needed[at] && (a.second || carriedByMost(page[:], a.rows) == 0) {
			delete(m.pages, at)
		}
	}
	m.most = max(leastPages, 2*len(m.pages))
}
