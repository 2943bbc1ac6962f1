package profile

// recentMarks are marks of blocks by their ids. Those of blocks that no later row can have are dropped.
type recentMarks struct {
	pages map[uint64]*markPage // by id, over pageBlocks
	most  int                  // pages before some are dropped
}

type markPage [pageBlocks]uint32

const (
	pageBlocks = 128
	leastPages = 1 << 12 // 2 MiB
)

func newRecentMarks() *recentMarks {
	return &recentMarks{pages: map[uint64]*markPage{}, most: leastPages}
}

// find appends the marks of blocks to a path.
func (m *recentMarks) find(path []*uint32, blocks []uint64) []*uint32 {
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

// Forget may drop what is known of blocks that no later row can have, between two rows. live calls its
// argument with lists of all those that later rows can have; it is
// called when there are twice as many marks as were left the last time. It is for ids that
// count up, and does nothing for others.
func (c *Categorizer) Forget(live func(each func(blocks []uint64))) {
	m := c.blocks.recent
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
		if !needed[at] {
			for _, mark := range page {
				if mark >= severalUsers {
					c.users.free = append(c.users.free, mark-severalUsers)
				}
			}
			delete(m.pages, at)
		}
	}
	m.most = max(leastPages, 2*len(m.pages))
}
